//! CLIENT: sends single parts to the servers in turn, and receives from them fairly.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::load_balancer::LoadBalancer;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::sieve::Sieve;
use crate::patterns::single_part::{self, admit};
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Client {
    outbound: LoadBalancer,
    inbound: Sieve,
}

impl Pattern for Client {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.outbound.set_priority(id, priority.send);
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.writable(pipes, id);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.outbound.hung_up(pipes, id);
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
        single_part::check(message, SocketType::Client)?;
        self.outbound.send(pipes, message)
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message, admit) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.outbound.can_send(pipes)
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes, admit)
    }
}

pub(super) static CLIENT: PatternSpec = PatternSpec {
    single_part: true,
    options: &[ids::HELLO_MSG, ids::HICCUP_MSG],
    ..PatternSpec::new(SocketType::Client, || Box::new(Client::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::drops::DropReason;
    use crate::patterns::rig::Rig;

    #[test]
    fn sends_in_turn_and_receives_fairly() {
        let mut rig = Rig::new(&CLIENT);
        assert!(!rig.can_send());
        let (a, b) = (rig.accept(""), rig.accept(""));
        for n in 0..4 {
            rig.send([n.to_string()]).unwrap();
        }
        assert_eq!(rig.far_recv_all(a), ["0", "2"]);
        assert_eq!(rig.far_recv_all(b), ["1", "3"]);
        rig.far_send(a, ["a0"]);
        rig.far_send(a, ["a1"]);
        rig.far_send(b, ["b0"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["a0", "b0", "a1"]);
    }

    #[test]
    fn a_peer_that_has_hung_up_is_sent_nothing_more() {
        let mut rig = Rig::with_hwm(&CLIENT, 2);
        let id = rig.accept("");
        rig.far_hang_up(id);
        rig.pattern.writable(&mut rig.pipes, id);
        assert!(!rig.can_send(), "no peer is left");
    }

    #[test]
    fn messages_have_one_part() {
        let mut rig = Rig::new(&CLIENT);
        let id = rig.accept("");
        let rejected = rig.send(["a", "b"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
        rig.far_send(id, ["a", "b"]);
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }
}
