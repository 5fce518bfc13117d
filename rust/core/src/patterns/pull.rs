//! PULL: receives from the pushers, fairly.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Pull {
    inbound: FairQueue,
}

impl Pattern for Pull {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.remove(id);
    }

    fn send(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<()> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes)
    }
}

pub(super) static PULL: PatternSpec = PatternSpec {
    can_send: false,
    conflates: true,
    ..PatternSpec::new(SocketType::Pull, || Box::new(Pull::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn nothing_to_receive_is_again() {
        let mut rig = Rig::new(&PULL);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::Again);
        rig.accept("");
        assert!(!rig.can_recv());
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::Again);
        assert_eq!(
            rig.send(["x"]).unwrap_err().error.kind(),
            ErrorKind::NotSupported
        );
    }

    #[test]
    fn pushers_take_turns_message_by_message() {
        let mut rig = Rig::new(&PULL);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.far_send(a, ["a1", "a2"]);
        rig.far_send(a, ["a3"]);
        rig.far_send(b, ["b1"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["a1", "a2"]);
        assert_eq!(rig.recv().unwrap(), ["b1"]);
        assert_eq!(rig.recv().unwrap(), ["a3"]);
        assert!(!rig.can_recv());
    }

    #[test]
    fn a_flood_does_not_drown_nine_slow_pushers() {
        let mut rig = Rig::new(&PULL);
        let flood = rig.accept("");
        let slow: Vec<_> = (0..9).map(|_| rig.accept("")).collect();
        assert!(!rig.can_recv());
        for round in 0..50 {
            for _ in 0..100 {
                rig.far_send(flood, ["flood"]);
            }
            for id in &slow {
                rig.far_send(*id, [format!("slow {round}")]);
            }
            rig.settle();
            // Each peer that had messages when the round began is served within ten receives.
            let taken: Vec<_> = (0..10).map(|_| rig.recv().unwrap()).collect();
            let served = taken.iter().filter(|m| m[0] == format!("slow {round}"));
            assert_eq!(served.count(), 9, "{taken:?}");
        }
    }

    #[test]
    fn one_of_ten_thousand_is_found_at_once() {
        let mut rig = Rig::new(&PULL);
        let ids: Vec<_> = (0..10_000).map(|_| rig.accept("")).collect();
        assert!(!rig.can_recv());
        for id in [ids[9_999], ids[17], ids[5_000]] {
            rig.far_send(id, ["here"]);
            rig.settle();
            assert_eq!(rig.recv_from().unwrap().1, Some(id));
            assert!(!rig.can_recv());
        }
        for id in ids {
            rig.far_close(id);
        }
        rig.settle();
        assert!(rig.is_empty());
    }

    #[test]
    fn messages_of_a_dead_pusher_are_received_before_its_pipe_is_removed() {
        let mut rig = Rig::new(&PULL);
        let id = rig.accept("");
        assert!(!rig.can_recv());
        rig.far_send(id, ["1"]);
        rig.far_send(id, ["2"]);
        rig.far_close(id);
        rig.settle();
        assert!(!rig.is_gone(id));
        assert_eq!(rig.recv().unwrap(), ["1"]);
        assert_eq!(rig.recv().unwrap(), ["2"]);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::Again);
        rig.settle();
        assert!(rig.is_gone(id));
    }

    #[test]
    fn an_idle_application_does_not_keep_dead_pipes() {
        let mut rig = Rig::new(&PULL);
        for _ in 0..100 {
            let id = rig.accept("");
            rig.far_close(id);
            rig.settle();
        }
        assert!(rig.is_empty());
    }
}
