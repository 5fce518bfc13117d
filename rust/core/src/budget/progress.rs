//! Which connections have to end when incomplete messages have used up the budget, and how far each message has arrived.
//! All times are in milliseconds since the start of the budget.
//!
//! Only the largest messages count that together hold half of what is incomplete, so that peers with little are left
//! alone. Of their connections, those end first whose message stopped arriving longest ago. If all messages are still
//! arriving, the one that began first ends. So peers that fill the budget with messages that they never complete do not end
//! a peer whose message is arriving, even if it is larger than each of theirs.

use std::cmp::Reverse;
use std::time::Duration;

use super::Account;
use crate::sys::sync::Arc;
use crate::sys::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};

/// A message that has not grown by an eighth in this time has stopped arriving. So a peer that sends a byte now and then
/// gains nothing by that.
pub(super) const STALLED: Duration = Duration::from_secs(1);

/// See the module text.
#[derive(Default)]
pub(super) struct Progress {
    /// When the message began.
    began: AtomicU64,
    /// The size that has to be exceeded by an eighth, and since when it has been reached.
    size: AtomicU64,
    reached: AtomicU64,
    /// Whether the connection is not read from, so that its message cannot grow.
    is_held_back: AtomicBool,
}

impl Progress {
    /// Records the size of the message; 0 between two messages.
    pub(super) fn note(&self, size: u64, now: u64) {
        let before = self.size.load(Relaxed);
        if size < before || before == 0 {
            self.began.store(now, Relaxed);
        }
        if size < before || size - before > before / 8 {
            self.size.store(size, Relaxed);
            self.reached.store(now, Relaxed);
        }
    }

    /// Records whether the connection must not be read from.
    pub(super) fn hold_back(&self, is_held_back: bool, now: u64) {
        let was_held_back = self.is_held_back.swap(is_held_back, Relaxed);
        if was_held_back && !is_held_back {
            self.reached.store(now, Relaxed);
        }
    }

    /// How long ago the message stopped arriving; `None` if it is still arriving, or is held back.
    pub(super) fn stalled(&self, now: u64) -> Option<u64> {
        let since = now.saturating_sub(self.reached.load(Relaxed));
        let is_stalled = since >= STALLED.as_millis() as u64 && !self.is_held_back.load(Relaxed);
        is_stalled.then_some(since)
    }

    /// For how long the message has been incomplete.
    pub(super) fn age(&self, now: u64) -> u64 {
        now.saturating_sub(self.began.load(Relaxed))
    }
}

/// The accounts that have to end: one, or enough of those whose messages have stopped arriving to hold `room` bytes together.
pub(super) fn worst<'a>(
    living: impl Iterator<Item = &'a Arc<Account>>,
    now: u64,
    room: u64,
) -> Vec<&'a Arc<Account>> {
    let begun = living.map(|account| (account.begun.load(Relaxed), account));
    let mut begun: Vec<_> = begun.filter(|(bytes, _)| *bytes > 0).collect();
    begun.sort_unstable_by_key(|(bytes, _)| Reverse(*bytes));
    let half = begun.iter().map(|(bytes, _)| bytes).sum::<u64>() / 2;
    let mut ranked: Vec<_> = first_up_to(half, begun)
        .map(|(bytes, account)| {
            let (stalled, age) = (account.progress.stalled(now), account.progress.age(now));
            (stalled, age, bytes, account)
        })
        .collect();
    ranked.sort_unstable_by_key(|(stalled, age, bytes, _)| Reverse((*stalled, *age, *bytes)));
    let count = ranked.iter().take_while(|(stalled, ..)| stalled.is_some());
    let count = count.count().max(1);
    let worst = ranked.into_iter().take(count);
    first_up_to(room, worst.map(|(_, _, bytes, account)| (bytes, account)))
        .map(|(_, account)| account)
        .collect()
}

/// The first accounts that hold at least this many bytes together, or all.
fn first_up_to<'a>(
    bytes: u64,
    accounts: impl IntoIterator<Item = (u64, &'a Arc<Account>)>,
) -> impl Iterator<Item = (u64, &'a Arc<Account>)> {
    let mut before = 0;
    accounts.into_iter().take_while(move |(own, _)| {
        before += own;
        before - own < bytes
    })
}
