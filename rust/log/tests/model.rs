//! Random programs against a plain list of rows: appends, transactions, syncs, restarts, trims, fetches, and crashes
//! that keep any part of the data that was not synced.

use std::collections::{BTreeMap, HashMap};
use std::fs;
use std::path::{Path, PathBuf};

use proptest::prelude::*;
use tempfile::TempDir;
use zeroxide_log::{Batch, BatchBuilder, Log, LogConfig, LogError, Origin, Row};

#[derive(Debug, Clone)]
enum Op {
    /// Rows of one of a few producers; 0 is a plain peer.
    Append {
        producer: u8,
        rows: u8,
        size: u16,
    },
    Publish {
        query: u8,
        batches: Vec<u8>,
    },
    /// The last batch once more.
    PublishAgain {
        query: u8,
    },
    Sync,
    Save,
    Close,
    /// Data that was not synced is cut at a random position, and part of the rest may be zeros.
    Crash {
        keep: prop::sample::Index,
        hole: Option<(prop::sample::Index, u8)>,
        power: bool,
    },
    Trim {
        at: prop::sample::Index,
    },
    Fetch {
        start: prop::sample::Index,
        rows: u16,
        max_bytes: u16,
    },
    Commit {
        group: u8,
        at: prop::sample::Index,
    },
}

fn op() -> impl Strategy<Value = Op> {
    let index = any::<prop::sample::Index>;
    prop_oneof![
        8 => (0..4_u8, 1..40_u8, 0..300_u16).prop_map(|(producer, rows, size)| Op::Append { producer, rows, size }),
        2 => (0..2_u8, prop::collection::vec(0..20_u8, 0..4)).prop_map(|(query, batches)| Op::Publish { query, batches }),
        1 => (0..2_u8).prop_map(|query| Op::PublishAgain { query }),
        4 => Just(Op::Sync),
        1 => Just(Op::Save),
        1 => Just(Op::Close),
        3 => (index(), prop::option::of((index(), 1..200_u8)), any::<bool>())
            .prop_map(|(keep, hole, power)| Op::Crash { keep, hole, power }),
        1 => index().prop_map(|at| Op::Trim { at }),
        4 => (index(), 0..100_u16, any::<u16>()).prop_map(|(start, rows, max_bytes)| Op::Fetch { start, rows, max_bytes }),
        1 => (0..3_u8, index()).prop_map(|(group, at)| Op::Commit { group, at }),
    ]
}

#[derive(Debug, Clone, PartialEq)]
struct ModelRow {
    value: Vec<u8>,
    producer: String,
    seq: Option<u64>,
    /// Of a query's rows: the batch, and whether it ends with this row.
    published: Option<(u64, u64)>,
}

/// The expected contents of the log.
#[derive(Default)]
struct Model {
    rows: Vec<ModelRow>,
    /// Empty transactions, by the offset at which they stand.
    empty: Vec<(u64, String, u64)>,
    groups: BTreeMap<String, u64>,
    saved_groups: BTreeMap<String, u64>,
    durable: u64,
    earliest: u64,
}

impl Model {
    fn next(&self) -> u64 {
        self.rows.len() as u64
    }

    /// Last epoch and seq of producers.
    fn last_seqs(&self) -> HashMap<&str, u64> {
        let plain = self.rows.iter().filter(|row| row.published.is_none());
        plain
            .filter_map(|row| Some((row.producer.as_str(), row.seq?)))
            .collect()
    }

    fn last_batches(&self) -> HashMap<&str, u64> {
        let mut last = HashMap::new();
        let with_rows = self
            .rows
            .iter()
            .filter_map(|row| Some((row.producer.as_str(), row.published?.0)));
        let empty = self
            .empty
            .iter()
            .map(|(_, query, batch)| (query.as_str(), *batch));
        for (query, batch) in with_rows.chain(empty) {
            let newest = last.entry(query).or_insert(batch);
            *newest = batch.max(*newest);
        }
        last
    }
}

struct Run {
    folder: TempDir,
    log: Option<Log>,
    model: Model,
    /// The file being written to and its bytes at the last sync.
    synced: (PathBuf, u64),
    /// The bytes of a segment before its frames.
    beginning: u64,
    clock: i64,
}

fn config() -> LogConfig {
    LogConfig {
        segment_bytes: 20_000,
        ..LogConfig::default()
    }
}

impl Run {
    fn new() -> Run {
        let folder = folder();
        let log = Log::open(folder.path(), config()).unwrap();
        let mut run = Run {
            folder,
            log: Some(log),
            model: Model::default(),
            synced: (PathBuf::new(), 0),
            beginning: 0,
            clock: 1000,
        };
        run.note_sync();
        run.beginning = run.synced.1;
        run
    }

    fn log(&mut self) -> &mut Log {
        self.log.as_mut().unwrap()
    }

    fn note_sync(&mut self) {
        let active = active_segment(self.folder.path());
        self.synced = (active.clone(), fs::metadata(&active).unwrap().len());
        self.model.durable = self.log().durable();
    }

    /// A new segment begins with a sync of the one before.
    fn note_roll(&mut self) {
        let active = active_segment(self.folder.path());
        if active != self.synced.0 {
            self.synced = (active, self.beginning);
            self.model.durable = self.log().durable();
            self.model.saved_groups = self.model.groups.clone();
        }
    }

    fn step(&mut self, op: &Op) {
        self.clock += 10;
        let clock = self.clock;
        match op {
            Op::Append {
                producer,
                rows,
                size,
            } => {
                let name = if *producer == 0 {
                    String::new()
                } else {
                    format!("producer {producer}")
                };
                let numbered = !name.is_empty();
                let first_seq = self
                    .model
                    .last_seqs()
                    .get(name.as_str())
                    .map_or(0, |seq| seq + 1);
                let (batch, values) =
                    batch(self.model.next(), usize::from(*rows), usize::from(*size));
                let origin = Origin {
                    producer: name.as_str().into(),
                    epoch: 1,
                    first_seq,
                    receive_time: clock,
                };
                let range = self.log().append(&origin, &batch).unwrap();
                assert_eq!(
                    range,
                    self.model.next()..self.model.next() + u64::from(*rows)
                );
                for (at, value) in values.into_iter().enumerate() {
                    let seq = numbered.then_some(first_seq + at as u64);
                    self.model.rows.push(ModelRow {
                        value,
                        producer: name.clone(),
                        seq,
                        published: None,
                    });
                }
                self.note_roll();
            }
            Op::Publish { query, batches } => {
                let query = format!("query {query}");
                let batch_id = self
                    .model
                    .last_batches()
                    .get(query.as_str())
                    .map_or(0, |batch| batch + 1);
                let mut next_seq = self
                    .model
                    .rows
                    .iter()
                    .filter(|row| row.producer == query)
                    .count() as u64;
                let mut next = self.model.next();
                let mut rows = Vec::new();
                let mut parts = Vec::new();
                for count in batches {
                    let (batch, values) = batch(next, usize::from(*count), 30);
                    next += values.len() as u64;
                    parts.push(batch);
                    for value in values {
                        rows.push(ModelRow {
                            value,
                            producer: query.clone(),
                            seq: Some(next_seq),
                            published: None,
                        });
                        next_seq += 1;
                    }
                }
                let done = self
                    .log()
                    .append_published(&query, batch_id, clock, &parts)
                    .unwrap();
                assert_eq!((done.range, done.already), (self.model.next()..next, false));
                for row in &mut rows {
                    row.published = Some((batch_id, next));
                }
                if rows.is_empty() {
                    self.model.empty.push((self.model.next(), query, batch_id));
                }
                self.model.rows.extend(rows);
                self.note_roll();
            }
            Op::PublishAgain { query } => {
                let query = format!("query {query}");
                let Some(last) = self.model.last_batches().get(query.as_str()).copied() else {
                    return;
                };
                let (batch, _) = batch(0, 5, 10);
                let done = self
                    .log()
                    .append_published(&query, last, clock, &[batch])
                    .unwrap();
                assert!(done.already);
            }
            Op::Sync => {
                assert_eq!(self.log().syncer().sync().unwrap(), self.model.next());
                self.note_sync();
            }
            Op::Save => {
                self.log().save().unwrap();
                self.model.saved_groups = self.model.groups.clone();
            }
            Op::Close => {
                self.log.take().unwrap().close().unwrap();
                self.log = Some(Log::open(self.folder.path(), config()).unwrap());
                assert_eq!(self.log().next(), self.model.next());
                self.model.saved_groups = self.model.groups.clone();
                self.note_sync();
                self.check_all();
            }
            Op::Crash { keep, hole, power } => self.crash(keep, *hole, *power),
            Op::Trim { at } => {
                let before = at.index(self.model.rows.len() + 1) as u64;
                self.log().trim(before).unwrap();
                let earliest = self.log().earliest();
                assert!(
                    earliest >= self.model.earliest && earliest <= before.max(self.model.earliest)
                );
                self.model.earliest = earliest;
            }
            Op::Fetch {
                start,
                rows,
                max_bytes,
            } => {
                let start = start.index(self.model.rows.len() + 1) as u64;
                self.check_fetch(start, start + u64::from(*rows), usize::from(*max_bytes));
            }
            Op::Commit { group, at } => {
                let (group, offset) = (
                    format!("group {group}"),
                    at.index(self.model.rows.len() + 1) as u64,
                );
                self.log().commit_group(&group, offset).unwrap();
                self.model.groups.insert(group, offset);
            }
        }
        assert_eq!(self.log().next(), self.model.next());
        assert_eq!(self.log().earliest(), self.model.earliest);
    }

    /// The folder as a killed process, or a machine without power, leaves it.
    fn crash(
        &mut self,
        keep: &prop::sample::Index,
        hole: Option<(prop::sample::Index, u8)>,
        power: bool,
    ) {
        let folder = folder();
        for entry in fs::read_dir(self.folder.path()).unwrap() {
            let entry = entry.unwrap();
            fs::copy(entry.path(), folder.path().join(entry.file_name())).unwrap();
        }
        let (active, synced) = &self.synced;
        let active = folder.path().join(active.file_name().unwrap());
        let mut bytes = fs::read(&active).unwrap();
        let synced = usize::try_from(*synced).unwrap();
        let unsynced = bytes.len() - synced;
        bytes.truncate(synced + keep.index(unsynced + 1));
        if let Some((at, length)) = hole
            && bytes.len() > synced
        {
            let at = synced + at.index(bytes.len() - synced);
            let end = bytes.len().min(at + usize::from(length));
            bytes[at..end].fill(0);
        }
        fs::write(&active, bytes).unwrap();
        if power {
            // The mark itself is never synced, so an older version of it may survive a crash.
            let _ = fs::remove_file(folder.path().join("durable"));
        }
        drop(self.log.take());
        self.folder = folder;
        let log = Log::open(self.folder.path(), config()).unwrap();
        assert!(log.recovery().damaged.is_empty(), "{:?}", log.recovery());
        let next = log.next();
        assert!(
            (self.model.durable..=self.model.next()).contains(&next),
            "{next} of {}, durable {}",
            self.model.next(),
            self.model.durable
        );
        self.log = Some(log);
        let cut = self
            .model
            .rows
            .get(next as usize)
            .zip(self.model.rows[..next as usize].last());
        if let Some((first_lost, last_kept)) = cut
            && let Some((batch, end)) = last_kept.published
            && end > next
        {
            panic!(
                "half of a transaction: batch {batch} of {}, {first_lost:?}",
                last_kept.producer
            );
        }
        self.model.rows.truncate(next as usize);
        // An empty transaction leaves no row that would show whether it survived.
        let log = self.log.as_ref().unwrap();
        self.model.empty.retain(|(at, query, batch)| {
            *at <= next
                && log
                    .published(query)
                    .is_some_and(|last| last.batch >= *batch)
        });
        self.model.groups = self.log().groups().clone();
        for (group, offset) in &self.model.saved_groups {
            assert!(
                self.model.groups.contains_key(group),
                "{group} at {offset} was saved"
            );
        }
        self.note_sync();
        self.check_all();
    }

    /// Everything that can be asked.
    fn check_all(&mut self) {
        let (earliest, next) = (self.model.earliest, self.model.next());
        assert_eq!(self.log().earliest(), earliest);
        self.check_fetch(earliest, next, usize::MAX);
        let log = self.log.as_ref().unwrap();
        for producer in 1..4 {
            let name = format!("producer {producer}");
            let last = self
                .model
                .last_seqs()
                .get(name.as_str())
                .map(|seq| (1, *seq));
            assert_eq!(log.last_seq(&name), last, "{name}");
        }
        for query in 0..2 {
            let name = format!("query {query}");
            let last = self.model.last_batches().get(name.as_str()).copied();
            assert_eq!(log.published(&name).map(|last| last.batch), last, "{name}");
        }
    }

    fn check_fetch(&mut self, start: u64, end: u64, max_bytes: usize) {
        let (earliest, durable) = (self.model.earliest, self.log().durable());
        let fetched = self.log().reader().fetch(start, end, max_bytes);
        if start < earliest {
            assert!(matches!(fetched, Err(LogError::OutOfRange { .. })));
            return;
        }
        let frames = fetched.unwrap();
        let end = end.min(durable);
        if start >= end {
            assert!(frames.is_empty());
            return;
        }
        assert!(!frames.is_empty(), "{start}..{end}");
        let mut at = start;
        for frame in &frames {
            assert!(frame.first_offset <= at && frame.end > at && frame.first_offset < end);
            for row in frame.rows_within(&(start..end)) {
                let expected = &self.model.rows[at as usize];
                assert_eq!(frame.offset(row), at);
                assert_eq!(frame.batch.value(row), expected.value);
                assert_eq!(frame.seq(row), expected.seq);
                assert_eq!(&*frame.origin.producer, expected.producer);
                at += 1;
            }
        }
        assert!(max_bytes < usize::MAX || at == end, "{at} of {end}");
    }
}

/// In memory where that is possible: crashes are simulated, and syncs cost nothing.
fn folder() -> TempDir {
    tempfile::tempdir_in("/dev/shm")
        .or_else(|_| tempfile::tempdir())
        .unwrap()
}

fn active_segment(folder: &Path) -> PathBuf {
    let names = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path());
    names
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "zlog")
        })
        .max()
        .unwrap()
}

fn batch(first: u64, rows: usize, size: usize) -> (Batch, Vec<Vec<u8>>) {
    let mut builder = BatchBuilder::new();
    let mut values = Vec::new();
    for row in 0..rows {
        let number = first + row as u64;
        let mut value = format!("{number}:").into_bytes();
        value.resize(value.len() + size, b'x');
        builder
            .push(Row {
                value: &value,
                topic: Some("t"),
                timestamp: Some(5),
                ..Row::default()
            })
            .unwrap();
        values.push(value);
    }
    (builder.finish(), values)
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: if std::env::var_os("ZEROXIDE_FULL").is_some() { 5000 } else { 300 },
        max_shrink_iters: 2000,
        ..ProptestConfig::default()
    })]

    #[test]
    fn the_log_is_the_list_of_its_rows(ops in prop::collection::vec(op(), 1..60)) {
        let mut run = Run::new();
        for op in &ops {
            run.step(op);
        }
        run.step(&Op::Sync);
        run.check_all();
    }
}
