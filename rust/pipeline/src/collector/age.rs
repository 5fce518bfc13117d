//! The time for retention by age. A clock that jumps ahead makes every row look old, and what retention deletes is gone.
//!
//! From the start of the collector on, this time passes as fast as the monotonic clock, whatever the wall clock does. A
//! wall clock that is slower is believed, because then rows are only kept for longer.

use std::time::{Duration, Instant};

/// How far the wall clock may be ahead, for small corrections of it.
const SLACK: Duration = Duration::from_secs(60);

/// The maximum by which the times of receipt in the log may be ahead of the clock, in microseconds: one day. If they are
/// further ahead, the clock was wrong when they were written.
const AHEAD: i64 = 24 * 3600 * 1_000_000;

/// The start of 2026, in microseconds since 1970. A clock that is before it was not set yet, as on a machine without a
/// battery for it.
const EARLIEST: u64 = 1_767_225_600_000_000;

/// Whether the wall clock can be right.
pub(super) fn is_set(wall: u64) -> bool {
    wall >= EARLIEST
}

/// The last time of receipt in the log, unless a wrong clock wrote it.
pub(super) fn believed(received: Option<i64>, wall: u64) -> Option<i64> {
    let latest = i64::try_from(wall)
        .unwrap_or(i64::MAX)
        .saturating_add(AHEAD);
    received.filter(|received| !is_set(wall) || *received <= latest)
}

#[derive(Debug)]
pub(super) struct Age {
    /// The wall clock at the start, or the last time of receipt in the log, if that is later: the clock may have been
    /// set after the start, as on machines without a battery for it.
    base: i64,
    since: Instant,
}

impl Age {
    /// Starts with the wall clock, in microseconds since 1970, and the last time of receipt in the log.
    pub fn start(wall: u64, received: Option<i64>, now: Instant) -> Age {
        let believed = believed(received, wall);
        let wall = i64::try_from(wall).unwrap_or(i64::MAX);
        Age {
            base: believed.map_or(wall, |received| received.max(wall)),
            since: now,
        }
    }

    /// The time to use, in microseconds since 1970.
    pub fn time(&self, wall: u64, now: Instant) -> i64 {
        let wall = i64::try_from(wall).unwrap_or(i64::MAX);
        wall.min(self.latest(now))
    }

    /// How far the wall clock is ahead of the time that is used.
    pub fn clock_ahead(&self, wall: u64, now: Instant) -> Duration {
        let latest = u64::try_from(self.latest(now)).unwrap_or_default();
        Duration::from_micros(wall.saturating_sub(latest))
    }

    fn latest(&self, now: Instant) -> i64 {
        let elapsed = now.saturating_duration_since(self.since) + SLACK;
        let elapsed = i64::try_from(elapsed.as_micros()).unwrap_or(i64::MAX);
        self.base.saturating_add(elapsed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A time in 2026, and an hour.
    const WALL: u64 = 1_790_000_000_000_000;
    const HOUR: u64 = 3_600_000_000;

    fn micros(time: Duration) -> i64 {
        time.as_micros().try_into().unwrap()
    }

    #[test]
    fn times_of_receipt_in_the_log_are_believed_unless_a_wrong_clock_wrote_them() {
        let wall = i64::try_from(WALL).unwrap();
        assert_eq!(believed(None, WALL), None);
        for received in [wall - AHEAD, wall, wall + AHEAD] {
            assert_eq!(believed(Some(received), WALL), Some(received));
        }
        assert_eq!(believed(Some(wall + AHEAD + 1), WALL), None);
        assert_eq!(believed(Some(5), u64::MAX), Some(5));
        assert_eq!(believed(Some(wall), 0), Some(wall), "not set yet");
    }

    #[test]
    fn a_clock_that_jumps_ahead_is_not_believed() {
        let start = Instant::now();
        let age = Age::start(WALL, None, start);
        let base = i64::try_from(WALL).unwrap();
        let hour = Duration::from_micros(HOUR);
        // It runs on, with a small correction.
        let small = WALL + HOUR + 5_000_000;
        assert_eq!(age.time(small, start + hour), small.cast_signed());
        assert_eq!(age.clock_ahead(small, start + hour), Duration::ZERO);
        // It jumps by ten years, and stays there.
        for hours in 1..100 {
            let later = start + hour * hours;
            let jumped = WALL + 10 * 365 * 24 * HOUR;
            let expected = base + micros(hour * hours + SLACK);
            assert_eq!(age.time(jumped, later), expected);
            assert!(age.clock_ahead(jumped, later) > hour);
        }
        // It is right again, or set back.
        for right in [WALL + 100 * HOUR, WALL, 0] {
            assert_eq!(age.time(right, start + hour * 100), right.cast_signed());
        }
    }

    #[test]
    fn a_clock_that_is_set_after_the_start_may_reach_the_rows_in_the_log() {
        let start = Instant::now();
        let received = i64::try_from(WALL).unwrap();
        let age = Age::start(0, Some(received), start);
        assert_eq!(age.time(0, start), 0);
        let set = WALL + 30_000_000;
        assert_eq!(age.time(set, start), set.cast_signed());
        let jumped = WALL + HOUR;
        assert_eq!(age.time(jumped, start), received + micros(SLACK));
        // A row that was received while a clock was far ahead says nothing.
        let year = 365 * 24 * HOUR;
        let ahead = received + year.cast_signed();
        let age = Age::start(WALL, Some(ahead), start);
        assert_eq!(age.time(WALL + year, start), received + micros(SLACK));
        // Rows with a time of receipt before the clock's do not hold it back.
        assert_eq!(Age::start(WALL, Some(5), start).time(WALL, start), received);
    }
}
