//! The files of segments, and writing them again.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use super::Recovery;
use crate::disk::{self, File, FileExt, OpenOptions};
use crate::error::LogError;
use crate::segment::{
    DAMAGED, LogId, NoBeginning, Segment, Step, Walk, beginning_len, first_of_name, path_of,
};

/// A segment's file.
pub(super) struct SegmentFile {
    pub first: u64,
    pub path: PathBuf,
    pub file: File,
    pub bytes: u64,
    /// The id in its header; None if that cannot be read.
    pub id: Option<LogId>,
    pub start: u64,
}

impl SegmentFile {
    /// Rewrites data in place that may not be on disk, and syncs it. An earlier process may have seen a sync fail. The
    /// page cache then has the data marked as written, so another sync alone would not write it.
    pub fn write_again(&self, bytes: Range<u64>) -> Result<(), LogError> {
        let failed = |what| move |error| LogError::from_io(what, &self.path, error);
        let writable = OpenOptions::new().write(true).open(&self.path);
        let writable = writable.map_err(failed("open"))?;
        let mut chunk = vec![0; AT_ONCE];
        let mut position = bytes.start;
        while position < bytes.end {
            let length =
                usize::try_from(bytes.end - position).map_or(AT_ONCE, |rest| rest.min(AT_ONCE));
            let chunk = &mut chunk[..length];
            self.file
                .read_exact_at(chunk, position)
                .map_err(failed("read"))?;
            writable
                .write_all_at(chunk, position)
                .map_err(failed("write"))?;
            position += length as u64;
        }
        writable.sync_data().map_err(failed("sync"))
    }

    /// The same for a sealed segment with rows that are not below `synced`.
    pub fn sync_again(&self, synced: u64) -> Result<(), LogError> {
        let mut walk = Walk::new(&self.file, self.start, self.first, self.bytes);
        let failed = |error| LogError::from_io("read", &self.path, error);
        while let Some(step) = walk.next_frame().map_err(failed)? {
            let (position, first, end) = match step {
                Step::Frame { position, header } => {
                    (position, header.first_offset, Some(header.end()))
                }
                Step::Damage {
                    position,
                    first,
                    end,
                    ..
                } => (position, first, end),
            };
            if !is_below(first, end, synced) {
                return self.write_again(position..self.bytes);
            }
        }
        Ok(())
    }
}

/// The number of bytes per write when a tail is rewritten.
const AT_ONCE: usize = 1 << 20;

/// Whether rows were on disk once everything below `synced` was. A frame without rows at the mark may not have been.
pub(super) fn is_below(first: u64, end: Option<u64>, synced: u64) -> bool {
    first < synced && end.is_some_and(|end| end <= synced)
}

/// The segments of a folder in order; all must belong to one log. All rows below `acknowledged` have been on disk.
pub(super) fn segment_files(
    dir: &Path,
    id: Option<LogId>,
    acknowledged: u64,
    recovery: &mut Recovery,
) -> Result<Vec<SegmentFile>, LogError> {
    let failed = |error: io::Error| LogError::from_io("read", dir, error);
    let mut firsts = Vec::new();
    for entry in disk::read_dir(dir).map_err(failed)? {
        let name = entry.map_err(failed)?.file_name();
        firsts.extend(name.to_str().and_then(first_of_name));
    }
    firsts.sort_unstable();
    let mut files: Vec<SegmentFile> = Vec::with_capacity(firsts.len());
    let mut unlike = None;
    for (at, first) in firsts.iter().enumerate() {
        let path = path_of(dir, *first);
        let failed = |error: io::Error| LogError::from_io("open", &path, error);
        let file = File::open(&path).map_err(failed)?;
        let bytes = file.metadata().map_err(failed)?.len();
        let foreign = |what: &str| LogError::Foreign {
            path: path.clone(),
            what: what.to_owned(),
        };
        let beginning = Segment::read_beginning(&file, *first)
            .map_err(|error| LogError::from_io("read", &path, error))?;
        let (own, start) = match beginning {
            Ok((own, start)) => (Some(own), start),
            Err(NoBeginning::NotComplete)
                if at + 1 == firsts.len() && bytes < beginning_len() && *first >= acknowledged =>
            {
                // A crash came between creating the file and writing its header, so no row was in it.
                recovery.dropped_bytes += bytes;
                recovery.dropped_from = Some(path.clone());
                disk::remove_file(&path)
                    .map_err(|error| LogError::from_io("remove", &path, error))?;
                continue;
            }
            Err(NoBeginning::Foreign(what)) => return Err(foreign(what)),
            Err(why) => {
                if let NoBeginning::Unlike(what) = why {
                    unlike = unlike.or_else(|| Some(foreign(what)));
                }
                recovery
                    .notes
                    .push(format!("{}: {DAMAGED}", path.display()));
                (None, beginning_len())
            }
        };
        let known = id.or_else(|| files.iter().find_map(|file| file.id));
        if let (Some(own), Some(known)) = (own, known)
            && own != known
        {
            return Err(foreign(
                "it belongs to another log; a folder holds one log only",
            ));
        }
        files.push(SegmentFile {
            first: *first,
            path,
            file,
            bytes,
            id: own,
            start,
        });
    }
    let is_known = id.is_some() || files.iter().any(|file| file.id.is_some());
    match unlike {
        Some(foreign) if !is_known => Err(foreign),
        _ => Ok(files),
    }
}
