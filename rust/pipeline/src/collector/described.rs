//! The last description of the collector, which answers requests while new ones would take too much of the serving thread.

use std::time::{Duration, Instant};

use bytes::Bytes;

/// The divisor of the time that new descriptions may take.
const SHARE: u32 = 10;

/// The time that descriptions may take at once, so that a program that asks now and then gets new numbers every time.
const BURST: Duration = Duration::from_millis(100);

/// The time without new descriptions at most. With hundreds of thousands of producers, they may take more than their part.
const REST_MAX: Duration = Duration::from_secs(1);

/// Descriptions for strangers. A request is small, and its answer costs more the more producers and peers there are.
pub(super) struct Described {
    last: Option<Bytes>,
    /// The time that descriptions may take now.
    left: Duration,
    /// The time up to which `left` is known.
    at: Instant,
    /// No description is made before this time.
    rests_until: Instant,
}

impl Described {
    pub fn new(now: Instant) -> Described {
        Described {
            last: None,
            left: BURST,
            at: now,
            rests_until: now,
        }
    }

    /// The last description, if it is too early for another one.
    pub fn get(&self, now: Instant) -> Option<Bytes> {
        self.last.clone().filter(|_| now < self.rests_until)
    }

    /// Keeps a description, and counts the time that it took.
    pub fn keep(&mut self, text: Bytes, began: Instant, ended: Instant) {
        let gained = began.saturating_duration_since(self.at) / SHARE;
        let took = ended.saturating_duration_since(began);
        self.left = (self.left + gained).min(BURST);
        // The time that is missing has to be gained first.
        let rest = took.saturating_sub(self.left) * SHARE;
        self.rests_until = ended + rest.min(REST_MAX);
        self.left = self.left.saturating_sub(took);
        self.at = self.rests_until;
        self.last = Some(text);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Asks at this interval for a time, with descriptions that take `took`. Returns how many were made, and the greatest
    /// age of an answer.
    fn ask(every: Duration, took: Duration, total: Duration) -> (u32, Duration) {
        let start = Instant::now();
        let mut described = Described::new(start);
        let (mut now, mut made, mut made_at, mut oldest) = (start, 0, start, Duration::ZERO);
        while now < start + total {
            if described.get(now).is_none() {
                described.keep(Bytes::new(), now, now + took);
                (made, made_at) = (made + 1, now);
                now += took;
            }
            oldest = oldest.max(now - made_at);
            now += every;
        }
        (made, oldest)
    }

    #[test]
    fn a_flood_of_requests_takes_a_tenth_of_the_time() {
        let millis = Duration::from_millis;
        for took in [1, 5, 50, 90].map(millis) {
            let (made, oldest) = ask(Duration::from_micros(20), took, millis(20_000));
            let spent = took * made;
            assert!(spent <= millis(2000) + BURST + took, "{took:?}: {spent:?}");
            assert!(spent >= millis(1700), "{took:?}: {spent:?}");
            assert!(oldest <= took * (SHARE + 1), "{took:?}: {oldest:?}");
        }
        let (_, oldest) = ask(Duration::from_micros(20), millis(300), millis(20_000));
        assert!(oldest <= REST_MAX + millis(300), "{oldest:?}");
    }

    #[test]
    fn a_program_that_asks_now_and_then_gets_new_numbers() {
        let millis = Duration::from_millis;
        let (made, _) = ask(millis(100), millis(5), millis(10_500));
        assert_eq!(made, 100);
        // Even at once, for a while.
        let (made, _) = ask(Duration::ZERO, millis(1), BURST);
        assert_eq!(made, 100);
    }
}
