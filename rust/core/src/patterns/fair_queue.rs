//! Receives from many pipes fairly, so that no pipe can starve the others.

use zeroxide_proto::message::Message;

use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::pipe::PipeId;

/// Takes one complete message from each pipe that has any, in turn, among those with the best priority.
///
/// Only pipes that may have messages are in the circle, so ten thousand silent peers cost nothing. A pipe that is found
/// empty goes to sleep and leaves the circle; its `readable` brings it back.
#[derive(Default)]
pub struct FairQueue {
    active: Ring,
}

impl FairQueue {
    /// Adds a pipe that may have messages.
    pub fn insert(&mut self, id: PipeId) {
        self.active.insert(id);
    }

    /// Removes a pipe, if it is in the circle.
    pub fn remove(&mut self, id: PipeId) {
        self.active.remove(id);
    }

    /// Changes the priority of a pipe from 8 to another one: 1 is the best, 16 the last.
    pub fn set_priority(&mut self, id: PipeId, priority: u8) {
        self.active.set_priority(id, priority);
    }

    /// The far end closed. Its remaining messages are still received, and then the pipe is finished.
    pub fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if pipes.check_read(id) {
            self.active.insert(id);
        } else {
            self.active.remove(id);
        }
    }

    /// The next message and its pipe.
    pub fn recv(&mut self, pipes: &mut PipeSet) -> Option<(Message, PipeId)> {
        let mut message = Message::new();
        let id = self.recv_to(pipes, &mut message)?;
        Some((message, id))
    }

    /// Like [`recv`](Self::recv), but fills an empty message in place.
    #[inline]
    pub fn recv_to(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Option<PipeId> {
        loop {
            let id = self.active.front()?;
            if pipes.read_to(id, message) {
                self.active.rotate();
                return Some(id);
            }
            self.look_again(pipes, id);
        }
    }

    /// Whether [`recv`](Self::recv) would return a message.
    #[inline]
    pub fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        while let Some(id) = self.active.front() {
            if self.look_again(pipes, id) {
                return true;
            }
        }
        false
    }

    // Inlined, it would take registers from every message.
    #[inline(never)]
    fn look_again(&mut self, pipes: &mut PipeSet, id: PipeId) -> bool {
        let readable = pipes.check_read(id);
        if !readable {
            self.active.remove(id);
        }
        readable
    }
}
