//! PROBE_ROUTER: an empty message at the start of each connection, from which a ROUTER learns who has connected.

use zeroxide_proto::message::Message;

use crate::patterns::pipe_set::{PipeSet, Side};
use crate::patterns::ring::Ring;
use crate::pipe::PipeId;

#[derive(Default)]
pub(super) struct Probe {
    is_on: bool,
    /// Pipes that got their probe before the connection was there.
    early: Ring,
}

impl Probe {
    pub(super) fn set(&mut self, is_on: bool) {
        self.is_on = is_on;
    }

    /// The socket has begun to connect. Its probe comes before all that is sent until the connection is there.
    pub(super) fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.is_on && pipes.side(id) == Some(Side::Connecting) && write(pipes, id) {
            self.early.insert(id);
        }
    }

    /// A connection is there. Returns whether the probe was written now, which may have used the only room.
    pub(super) fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) -> bool {
        if self.early.contains(id) {
            self.early.remove(id);
            return false;
        }
        // Messages that wait for the peer have the same effect. A pipe that keeps only the newest would lose it.
        let waits = pipes.get(id).is_none_or(|pipe| pipe.queued_out() > 0);
        self.is_on && !waits && write(pipes, id)
    }

    /// The connection or the pipe has ended.
    pub(super) fn forget(&mut self, id: PipeId) {
        self.early.remove(id);
    }
}

fn write(pipes: &mut PipeSet, id: PipeId) -> bool {
    pipes.write(id, &mut Message::new())
}
