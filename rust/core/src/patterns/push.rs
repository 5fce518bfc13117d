//! PUSH: each message goes to one of the pullers, in turn.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::drops::DropReason;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec, Priority, Spills, single_part};
use crate::pipe::PipeId;

/// The behaviour of PUSH and SCATTER. SCATTER sends single parts only, and so does PUSH over the scalability protocols.
pub(super) struct Push<const SINGLE_PART: bool> {
    socket_type: SocketType,
    outbound: LoadBalancer,
}

impl<const SINGLE_PART: bool> Push<SINGLE_PART> {
    pub(super) fn new(socket_type: SocketType) -> Push<SINGLE_PART> {
        Push {
            socket_type,
            outbound: LoadBalancer::default(),
        }
    }
}

impl<const SINGLE_PART: bool> Pattern for Push<SINGLE_PART> {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    // A puller must not send. If it does, the messages stay in its pipe, which is bounded, until it hangs up.
    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard_departed(id, DropReason::Filtered);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.writable(pipes, id);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.hung_up(pipes, id);
        pipes.discard_departed(id, DropReason::Filtered);
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
        if SINGLE_PART {
            single_part::check(message, self.socket_type)?;
        }
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

pub(super) static PUSH: PatternSpec = PatternSpec {
    can_recv: false,
    prompt: true,
    conflates: true,
    spills: Spills::ForAny,
    options: &[ids::SPILL_DIR, ids::SPILL_BYTES, ids::SPILL_KEEP],
    ..PatternSpec::new(SocketType::Push, || {
        Box::new(Push::<false>::new(SocketType::Push))
    })
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn pullers_take_turns() {
        let mut rig = Rig::new(&PUSH);
        let pullers: Vec<_> = (0..3).map(|_| rig.accept("")).collect();
        for n in 0..9 {
            rig.send([format!("{n}")]).unwrap();
        }
        assert_eq!(rig.far_recv_all(pullers[0]), ["0", "3", "6"]);
        assert_eq!(rig.far_recv_all(pullers[1]), ["1", "4", "7"]);
        assert_eq!(rig.far_recv_all(pullers[2]), ["2", "5", "8"]);
    }

    #[test]
    fn waits_without_a_puller_and_gives_the_message_back() {
        let mut rig = Rig::new(&PUSH);
        assert!(!rig.can_send());
        let rejected = rig.send(["a", "b"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, Message::from_iter(["a", "b"]));
        rig.accept("");
        assert!(rig.can_send());
    }

    #[test]
    fn queues_for_a_connection_that_is_not_up_yet() {
        let mut rig = Rig::new(&PUSH);
        let id = rig.connect();
        rig.send(["early"]).unwrap();
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["early"]);
    }

    #[test]
    fn full_pullers_are_passed_over_until_they_have_read_half() {
        let mut rig = Rig::with_hwm(&PUSH, 4);
        let slow = rig.accept("");
        let fast = rig.accept("");
        for n in 0..40 {
            rig.send([format!("{n}")]).unwrap();
            rig.far_recv_all(fast);
        }
        // The slow one got its four turns, the fast one everything else.
        assert_eq!(rig.far_recv_all(slow), ["0", "2", "4", "6"]);
        rig.settle();
        rig.send(["40"]).unwrap();
        rig.send(["41"]).unwrap();
        assert_eq!(rig.far_recv_all(slow).len(), 1);
        assert_eq!(rig.far_recv_all(fast).len(), 1);
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn blocks_when_all_are_full_and_resumes_without_loss_or_repetition() {
        let mut rig = Rig::with_hwm(&PUSH, 4);
        let a = rig.accept("");
        for n in 0..4 {
            rig.send([format!("{n}")]).unwrap();
        }
        assert!(!rig.can_send());
        assert_eq!(rig.send(["4"]).unwrap_err().error.kind(), ErrorKind::Again);
        assert_eq!(rig.far_recv(a).unwrap(), ["0"]);
        rig.settle();
        assert!(
            !rig.can_send(),
            "one of four read: not yet at the low-water mark"
        );
        assert_eq!(rig.far_recv(a).unwrap(), ["1"]);
        rig.settle();
        assert!(rig.can_send());
        rig.send(["4"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["2", "3", "4"]);
    }

    #[test]
    fn several_full_pullers_are_the_same_as_none() {
        let mut rig = Rig::with_hwm(&PUSH, 1);
        let pullers: Vec<_> = (0..3).map(|_| rig.accept("")).collect();
        for n in 0..3 {
            rig.send([format!("{n}")]).unwrap();
        }
        assert_eq!(rig.send(["3"]).unwrap_err().error.kind(), ErrorKind::Again);
        assert!(!rig.can_send());
        assert_eq!(rig.far_recv_all(pullers[1]), ["1"]);
        rig.send(["3"]).unwrap();
        assert_eq!(rig.far_recv_all(pullers[1]), ["3"]);
    }

    #[test]
    fn a_dead_puller_gets_nothing() {
        let mut rig = Rig::new(&PUSH);
        let dead = rig.accept("");
        let alive = rig.accept("");
        rig.send(["lost"]).unwrap();
        rig.far_close(dead);
        // Even before the socket was notified.
        rig.send(["a"]).unwrap();
        rig.send(["b"]).unwrap();
        rig.settle();
        assert!(rig.is_gone(dead));
        rig.send(["c"]).unwrap();
        assert_eq!(rig.far_recv_all(alive), ["a", "b", "c"]);
    }

    #[test]
    fn a_puller_that_sends_is_ignored_and_can_still_leave() {
        let mut rig = Rig::new(&PUSH);
        let id = rig.accept("");
        rig.far_send(id, ["what?"]);
        assert!(!rig.can_recv());
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::NotSupported);
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_gone(id));
        assert_eq!(rig.dropped(DropReason::Filtered), 1);
    }

    #[test]
    fn multipart_messages_stay_together() {
        let mut rig = Rig::new(&PUSH);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.send(["1", "2", "3"]).unwrap();
        rig.send(["4", "5"]).unwrap();
        assert_eq!(rig.far_recv(a).unwrap(), ["1", "2", "3"]);
        assert_eq!(rig.far_recv(b).unwrap(), ["4", "5"]);
    }
}
