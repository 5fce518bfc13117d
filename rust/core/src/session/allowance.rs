//! How much a thread that sends may write to the wire by itself.
//!
//! Writing to a peer at once is quick for the peer, and dear for the sender: a system call per message and peer instead of
//! one per batch. A thread that sends to many peers has a gap at each of them that is as long as writing to all the others
//! takes, so that the gap alone does not tell that it is busy. Its time does: a thread that has spent more than a share of
//! it on writing leaves that to the I/O thread until it has made up for it.

use std::cell::Cell;
use std::time::{Duration, Instant};

/// One part in so many of a thread's time may go into writing.
const SHARE: u32 = 10;
/// What may be spent before it counts.
const CREDIT: Duration = Duration::from_micros(50);
/// A thread that was interrupted while it wrote is not made to pay for all of it.
const DEBT_MAX: Duration = Duration::from_millis(5);

thread_local! {
    static MINE: Cell<Option<Allowance>> = const { Cell::new(None) };
}

/// What this thread owes now, and whether that lets it write.
pub(super) fn is_left(now: Instant) -> bool {
    MINE.get().is_none_or(|mine| mine.at(now).debt < CREDIT)
}

/// This thread wrote from `start` to `end`.
pub(super) fn spend(start: Instant, end: Instant) {
    let mine = MINE
        .get()
        .map_or(Allowance::new(start), |mine| mine.at(start));
    MINE.set(Some(mine.after(end)));
}

#[derive(Clone, Copy)]
struct Allowance {
    debt: Duration,
    since: Instant,
}

impl Allowance {
    fn new(now: Instant) -> Allowance {
        Allowance {
            debt: Duration::ZERO,
            since: now,
        }
    }

    /// Time that passed without writing makes up for some of the debt.
    fn at(self, now: Instant) -> Allowance {
        let made_up = now.saturating_duration_since(self.since) / SHARE;
        Allowance {
            debt: self.debt.saturating_sub(made_up),
            since: now,
        }
    }

    /// All the time until `end` was spent on writing.
    fn after(self, end: Instant) -> Allowance {
        let spent = end.saturating_duration_since(self.since);
        Allowance {
            debt: (self.debt + spent).min(DEBT_MAX),
            since: end,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: Duration = Duration::from_micros(1);

    #[test]
    fn who_writes_now_and_then_owes_nothing() {
        let mut now = Instant::now();
        let mut allowance = Allowance::new(now);
        for _ in 0..1000 {
            now += 100 * US;
            allowance = allowance.at(now);
            assert!(allowance.debt < CREDIT);
            now += 5 * US;
            allowance = allowance.after(now);
        }
    }

    #[test]
    fn who_does_nothing_else_soon_has_to_stop() {
        let start = Instant::now();
        let mut now = start;
        let mut allowance = Allowance::new(now);
        let mut written = Duration::ZERO;
        for _ in 0..100_000 {
            now += US / 10;
            if allowance.at(now).debt < CREDIT {
                allowance = allowance.at(now);
                now += 5 * US;
                allowance = allowance.after(now);
                written += 5 * US;
            }
        }
        assert!(written <= (now - start) / SHARE + CREDIT, "{written:?}");
    }

    #[test]
    fn an_interruption_is_forgiven_in_the_end() {
        let now = Instant::now();
        let allowance = Allowance::new(now).after(now + 1_000_000 * US);
        assert_eq!(allowance.debt, DEBT_MAX);
        assert!(allowance.at(now + 1_050_000 * US).debt < CREDIT);
    }
}
