//! What can go wrong, each with where it happened and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::columns::{MAX_BATCH, MAX_ROWS};

/// Why bytes from elsewhere are not a batch, or a batch cannot be made of what was given.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes end before the batch does, or go on after it.
    #[error("a batch of {expected} bytes came in {got}")]
    Length {
        /// What its table of buffers adds up to.
        expected: u64,
        /// What there is.
        got: u64,
    },
    /// A field says what cannot be.
    #[error("not a batch: {0}")]
    Malformed(&'static str),
    /// A batch holds at most [`MAX_BATCH`] bytes and [`MAX_ROWS`] rows.
    #[error("a batch of {bytes} bytes and {rows} rows is too large: at most {max_bytes} and {max_rows}", max_bytes = MAX_BATCH, max_rows = MAX_ROWS)]
    TooLarge {
        /// Bytes it would have had.
        bytes: u64,
        /// Rows it would have had.
        rows: u64,
    },
    /// A row that is larger than a batch may be where it shall go.
    #[error(
        "a row of {bytes} bytes is too large: {limit} is the most that is taken, the collector's max_batch_bytes"
    )]
    RowTooLarge {
        /// Bytes it has, about.
        bytes: u64,
        /// What is taken.
        limit: u64,
    },
    /// An Arrow column that the log has no place for, or of a type that does not go there.
    #[error("column {name:?} of type {found} does not go into the log: {expected}")]
    Column {
        /// Its name.
        name: String,
        /// Its type.
        found: String,
        /// What would do.
        expected: &'static str,
    },
}

/// Why the log did not do what it was asked to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another writer has the folder.
    #[error("{} is in use by {by}: one writer at a time; stop it, or use another folder", dir.display())]
    Locked {
        /// The log's folder.
        dir: PathBuf,
        /// Who holds it, as the holder wrote it down.
        by: String,
    },
    /// There is no room. Nothing of what was to be appended is in the log; the same call works once there is room.
    #[error("no room left for {} ({reason}): free some, or lower the retention; appending goes on then", path.display())]
    Full {
        /// What was being written.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// The folder cannot be written to.
    #[error("{} cannot be written to ({reason}): make it writable and open the log again", path.display())]
    ReadOnly {
        /// What was to be written.
        path: PathBuf,
        /// What the system said.
        reason: String,
    },
    /// Rows that were acknowledged once cannot be read: the offsets from `first` to `end` are lost or damaged.
    #[error("offsets {first} to {end} cannot be read, {} is damaged at byte {position}: {what}; restore the file, or read on at {end}", segment.display())]
    Corrupt {
        /// The file.
        segment: PathBuf,
        /// The place in it.
        position: u64,
        /// The first offset concerned.
        first: u64,
        /// The first offset behind them that can be read again.
        end: u64,
        /// What is wrong.
        what: String,
    },
    /// A folder or file that is not this log's.
    #[error("{} is not usable: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// Why not.
        what: String,
    },
    /// Rows that were never there, or are not there any more.
    #[error(
        "offset {asked} was asked for, the log has {earliest} up to (not including) {next}: what is below was removed by retention, what is above was never written"
    )]
    OutOfRange {
        /// What was asked for.
        asked: u64,
        /// The first offset there is.
        earliest: u64,
        /// The offset that the next row will have.
        next: u64,
    },
    /// A write or fsync failed earlier; what is on disk is unknown until the log is opened again.
    #[error(
        "nothing more is appended after {what} failed ({reason}): check the disk and open the log again"
    )]
    Failed {
        /// What failed.
        what: &'static str,
        /// What the system said then.
        reason: String,
    },
    /// A table that names fill is full.
    #[error(
        "there are {max} {what} already, {name:?} would be one more: remove some that are not used any more"
    )]
    TooMany {
        /// Of what.
        what: &'static str,
        /// Which one.
        name: String,
        /// How many there may be.
        max: usize,
    },
    /// The batch does not fit into a frame of the log.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Anything else that the system refuses.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The verb for what was tried.
        what: &'static str,
        /// On what.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl LogError {
    /// Whether there is no room: the same call works once there is.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full { .. })
    }

    /// The variant for what the system said about `path`.
    pub(crate) fn from_io(what: &'static str, path: &Path, source: io::Error) -> LogError {
        let path = path.to_owned();
        let reason = source.to_string();
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => LogError::Full { path, reason },
            Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => LogError::ReadOnly { path, reason },
            _ => LogError::Io { what, path, source },
        }
    }
}
