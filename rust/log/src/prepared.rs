//! Prepares the rows of a transaction in a segment of their own, written and synced next to the log while others append
//! to it. The offsets of the rows are not known before the log adopts the segment, so the headers of its frames are
//! kept in memory and completed then.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::batch::Batch;
use crate::disk::{self, File, FileExt};
use crate::error::{BatchError, LogError};
use crate::frame::{self, Labels, MAX_NAME, Origin, Placed, Role};
use crate::ipc::Metadata;
use crate::private;
use crate::segment::{LogId, beginning, path_of};

/// The suffix of these files' names.
const SUFFIX: &str = "preparing";

/// The maximum number of bytes written between two syncs, because another thread's sync may have to wait for them.
const SYNC_EVERY: u64 = 4 << 20;

/// A segment that is not yet part of the log. Dropping it deletes the file.
#[derive(Debug)]
pub struct Prepared {
    path: PathBuf,
    file: Option<File>,
    id: LogId,
    pub(crate) query: Arc<str>,
    pub(crate) batch: u64,
    receive_time: i64,
    /// The position of the first frame.
    pub(crate) start: u64,
    /// The position of the next frame.
    pub(crate) position: u64,
    synced: u64,
    rows: u64,
    pub(crate) frames: Vec<PreparedFrame>,
    scratch: Vec<u8>,
}

/// A frame that has no position yet.
#[derive(Debug)]
pub(crate) struct PreparedFrame {
    pub position: u64,
    pub length: u64,
    pub rows: u64,
    header: Box<[u8]>,
}

impl Prepared {
    /// Begins a segment for a query's batch in the folder of the log with this id. May be called from any thread.
    ///
    /// # Errors
    /// The system's errors, and an empty or too long name of the query.
    pub fn begin(
        dir: &Path,
        id: LogId,
        query: &str,
        batch: u64,
        receive_time: i64,
    ) -> Result<Prepared, LogError> {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        if query.is_empty() || query.len() > MAX_NAME {
            return Err(BatchError::Malformed("a query's name has 1 to 255 bytes").into());
        }
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = dir.join(format!("{}-{number}.{SUFFIX}", disk::process()));
        let mut options = private::new_file();
        let file = options.read(true).truncate(true).open(&path);
        let file = file.map_err(|error| LogError::from_io("create", &path, error))?;
        let start = beginning(&id, 0).len() as u64;
        Ok(Prepared {
            path,
            file: Some(file),
            id,
            query: query.into(),
            batch,
            receive_time,
            start,
            position: start,
            synced: 0,
            rows: 0,
            frames: Vec::new(),
            scratch: Vec::new(),
        })
    }

    /// The number of rows.
    pub fn rows(&self) -> u64 {
        self.rows
    }

    /// The number of bytes.
    pub fn bytes(&self) -> u64 {
        self.position
    }

    /// Writes rows after the previous ones.
    ///
    /// # Errors
    /// The system's errors, after which this object cannot be used any more.
    pub fn push(&mut self, batch: &Batch) -> Result<(), LogError> {
        if batch.is_empty() {
            return Ok(());
        }
        let origin = self.origin(0);
        let labels = Labels {
            first_offset: 0,
            span: batch.rows(),
            origin: &origin,
            durable: 0,
            role: Role::Part,
        };
        let mut bytes = std::mem::take(&mut self.scratch);
        bytes.clear();
        frame::write(
            &labels,
            &batch.columns,
            &mut Metadata::default(),
            &mut bytes,
        );
        let (header, body) = bytes.split_at(frame::header_length(&bytes));
        // Headers are written when the log adopts the segment.
        let at = self.position + header.len() as u64;
        self.write(body, at)?;
        self.frames.push(PreparedFrame {
            position: self.position,
            length: bytes.len() as u64,
            rows: batch.rows() as u64,
            header: header.into(),
        });
        self.position += bytes.len() as u64;
        self.rows += batch.rows() as u64;
        self.scratch = bytes;
        Ok(())
    }

    /// Writes in pieces, each of which is synced before the next.
    fn write(&mut self, bytes: &[u8], at: u64) -> Result<(), LogError> {
        let piece = usize::try_from(SYNC_EVERY).unwrap_or(usize::MAX);
        let mut at = at;
        for bytes in bytes.chunks(piece) {
            self.file()?
                .write_all_at(bytes, at)
                .map_err(|error| LogError::from_io("write", &self.path, error))?;
            at += bytes.len() as u64;
            if at - self.synced >= SYNC_EVERY {
                self.sync()?;
                self.synced = at;
            }
        }
        Ok(())
    }

    /// Syncs the rows to disk.
    ///
    /// # Errors
    /// The system's errors, after which this object cannot be used any more.
    pub fn sync(&self) -> Result<(), LogError> {
        let synced = self.file()?.sync_data();
        synced.map_err(|error| LogError::from_io("sync", &self.path, error))
    }

    /// Gives the rows their offsets, and the file the corresponding name. From then on, it is a segment of the log,
    /// even after a crash.
    pub(crate) fn place(
        &mut self,
        dir: &Path,
        first: u64,
        first_seq: u64,
    ) -> Result<PathBuf, LogError> {
        let failed = |what| {
            let path = self.path.clone();
            move |error: io::Error| LogError::from_io(what, &path, error)
        };
        let (sync_failed, write_failed) = (failed("sync"), failed("write"));
        let rename_failed = failed("rename");
        let file = self.file.as_ref().ok_or_else(gone)?;
        let write = |bytes: &[u8], at| file.write_all_at(bytes, at);
        let mut written = write(&beginning(&self.id, first), 0);
        let (mut offset, last) = (first, self.frames.len().saturating_sub(1));
        for (number, frame) in self.frames.iter_mut().enumerate() {
            let place = Placed {
                first_offset: offset,
                first_seq: first_seq + (offset - first),
                durable: first,
                role: if number == last {
                    Role::Last
                } else {
                    Role::Part
                },
            };
            frame::place(&mut frame.header, &place);
            written = written.and_then(|()| write(&frame.header, frame.position));
            offset += frame.rows;
        }
        written.map_err(write_failed)?;
        file.sync_data().map_err(sync_failed)?;
        let path = path_of(dir, first);
        disk::rename(&self.path, &path).map_err(rename_failed)?;
        Ok(path)
    }

    /// Returns the file and no longer deletes it.
    pub(crate) fn into_file(mut self) -> Result<File, LogError> {
        self.file.take().ok_or_else(gone)
    }

    /// The origin of its frames, in the log's terms.
    pub(crate) fn origin(&self, first_seq: u64) -> Origin {
        Origin {
            producer: self.query.clone(),
            epoch: self.batch,
            first_seq,
            receive_time: self.receive_time,
        }
    }

    fn file(&self) -> Result<&File, LogError> {
        self.file.as_ref().ok_or_else(gone)
    }
}

impl Drop for Prepared {
    fn drop(&mut self) {
        if self.file.is_some() {
            // A file that stays is deleted at the next start.
            let _ = disk::remove_file(&self.path);
        }
    }
}

fn gone() -> LogError {
    BatchError::Malformed("a transaction that was taken over already").into()
}

/// Deletes the unfinished segments of earlier processes. A log may be reopened while this process prepares one.
pub(crate) fn sweep(dir: &Path) -> io::Result<()> {
    let own = disk::process();
    for entry in disk::read_dir(dir)? {
        let path = entry?.path();
        let is_prepared = path
            .extension()
            .is_some_and(|extension| extension == SUFFIX);
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if is_prepared && !name.starts_with(&*own) {
            disk::remove_file(&path)?;
        }
    }
    Ok(())
}
