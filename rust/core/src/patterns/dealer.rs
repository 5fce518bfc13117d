//! DEALER: sends in turn, receives fairly, and leaves the envelope to the application.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec, Priority, Spills};
use crate::pipe::PipeId;

#[derive(Default)]
struct Dealer {
    outbound: LoadBalancer,
    inbound: FairQueue,
}

impl Pattern for Dealer {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.hung_up(pipes, id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.writable(pipes, id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        self.outbound.send(pipes, message)
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.outbound.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes)
    }
}

pub(super) static DEALER: PatternSpec = PatternSpec {
    conflates: true,
    single_connect: true,
    spills: Spills::ForAny,
    options: &[
        ids::PROBE_ROUTER,
        ids::HELLO_MSG,
        ids::HICCUP_MSG,
        ids::SPILL_DIR,
        ids::SPILL_BYTES,
        ids::SPILL_KEEP,
    ],
    ..PatternSpec::new(SocketType::Dealer, || Box::new(Dealer::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn sends_in_turn_and_receives_fairly() {
        let mut rig = Rig::new(&DEALER);
        let a = rig.accept("");
        let b = rig.accept("");
        for n in 0..4 {
            rig.send(["", &n.to_string()]).unwrap();
        }
        assert_eq!(rig.far_recv(a).unwrap(), ["", "0"]);
        assert_eq!(rig.far_recv(b).unwrap(), ["", "1"]);
        rig.far_send(a, ["a0"]);
        rig.far_send(a, ["a1"]);
        rig.far_send(b, ["b0"]);
        rig.settle();
        assert_eq!(rig.recv_from().unwrap(), (vec!["a0".into()], Some(a)));
        assert_eq!(rig.recv_from().unwrap(), (vec!["b0".into()], Some(b)));
        assert_eq!(rig.recv_from().unwrap(), (vec!["a1".into()], Some(a)));
    }

    #[test]
    fn a_peer_that_has_hung_up_is_sent_nothing_more() {
        let mut rig = Rig::with_hwm(&DEALER, 2);
        let first = rig.accept("");
        rig.far_send(first, ["1"]);
        rig.far_hang_up(first);
        rig.pattern.writable(&mut rig.pipes, first);
        assert!(!rig.can_send(), "no peer is left");
        let second = rig.accept("");
        rig.send(["a"]).unwrap();
        rig.send(["b"]).unwrap();
        assert_eq!(rig.far_recv_all(second), ["a", "b"]);
        assert_eq!(rig.recv().unwrap(), ["1"]);
        // One to which the socket connects may return.
        let mut rig = Rig::new(&DEALER);
        let server = rig.connect();
        rig.ready(server, "");
        rig.far_hang_up(server);
        assert!(rig.can_send());
        // With IMMEDIATE, the next connection has another pipe.
        let mut rig = Rig::new(&DEALER);
        let server = rig.connect();
        rig.ready(server, "");
        rig.far_hang_up_for_good(server);
        assert!(!rig.can_send());
    }

    #[test]
    fn a_peer_that_leaves_is_neither_sent_to_nor_forgotten_before_it_is_read() {
        let mut rig = Rig::new(&DEALER);
        let leaving = rig.accept("");
        let other = rig.accept("");
        rig.far_send(leaving, ["last words"]);
        rig.far_close(leaving);
        rig.settle();
        rig.send(["1"]).unwrap();
        rig.send(["2"]).unwrap();
        assert_eq!(rig.far_recv_all(other), ["1", "2"]);
        assert_eq!(rig.recv().unwrap(), ["last words"]);
        assert!(!rig.can_recv());
        rig.settle();
        assert!(rig.is_gone(leaving));
    }
}
