//! SCATTER: each message, a single part, goes to one of the gatherers, in turn.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::{DropReason, PipeSet};
use crate::patterns::{Pattern, PatternSpec, single_part};
use crate::pipe::PipeId;

#[derive(Default)]
struct Scatter {
    outbound: LoadBalancer,
}

impl Pattern for Scatter {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    // A gatherer must not send. If it does, the messages stay in its pipe, which is bounded.
    fn readable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        pipes.discard(id, DropReason::Filtered);
        pipes.check_read(id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, SocketType::Scatter)?;
        self.outbound.send(pipes, message)
    }

    fn recv(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<Option<PipeId>> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.outbound.can_send(pipes)
    }

    fn can_recv(&mut self, _: &mut PipeSet) -> bool {
        false
    }
}

pub(super) static SCATTER: PatternSpec = PatternSpec {
    can_recv: false,
    single_part: true,
    ..PatternSpec::new(SocketType::Scatter, || Box::new(Scatter::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
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
