//! Charges the topics of a socket's peers to the budget of its context.

use super::PipeSet;
use crate::budget::{Budget, Topics};
use crate::pipe::PipeId;
use crate::sys::sync::Arc;

impl PipeSet {
    /// An empty set, whose peers' topics count for the budget.
    pub(crate) fn of(budget: &Arc<Budget>) -> PipeSet {
        PipeSet {
            topics: Some(Topics::of(budget)),
            ..PipeSet::default()
        }
    }

    /// Records that the topics of all peers take `bytes` now.
    #[inline]
    pub(crate) fn note_topics(&mut self, bytes: usize) {
        if let Some(topics) = &mut self.topics {
            topics.note(bytes as u64);
        }
    }

    /// Whether the budget has room for a topic that takes `more` bytes, of a peer whose topics take `held`. Other
    /// sockets of the program are always admitted.
    #[inline]
    pub(crate) fn admits_topic(&mut self, id: PipeId, held: usize, more: usize) -> bool {
        let topics = self.topics.as_ref();
        topics.is_none_or(|topics| topics.admits(held as u64, more as u64)) || self.is_local(id)
    }
}
