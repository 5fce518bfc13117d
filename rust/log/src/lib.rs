//! A durable log of messages: segments of framed Arrow batches with checksums, an index, retention, and groups of
//! consumers, which can delay it. It reads and writes files, and knows neither sockets nor Python.
//!
//! One [`Log`] writes to a folder. [`Log::append`] puts the rows of a [`Batch`] into the page cache and gives them
//! consecutive offsets. [`Syncer::sync`], on a thread of its own, syncs everything appended so far to disk. A
//! [`Reader`] fetches rows that are on disk, as frames that can be sent unchanged. The receiver of a frame reads it
//! with [`Stored::parse`].
//!
//! ```
//! use zeroxide_log::{BatchBuilder, Log, LogConfig, Origin, Row};
//!
//! # let folder = tempfile::tempdir()?;
//! let mut log = Log::open(folder.path(), LogConfig::default())?;
//! let mut rows = BatchBuilder::new();
//! rows.push(Row { value: b"21.5 C", topic: Some("room/7"), ..Row::default() })?;
//! let offsets = log.append(&Origin::plain(1_700_000_000_000_000), &rows.finish())?;
//! log.sync()?;
//!
//! let frames = log.reader().fetch(offsets.start, offsets.end, 1 << 20)?;
//! assert_eq!(frames[0].batch.value(0), b"21.5 C");
//! assert_eq!(frames[0].offset(0), 0);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

#![forbid(unsafe_code)]

mod batch;
mod book;
mod builder;
mod columns;
mod convert;
pub mod disk;
mod error;
mod fetched;
mod frame;
mod generations;
mod ipc;
mod layout;
mod lock;
mod log;
mod place;
mod prepared;
pub mod private;
mod reader;
mod recovery;
mod segment;
mod shared;
mod snapshot;
mod table;

pub use batch::Batch;
pub use book::{EPOCH_END, ONLY_BATCH, Published, Writer};
pub use builder::{BatchBuilder, Row};
pub use columns::{MAX_BATCH, MAX_ROWS, fetched_schema};
pub use error::{BatchError, LogError};
pub use frame::{FrameInfo, MAX_NAME, Origin, Stored};
pub use generations::{Generation, Generations};
pub use log::{Hold, Log, LogConfig, MAX_NAMES, Publication, Trimmed};
pub use place::Place;
pub use prepared::Prepared;
pub use reader::{Packed, Reader};
pub use recovery::Recovery;
pub use segment::{LogId, ReadAt, SegmentInfo, next_frame};
pub use shared::{Syncer, Written};
pub use table::{Table, TableError};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
