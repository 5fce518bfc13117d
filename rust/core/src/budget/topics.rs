//! Charges the topics and groups that a socket's peers have subscribed to: [`Topics`].
//!
//! Messages leave when the application receives them, but topics stay as long as their peers. So a peer with too many
//! topics is not made to wait. A further topic is refused, and the peer keeps those that it has. Messages that wait do
//! not matter for this, because a subscriber whose topic was refused at a busy moment would never get it.
//!
//! The topics of all peers take at most half of the budget. Half of that goes to the peers that use it first. The rest is
//! for peers that hold less than an equal share of it. A peer that holds less than [`FEW`] may always continue.

use super::Budget;
use crate::sys::sync::Arc;
use crate::sys::sync::atomic::Ordering;

/// A peer whose topics take less than this may always add one. It is enough for a hundred, and no more than twice what
/// its connection takes, so that peers with few topics cannot take much more than the budget either.
const FEW: u64 = 16 << 10;
/// A change of this many bytes is reported to the budget.
const STEP: u64 = 4 << 10;

/// The topics of a socket's peers.
pub(crate) struct Topics {
    budget: Arc<Budget>,
    noted: u64,
}

impl Topics {
    pub(crate) fn of(budget: &Arc<Budget>) -> Topics {
        Topics {
            budget: budget.clone(),
            noted: 0,
        }
    }

    /// Records that the topics of all peers of the socket take `held` bytes now.
    #[inline]
    pub(crate) fn note(&mut self, held: u64) {
        if held.abs_diff(self.noted) >= STEP {
            self.report(held);
        }
    }

    fn report(&mut self, held: u64) {
        let change = held.wrapping_sub(self.noted);
        self.noted = held;
        self.budget.topics.fetch_add(change, Ordering::Relaxed);
        self.budget.used.fetch_add(change, Ordering::Relaxed);
    }

    /// Whether a peer whose topics take `held` bytes may add a topic that takes `more`.
    #[inline]
    pub(crate) fn admits(&self, held: u64, more: u64) -> bool {
        let limit = self.budget.limit.load(Ordering::Relaxed);
        let own = held.saturating_add(more);
        if limit == 0 || own < FEW {
            return true;
        }
        let (common, rest) = (limit / 4, limit / 4);
        let all = self
            .budget
            .topics
            .load(Ordering::Relaxed)
            .saturating_add(more);
        let connections = self.budget.connections.load(Ordering::Relaxed).max(1);
        all <= common || (own <= rest / connections && all <= common + rest)
    }
}

impl Drop for Topics {
    fn drop(&mut self) {
        self.report(0);
    }
}
