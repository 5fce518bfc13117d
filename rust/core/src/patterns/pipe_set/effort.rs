//! A bound on what one call reads without returning it.
//!
//! A peer may send any number of messages that the pattern drops. A call that looked for a better one until there are
//! none would last as long as the peer sends, with the socket's lock and, in Python, the interpreter's.

use std::mem;

use zeroxide_proto::message::Message;

use super::PipeSet;
use crate::patterns::drops::DropReason;
use crate::pipe::PipeId;

/// How much one call reads and drops, in parts. That takes less than a millisecond, as a rule.
const MOST_PARTS: usize = 1024;

/// Dropping this many bytes takes about as long as dropping a part.
const PART_BYTES: usize = 4096;

/// The rest of [`MOST_PARTS`].
pub(super) struct Effort(usize);

impl Default for Effort {
    fn default() -> Effort {
        Effort(MOST_PARTS)
    }
}

/// The cost of reading a message and dropping it: see [`PipeSet::spend`].
pub fn effort(message: &Message) -> usize {
    message.len() + message.size() / PART_BYTES
}

impl PipeSet {
    /// Drops a message that was read from `id`, counts it, and leaves an empty one. Returns false if the pattern must not
    /// look for another one in this call: see [`spend`](Self::spend).
    pub fn drop_read(
        &mut self,
        id: Option<PipeId>,
        message: &mut Message,
        reason: DropReason,
    ) -> bool {
        let message = mem::take(message);
        self.count_drop(id, reason);
        self.spend(effort(&message))
    }

    /// Takes the [`effort`] of a message from what a call may read without returning it. Returns false if nothing is left.
    /// The pattern then stops, and is asked again soon. If it reads messages without being asked to receive, it continues
    /// in [`Pattern::go_on`](crate::patterns::Pattern::go_on).
    pub fn spend(&mut self, effort: usize) -> bool {
        self.effort.0 = self.effort.0.saturating_sub(effort);
        !self.is_spent()
    }

    /// Whether a call must not read any more messages that it does not return.
    #[inline]
    pub fn is_spent(&self) -> bool {
        self.effort.0 == 0
    }

    /// Whether this call has read anything that it does not return.
    #[inline]
    pub(crate) fn has_spent(&self) -> bool {
        self.effort.0 != MOST_PARTS
    }

    /// The next call begins.
    pub(crate) fn restore_effort(&mut self) {
        self.effort.0 = MOST_PARTS;
    }
}

#[cfg(test)]
mod tests;
