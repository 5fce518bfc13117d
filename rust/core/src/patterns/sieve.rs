//! Receives from many pipes fairly, and drops what the pattern does not admit.

use zeroxide_proto::message::Message;

use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::pipe::PipeId;

/// A fair queue, and a message that was received from it, but not returned yet. A message must be examined before it is
/// known whether there is one to receive.
#[derive(Default)]
pub(super) struct Sieve {
    inbound: FairQueue,
    found: Option<(Message, PipeId)>,
}

impl Sieve {
    /// Adds a pipe that may have messages.
    pub(super) fn insert(&mut self, id: PipeId) {
        self.inbound.insert(id);
    }

    pub(super) fn remove(&mut self, id: PipeId) {
        self.inbound.remove(id);
    }

    pub(super) fn set_priority(&mut self, id: PipeId, priority: u8) {
        self.inbound.set_priority(id, priority);
    }

    /// The far end closed. Its remaining messages are still received.
    pub(super) fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.far_closed(pipes, id);
    }

    /// Moves the next message that `admit` accepts into `message`, which is empty. The other messages are counted.
    /// `admit` also does all work that needs the pipe, because the pipe may have left before a message that was found
    /// is received.
    #[inline]
    pub(super) fn recv_to(
        &mut self,
        pipes: &mut PipeSet,
        message: &mut Message,
        admit: impl Fn(PipeId, &mut Message) -> Result<(), DropReason>,
    ) -> Option<PipeId> {
        if let Some((found, id)) = self.found.take() {
            *message = found;
            return Some(id);
        }
        loop {
            let id = self.inbound.recv_to(pipes, message)?;
            match admit(id, message) {
                Ok(()) => return Some(id),
                Err(reason) if pipes.drop_read(Some(id), message, reason) => {}
                Err(_) => return None,
            }
        }
    }

    /// Whether [`recv_to`](Self::recv_to) would find a message.
    pub(super) fn can_recv(
        &mut self,
        pipes: &mut PipeSet,
        admit: impl Fn(PipeId, &mut Message) -> Result<(), DropReason>,
    ) -> bool {
        if self.found.is_none() {
            let mut message = Message::new();
            let id = self.recv_to(pipes, &mut message, admit);
            self.found = id.map(|id| (message, id));
        }
        self.found.is_some()
    }
}
