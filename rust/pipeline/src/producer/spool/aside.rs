//! Moves rows that will never be sent to files next to the spool, where the user can inspect them or send them in
//! another way.

use std::path::{Path, PathBuf};

use bytes::Bytes;
use zeroxide_log::disk;
use zeroxide_log::{Batch, LogError, private};

use crate::producer::spool::files::write_whole;
use crate::producer::spool::of_io;

/// The folder for them, within the folder of the producer's spools.
const FOLDER: &str = "set-aside";

/// Writes readable rows to a file, as an Arrow stream.
/// Without a place in the spool, they `repeat` no earlier ones.
pub(super) fn put_rows(
    spool: &Path,
    offset: u64,
    rows: Bytes,
    repeat: bool,
) -> Result<PathBuf, LogError> {
    let stream = Batch::decode(rows)?.to_stream()?;
    put(spool, offset, "arrows", &stream, repeat)
}

/// Moves the file of rows that cannot be read.
pub(super) fn put_damaged(spool: &Path, offset: u64, segment: &Path) -> Result<PathBuf, LogError> {
    let bytes = disk::read(segment).map_err(|source| of_io(segment.to_owned(), source))?;
    put(spool, offset, "damaged", &bytes, true)
}

/// Other rows may have had this offset, if the spool was removed and the folder was not. Their file stays, and the name of
/// this one gets a number.
fn put(
    spool: &Path,
    offset: u64,
    ending: &str,
    bytes: &[u8],
    repeat: bool,
) -> Result<PathBuf, LogError> {
    let folder = spool.parent().unwrap_or(spool).join(FOLDER);
    let of = spool.file_name().unwrap_or_default().to_string_lossy();
    if let Err(source) = private::make_folder(&folder) {
        return Err(of_io(folder, source));
    }
    let mut number = 1;
    let mut path = folder.join(format!("{of}-{offset:020}.{ending}"));
    while disk::exists(&path) {
        // These rows were put there by a run that ended before it could release them.
        if repeat && disk::read(&path).is_ok_and(|other| other == bytes) {
            return Ok(path);
        }
        number += 1;
        path = folder.join(format!("{of}-{offset:020}-{number}.{ending}"));
    }
    match write_whole(&path, bytes) {
        Ok(()) => Ok(path),
        Err(source) => Err(of_io(path, source)),
    }
}
