//! Receiving from many pipes without letting one of them shout the others down.

use zeroxide_proto::message::Message;

use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::pipe::PipeId;

/// Takes one whole message from each pipe that has some, in turn.
///
/// Only pipes that may have messages are in the circle, so ten thousand silent peers cost nothing. A pipe that turns
/// out to be empty goes to sleep and out of the circle; its `readable` brings it back.
#[derive(Default)]
pub(super) struct FairQueue {
    active: Ring,
}

impl FairQueue {
    /// Messages may lie in this pipe.
    pub(super) fn insert(&mut self, id: PipeId) {
        self.active.insert(id);
    }

    pub(super) fn remove(&mut self, id: PipeId) {
        self.active.remove(id);
    }

    /// The far end closed: what it left is still received, and the pipe is finished when there is nothing.
    pub(super) fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if pipes.check_read(id) {
            self.active.insert(id);
        } else {
            self.active.remove(id);
        }
    }

    /// The next message and where it came from.
    pub(super) fn recv(&mut self, pipes: &mut PipeSet) -> Option<(Message, PipeId)> {
        let mut message = Message::new();
        let id = self.recv_to(pipes, &mut message)?;
        Some((message, id))
    }

    /// As [`recv`](Self::recv), straight to where the message shall be, which is new.
    #[inline]
    pub(super) fn recv_to(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Option<PipeId> {
        loop {
            let id = self.active.front()?;
            if pipes.read_to(id, message) {
                self.active.rotate();
                return Some(id);
            }
            self.look_again(pipes, id);
        }
    }

    /// Whether [`recv`](Self::recv) has something.
    #[inline]
    pub(super) fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        while let Some(id) = self.active.front() {
            if self.look_again(pipes, id) {
                return true;
            }
        }
        false
    }

    fn look_again(&mut self, pipes: &mut PipeSet, id: PipeId) -> bool {
        let readable = pipes.check_read(id);
        if !readable {
            self.active.remove(id);
        }
        readable
    }
}
