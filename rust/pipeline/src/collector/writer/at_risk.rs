//! Counts the rows of plain peers that may not be on disk, and which no client can send again.

use std::collections::VecDeque;

use zeroxide_log::Written;

/// The maximum number of counts. If more batches wait for a sync, the last count is for several of them.
const COUNTS: usize = 1024;

/// See the module text.
#[derive(Debug, Default)]
pub(super) struct AtRisk {
    /// Numbers of rows, and what must be on disk for each.
    counts: VecDeque<(Written, u64)>,
}

impl AtRisk {
    /// Adds rows that were just written.
    pub fn add(&mut self, written: Written, rows: u64) {
        let is_full = self.counts.len() >= COUNTS;
        match self.counts.back_mut().filter(|_| is_full) {
            Some(last) => *last = (written, last.1 + rows),
            None => self.counts.push_back((written, rows)),
        }
    }

    /// Removes the rows that are on disk, given that everything up to `synced` is.
    pub fn settle(&mut self, synced: Written) {
        while self.counts.front().is_some_and(|(end, _)| *end <= synced) {
            self.counts.pop_front();
        }
    }

    /// Removes all rows, and returns their number.
    pub fn take(&mut self) -> u64 {
        self.counts.drain(..).map(|(_, rows)| rows).sum()
    }
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::sync::Arc;
    use std::sync::mpsc::sync_channel;
    use std::time::{Duration, Instant};

    use zeroxide::{Context, SocketType};
    use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Row};

    use super::*;
    use crate::collector::ahead::Ahead;
    use crate::collector::commit::Commits;
    use crate::collector::config::Config;
    use crate::collector::outbox::Outbox;
    use crate::collector::stats::Stats;
    use crate::collector::unread::Unread;
    use crate::collector::writer::Writer;

    fn batch(rows: usize) -> Batch {
        let mut builder = BatchBuilder::new();
        for _ in 0..rows {
            builder.push(Row::default()).unwrap();
        }
        builder.finish()
    }

    /// Reports that a sync has failed, although none has.
    fn fail_a_sync(writer: &mut Writer) {
        let syncer = writer.log().unwrap().syncer();
        let failed = LogError::Failed {
            what: "fsync",
            reason: "on purpose".to_owned(),
        };
        writer.on_synced(&syncer, Err(failed), Duration::ZERO);
    }

    #[test]
    fn a_failed_sync_loses_the_rows_that_no_earlier_one_covered() {
        let dir = tempfile::tempdir().unwrap();
        let context = Context::new();
        let router = context.socket(SocketType::Router).unwrap();
        let stats = Arc::new(Stats::default());
        let outbox = Outbox::new(router.clone(), stats.clone(), Unread::new(1 << 20));
        let log = Log::open(dir.path(), LogConfig::default()).unwrap();
        let ahead = Ahead::new(Duration::MAX, None, stats.clone());
        let (requests, _syncers) = sync_channel(8);
        let commits = Commits::new(requests, Duration::from_secs(3600), u64::MAX, 100);
        let config = Config::new(dir.path());
        let retry_every = config.retry_every;
        let address = String::new();
        let mut writer = Writer::new(config, address, log, commits, outbox, stats.clone(), ahead);

        // Each batch is written while the sync of the earlier ones runs.
        writer.handle_plain(batch(100));
        for rows in [10, 1] {
            let syncer = writer.log().unwrap().syncer();
            let synced = syncer.sync();
            writer.handle_plain(batch(rows));
            writer.on_synced(&syncer, synced, Duration::ZERO);
        }
        fail_a_sync(&mut writer);
        assert!(writer.handle_timeout(Instant::now() + 2 * retry_every));
        assert_eq!(stats.plain_lost.get(), 1);

        // Counts of the new opening do not continue those of the old one.
        writer.handle_plain(batch(5));
        writer.log().unwrap().sync().unwrap();
        fail_a_sync(&mut writer);
        assert!(writer.handle_timeout(Instant::now() + 4 * retry_every));
        assert_eq!(stats.plain_lost.get(), 1);
        drop(writer);
        router.close(Some(Some(Duration::ZERO)));
        context.term().unwrap();
    }

    #[test]
    fn many_batches_share_a_count() {
        let dir = tempfile::tempdir().unwrap();
        let mut log = Log::open(dir.path(), LogConfig::default()).unwrap();
        let mut at_risk = AtRisk::default();
        for _ in 0..COUNTS + 10 {
            log.append(&zeroxide_log::Origin::plain(0), &batch(1))
                .unwrap();
            at_risk.add(log.written(), 1);
        }
        assert_eq!(at_risk.counts.len(), COUNTS);
        at_risk.settle(Written::default());
        assert_eq!(at_risk.counts.len(), COUNTS);
        log.sync().unwrap();
        at_risk.settle(log.synced());
        assert_eq!(at_risk.take(), 0);
    }
}
