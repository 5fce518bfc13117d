//! PUB: sends each message to all its peers, which filter for themselves, and never waits.

use zeroxide_proto::message::Message;
use zeroxide_proto::sp;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::distributor::Distributor;
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::{Pattern, PatternSpec, Spills, single_part};
use crate::pipe::PipeId;

#[derive(Default)]
struct Pub {
    /// The peers that are connected.
    outbound: Distributor,
}

impl Pattern for Pub {
    fn attach(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn ready(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.insert(id);
    }

    fn disconnected(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.remove(id);
    }

    // A subscriber must not send. If it does, the messages stay in its pipe, which is bounded, until it hangs up.
    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard_departed(id, DropReason::Filtered);
    }

    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard_departed(id, DropReason::Filtered);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.outbound.writable(id);
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
        single_part::check(message, sp::PUB)?;
        self.outbound.mark_all();
        if self.outbound.marked() == 0 {
            pipes.count_drop(None, DropReason::NoSubscriber);
        }
        self.outbound.send(pipes, message);
        Ok(())
    }

    fn recv(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<Option<PipeId>> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn can_recv(&mut self, _: &mut PipeSet) -> bool {
        false
    }
}

pub(in crate::patterns) static PUB: PatternSpec = PatternSpec {
    can_recv: false,
    prompt: true,
    conflates: true,
    single_part: true,
    spills: Spills::ForEachPeer,
    options: &[ids::SPILL_DIR, ids::SPILL_BYTES, ids::SPILL_KEEP],
    ..PatternSpec::new(sp::PUB, || Box::new(Pub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn every_connected_peer_gets_each_message() {
        let mut rig = Rig::with_hwm(&PUB, 2);
        rig.send(["to nobody"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
        let (one, other) = (rig.accept(""), rig.connect());
        rig.send(["1"]).unwrap();
        rig.ready(other, "");
        for n in 2..5 {
            rig.send([format!("{n}")]).unwrap();
        }
        assert_eq!(rig.far_recv_all(one), ["1", "2"]);
        assert_eq!(rig.far_recv_all(other), ["2", "3"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 3);
    }

    #[test]
    fn a_peer_that_sends_and_hangs_up_leaves_nothing() {
        let mut rig = Rig::with_hwm(&PUB, 2);
        let id = rig.accept("");
        rig.far_send(id, ["1"]);
        rig.settle();
        rig.far_hang_up(id);
        rig.far_send(id, ["2"]);
        rig.settle();
        assert_eq!(rig.dropped(DropReason::Filtered), 2);
    }

    #[test]
    fn messages_of_several_parts_are_refused() {
        let mut rig = Rig::new(&PUB);
        let error = rig.send(["1", "2"]).unwrap_err().error;
        assert_eq!(error.kind(), ErrorKind::Invalid);
        assert!(error.to_string().contains("a PUB socket"), "{error}");
    }
}
