//! Errors of the log. Each names where it happened and what to do about it.

use std::io;
use std::path::{Path, PathBuf};

use rustix::io::Errno;

use crate::columns::{MAX_BATCH, MAX_ROWS};

/// The reason why bytes are not a batch, or why rows cannot form one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BatchError {
    /// The bytes end before the batch does, or continue after it.
    #[error("a batch of {expected} bytes came in {got}")]
    Length {
        /// The total of its table of buffers.
        expected: u64,
        /// The number of bytes received.
        got: u64,
    },
    /// A field has an impossible value.
    #[error("not a batch: {0}")]
    Malformed(&'static str),
    /// A batch holds at most [`MAX_BATCH`] bytes and [`MAX_ROWS`] rows.
    #[error("a batch of {bytes} bytes and {rows} rows is too large: at most {max_bytes} and {max_rows}", max_bytes = MAX_BATCH, max_rows = MAX_ROWS)]
    TooLarge {
        /// Bytes it would have.
        bytes: u64,
        /// Rows it would have.
        rows: u64,
    },
    /// A row that is larger than the destination's limit for batches.
    #[error(
        "a row of {bytes} bytes is too large: {limit} is the most that is taken, the collector's max_batch_bytes"
    )]
    RowTooLarge {
        /// Its approximate size in bytes.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An Arrow column that the log does not store, or with the wrong type.
    #[error("column {name:?} of type {found} does not go into the log: {expected}")]
    Column {
        /// Its name.
        name: String,
        /// Its type.
        found: String,
        /// The expected type.
        expected: &'static str,
    },
}

/// The reason why the log refused an operation.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LogError {
    /// Another writer has the folder.
    #[error("{} is in use by {by}: one writer at a time; stop it, or use another folder", dir.display())]
    Locked {
        /// The log's folder.
        dir: PathBuf,
        /// The holder, as it described itself in the file.
        by: String,
    },
    /// There is no room. None of the rows to append are in the log; the same call works once there is room.
    #[error("no room left for {} ({reason}): free some, or lower the retention; appending goes on then", path.display())]
    Full {
        /// The file that was being written.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// The folder cannot be written to.
    #[error("{} cannot be written to ({reason}): make it writable", path.display())]
    ReadOnly {
        /// The file or folder to write.
        path: PathBuf,
        /// The system's error.
        reason: String,
    },
    /// Acknowledged rows cannot be read: the offsets from `first` to `end` are lost or damaged.
    #[error("offsets {first} to {end} cannot be read, {} is damaged at byte {position}: {what}; restore the file, or read on at {end}", segment.display())]
    Corrupt {
        /// The file.
        segment: PathBuf,
        /// The position in it.
        position: u64,
        /// The first affected offset.
        first: u64,
        /// The next offset that can be read.
        end: u64,
        /// The kind of damage.
        what: String,
    },
    /// A folder or file that does not belong to this log.
    #[error("{} is not usable: {what}", path.display())]
    Foreign {
        /// The file.
        path: PathBuf,
        /// The reason.
        what: String,
    },
    /// Rows that never existed, or were removed.
    #[error(
        "offset {asked} was asked for, the log has {earliest} up to (not including) {next}: earlier rows were removed by \
         retention, later ones were never written"
    )]
    OutOfRange {
        /// The requested offset.
        asked: u64,
        /// The first offset in the log.
        earliest: u64,
        /// The offset that the next row will have.
        next: u64,
    },
    /// A write or fsync failed earlier; the contents of the disk are unknown until the log is reopened.
    #[error(
        "nothing more is appended after {what} failed ({reason}): check the disk and open the log again"
    )]
    Failed {
        /// The operation that failed.
        what: &'static str,
        /// The system's error at that time.
        reason: String,
    },
    /// The log's folder, or the file of its last rows, is not where it was opened. Rows written since the last sync are
    /// not acknowledged.
    #[error(
        "{} {what} while its log was in use: no more rows are written or acknowledged; put the folder back, or restart \
         with the folder in which the log is now", path.display()
    )]
    Gone {
        /// The folder or file.
        path: PathBuf,
        /// What happened to it.
        what: &'static str,
    },
    /// A table of names is full.
    #[error("there are {max} {what} already, {name:?} would be one more: {advice}")]
    TooMany {
        /// The kind of name.
        what: &'static str,
        /// The name that was refused.
        name: String,
        /// The maximum number of names.
        max: usize,
        /// What to do about it.
        advice: &'static str,
    },
    /// The batch does not fit into a frame of the log.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// Any other error of the system.
    #[error("cannot {what} {}: {source}", path.display())]
    Io {
        /// The verb for the operation.
        what: &'static str,
        /// The file or folder.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
}

impl LogError {
    /// Whether the disk is full, so that the same call works once there is room.
    pub fn is_full(&self) -> bool {
        matches!(self, LogError::Full { .. })
    }

    /// Whether the log is as before, so that the same call works once the reason has passed: there is room, files can be
    /// opened, or the folder can be written to.
    pub fn is_passing(&self) -> bool {
        let LogError::Io { source, .. } = self else {
            return matches!(self, LogError::Full { .. } | LogError::ReadOnly { .. });
        };
        matches!(
            source.raw_os_error().map(Errno::from_raw_os_error),
            Some(
                Errno::MFILE
                    | Errno::NFILE
                    | Errno::NOMEM
                    | Errno::ROFS
                    | Errno::ACCESS
                    | Errno::PERM
            )
        )
    }

    /// The variant for the system's error about `path`.
    pub(crate) fn from_io(what: &'static str, path: &Path, source: io::Error) -> LogError {
        let path = path.to_owned();
        let mut reason = source.to_string();
        if source.raw_os_error() == Some(Errno::FBIG.raw_os_error()) {
            reason.push_str("; this process or the file system limits the size of files, see ulimit -f: use smaller segments");
        }
        match source.raw_os_error().map(Errno::from_raw_os_error) {
            Some(Errno::NOSPC | Errno::DQUOT | Errno::FBIG) => LogError::Full { path, reason },
            Some(Errno::ROFS | Errno::ACCESS | Errno::PERM) => LogError::ReadOnly { path, reason },
            _ => LogError::Io { what, path, source },
        }
    }
}
