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
//! visible to a connection, so no message is sent twice, unless the disk is so full that what the file has cannot be
//! replaced. The files are synced when the socket closes, not before: after a power failure, the newest messages may be
//! missing, and the newest that were sent may be sent again.
//!
//! Any other loss is an error of the bind or connect that opens the folder, and changes nothing: `segment.rs` and `marks.rs`
//! have the means to notice it.
//!
//! # Whose files these are
//!
//! Only files with the names that this module gives are opened, changed or removed, and none through a symbolic link.
//! Anything else in a queue's folder is an error of the bind or connect that opens the folder.
//!
//! Files are opened and removed by name. Once the folder was moved or removed, and another socket uses the name, that
//! socket's files have the same names. [`Lock`] notices this.

mod about;
mod cursor;
#[cfg(feature = "fuzzing")]
pub(crate) mod fuzzing;
mod lock;
mod marks;
mod queue;
mod record;
mod recovery;
mod segment;

use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use self::about::About;
use self::lock::Lock;
pub(crate) use self::queue::Queue;
pub(crate) use self::record::size_of;
use self::recovery::Left;
use crate::error::{Error, Result, printable};
use crate::sys::files::NO_FOLLOW;
use crate::sys::sync::Arc;

/// The number of bytes that are read from disk at a time, for all queues of a socket together, unless a message is larger.
pub(crate) const BLOCK: usize = 256 << 10;

/// A queue has files of at most this size, except for those with one larger message. A file is removed when all of it was
/// read.
const SEGMENT_MAX: u64 = 8 << 20;
const SEGMENT_MIN: u64 = 64 << 10;

/// No queue and no file of an earlier socket has a higher number, or the next one could not be counted.
const NUMBER_MAX: u64 = 1 << 62;

const QUEUE: &str = "queue-";

/// A folder of queues, locked for one socket.
pub(crate) struct Folder {
    dir: PathBuf,
    lock: Arc<Lock>,
    /// The type of the socket, and its wire protocol if it is not that of ZeroMQ.
    owner: String,
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

/// The contents of a folder.
#[derive(Default)]
pub(crate) struct Contents {
    pub(crate) queues: Vec<Found>,
    /// The number of messages that an earlier process had not written to the end, and that are lost.
    pub(crate) cut: u64,
}

impl Folder {
    /// Locks the folder, which is made if it does not exist, and returns it with the messages in it. `owner` names the
    /// type of the socket, and its wire protocol if it is not that of ZeroMQ.
    ///
    /// # Errors
    /// `AddressInUse` if another socket has the folder, `Invalid` if it holds messages that this socket would not send,
    /// damaged ones, or files of another program, and the system's errors. All of them name the folder. Nothing in it has
    /// changed then.
    pub(crate) fn open(dir: &Path, owner: &str, is_kept: bool) -> Result<(Folder, Contents)> {
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
            lock: Arc::new(Lock::take(dir)?),
            owner: printable(owner),
            is_kept,
            next: 0,
        };
        let contents = folder.find().map_err(about)?;
        Ok((folder, contents))
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
        self.create_queue(name, self.is_kept, limit)
    }

    /// Creates a queue for a peer that has no name by which it could be recognised later.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn create_unnamed(&mut self, limit: u64) -> io::Result<Queue> {
        self.create_queue(None, false, limit)
    }

    fn create_queue(
        &mut self,
        name: Option<&[u8]>,
        is_kept: bool,
        limit: u64,
    ) -> io::Result<Queue> {
        let number = self.next;
        self.next += 1;
        let about = About {
            owner: self.owner.clone(),
            is_kept,
            name: name.map(<[u8]>::to_vec),
        };
        let queue = Queue::empty(
            self.queue_path(number),
            number,
            segment_size(limit),
            self.lock.clone(),
        );
        queue.create(&about)
    }

    fn queue_path(&self, number: u64) -> PathBuf {
        self.dir.join(queue_name(number))
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
    fn find(&mut self) -> io::Result<Contents> {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            numbers.extend(name.to_str().and_then(queue_number));
        }
        numbers.sort_unstable();
        let mut left = Vec::new();
        for number in numbers {
            let path = self.queue_path(number);
            if number > NUMBER_MAX {
                return Err(foreign(&path));
            }
            self.next = number + 1;
            let queue = Left::find(path, number, self.lock.clone())?;
            self.check(&queue)?;
            left.push(queue);
        }
        let mut contents = Contents::default();
        for mut left in left {
            contents.cut += u64::from(left.is_cut());
            let name = left.about.take().and_then(|about| about.name);
            let queue = left.settle()?;
            contents
                .queues
                .extend(queue.map(|queue| Found { name, queue }));
        }
        Ok(contents)
    }

    /// Checks that this socket would send the messages of a queue.
    fn check(&self, left: &Left) -> io::Result<()> {
        if let Some(path) = left.lacks(self.is_kept) {
            return Err(damaged(&path, "is missing or incomplete"));
        }
        let messages = left.messages();
        let Some(about) = left.about.as_ref().filter(|_| messages > 0) else {
            return Ok(());
        };
        let (theirs, ours) = (&about.owner, &self.owner);
        let text = if theirs != ours {
            format!(
                "it holds {messages} messages of a socket of type {theirs}, and this one is of type {ours}: use another folder, or send them with a {theirs} first"
            )
        } else if !self.is_kept {
            format!(
                "it holds {messages} messages of an earlier socket that had SPILL_KEEP: set SPILL_KEEP to send them, or use another folder"
            )
        } else {
            return Ok(());
        };
        Err(io::Error::new(io::ErrorKind::InvalidInput, text))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        self.lock.release();
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

fn queue_name(number: u64) -> String {
    format!("{QUEUE}{number}")
}

/// The number of the queue whose folder has this name.
fn queue_number(name: &str) -> Option<u64> {
    let number = name.strip_prefix(QUEUE)?.parse().ok()?;
    (name == queue_name(number)).then_some(number)
}

/// Options for a file that exists, and is not a link to another one.
fn existing_file() -> OpenOptions {
    let mut options = OpenOptions::new();
    options.read(true).write(true).custom_flags(NO_FOLLOW);
    // Messages are confidential.
    options.mode(0o600);
    options
}

/// Options for a file that does not exist.
fn new_file() -> OpenOptions {
    let mut options = existing_file();
    options.create_new(true);
    options
}

fn damaged(path: &Path, what: &str) -> io::Error {
    let text = format!(
        "{} {what}: move the folder away to give up its messages",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// The error about a file that no socket has made.
fn foreign(path: &Path) -> io::Error {
    let text = format!(
        "{} was not made by a socket: move it away, or use another SPILL_DIR",
        path.display()
    );
    io::Error::new(io::ErrorKind::InvalidData, text)
}

/// Makes a file durable, or the names in a folder.
fn sync(path: &Path) -> io::Result<()> {
    #[cfg(test)]
    SYNCED.with_borrow_mut(|synced| synced.push(path.to_owned()));
    let mut options = OpenOptions::new();
    options.read(true).custom_flags(NO_FOLLOW);
    options.open(path)?.sync_all()
}

#[cfg(test)]
thread_local! {
    /// What this thread has made durable.
    pub(crate) static SYNCED: std::cell::RefCell<Vec<PathBuf>> = const { std::cell::RefCell::new(Vec::new()) };
}

#[cfg(test)]
mod tests;
