//! The state that the writer, its readers and syncing threads share.

use std::collections::VecDeque;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::disk::{self, File, FileExt};
use crate::error::LogError;
use crate::generations::Generations;
use crate::place::Place;
use crate::segment::{LogId, Segment};

/// The file that records the offset below which rows are on disk. It is written after the sync, and distinguishes an
/// incomplete tail from damage.
pub(crate) const DURABLE: &str = "durable";

#[derive(Debug)]
pub(crate) struct Shared {
    pub dir: PathBuf,
    pub id: LogId,
    place: Place,
    durable_file: File,
    /// Held by a thread that syncs, and locked before `state`. The system reports an error only once, so a concurrent
    /// second sync would succeed without meaning anything.
    syncing: Mutex<()>,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// In order; the last one is the active segment.
    pub segments: VecDeque<Arc<Segment>>,
    /// The offset of the next row.
    pub appended: u64,
    /// Rows below this offset are on disk.
    pub durable: u64,
    /// Everything that was written, with or without rows, and the part of it that is on disk.
    pub written: Written,
    pub synced: Written,
    /// The file of the rows that are not on disk yet.
    pub active: Arc<File>,
    /// The openings that wrote the rows.
    pub generations: Generations,
    /// The failure after which nothing is written.
    pub failure: Option<Failure>,
}

/// A failure that ends this opening of the log.
#[derive(Debug, Clone)]
pub(crate) enum Failure {
    /// The contents of the disk are unknown: the operation that failed, and the system's error.
    Unknown(&'static str, String),
    /// This folder or file is not where it was.
    Gone(PathBuf, &'static str),
}

impl Failure {
    fn error(&self) -> LogError {
        match self.clone() {
            Failure::Unknown(what, reason) => LogError::Failed { what, reason },
            Failure::Gone(path, what) => LogError::Gone { path, what },
        }
    }
}

/// How much has been written to a log, including frames without rows. A later value is greater.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Written {
    /// The number of writes since the log was opened.
    pub(crate) count: u64,
    /// The first offset of the active segment, and its length at that time.
    pub(crate) segment: u64,
    pub(crate) position: u64,
}

impl Shared {
    pub fn new(dir: PathBuf, id: LogId, place: Place, durable_file: File, state: State) -> Shared {
        Shared {
            dir,
            id,
            place,
            durable_file,
            syncing: Mutex::new(()),
            state: Mutex::new(state),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs everything appended so far; returns the offset below which all rows are on disk.
    ///
    /// Segments are synced when they are sealed, so only the active one needs a sync.
    pub fn sync(&self) -> Result<u64, LogError> {
        let _alone = self.syncing.lock().unwrap_or_else(PoisonError::into_inner);
        let (appended, written, active) = {
            let state = self.state();
            state.check()?;
            if state.synced == state.written {
                return Ok(state.durable);
            }
            (state.appended, state.written, state.active.clone())
        };
        if let Err(error) = active.sync_data() {
            // The kernel may have dropped the pages, so a second fsync would succeed without meaning anything.
            return Err(self.fail("fsync", error));
        }
        self.check_names(&active)?;
        let mut state = self.state();
        state.check()?;
        state.durable = state.durable.max(appended);
        state.synced = state.synced.max(written);
        self.write_durable(state.durable);
        Ok(state.durable)
    }

    /// Records that the contents of the disk are unknown from now on.
    pub fn fail(&self, what: &'static str, error: io::Error) -> LogError {
        self.fail_with(Failure::Unknown(what, error.to_string()))
    }

    /// Records the failure that ends this opening, unless there was one before.
    pub fn fail_with(&self, failure: Failure) -> LogError {
        let mut state = self.state();
        state.failure.get_or_insert(failure).error()
    }

    /// Checks that the folder is where it was, before files in it are created, renamed or removed by their path. Another
    /// log may have one of that name now.
    pub fn check_place(&self) -> Result<(), LogError> {
        self.place.check().map_err(|error| match error {
            LogError::Gone { path, what } => self.fail_with(Failure::Gone(path, what)),
            other => other,
        })
    }

    /// The same for a reader, which changes nothing.
    pub fn see_place(&self) -> Result<(), LogError> {
        self.place.check()
    }

    /// Checks that rows of this file can be found again. A file without a name can still be synced.
    fn check_names(&self, active: &File) -> Result<(), LogError> {
        self.check_place()?;
        match disk::has_name(active) {
            Ok(true) => Ok(()),
            Ok(false) => {
                let path = self.state().segments.back().map(|last| last.path.clone());
                let path = path.unwrap_or_else(|| self.dir.clone());
                Err(self.fail_with(Failure::Gone(path, "was removed")))
            }
            Err(error) => Err(self.fail("fstat", error)),
        }
    }

    /// Not synced. After a crash of the process the mark is exact, and after a crash of the machine it is a lower
    /// bound; either is sufficient.
    pub fn write_durable(&self, durable: u64) {
        let _ = self.durable_file.write_all_at(mark(durable).as_bytes(), 0);
    }
}

/// The text of the mark: the offset, and its checksum.
pub(crate) fn mark(durable: u64) -> String {
    let digits = format!("{durable:020}");
    format!("{digits} {:08x}\n", crc32c::crc32c(digits.as_bytes()))
}

impl State {
    pub fn check(&self) -> Result<(), LogError> {
        match &self.failure {
            None => Ok(()),
            Some(failure) => Err(failure.error()),
        }
    }

    pub fn earliest(&self) -> u64 {
        self.segments
            .front()
            .map_or(self.appended, |segment| segment.first)
    }
}

/// Syncs rows to disk while the writer continues. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Syncer {
    pub(crate) shared: Arc<Shared>,
}

impl Syncer {
    /// Waits until everything appended before this call is on disk; returns the offset below which all rows are. After
    /// a failure nothing can be appended any more, because the contents of the disk are unknown.
    pub fn sync(&self) -> Result<u64, LogError> {
        self.shared.sync()
    }
}

// In folders of the system.
#[cfg(all(test, not(zeroxide_disk)))]
mod tests {
    use std::thread;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_sync_beside_a_failed_one_does_not_raise_the_mark() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| File::create(folder.path().join(name)).unwrap();
        let state = State {
            segments: VecDeque::new(),
            appended: 5,
            durable: 2,
            written: Written {
                count: 1,
                ..Written::default()
            },
            synced: Written::default(),
            active: Arc::new(file("active")),
            generations: Generations::default(),
            failure: None,
        };
        let (dir, place) = (folder.path(), Place::of(folder.path()).unwrap());
        let shared = Shared::new(dir.to_owned(), [0; 16], place, file(DURABLE), state);
        // As if another thread were in fdatasync.
        let alone = shared.syncing.lock().unwrap();
        thread::scope(|scope| {
            let second = scope.spawn(|| shared.sync());
            thread::sleep(Duration::from_millis(50));
            assert!(!second.is_finished(), "one sync at a time");
            let _ = shared.fail("fsync", io::Error::other("the disk is gone"));
            drop(alone);
            assert!(matches!(
                second.join().unwrap(),
                Err(LogError::Failed { .. })
            ));
        });
        assert_eq!(shared.state().durable, 2);
        // The lock keeps other syncs out until this one is done.
        thread::scope(|scope| {
            let state = shared.state();
            let waiting = scope.spawn(|| shared.sync());
            thread::sleep(Duration::from_millis(50));
            let is_alone = shared.syncing.try_lock().is_err();
            drop(state);
            assert!(waiting.join().unwrap().is_err() && is_alone);
        });
    }
}
