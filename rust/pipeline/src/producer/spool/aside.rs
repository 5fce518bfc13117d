//! Moves rows that will never be sent to files next to the spool, where the user can inspect them or send them in
//! another way.

use std::io;
use std::path::{Path, PathBuf};

use bytes::Bytes;
use zeroxide_log::disk;
use zeroxide_log::{Batch, LogError, private};

use crate::producer::spool::files::write_whole;
use crate::producer::spool::of_io;

/// The folder for them, within the folder of the producer's spools.
const FOLDER: &str = "set-aside";

/// Writes readable rows to a file, as an Arrow stream.
pub(super) fn put_rows(spool: &Path, offset: u64, rows: Bytes) -> Result<PathBuf, LogError> {
    let stream = Batch::decode(rows)?.to_stream()?;
    put(spool, &format!("{offset:020}.arrows"), &stream)
}

/// Moves the file of rows that cannot be read.
pub(super) fn put_damaged(spool: &Path, offset: u64, segment: &Path) -> Result<PathBuf, LogError> {
    let bytes = disk::read(segment).map_err(|source| of_io(segment.to_owned(), source))?;
    put(spool, &format!("{offset:020}.damaged"), &bytes)
}

fn put(spool: &Path, name: &str, bytes: &[u8]) -> Result<PathBuf, LogError> {
    let folder = spool.parent().unwrap_or(spool).join(FOLDER);
    let of = spool.file_name().unwrap_or_default().to_string_lossy();
    let path = folder.join(format!("{of}-{name}"));
    let write = || -> io::Result<()> {
        private::make_folder(&folder)?;
        write_whole(&path, bytes)
    };
    match write() {
        Ok(()) => Ok(path),
        Err(source) => Err(of_io(path, source)),
    }
}
