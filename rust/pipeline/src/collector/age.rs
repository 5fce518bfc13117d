//! The time for retention by age. A clock that jumps ahead makes every row look old, and what retention deletes is gone.
//!
//! From the start of the collector on, this time passes as fast as the clock since boot, which also runs while the machine
//! is suspended. A wall clock that is slower is believed, because then rows are only kept for longer. One that is ahead is
//! believed when it has been for as long as rows are kept, so that retention does not rest forever if its time is right.

use std::time::Duration;

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
    /// The time since boot when that was the time.
    since: Duration,
    /// For how long the wall clock must be ahead by the same time to be believed: as long as rows are kept. Then every
    /// row that was received before the jump is old enough.
    believe_after: Duration,
    jump: Option<Jump>,
}

/// A wall clock that is ahead.
#[derive(Clone, Copy, Debug)]
struct Jump {
    /// The time since boot when it was first seen.
    since: Duration,
    /// By how many microseconds the clock was ahead then.
    distance: i64,
}

impl Age {
    /// Starts with the wall clock, in microseconds since 1970, the last time of receipt in the log, and the time since
    /// boot. Rows are kept for `kept`.
    pub fn start(wall: u64, received: Option<i64>, now: Duration, kept: Option<Duration>) -> Age {
        let believed = believed(received, wall);
        let wall = i64::try_from(wall).unwrap_or(i64::MAX);
        Age {
            base: believed.map_or(wall, |received| received.max(wall)),
            since: now,
            believe_after: kept.unwrap_or(Duration::MAX),
            jump: None,
        }
    }

    /// The time to use, in microseconds since 1970.
    pub fn time(&mut self, wall: u64, now: Duration) -> i64 {
        let wall = i64::try_from(wall).unwrap_or(i64::MAX);
        let latest = self.latest(now);
        let distance = wall.saturating_sub(latest);
        if distance <= 0 {
            self.jump = None;
            return wall;
        }
        let is_same = |jump: &Jump| jump.distance.abs_diff(distance) <= SLACK.as_micros() as u64;
        let jump = self.jump.filter(is_same);
        let jump = *self.jump.insert(jump.unwrap_or(Jump {
            since: now,
            distance,
        }));
        if now.saturating_sub(jump.since) <= self.believe_after {
            return latest;
        }
        (self.base, self.since, self.jump) = (wall, now, None);
        wall
    }

    /// How far the wall clock is ahead of the time that is used.
    pub fn clock_ahead(&self, wall: u64, now: Duration) -> Duration {
        let latest = u64::try_from(self.latest(now)).unwrap_or_default();
        Duration::from_micros(wall.saturating_sub(latest))
    }

    fn latest(&self, now: Duration) -> i64 {
        let elapsed = now.saturating_sub(self.since) + SLACK;
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
        let start = Duration::from_secs(5);
        let mut age = Age::start(WALL, None, start, None);
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
        let start = Duration::from_secs(5);
        let received = i64::try_from(WALL).unwrap();
        let mut age = Age::start(0, Some(received), start, None);
        assert_eq!(age.time(0, start), 0);
        let set = WALL + 30_000_000;
        assert_eq!(age.time(set, start), set.cast_signed());
        let jumped = WALL + HOUR;
        assert_eq!(age.time(jumped, start), received + micros(SLACK));
        // A row that was received while a clock was far ahead says nothing.
        let year = 365 * 24 * HOUR;
        let ahead = received + year.cast_signed();
        let mut age = Age::start(WALL, Some(ahead), start, None);
        assert_eq!(age.time(WALL + year, start), received + micros(SLACK));
        // Rows with a time of receipt before the clock's do not hold it back.
        let mut age = Age::start(WALL, Some(5), start, None);
        assert_eq!(age.time(WALL, start), received);
    }

    #[test]
    fn a_clock_that_stays_ahead_is_believed_when_all_earlier_rows_are_old() {
        let hour = Duration::from_micros(HOUR);
        // It was set from 1970 after the start, or jumped by a day.
        for base in [0, WALL - 24 * HOUR] {
            let mut start = Duration::from_secs(5);
            let mut age = Age::start(base, None, start, Some(hour * 10));
            let mut wall = WALL;
            let mut pass = |age: &mut Age, jump: u64| {
                wall += HOUR + jump;
                start += hour;
                age.time(wall, start) == wall.cast_signed()
            };
            for _ in 0..8 {
                assert!(!pass(&mut age, 0));
            }
            // Another jump begins anew.
            for hours in 0..=10 {
                let jump = if hours == 0 { HOUR } else { 0 };
                assert!(!pass(&mut age, jump), "{hours}");
            }
            for _ in 0..5 {
                assert!(pass(&mut age, 0));
            }
            assert!(!pass(&mut age, HOUR));
        }
    }
}
