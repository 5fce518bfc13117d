//! Sends to one of many pipes in turn.

use zeroxide_proto::message::Message;

use crate::error::Result;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::pipe::PipeId;

/// Gives each message to the next pipe that has room, among those with the best priority.
///
/// Only pipes that may have room are in the circle. A pipe that is found full, or whose far end is gone, leaves it; its
/// `writable` brings it back.
#[derive(Default)]
pub struct LoadBalancer {
    open: Ring,
}

impl LoadBalancer {
    /// Adds a pipe that may have room.
    pub fn insert(&mut self, id: PipeId) {
        self.open.insert(id);
    }

    /// Removes a pipe, if it is in the circle.
    pub fn remove(&mut self, id: PipeId) {
        self.open.remove(id);
    }

    /// Adds a pipe that may have room again, unless nothing can be sent to its peer any more.
    pub fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if !pipes.is_gone(id) {
            self.open.insert(id);
        }
    }

    /// Removes a pipe whose peer has hung up, unless the peer may return.
    pub fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if pipes.is_gone(id) {
            self.open.remove(id);
        }
    }

    /// Changes the priority of a pipe from 8 to another one: 1 is the best, 16 the last.
    pub fn set_priority(&mut self, id: PipeId, priority: u8) {
        self.open.set_priority(id, priority);
    }

    /// Writes the message to the next pipe with room.
    ///
    /// # Errors
    /// `Again` if there is none, and no room on disk if the socket has a SPILL_DIR, or the disk's error. The message is then
    /// unchanged.
    #[inline]
    pub fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        let Some(id) = self.next(pipes) else {
            return pipes.spill_for_any(message);
        };
        pipes.write_checked(id, message);
        self.took();
        Ok(())
    }

    /// The next pipe with room. [`took`](Self::took) ends its turn.
    #[inline]
    pub(super) fn next(&mut self, pipes: &mut PipeSet) -> Option<PipeId> {
        while let Some(id) = self.open.front() {
            if pipes.check_write(id) {
                return Some(id);
            }
            self.open.remove(id);
        }
        None
    }

    /// Records that the pipe returned by [`next`](Self::next) got its message.
    #[inline]
    pub(super) fn took(&mut self) {
        self.open.rotate();
    }

    /// Whether [`send`](Self::send) would find a pipe.
    #[inline]
    pub fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
        self.next(pipes).is_some() || pipes.has_disk_for_any()
    }
}
