//! Refuses rows whose own time is in the future. One such row moves the watermark of a Spark query forever, and every
//! later row counts as late.

use std::sync::Arc;
use std::time::Duration;

use zeroxide_log::Batch;

use crate::clock::{since_boot, wall};
use crate::collector::age;
use crate::collector::refusal::Refusal;
use crate::collector::stats::Stats;
use crate::wire::Code;

/// The times that are accepted. Earlier ones always are, because old rows may be sent at any time.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The maximum distance in microseconds.
    most: i64,
    /// The wall clock at the start, or the last time of receipt in the log, if that is later. From there on, time passes
    /// with the clock since boot, and a wall clock that was set back is not believed.
    base: i64,
    since: Duration,
    stats: Arc<Stats>,
}

impl Ahead {
    /// Starts with the last time of receipt in the log.
    pub fn new(most: Duration, received: Option<i64>, stats: Arc<Stats>) -> Arc<Ahead> {
        Arc::new(Ahead::start(most, received, stats, wall(), since_boot()))
    }

    fn start(
        most: Duration,
        received: Option<i64>,
        stats: Arc<Stats>,
        wall: u64,
        since: Duration,
    ) -> Ahead {
        let received = age::believed(received, wall).unwrap_or(i64::MIN);
        Ahead {
            most: i64::try_from(most.as_micros()).unwrap_or(i64::MAX),
            base: received.max(i64::try_from(wall).unwrap_or(i64::MAX)),
            since,
            stats,
        }
    }

    /// Checks the times of rows that are being received.
    pub fn check(&self, batch: &Batch) -> Result<(), Refusal> {
        self.check_at(batch, wall(), since_boot())
    }

    fn check_at(&self, batch: &Batch, wall: u64, now: Duration) -> Result<(), Refusal> {
        let elapsed = now.saturating_sub(self.since).as_micros();
        let elapsed = i64::try_from(elapsed).unwrap_or(i64::MAX);
        let now = i64::try_from(wall).unwrap_or(i64::MAX);
        let now = now.max(self.base.saturating_add(elapsed));
        // Without the time, rows with the right one cannot be told from others.
        if !u64::try_from(now).is_ok_and(age::is_set) {
            return Ok(());
        }
        let Some(latest) = batch.latest_timestamp() else {
            return Ok(());
        };
        let distance = latest.saturating_sub(now);
        if distance <= self.most {
            return Ok(());
        }
        self.stats.rows_ahead.add(batch.rows() as u64);
        let text = format!(
            "a row has the time {latest}, in microseconds since 1970, which is {} ahead of the collector's clock at {now}; \
             {} is the most that it takes (max_ahead_hours): correct the time, set the clocks, or raise the limit",
            hours(distance),
            hours(self.most)
        );
        // A producer sets rows with later times aside.
        let limit = u64::try_from(now.saturating_add(self.most));
        Err(Refusal::new(Code::Invalid, limit.unwrap_or_default(), text))
    }
}

fn hours(microseconds: i64) -> String {
    format!("{:.1} hours", microseconds as f64 / 3.6e9)
}

#[cfg(test)]
mod tests {
    use super::*;
    use zeroxide_log::{BatchBuilder, Row};

    /// A time in 2026, and an hour.
    const NOW: i64 = 1_790_000_000_000_000;
    const HOUR: i64 = 3_600_000_000;

    fn batch(times: &[Option<i64>]) -> Batch {
        let mut builder = BatchBuilder::new();
        for timestamp in times {
            let row = Row {
                timestamp: *timestamp,
                value: b"x",
                ..Row::default()
            };
            builder.push(row).unwrap();
        }
        builder.finish()
    }

    fn ahead(received: Option<i64>, wall: i64, stats: &Arc<Stats>, start: Duration) -> Ahead {
        let most = Duration::from_secs(3600);
        Ahead::start(most, received, stats.clone(), wall.cast_unsigned(), start)
    }

    #[test]
    fn times_in_the_future_are_refused_and_counted() {
        let (stats, start) = (Arc::default(), Duration::from_secs(5));
        let ahead = ahead(None, NOW, &stats, start);
        let check =
            |times: &[Option<i64>]| ahead.check_at(&batch(times), NOW.cast_unsigned(), start);
        for times in [
            &[None, None][..],
            &[Some(i64::MIN), Some(0)],
            &[Some(NOW), Some(NOW + HOUR)],
        ] {
            check(times).unwrap();
        }
        assert_eq!(stats.rows_ahead.get(), 0);
        for late in [NOW + HOUR + 1, i64::MAX] {
            let refusal = check(&[Some(NOW), Some(late), None]).unwrap_err();
            assert_eq!(refusal.code, Code::Invalid);
            assert_eq!(refusal.detail, (NOW + HOUR).cast_unsigned());
            assert!(refusal.text.contains(&late.to_string()), "{}", refusal.text);
            assert!(refusal.text.contains("1.0 hours"), "{}", refusal.text);
        }
        assert_eq!(stats.rows_ahead.get(), 6);
    }

    #[test]
    fn a_clock_that_was_never_set_refuses_nothing() {
        let (stats, start) = (Arc::default(), Duration::from_secs(5));
        for wall in [0, 5 * HOUR, 1_735_689_600_000_000] {
            let ahead = ahead(None, wall, &stats, start);
            for time in [NOW, i64::MAX] {
                let check =
                    |wall: i64| ahead.check_at(&batch(&[Some(time)]), wall.cast_unsigned(), start);
                check(wall).unwrap();
                assert_eq!(check(NOW).is_ok(), time == NOW, "once it is set");
            }
        }
    }

    #[test]
    fn a_row_that_a_wrong_clock_received_does_not_move_the_limit() {
        let (stats, start) = (Arc::default(), Duration::from_secs(5));
        let year = 365 * 24 * HOUR;
        let ahead = ahead(Some(NOW + year), NOW, &stats, start);
        let late = batch(&[Some(NOW + year)]);
        assert!(ahead.check_at(&late, NOW.cast_unsigned(), start).is_err());
    }

    #[test]
    fn a_clock_that_was_set_back_refuses_no_honest_row() {
        let (stats, start) = (Arc::default(), Duration::from_secs(5));
        let year = 365 * 24 * HOUR;
        // It was set back before the start, when the log has rows, or after it.
        for (received, wall) in [(Some(NOW), 0), (Some(NOW), NOW - 10 * HOUR), (None, NOW)] {
            let ahead = ahead(received, wall, &stats, start);
            for days in 0..10 {
                let passed = days * 24 * HOUR;
                let now = start + Duration::from_micros(passed.cast_unsigned());
                let check = |time| {
                    let wall = (NOW - year + passed).cast_unsigned();
                    ahead.check_at(&batch(&[Some(time)]), wall, now)
                };
                check(NOW + passed).unwrap();
                assert!(check(NOW + passed + 2 * HOUR).is_err());
            }
        }
        let any = Ahead::new(Duration::MAX, None, stats);
        any.check(&batch(&[Some(i64::MAX)])).unwrap();
    }
}
