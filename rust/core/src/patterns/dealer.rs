//! DEALER: sends in turn, receives fairly, and leaves the envelope to the application.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::probe::Probe;
use crate::patterns::{Pattern, PatternSpec, Priority, Spills};
use crate::pipe::PipeId;

#[derive(Default)]
struct Dealer {
    outbound: LoadBalancer,
    inbound: FairQueue,
    probe: Probe,
}

impl Pattern for Dealer {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
        self.inbound.insert(id);
        self.probe.attach(pipes, id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.probe.ready(pipes, id) {
            self.outbound.insert(id);
        }
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if pipes.is_gone(id) {
            self.outbound.remove(id);
        }
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
        self.inbound.remove(id);
        self.probe.forget(id);
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

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::ProbeRouter(on) => self.probe.set(*on),
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
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
    fn probes_each_connection_if_requested() {
        let mut rig = Rig::new(&DEALER);
        let before = rig.accept("");
        rig.set(PatternOption::ProbeRouter(true)).unwrap();
        let id = rig.connect();
        for _ in 0..3 {
            rig.ready(id, "");
            assert_eq!(rig.far_recv_all(id), [""]);
            rig.disconnected(id);
        }
        let accepted = rig.accept("");
        assert_eq!(rig.far_recv_all(accepted), [""]);
        assert!(rig.far_recv_all(before).is_empty());
        assert_eq!(
            rig.set(PatternOption::RouterMandatory(true)).unwrap_err(),
            ErrorKind::Invalid
        );
    }

    #[test]
    fn a_probe_comes_before_messages_that_wait_for_the_connection() {
        let mut rig = Rig::new(&DEALER);
        rig.set(PatternOption::ProbeRouter(true)).unwrap();
        let id = rig.connect();
        rig.send(["early"]).unwrap();
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["", "early"]);
        // A message that waits for the connection has the same effect as a probe.
        rig.disconnected(id);
        rig.send(["waits"]).unwrap();
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["waits"]);
    }

    #[test]
    fn a_peer_that_has_hung_up_is_sent_nothing_more() {
        let mut rig = Rig::with_hwm(&DEALER, 2);
        let first = rig.accept("");
        rig.far_send(first, ["1"]);
        rig.far_hang_up(first);
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

    #[test]
    fn a_probe_takes_no_room_away_from_messages() {
        let mut rig = Rig::with_hwm(&DEALER, 100);
        rig.set(PatternOption::ProbeRouter(true)).unwrap();
        let id = rig.connect();
        rig.ready(id, "");
        let body = vec![0u8; 256 << 10];
        for _ in 0..5 {
            rig.send([&body]).unwrap();
        }
        for _ in 0..4 {
            rig.far_recv(id).unwrap();
        }
        while rig.send([&body]).is_ok() {}
        // The pattern is notified of room, but there is none yet.
        rig.far_recv(id).unwrap();
        rig.settle();
        assert!(rig.send([&body]).is_err());
        for _ in 0..3 {
            rig.far_recv(id).unwrap();
        }
        // The probe is the first to find room.
        rig.disconnected(id);
        rig.ready(id, "");
        while rig.far_recv(id).is_some() {}
        rig.settle();
        rig.send(["x"]).unwrap();
    }
}
