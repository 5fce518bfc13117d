//! A pattern in a crate of its own: a MESH socket sends each message to all its peers, and receives from all of them.
//!
//! ```
//! use zeroxide::{Context, Message, Wait};
//! use zeroxide_mesh::{MESH, PATTERN};
//!
//! # fn main() -> zeroxide::Result<()> {
//! let context = Context::new();
//! context.add_pattern(&PATTERN)?;
//! let (hall, kitchen) = (context.socket(MESH)?, context.socket(MESH)?);
//! kitchen.connect(&hall.bind("tcp://127.0.0.1:*")?)?;
//! kitchen.wait_connected(1, Wait::Forever)?;
//! kitchen.send("dinner is ready", Wait::Forever)?;
//! assert_eq!(hall.recv(Wait::Forever)?, Message::from("dinner is ready"));
//! # Ok(())
//! # }
//! ```
//!
//! A MESH socket sends to its direct peers only: it does not pass on what it receives. Sending never waits. A message
//! reaches the peers that are connected at that moment and have room in their queues. It is dropped for the others, and
//! the statistics of the socket count that.

use zeroxide::patterns::{
    Distributor, FairQueue, Pattern, PatternSpec, PipeId, PipeSet, TypeFacts,
};
use zeroxide::{DropReason, Error, ErrorKind, Message, Result, SocketType};

/// The number of the socket type, by which Python knows it.
pub const NUMBER: u8 = 128;

/// The socket type, once [`PATTERN`] was added to the context. MESH sockets connect to each other only.
pub const MESH: SocketType = SocketType::Other(&FACTS);

/// The pattern, for [`Context::add_pattern`](zeroxide::Context::add_pattern).
pub static PATTERN: PatternSpec = PatternSpec::new(MESH, || Box::new(Mesh::default()));

static FACTS: TypeFacts = TypeFacts::new("MESH", NUMBER, || &[MESH]);

#[derive(Default)]
struct Mesh {
    /// The peers that are connected.
    outbound: Distributor,
    inbound: FairQueue,
}

impl Pattern for Mesh {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
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
        self.outbound.mark_all();
        if self.outbound.marked() == 0 {
            pipes.count_drop(None, DropReason::NoPeer);
        }
        self.outbound.send(pipes, message);
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes)
    }
}

#[cfg(test)]
mod tests {
    use zeroxide::patterns::Rig;

    use super::*;

    #[test]
    fn each_message_goes_to_every_connected_peer() {
        let mut rig = Rig::new(&PATTERN);
        let (one, other) = (rig.accept(""), rig.accept(""));
        rig.send(["to", "all"]).unwrap();
        assert_eq!(rig.far_recv_all(one), ["to/all"]);
        assert_eq!(rig.far_recv_all(other), ["to/all"]);
        assert!(!rig.can_recv());
    }

    #[test]
    fn a_peer_that_is_not_connected_gets_nothing() {
        let mut rig = Rig::new(&PATTERN);
        rig.send(["alone"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoPeer), 1);
        let id = rig.connect();
        rig.send(["early"]).unwrap();
        rig.ready(id, "");
        rig.send(["up"]).unwrap();
        rig.disconnected(id);
        rig.send(["down"]).unwrap();
        rig.ready(id, "");
        rig.send(["up again"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["up", "up again"]);
        assert_eq!(rig.dropped(DropReason::NoPeer), 3);
    }

    #[test]
    fn a_full_peer_misses_messages_and_delays_no_other() {
        let mut rig = Rig::with_hwm(&PATTERN, 2);
        let (full, quick) = (rig.accept(""), rig.accept(""));
        for n in 0..4 {
            assert!(rig.can_send());
            rig.send([format!("{n}")]).unwrap();
            assert_eq!(rig.far_recv_all(quick), [format!("{n}")]);
        }
        assert_eq!(rig.far_recv_all(full), ["0", "1"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 2);
        rig.send(["again"]).unwrap();
        assert_eq!(rig.far_recv_all(full), ["again"]);
    }

    #[test]
    fn peers_are_received_from_in_turn() {
        let mut rig = Rig::new(&PATTERN);
        let (flood, quiet) = (rig.accept(""), rig.accept(""));
        for n in 0..3 {
            rig.far_send(flood, [format!("flood {n}")]);
        }
        rig.far_send(quiet, ["quiet"]);
        rig.settle();
        assert_eq!(rig.recv_from().unwrap().1, Some(flood));
        assert_eq!(rig.recv_from().unwrap().1, Some(quiet));
        assert_eq!(rig.recv_all(), ["flood 1", "flood 2"]);
    }

    #[test]
    fn the_last_messages_of_a_peer_are_received_before_it_is_forgotten() {
        let mut rig = Rig::new(&PATTERN);
        let leaving = rig.accept("");
        rig.far_send(leaving, ["goodbye"]);
        rig.far_close(leaving);
        rig.settle();
        rig.send(["too late"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoPeer), 1);
        assert!(!rig.is_gone(leaving));
        assert_eq!(rig.recv_all(), ["goodbye"]);
        assert!(rig.is_gone(leaving));
        let silent = rig.accept("");
        rig.settle();
        rig.far_close(silent);
        rig.settle();
        assert!(rig.is_gone(silent));
    }
}
