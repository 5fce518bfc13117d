//! Refuses rows whose own time is in the future. One such row moves the watermark of a Spark query forever, and every
//! later row counts as late.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use zeroxide_log::Batch;

use crate::clock::wall;
use crate::collector::refusal::Refusal;
use crate::collector::stats::Stats;
use crate::wire::Code;

/// The times that are accepted. Earlier ones always are, because old rows may be sent at any time.
#[derive(Debug)]
pub(super) struct Ahead {
    /// The maximum distance in microseconds.
    most: i64,
    /// The last time of receipt. A collector whose clock was set back measures from there.
    newest: AtomicI64,
    stats: Arc<Stats>,
}

impl Ahead {
    pub fn new(most: Duration, newest: Option<i64>, stats: Arc<Stats>) -> Arc<Ahead> {
        Arc::new(Ahead {
            most: i64::try_from(most.as_micros()).unwrap_or(i64::MAX),
            newest: AtomicI64::new(newest.unwrap_or(i64::MIN)),
            stats,
        })
    }

    /// Records a time of receipt.
    pub fn on_received(&self, time: i64) {
        // Relaxed, here and below, because no other memory depends on it.
        self.newest.fetch_max(time, Ordering::Relaxed);
    }

    /// Checks the times of rows that are being received.
    pub fn check(&self, batch: &Batch) -> Result<(), Refusal> {
        self.check_at(batch, i64::try_from(wall()).unwrap_or(i64::MAX))
    }

    fn check_at(&self, batch: &Batch, wall: i64) -> Result<(), Refusal> {
        let now = wall.max(self.newest.load(Ordering::Relaxed));
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
        Err(Refusal::new(Code::Invalid, 0, text))
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

    #[test]
    fn times_in_the_future_are_refused_and_counted() {
        let stats = Arc::new(Stats::default());
        let ahead = Ahead::new(Duration::from_secs(3600), None, stats.clone());
        let check = |times: &[Option<i64>]| ahead.check_at(&batch(times), NOW);
        for times in [
            &[None, None][..],
            &[Some(i64::MIN), Some(0)],
            &[Some(NOW), Some(NOW + HOUR)],
        ] {
            check(times).unwrap();
        }
        assert_eq!(stats.rows_ahead.get(), 0);
        for late in [NOW + HOUR + 1, 9_223_372_036_854_775_807] {
            let refusal = check(&[Some(NOW), Some(late), None]).unwrap_err();
            assert_eq!(refusal.code, Code::Invalid);
            assert!(refusal.text.contains(&late.to_string()), "{}", refusal.text);
            assert!(refusal.text.contains("1.0 hours"), "{}", refusal.text);
        }
        assert_eq!(stats.rows_ahead.get(), 6);
    }

    #[test]
    fn a_clock_that_was_set_back_refuses_no_honest_row() {
        let stats = Arc::new(Stats::default());
        let most = Duration::from_secs(3600);
        let ahead = Ahead::new(most, Some(NOW), stats.clone());
        ahead.check_at(&batch(&[Some(NOW)]), 0).unwrap();
        assert!(ahead.check_at(&batch(&[Some(NOW + 2 * HOUR)]), 0).is_err());
        let ahead = Ahead::new(most, None, stats.clone());
        ahead.on_received(NOW);
        ahead.check_at(&batch(&[Some(NOW)]), 0).unwrap();
        let any = Ahead::new(Duration::MAX, None, stats);
        any.check_at(&batch(&[Some(i64::MAX)]), 0).unwrap();
    }
}
