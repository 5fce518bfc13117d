//! SCATTER: each message, a single part, goes to one of the gatherers, in turn.

use zeroxide_proto::socket_type::SocketType;

use crate::patterns::PatternSpec;
use crate::patterns::push::Push;

pub(super) static SCATTER: PatternSpec = PatternSpec {
    can_recv: false,
    prompt: true,
    single_part: true,
    ..PatternSpec::new(SocketType::Scatter, || {
        Box::new(Push::<true>::new(SocketType::Scatter))
    })
};

#[cfg(test)]
mod tests {
    use zeroxide_proto::message::Message;

    use super::*;
    use crate::error::ErrorKind;
    use crate::patterns::drops::DropReason;
    use crate::patterns::rig::Rig;

    #[test]
    fn gatherers_take_turns_and_full_ones_are_passed_over() {
        let mut rig = Rig::with_hwm(&SCATTER, 2);
        assert!(!rig.can_send());
        let a = rig.accept("");
        let b = rig.accept("");
        for n in 0..4 {
            rig.send([format!("{n}")]).unwrap();
        }
        let rejected = rig.send(["5"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, Message::from("5"));
        assert_eq!(rig.far_recv_all(a), ["0", "2"]);
        rig.send(["4"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["4"]);
        assert_eq!(rig.far_recv_all(b), ["1", "3"]);
    }

    #[test]
    fn messages_of_several_parts_are_refused() {
        let mut rig = Rig::new(&SCATTER);
        let id = rig.accept("");
        let rejected = rig.send(["1", "2"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
        assert_eq!(rejected.message, Message::from_iter(["1", "2"]));
        assert!(rig.far_recv_all(id).is_empty());
    }

    #[test]
    fn a_gatherer_that_sends_is_ignored_and_can_still_leave() {
        let mut rig = Rig::new(&SCATTER);
        let id = rig.accept("");
        rig.far_send(id, ["what?"]);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::NotSupported);
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_gone(id));
        assert_eq!(rig.dropped(DropReason::Filtered), 1);
    }
}
