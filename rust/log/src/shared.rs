//! What the writer, its readers and whoever syncs have in common.

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::error::LogError;
use crate::segment::{LogId, Segment};

/// Where the offset below which rows are on disk is written, after the fact: it tells a torn tail from damage.
pub(crate) const DURABLE: &str = "durable";

#[derive(Debug)]
pub(crate) struct Shared {
    pub dir: PathBuf,
    pub id: LogId,
    durable_file: File,
    state: Mutex<State>,
}

#[derive(Debug)]
pub(crate) struct State {
    /// In order; the last is the one being written to.
    pub segments: VecDeque<Arc<Segment>>,
    /// The offset of the next row.
    pub appended: u64,
    /// Rows below are on disk.
    pub durable: u64,
    /// Where the rows are that are not.
    pub active: Arc<File>,
    /// What failed so that nobody knows what is on disk.
    pub failure: Option<(&'static str, String)>,
}

impl Shared {
    pub fn new(dir: PathBuf, id: LogId, durable_file: File, state: State) -> Shared {
        Shared {
            dir,
            id,
            durable_file,
            state: Mutex::new(state),
        }
    }

    pub fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Syncs what has been appended so far; gives the offset below which everything is on disk.
    ///
    /// Segments are synced when they are sealed, so the active one is all that there is to sync.
    pub fn sync(&self) -> Result<u64, LogError> {
        let (appended, active) = {
            let state = self.state();
            state.check()?;
            if state.durable == state.appended {
                return Ok(state.durable);
            }
            (state.appended, state.active.clone())
        };
        if let Err(error) = rustix::fs::fdatasync(&*active) {
            // The kernel may have forgotten the pages: a second fsync would succeed and mean nothing.
            return Err(self.fail("fsync", error.into()));
        }
        let mut state = self.state();
        state.check()?;
        state.durable = state.durable.max(appended);
        self.write_durable(state.durable);
        Ok(state.durable)
    }

    /// Remembers that nothing is known of the disk any more.
    pub fn fail(&self, what: &'static str, error: std::io::Error) -> LogError {
        let mut state = self.state();
        let (what, reason) = state
            .failure
            .get_or_insert_with(|| (what, error.to_string()));
        LogError::Failed {
            what,
            reason: reason.clone(),
        }
    }

    /// Not synced: after a crash of the process it is exact, after one of the machine a lower bound, and both will do.
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
            Some((what, reason)) => Err(LogError::Failed {
                what,
                reason: reason.clone(),
            }),
        }
    }

    pub fn earliest(&self) -> u64 {
        self.segments
            .front()
            .map_or(self.appended, |segment| segment.first)
    }
}

/// Puts rows on disk while the writer goes on. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Syncer {
    pub(crate) shared: Arc<Shared>,
}

impl Syncer {
    /// Waits until everything that was appended before this call is on disk; gives the offset below which all is.
    /// After a failure nothing can be appended any more: what the disk holds is unknown.
    pub fn sync(&self) -> Result<u64, LogError> {
        self.shared.sync()
    }
}
