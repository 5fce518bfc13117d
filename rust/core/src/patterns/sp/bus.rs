//! BUS: sends each message to all its peers, and receives from all of them. It passes nothing on, and never waits.

use zeroxide_proto::message::Message;
use zeroxide_proto::sp;

use crate::error::{Error, ErrorKind, Result};
use crate::patterns::distributor::Distributor;
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::sieve::Sieve;
use crate::patterns::single_part::{self, admit};
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Bus {
    /// The peers that are connected.
    outbound: Distributor,
    inbound: Sieve,
}

impl Pattern for Bus {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn disconnected(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.writable(id);
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
        single_part::check(message, sp::BUS)?;
        self.outbound.mark_all();
        if self.outbound.marked() == 0 {
            pipes.count_drop(None, DropReason::NoPeer);
        }
        self.outbound.send(pipes, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message, admit) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes, admit)
    }
}

pub(in crate::patterns) static BUS: PatternSpec = PatternSpec {
    single_part: true,
    ..PatternSpec::new(sp::BUS, || Box::new(Bus::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn each_message_goes_to_every_connected_peer_and_not_back() {
        let mut rig = Rig::with_hwm(&BUS, 2);
        rig.send(["alone"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoPeer), 1);
        let (one, other) = (rig.accept(""), rig.connect());
        rig.send(["1"]).unwrap();
        rig.ready(other, "");
        rig.send(["2"]).unwrap();
        rig.send(["3"]).unwrap();
        assert_eq!(rig.far_recv_all(one), ["1", "2"]);
        assert_eq!(rig.far_recv_all(other), ["2", "3"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 1);
        assert!(!rig.can_recv());
        rig.far_send(one, ["from one"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["from one"]);
        assert!(rig.far_recv_all(one).is_empty() && rig.far_recv_all(other).is_empty());
    }

    #[test]
    fn messages_of_several_parts_are_refused_in_both_directions() {
        let mut rig = Rig::new(&BUS);
        let id = rig.accept("");
        let error = rig.send(["1", "2"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        rig.far_send(id, ["1", "2"]);
        rig.settle();
        assert!(!rig.can_recv());
        assert_eq!(rig.dropped(DropReason::Malformed), 1);
    }
}
