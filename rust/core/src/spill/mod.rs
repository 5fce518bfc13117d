//! Queues of messages on disk: SPILL_DIR, SPILL_BYTES and SPILL_KEEP.
//!
//! A [`Folder`] belongs to one socket at a time, and holds a [`Queue`] for each peer, or one for all of them. This module
//! knows files and messages. `patterns/pipe_set/overflow.rs` decides which messages wait here, and `socket/spilling.rs`
//! has the thread that returns them to memory.
//!
//! # Who reads and writes
//!
//! * The thread that sends a message writes it, with one system call, under the lock of its socket. A slow disk delays
//!   the calls of this socket, and no other one.
//! * The thread of `socket/spilling.rs` reads, in blocks of [`BLOCK`] bytes. I/O threads neither read nor write.
//!
//! # What survives
//!
//! A message is in the system's page cache when the call that sent it returns, so it survives the end of the process in
//! any way. A kept queue has a file that says how far it was read. That file is written before the messages become
//! visible to a connection, so no message is sent twice. The files are synced when the socket closes, not before: after a
//! power failure, the newest messages may be missing, and the newest that were sent may be sent again.

mod cursor;
mod queue;
mod record;

use std::fmt;
use std::fs::{self, DirBuilder, File, OpenOptions, TryLockError};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

pub(crate) use self::queue::Queue;
pub(crate) use self::record::size_of;
use crate::error::{Error, ErrorKind, Result};

/// The number of bytes that are read from disk at a time, for all queues of a socket together, unless a message is larger.
pub(crate) const BLOCK: usize = 256 << 10;

/// A queue has files of at most this size, except for those with one larger message. A file is removed when all of it was
/// read.
const SEGMENT_MAX: u64 = 8 << 20;
const SEGMENT_MIN: u64 = 64 << 10;

const LOCK: &str = "LOCK";
const QUEUE: &str = "queue-";

/// A folder of queues, locked for one socket.
pub(crate) struct Folder {
    dir: PathBuf,
    lock: File,
    /// Whether queues with a name stay when the socket closes.
    is_kept: bool,
    /// The number of the next queue.
    next: u64,
}

/// A queue of an earlier socket.
pub(crate) struct Found {
    /// Whose messages they are; `None` if they are for any peer.
    pub(crate) name: Option<Vec<u8>>,
    pub(crate) queue: Queue,
}

impl Folder {
    /// Locks the folder, which is made if it does not exist, and returns it with the messages in it.
    ///
    /// # Errors
    /// `AddressInUse` if another socket has the folder, `Invalid` if it holds messages that this socket would not send, or
    /// damaged ones, and the system's errors. All of them name the folder.
    pub(crate) fn open(dir: &Path, is_kept: bool) -> Result<(Folder, Vec<Found>)> {
        let about = |error: io::Error| Folder::failed(dir, "be used", error);
        DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(dir)
            .map_err(about)?;
        // The program may change its working directory.
        let dir = &fs::canonicalize(dir).map_err(about)?;
        let mut folder = Folder {
            dir: dir.clone(),
            lock: lock(dir)?,
            is_kept,
            next: 0,
        };
        let found = folder.find().map_err(|error| folder.error(error))?;
        Ok((folder, found))
    }

    pub(crate) fn is_kept(&self) -> bool {
        self.is_kept
    }

    pub(crate) fn path(&self) -> &Path {
        &self.dir
    }

    /// Creates an empty queue. It is kept if it has a name, or is for any peer.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create(&mut self, name: Option<&[u8]>, limit: u64) -> io::Result<Queue> {
        let dir = self.dir.join(format!("{QUEUE}{}", self.next));
        self.next += 1;
        Queue::create(dir, name, self.is_kept, segment_size(limit))
    }

    /// Creates a queue for a peer that has no name by which it could be recognised later.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create_unnamed(&mut self, limit: u64) -> io::Result<Queue> {
        let dir = self.dir.join(format!("{QUEUE}{}", self.next));
        self.next += 1;
        Queue::create(dir, None, false, segment_size(limit))
    }

    /// The error of a call that this folder's queues have failed.
    pub(crate) fn error(&self, error: io::Error) -> Error {
        Folder::failed(&self.dir, "be written or read", error)
    }

    fn failed(dir: &Path, what: &str, error: io::Error) -> Error {
        let text = format!("SPILL_DIR {} cannot {what}: {error}", dir.display());
        Error::with(Error::from(error).kind(), text)
    }

    /// Opens the queues that are kept, and removes the others.
    fn find(&mut self) -> io::Result<Vec<Found>> {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(QUEUE));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        let mut found = Vec::new();
        for number in numbers {
            self.next = number + 1;
            let dir = self.dir.join(format!("{QUEUE}{number}"));
            let Some((name, queue)) = Queue::open(dir)? else {
                continue;
            };
            if !self.is_kept {
                let text = format!(
                    "it holds {} messages of an earlier socket that had SPILL_KEEP: set SPILL_KEEP to send them, or use another folder",
                    queue.messages()
                );
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            found.push(Found { name, queue });
        }
        Ok(found)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Closing the file would not be enough: a child between fork and exec has it open, too.
        let _ = self.lock.unlock();
    }
}

impl fmt::Debug for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Folder({})", self.dir.display())
    }
}

fn segment_size(limit: u64) -> u64 {
    match limit {
        0 => SEGMENT_MAX,
        limit => (limit / 8).clamp(SEGMENT_MIN, SEGMENT_MAX),
    }
}

fn lock(dir: &Path) -> Result<File> {
    let path = dir.join(LOCK);
    let failed = |error| Folder::failed(dir, "be locked", error);
    let file = new_file().truncate(false).open(&path);
    let mut file = file.map_err(failed)?;
    match file.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => {
            let holder = fs::read_to_string(&path).unwrap_or_default();
            let holder = match holder.trim() {
                "" => "another socket",
                holder => holder,
            };
            let text = format!(
                "SPILL_DIR {} is in use by {holder}: each socket needs a folder of its own",
                dir.display()
            );
            return Err(Error::with(ErrorKind::AddressInUse, text));
        }
        Err(TryLockError::Error(error)) => return Err(failed(error)),
    }
    // The text is only informative; the lock holds even if there is no room for it.
    let text = format!("a socket of process {}\n", std::process::id());
    let _ = file
        .set_len(0)
        .and_then(|()| file.write_all(text.as_bytes()));
    Ok(file)
}

/// Options for a file that only its owner may read, because messages are confidential.
fn new_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.create(true).read(true).write(true).mode(0o600);
    options
}

/// Makes a file durable, or the names in a folder.
fn sync(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    SYNCED.with_borrow_mut(|synced| synced.push(path.to_owned()));
    File::open(path)?.sync_all()
}

#[cfg(test)]
thread_local! {
    /// What this thread has made durable.
    pub(crate) static SYNCED: std::cell::RefCell<Vec<PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests;
