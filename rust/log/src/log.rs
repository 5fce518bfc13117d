//! The writer: appends, seals segments, trims.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use crate::batch::Batch;
use crate::book::{Book, EPOCH_END, Published, Writer};
use crate::builder::BatchBuilder;
use crate::disk::File;
use crate::error::{BatchError, LogError};
use crate::frame::{MAX_NAME, Origin, Role};
use crate::ipc::Metadata;
use crate::lock::Lock;
use crate::reader::Reader;
use crate::recovery::{self, Recovery};
use crate::segment::{LogId, begin_segment, path_of};
use crate::shared::{Failure, Shared, Syncer, Written};
use crate::snapshot::Snapshot;

mod adopt;
mod retention;
mod write;

pub use retention::{Hold, Trimmed};

/// The maximum number of groups, and of queries that publish. Forgetting one would lose data or publish twice, so a
/// further one is refused. The exception is queries whose only batch is [`ONLY_BATCH`](crate::ONLY_BATCH): the oldest
/// of them makes room.
pub const MAX_NAMES: usize = 10_000;

/// A segment without rows is emptied only from this size on, however small segments are, because emptying takes syncs.
const EMPTIED_FROM: u64 = if cfg!(zeroxide_disk) {
    1 << 11
} else {
    1 << 16
};

/// The settings of a log.
#[derive(Debug, Clone)]
pub struct LogConfig {
    /// A segment is sealed when it has this many bytes. Retention removes whole segments.
    pub segment_bytes: u64,
    /// The maximum number of bytes to keep.
    pub retention_bytes: Option<u64>,
    /// The maximum time to keep rows.
    pub retention_time: Option<Duration>,
    /// Whether rows that every group has read may be removed.
    pub retention_groups: bool,
    /// The maximum number of producers to remember; those that were silent longest are forgotten.
    pub max_producers: usize,
    /// The limit of retention that a copy of the log sets.
    pub hold: Hold,
}

impl Default for LogConfig {
    fn default() -> LogConfig {
        LogConfig {
            segment_bytes: 128 << 20,
            retention_bytes: None,
            retention_time: None,
            retention_groups: false,
            max_producers: 1_000_000,
            hold: Hold::default(),
        }
    }
}

/// The result of a transaction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publication {
    /// The offsets of its rows. Empty if an older batch was published again, because its offsets are not known any
    /// more.
    pub range: Range<u64>,
    /// Whether it was in the log before.
    pub already: bool,
}

/// A log, opened by its only writer.
#[derive(Debug)]
pub struct Log {
    shared: Arc<Shared>,
    config: LogConfig,
    recovery: Recovery,
    active: Arc<File>,
    /// The position of the next frame.
    position: u64,
    book: Book,
    /// The book at the start of the active segment, which a snapshot may contain without a sync.
    sealed: Book,
    groups: BTreeMap<String, u64>,
    /// The least position of a group on disk, if there is one.
    saved_group: Option<u64>,
    /// Below this offset, the snapshot on disk has everything that trimmed frames recorded.
    saved: u64,
    forgotten: usize,
    has_unsaved: bool,
    /// Whether the file of generations has an entry for this opening.
    is_begun: bool,
    /// Whether the file of the next segment may be there, because it could not be begun. Rows must not get its offsets in an
    /// earlier one.
    is_rolling: bool,
    scratch: Scratch,
    /// Whether `finish` has been called. A second attempt after a failure could succeed behind the caller's back.
    is_finished: bool,
    /// Held until the log is dropped.
    _lock: Lock,
}

/// Memory that is reused.
#[derive(Default)]
struct Scratch {
    metadata: Metadata,
    bytes: Vec<u8>,
}

impl std::fmt::Debug for Scratch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Scratch")
    }
}

impl Log {
    /// Opens the log in a folder, or creates one. Incomplete writes of a crash are dropped; [`Log::recovery`] reports
    /// them.
    pub fn open(dir: &Path, config: LogConfig) -> Result<Log, LogError> {
        Log::open_below(dir, config, None, None)
    }

    /// Opens the log `id` again after it has failed in this process. If that was a sync, the system may show rows that are
    /// not on disk and that it will not write again. Everything after `synced`, which [`Log::synced`] returned before, is
    /// then dropped.
    ///
    /// # Errors
    /// As [`Log::open`], and [`LogError::Gone`] if the folder does not hold this log.
    pub fn reopen(
        dir: &Path,
        config: LogConfig,
        id: LogId,
        synced: Option<Written>,
    ) -> Result<Log, LogError> {
        Log::open_below(dir, config, Some(id), synced)
    }

    fn open_below(
        dir: &Path,
        config: LogConfig,
        expected: Option<LogId>,
        trusted: Option<Written>,
    ) -> Result<Log, LogError> {
        // The program may change its working directory.
        let dir =
            std::path::absolute(dir).map_err(|error| LogError::from_io("find", dir, error))?;
        let opened = recovery::open(&dir, expected, trusted)?;
        let state = opened.shared.state();
        let (active, position) = (state.active.clone(), opened.position);
        drop(state);
        let mut log = Log {
            shared: opened.shared,
            config,
            recovery: opened.recovery,
            active,
            position,
            book: opened.book,
            sealed: opened.sealed,
            saved_group: opened.groups.values().min().copied(),
            groups: opened.groups,
            saved: opened.saved,
            forgotten: 0,
            has_unsaved: false,
            is_finished: false,
            is_begun: false,
            is_rolling: false,
            scratch: Scratch::default(),
            _lock: opened.lock,
        };
        log.forgotten = log.book.forget(log.config.max_producers);
        Ok(log)
    }

    /// The log's id: random, and the same for as long as its files exist.
    pub fn id(&self) -> LogId {
        self.shared.id
    }

    /// The id as 32 hexadecimal digits.
    pub fn id_text(&self) -> String {
        self.shared
            .id
            .iter()
            .map(|byte| format!("{byte:02x}"))
            .collect()
    }

    /// The state in which the log was found when it was opened.
    pub fn recovery(&self) -> &Recovery {
        &self.recovery
    }

    /// The first offset in the log.
    pub fn earliest(&self) -> u64 {
        self.shared.state().earliest()
    }

    /// The offset of the next row.
    pub fn next(&self) -> u64 {
        self.shared.state().appended
    }

    /// Rows below this offset are on disk.
    pub fn durable(&self) -> u64 {
        self.shared.state().durable
    }

    /// The time at which the last rows were received, as far as it is known.
    pub fn last_received(&self) -> Option<i64> {
        let state = self.shared.state();
        let times = state.segments.iter().rev();
        times.filter_map(|segment| segment.index().latest).next()
    }

    /// Everything that was written so far, including frames without rows: an epoch, an empty transaction.
    pub fn written(&self) -> Written {
        self.shared.state().written
    }

    /// The part of [`written`](Self::written) that is on disk.
    pub fn synced(&self) -> Written {
        self.shared.state().synced
    }

    /// Returns a handle that syncs from another thread.
    pub fn syncer(&self) -> Syncer {
        Syncer {
            shared: self.shared.clone(),
        }
    }

    /// Whether a handle syncs this opening of the log, and not an earlier one.
    pub fn has_syncer(&self, syncer: &Syncer) -> bool {
        Arc::ptr_eq(&self.shared, &syncer.shared)
    }

    /// Returns a handle that reads from other threads.
    pub fn reader(&self) -> Reader {
        Reader {
            shared: self.shared.clone(),
        }
    }

    /// The last epoch of a producer and its last sequence number, whether or not its rows are still there.
    pub fn last_seq(&self, producer: &str) -> Option<(u64, u64)> {
        let last = self.book.producers.get(producer)?;
        Some((last.epoch, last.seq()?))
    }

    /// The runs of a producer that wrote rows, in the order of their writing, and whether the list is complete: of many
    /// runs, the earliest are forgotten.
    pub fn writers(&self, producer: &str) -> (Arc<[Writer]>, bool) {
        match self.book.producers.get(producer) {
            Some(last) => (last.writers.clone(), !last.is_cut),
            None => (Arc::default(), true),
        }
    }

    /// The last epoch of a producer, whether or not it has rows.
    pub fn epoch(&self, producer: &str) -> Option<u64> {
        Some(self.book.producers.get(producer)?.epoch)
    }

    /// Records that this epoch of a producer has begun. After the next sync, every later process knows it, and no
    /// earlier epoch may append.
    pub fn begin_epoch(
        &mut self,
        producer: &str,
        epoch: u64,
        receive_time: i64,
    ) -> Result<(), LogError> {
        check_name(producer)?;
        let known = self.epoch(producer).filter(|known| *known < EPOCH_END);
        if known.is_some_and(|known| epoch <= known) {
            return Ok(());
        }
        let origin = Origin {
            producer: producer.into(),
            epoch,
            first_seq: self.last_seq(producer).map_or(0, |(_, seq)| seq + 1),
            receive_time,
        };
        self.make_room()?;
        let mut writing = self.begin();
        self.put(
            &mut writing,
            Role::Single,
            origin,
            &BatchBuilder::new().finish(),
        )?;
        self.keep(writing);
        Ok(())
    }

    /// The number of remembered producers, and of those that were forgotten because there were too many.
    pub fn producers(&self) -> (usize, usize) {
        (self.book.producers.len(), self.forgotten)
    }

    /// Appends rows and returns their offsets. They are in the page cache after this call, and on disk after the next
    /// sync.
    pub fn append(&mut self, origin: &Origin, batch: &Batch) -> Result<Range<u64>, LogError> {
        check_name(&origin.producer)?;
        if batch.is_empty() {
            let next = self.next();
            return Ok(next..next);
        }
        self.make_room()?;
        let mut writing = self.begin();
        self.put(&mut writing, Role::Single, origin.clone(), batch)?;
        Ok(self.keep(writing))
    }

    /// The last batch that a query has published.
    pub fn published(&self, query: &str) -> Option<&Published> {
        self.book.queries.get(query)
    }

    /// Appends all rows of a query's batch, or none of them, even if a crash interrupts it. A batch that is not newer
    /// than the last one is not appended again.
    ///
    /// The rows' producer is the query; their sequence numbers continue from batch to batch.
    pub fn append_published(
        &mut self,
        query: &str,
        batch_id: u64,
        receive_time: i64,
        batches: &[Batch],
    ) -> Result<Publication, LogError> {
        let batches = batches.iter().cloned().map(Ok::<_, LogError>);
        self.append_published_from(query, batch_id, receive_time, batches)
    }

    /// The same with batches that are created while they are written, so that only two are in memory at a time. After
    /// an error from `batches`, the log has none of the rows.
    pub fn append_published_from<E: From<LogError>>(
        &mut self,
        query: &str,
        batch_id: u64,
        receive_time: i64,
        batches: impl IntoIterator<Item = Result<Batch, E>>,
    ) -> Result<Publication, E> {
        if let Some(known) = self.check_publication(query, batch_id)? {
            return Ok(known);
        }
        let mut next_seq = self.published(query).map_or(0, |last| last.next_seq);
        let query: Arc<str> = query.into();
        self.make_room()?;
        let mut writing = self.begin();
        let mut batches = batches.into_iter().peekable();
        loop {
            let batch = match batches.next() {
                Some(Ok(batch)) => batch,
                Some(Err(error)) => {
                    self.take_back()?;
                    return Err(error);
                }
                None => BatchBuilder::new().finish(),
            };
            let is_last = batches.peek().is_none();
            let role = if is_last { Role::Last } else { Role::Part };
            let origin = Origin {
                producer: query.clone(),
                epoch: batch_id,
                first_seq: next_seq,
                receive_time,
            };
            next_seq += batch.rows() as u64;
            self.put(&mut writing, role, origin, &batch)?;
            if is_last {
                break;
            }
        }
        let range = self.keep(writing);
        self.book.forget_queries(MAX_NAMES, &query);
        Ok(Publication {
            range,
            already: false,
        })
    }

    /// Checks whether a query may publish a batch. If this batch or a newer one is in the log already, returns its
    /// result.
    fn check_publication(
        &self,
        query: &str,
        batch_id: u64,
    ) -> Result<Option<Publication>, LogError> {
        check_name(query)?;
        if query.is_empty() {
            return Err(BatchError::Malformed("a query without a name").into());
        }
        match self.book.queries.get(query) {
            Some(last) if batch_id <= last.batch => {
                let range = if batch_id == last.batch {
                    last.range.clone()
                } else {
                    0..0
                };
                Ok(Some(Publication {
                    range,
                    already: true,
                }))
            }
            None if !self.book.has_room(MAX_NAMES) => {
                let advice = "the log keeps all of them, because a batch of a forgotten one could be published twice. Publish \
                              under a name that it has (in Spark, with the same checkpoint or option queryName), or to the \
                              collector of another log";
                Err(too_many("queries that publish", query, advice))
            }
            _ => Ok(None),
        }
    }

    /// Records how far a group of consumers has read. A restart keeps that once [`Log::save`] was called.
    pub fn commit_group(&mut self, group: &str, offset: u64) -> Result<(), LogError> {
        check_name(group)?;
        if !self.groups.contains_key(group) && self.groups.len() >= MAX_NAMES {
            let advice =
                "drop some that are not used any more (zeroxide groups ENDPOINT --drop NAME)";
            return Err(too_many("groups", group, advice));
        }
        self.groups.insert(group.to_owned(), offset);
        self.has_unsaved = true;
        Ok(())
    }

    /// Drops a group, which then delays retention no more. False if there is no such group.
    pub fn drop_group(&mut self, group: &str) -> bool {
        let existed = self.groups.remove(group).is_some();
        self.has_unsaved |= existed;
        existed
    }

    /// The groups and their positions.
    pub fn groups(&self) -> &BTreeMap<String, u64> {
        &self.groups
    }

    /// Checks that the folder is where it was when the log was opened. Call it before other files in it are created,
    /// renamed or removed.
    ///
    /// # Errors
    /// [`LogError::Gone`] if it is not, after which nothing is written any more. The system's errors.
    pub fn check_place(&self) -> Result<(), LogError> {
        self.shared.check_place()
    }

    /// Waits until everything is on disk.
    pub fn sync(&self) -> Result<u64, LogError> {
        self.shared.sync()
    }

    /// Writes the state that frames do not contain, if it has changed. Call it regularly, and after important commits.
    pub fn save(&mut self) -> Result<(), LogError> {
        if !self.has_unsaved {
            return Ok(());
        }
        self.save_sealed()
    }

    /// Syncs, saves, and unlocks the folder.
    pub fn close(mut self) -> Result<(), LogError> {
        self.finish()
    }

    /// The offset at which the active segment begins.
    fn sealed_end(&self) -> u64 {
        self.shared
            .state()
            .segments
            .back()
            .map_or(0, |active| active.first)
    }

    fn save_sealed(&mut self) -> Result<(), LogError> {
        let base = self.sealed_end();
        self.write_snapshot(base, self.sealed.clone())
    }

    /// Begins a new segment if the active one has rows, so that they can be trimmed.
    pub fn seal(&mut self) -> Result<(), LogError> {
        self.shared.state().check()?;
        if self.next() > self.sealed_end() {
            self.roll()?;
        }
        Ok(())
    }

    /// Begins a new segment if the active one is full.
    fn make_room(&mut self) -> Result<(), LogError> {
        self.shared.state().check()?;
        if !self.is_begun {
            self.begin_generation()?;
        }
        if self.position < self.segment_bytes() && !self.is_rolling {
            return Ok(());
        }
        if self.next() > self.sealed_end() {
            self.roll()
        } else if self.position >= self.segment_bytes().max(EMPTIED_FROM) {
            self.empty()
        } else {
            Ok(())
        }
    }

    /// Records, before the first frame is written, that the following rows belong to this opening.
    fn begin_generation(&mut self) -> Result<(), LogError> {
        let before = self.shared.state().generations.clone();
        let generations = before.with(self.next())?;
        self.shared.check_place()?;
        generations.save(&self.shared.dir)?;
        self.shared.state().generations = generations;
        self.is_begun = true;
        Ok(())
    }

    /// Small enough that retention by bytes has several segments to choose from.
    fn segment_bytes(&self) -> u64 {
        let most = self
            .config
            .retention_bytes
            .map_or(u64::MAX, |bytes| (bytes / 4).max(1 << 16));
        self.config.segment_bytes.min(most)
    }

    /// Seals the active segment and begins the next.
    fn roll(&mut self) -> Result<(), LogError> {
        self.shared.sync()?;
        let first = self.next();
        self.shared.check_place()?;
        let (dir, id) = (&self.shared.dir, &self.shared.id);
        let begun = begin_segment(dir, id, first, self.is_rolling);
        if let Err(LogError::Io { source, .. }) = &begun
            && source.kind() == io::ErrorKind::AlreadyExists
        {
            let path = path_of(dir, first);
            return Err(self
                .shared
                .fail_with(Failure::Gone(path, "was created by another program")));
        }
        self.is_rolling = begun.is_err();
        let (file, segment) = begun?;
        self.position = segment.bytes();
        self.active = Arc::new(file);
        {
            let mut state = self.shared.state();
            state.active = self.active.clone();
            state.segments.push_back(Arc::new(segment));
            (state.written.segment, state.written.position) = (first, self.position);
            state.synced = state.written;
        }
        self.forgotten += self.book.forget(self.config.max_producers);
        self.sealed = self.book.clone();
        self.has_unsaved = true;
        // Without the snapshot, the next start walks more frames and trimming waits. Appending can continue.
        let _ = self.save_sealed();
        Ok(())
    }

    /// Removes the frames from an active segment without rows. The next segment would have the same name, and retention
    /// would never reach it. Their contents are in the snapshot first.
    fn empty(&mut self) -> Result<(), LogError> {
        self.shared.sync()?;
        self.forgotten += self.book.forget(self.config.max_producers);
        if self.write_snapshot(self.next(), self.book.clone()).is_err() {
            return Ok(()); // they stay until the snapshot can be written; appending can continue
        }
        self.sealed = self.book.clone();
        let Some(full) = self.shared.state().segments.back().cloned() else {
            return Ok(());
        };
        let emptied = full.emptied();
        self.position = emptied.bytes();
        let shortened = self.active.set_len(self.position);
        if let Err(error) = shortened.and_then(|()| self.active.sync_all()) {
            return Err(self.shared.fail("empty", error));
        }
        let mut state = self.shared.state();
        state.segments.pop_back();
        state.segments.push_back(Arc::new(emptied));
        state.written.position = self.position;
        state.synced = state.written;
        Ok(())
    }

    fn write_snapshot(&mut self, base: u64, book: Book) -> Result<(), LogError> {
        let state = self.shared.state();
        let sealed = state.segments.iter().filter(|segment| segment.first < base);
        let segments = sealed
            .filter_map(|segment| Some((segment.first, segment.index().latest?)))
            .collect();
        let durable = state.durable;
        drop(state);
        let snapshot = Snapshot {
            id: self.shared.id,
            base,
            durable,
            book,
            groups: self.groups.clone(),
            segments,
        };
        self.shared.check_place()?;
        snapshot.save(&self.shared.dir)?;
        self.saved = base;
        self.saved_group = self.groups.values().min().copied();
        self.has_unsaved = false;
        Ok(())
    }

    fn finish(&mut self) -> Result<(), LogError> {
        self.is_finished = true;
        self.shared.sync()?;
        self.save_sealed()
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        if !self.is_finished {
            // Callers that need the result call close; the next start recovers by itself.
            let _ = self.finish();
        }
    }
}

fn check_name(name: &str) -> Result<(), LogError> {
    if name.len() > MAX_NAME {
        return Err(BatchError::Malformed("a name of more than 255 bytes").into());
    }
    Ok(())
}

fn too_many(what: &'static str, name: &str, advice: &'static str) -> LogError {
    LogError::TooMany {
        what,
        name: name.to_owned(),
        max: MAX_NAMES,
        advice,
    }
}
