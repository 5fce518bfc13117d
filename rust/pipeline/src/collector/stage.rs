//! Staged rows of sinks, which readers do not see yet: one file per batch of a query, in the folder `staged` of the
//! log.
//!
//! A part is acknowledged when its record is on disk, and the next process finds it again ([`recovery`]). An incomplete
//! record at the end of a file is cut off. The log knows which batches were published: their files, and files without
//! writes for some time, are deleted.

#[cfg(zeroxide_disk)]
mod aside;
mod format;
mod recovery;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_log::disk::{self, File, FileExt};
use zeroxide_log::{Batch, Place, private};

use crate::collector::refusal::{Refusal, refusal_of};
use crate::wire::{Attempt, Code, Won};

/// The maximum number of open files; a query has one or two.
const BATCHES: usize = 256;

/// The maximum number of staged parts, which take about 130 bytes of memory each.
const PARTS: usize = 1 << 20;

/// A batch of a query.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct BatchOf {
    pub query: String,
    pub batch: u64,
}

/// The position of a part's rows.
#[derive(Clone, Debug)]
pub(super) struct StagedPart {
    file: Arc<File>,
    position: u64,
    length: usize,
    crc: u32,
}

impl StagedPart {
    /// The number of bytes of the rows.
    pub fn size(&self) -> usize {
        self.length
    }

    /// Reads the rows, and checks that they have not changed since they were staged.
    pub fn decode(&self) -> Result<Batch, Refusal> {
        let corrupt = |text: String| Refusal::new(Code::Corrupt, 0, text);
        let rows = self.read().map_err(|error| corrupt(error.to_string()))?;
        Batch::decode(rows).map_err(|error| corrupt(error.to_string()))
    }

    /// The rows in their wire form, as staged.
    pub fn read(&self) -> io::Result<Bytes> {
        let mut rows = vec![0; self.length];
        self.file.read_exact_at(&mut rows, self.position)?;
        if crc32c::crc32c(&rows) != self.crc {
            return Err(io::Error::new(
                io::ErrorKind::InvalidData,
                format!(
                    "the checksum of staged rows at byte {} is wrong",
                    self.position
                ),
            ));
        }
        Ok(rows.into())
    }
}

/// The file of one batch.
#[derive(Debug)]
struct Staged {
    path: PathBuf,
    file: Arc<File>,
    /// The length of the file, and how much of it is on disk.
    length: u64,
    synced: u64,
    parts: HashMap<(Attempt, u32), StagedPart>,
    touched: Instant,
    /// Whether a sync failed, so that the data after `synced` is unknown, and does not count.
    is_broken: bool,
    /// The state in which the collector found the file when it started.
    past: Past,
}

/// The state of a batch when the collector started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Past {
    /// Its file did not exist, or was set aside.
    Unknown,
    /// All of its parts were found.
    Whole,
    /// Some were damaged or cut off.
    Damaged,
}

/// All staged batches.
#[derive(Debug)]
pub(super) struct Stage {
    dir: PathBuf,
    /// The folder itself. Another collector may have one of its name, with files of the same names.
    place: Place,
    most: u64,
    most_parts: usize,
    batches: BTreeMap<BatchOf, Staged>,
    /// The number in the name of the next file.
    next_file: u64,
    bytes: u64,
    /// The last batches that expired, and after how long, for the error when they are requested.
    expired: VecDeque<(BatchOf, Duration)>,
    /// Files that could not be used when the collector started.
    aside: Vec<PathBuf>,
    /// The losses that were found when the collector started, in words.
    pub notes: Vec<String>,
    /// The number of parts that were lost then, as far as it is known.
    pub lost: u64,
}

impl Stage {
    /// The number of staged bytes, and of their batches.
    pub fn size(&self) -> (u64, usize) {
        (self.bytes, self.batches.len())
    }

    /// The number of staged parts.
    fn parts(&self) -> usize {
        self.batches.values().map(|staged| staged.parts.len()).sum()
    }

    /// Writes a part after the others of its batch; it counts after [`sync`](Self::sync). A part that was staged before
    /// is replaced, because a client that missed the reply sends it again.
    pub fn write(
        &mut self,
        of: &BatchOf,
        key: (Attempt, u32),
        rows: &[u8],
        now: Instant,
    ) -> Result<(), Refusal> {
        let size = format::RECORD as u64 + rows.len() as u64;
        // First, because it makes room.
        self.leave_broken(of)?;
        if self.bytes + size > self.most {
            let text = format!(
                "{} bytes are staged already, the most that this collector keeps unpublished (max_staged_bytes): publish or abort some",
                self.bytes
            );
            return Err(Refusal::new(Code::TooMany, self.most, text));
        }
        if self.parts() >= self.most_parts {
            let text = format!(
                "{} parts are staged already, the most that this collector keeps unpublished: publish or abort some, and \
                 put more rows into each part",
                self.most_parts
            );
            return Err(Refusal::new(Code::TooMany, self.most_parts as u64, text));
        }
        let length = u32::try_from(rows.len())
            .map_err(|_| Refusal::new(Code::TooBig, u32::MAX.into(), "a part of 4 GiB"))?;
        if !self.batches.contains_key(of) {
            if self.batches.len() >= BATCHES {
                let text = format!("{BATCHES} batches are staged already: publish or abort some");
                return Err(Refusal::new(Code::TooMany, BATCHES as u64, text));
            }
            self.check_place()?;
            let staged = self
                .create(of, now)
                .map_err(|error| refuse(&self.dir, &error))?;
            self.bytes += staged.length;
            self.batches.insert(of.clone(), staged);
        }
        let Some(staged) = self.batches.get_mut(of) else {
            return Err(Refusal::new(Code::Failed, 0, "a staged batch vanished"));
        };
        let (record, crc) = format::record(key, rows, length);
        if let Err(error) = staged.file.write_all_at(&record, staged.length) {
            let refusal = refuse(&staged.path, &error);
            // The next record overwrites an incomplete one at the end, or the next process cuts it off.
            return Err(refusal);
        }
        let part = StagedPart {
            file: staged.file.clone(),
            position: staged.length + format::RECORD as u64,
            length: rows.len(),
            crc,
        };
        staged.parts.insert(key, part);
        staged.length += size;
        staged.touched = now;
        self.bytes += size;
        Ok(())
    }

    /// After a failed sync, continues behind what is on disk. The system reports a failure only once, and takes the data for
    /// written, so that data is removed. What replaces it is written by the next sync.
    fn leave_broken(&mut self, of: &BatchOf) -> Result<(), Refusal> {
        if !self.batches.get(of).is_some_and(|staged| staged.is_broken) {
            return Ok(());
        }
        // The file may have moved, and another collector may write to it.
        self.check_place()?;
        let Some(staged) = self.batches.get_mut(of) else {
            return Ok(());
        };
        if staged.synced == 0 {
            // Not even the head of the file is on disk.
            self.forget(|name, _| name == of);
            return Ok(());
        }
        let cut = staged.file.set_len(staged.synced);
        cut.map_err(|error| refuse(&staged.path, &error))?;
        self.bytes = self.bytes.saturating_sub(staged.length - staged.synced);
        staged.length = staged.synced;
        staged.is_broken = false;
        Ok(())
    }

    /// Opens the folder anew if another one has its name, as after a log was restored as a copy. Then parts count that
    /// the copy has; the others are refused when they are published, and are written again. Returns the number of parts
    /// that the copy has, but that cannot be used.
    pub fn follow(&mut self) -> io::Result<u64> {
        if self.place.check().is_ok() {
            return Ok(0);
        }
        let log = self.dir.parent().unwrap_or(&self.dir);
        if !disk::exists(log) {
            return Err(io::ErrorKind::NotFound.into());
        }
        *self = Stage::open_with(log, self.most, self.most_parts)?;
        Ok(self.lost)
    }

    fn check_place(&self) -> Result<(), Refusal> {
        self.place.check().map_err(|error| refusal_of(&error))
    }

    fn create(&mut self, of: &BatchOf, now: Instant) -> io::Result<Staged> {
        let path = self.dir.join(format!("{:012}.stage", self.next_file));
        self.next_file += 1;
        let file = private::new_file()
            .read(true)
            .create_new(true)
            .open(&path)?;
        let head = format::head(of);
        if let Err(error) = file.write_all_at(&head, 0) {
            // The next process would find it and delete it; deleting may fail there, too.
            let _ = disk::remove_file(&path);
            return Err(error);
        }
        Ok(Staged {
            path,
            file: Arc::new(file),
            length: head.len() as u64,
            synced: 0,
            parts: HashMap::new(),
            touched: now,
            is_broken: false,
            past: Past::Unknown,
        })
    }

    /// Syncs the data written for this batch. If that fails, the unsynced parts are discarded.
    pub fn sync(&mut self, of: &BatchOf) -> Result<(), Refusal> {
        let Some(staged) = self.batches.get_mut(of) else {
            return Ok(());
        };
        if staged.is_broken {
            // A later sync would succeed without meaning anything.
            return Err(broken(staged));
        }
        if staged.synced == staged.length {
            return Ok(());
        }
        let is_new = staged.synced == 0;
        let mut result = staged.file.sync_data();
        if is_new && result.is_ok() {
            result = disk::sync_folder(&self.dir);
        }
        let result = result.map_err(|error| refuse(&staged.path, &error));
        // Data in a folder without its name would not be found again.
        let placed = self.place.check().map_err(|error| refusal_of(&error));
        match result.and(placed) {
            Ok(()) => {
                staged.synced = staged.length;
                Ok(())
            }
            Err(refusal) => {
                let synced = staged.synced;
                staged.parts.retain(|_, part| part.position < synced);
                staged.is_broken = true;
                Err(refusal)
            }
        }
    }

    /// The parts of these attempts, in this order, or an error that names the missing one.
    pub fn find(&self, of: &BatchOf, won: &[Won]) -> Result<Vec<StagedPart>, Refusal> {
        let staged = self.batches.get(of);
        let mut found = Vec::new();
        let mut named = HashSet::new();
        for one in won {
            if !named.insert(one.attempt) {
                // The limit prevents a small request from producing any number of rows.
                let text = format!(
                    "attempt {} at partition {} is named twice",
                    one.attempt.attempt, one.attempt.partition
                );
                return Err(Refusal::new(Code::Invalid, 0, text));
            }
            for part in 0..one.parts {
                match staged.and_then(|staged| staged.parts.get(&(one.attempt, part))) {
                    Some(part) => found.push(part.clone()),
                    None => {
                        let mut text = format!(
                            "part {part} of attempt {} at partition {} of batch {} of query {:?} is not staged here: ",
                            one.attempt.attempt, one.attempt.partition, of.batch, of.query
                        );
                        text += &self.why_missing(of);
                        return Err(Refusal::new(Code::NotStaged, part.into(), text));
                    }
                }
            }
        }
        Ok(found)
    }

    fn why_missing(&self, of: &BatchOf) -> String {
        let expired = self.expired.iter().find(|(expired, _)| expired == of);
        let staged = self.batches.get(of);
        let past = staged.map_or(Past::Unknown, |staged| staged.past);
        // A batch whose file was set aside may have got another one since, with a later name.
        let is_before = |aside: &&PathBuf| staged.is_some_and(|staged| **aside < staged.path);
        let mut files = self.aside.iter();
        let aside = files.find(|aside| past == Past::Unknown || is_before(aside));
        match (expired, staged, past, aside) {
            (None, Some(staged), Past::Damaged, _) => format!(
                "parts of this batch in {} were damaged or incomplete when the collector started: write the \
                 batch again",
                staged.path.display()
            ),
            (None, .., Some(aside)) => format!(
                "it was never sent, or not to this collector, or it was in {}, which could not be used when the collector \
                 started: write the batch again",
                aside.display()
            ),
            (None, .., None) => "it was never sent, or not to this collector".to_owned(),
            (Some((_, age)), ..) => format!(
                "it has expired, as nothing was staged for this batch within {} minutes: let the collector wait for longer (staged_hours), and write the batch again",
                age.as_secs().div_ceil(60)
            ),
        }
    }

    /// Discards these attempts, or the whole batch if the list is empty.
    pub fn abort(&mut self, of: &BatchOf, attempts: &[Attempt]) {
        if let Some(staged) = self.batches.get_mut(of).filter(|_| !attempts.is_empty()) {
            let attempts: HashSet<&Attempt> = attempts.iter().collect();
            let mut discarded = BTreeSet::new();
            staged.parts.retain(|(attempt, _), _| {
                let stays = !attempts.contains(attempt);
                if !stays {
                    discarded.insert(*attempt);
                }
                stays
            });
            if !staged.parts.is_empty() {
                return self.note_discarded(of, discarded);
            }
        }
        self.forget(|name, _| name == of);
    }

    /// Records that attempts were discarded, so that the next process does not load them.
    fn note_discarded(&mut self, of: &BatchOf, attempts: BTreeSet<Attempt>) {
        let Some(staged) = self.batches.get_mut(of) else {
            return;
        };
        if staged.is_broken || attempts.is_empty() {
            return;
        }
        let records: Vec<u8> = attempts.into_iter().flat_map(format::discarding).collect();
        // If this fails, the next process loads parts that no sink asks for.
        if staged.file.write_all_at(&records, staged.length).is_ok() {
            staged.length += records.len() as u64;
            self.bytes += records.len() as u64;
            let _ = self.sync(of);
        }
    }

    /// Discards the batches of a query up to one that was published.
    pub fn on_published(&mut self, published: &BatchOf) {
        self.forget(|of, _| of.query == published.query && of.batch <= published.batch);
    }

    /// Discards batches without writes for `age`, and returns how many.
    pub fn expire(&mut self, now: Instant, age: Duration) -> usize {
        let is_old = |staged: &Staged| now.saturating_duration_since(staged.touched) >= age;
        for (of, _) in self.batches.iter().filter(|(_, staged)| is_old(staged)) {
            self.expired.push_back((of.clone(), age));
        }
        let surplus = self.expired.len().saturating_sub(BATCHES);
        self.expired.drain(..surplus);
        self.forget(|_, staged| is_old(staged))
    }

    /// Discards batches that were published before this process began.
    pub fn forget_published(&mut self, published: impl Fn(&str) -> Option<u64>) {
        self.forget(|of, _| published(&of.query).is_some_and(|last| of.batch <= last));
    }

    fn forget(&mut self, which: impl Fn(&BatchOf, &Staged) -> bool) -> usize {
        let before = self.batches.len();
        let is_here = self.place.check().is_ok();
        let bytes = &mut self.bytes;
        self.batches.retain(|of, staged| {
            if !which(of, staged) {
                return true;
            }
            *bytes = bytes.saturating_sub(staged.length);
            // If the file stays, the next process finds it.
            if is_here {
                let _ = disk::remove_file(&staged.path);
            }
            false
        });
        before - self.batches.len()
    }
}

fn broken(staged: &Staged) -> Refusal {
    let text = format!(
        "{} could not be synced: stage this part again",
        staged.path.display()
    );
    Refusal::new(Code::Failed, 0, text)
}

fn refuse(path: &Path, error: &io::Error) -> Refusal {
    let code = match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => Code::Full,
        io::ErrorKind::ReadOnlyFilesystem | io::ErrorKind::PermissionDenied => Code::ReadOnly,
        _ => Code::Failed,
    };
    Refusal::new(code, 0, format!("{}: {error}", path.display()))
}

#[cfg(all(test, zeroxide_disk))]
mod cases;

#[cfg(all(test, not(zeroxide_disk)))]
mod tests;
