//! The names of two empty files in the folder of a kept queue. The journal of a file system keeps the order of changes to
//! names, so a power failure cannot lose them as it can lose what was written to a file.
//!
//! * `first-N`: every file before segment N was read. It is set before the first of these is removed, so a segment that is
//!   missing without it was lost.
//! * `synced-N-END`: everything was durable, and the last segment was N and ended there. It is set when the socket closes,
//!   so what is missing before this place was lost later.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::cursor::Position;
use super::{NUMBER_MAX, new_file};

const FIRST: &str = "first-";
const SYNCED: &str = "synced-";

/// See the module text.
#[derive(Default)]
pub(super) struct Marks {
    first: Option<u64>,
    synced: Option<Position>,
}

impl Marks {
    /// Takes the name of a file. Returns false if it is not that of a mark, or of a second one.
    pub(super) fn read(&mut self, name: &str) -> bool {
        match (parse_first(name), parse_synced(name)) {
            (Some(first), _) if self.first.is_none() => self.first = Some(first),
            (_, Some(synced)) if self.synced.is_none() => self.synced = Some(synced),
            _ => return false,
        }
        true
    }

    pub(super) fn any(&self) -> bool {
        self.first.is_some() || self.synced.is_some()
    }

    /// The first segment that was not read to the end, if a file was removed.
    pub(super) fn first(&self) -> Option<u64> {
        self.first
    }

    /// Up to where messages were durable when a socket closed.
    pub(super) fn synced(&self) -> Option<Position> {
        self.synced
    }

    pub(super) fn set_first(&mut self, dir: &Path, first: u64) -> io::Result<()> {
        let former = self.first.map(first_name);
        rename(dir, former, first_name(first))?;
        self.first = Some(first);
        Ok(())
    }

    pub(super) fn set_synced(&mut self, dir: &Path, end: Position) -> io::Result<()> {
        let former = self.synced.map(synced_name);
        rename(dir, former, synced_name(end))?;
        self.synced = Some(end);
        Ok(())
    }

    /// The files.
    pub(super) fn paths(&self, dir: &Path) -> impl Iterator<Item = PathBuf> {
        let names = [self.first.map(first_name), self.synced.map(synced_name)];
        names
            .map(|name| name.map(|name| dir.join(name)))
            .into_iter()
            .flatten()
    }
}

/// Gives the file of a mark another name, or creates it.
fn rename(dir: &Path, former: Option<String>, name: String) -> io::Result<()> {
    let path = dir.join(name);
    if let Some(former) = former {
        match fs::rename(dir.join(former), &path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            renamed => return renamed,
        }
    }
    new_file().open(path).map(|_| ())
}

fn first_name(first: u64) -> String {
    format!("{FIRST}{first:010}")
}

fn synced_name((segment, end): Position) -> String {
    format!("{SYNCED}{segment:010}-{end}")
}

fn parse_first(name: &str) -> Option<u64> {
    let first = name.strip_prefix(FIRST)?.parse().ok()?;
    (first <= NUMBER_MAX && name == first_name(first)).then_some(first)
}

fn parse_synced(name: &str) -> Option<Position> {
    let (segment, end) = name.strip_prefix(SYNCED)?.split_once('-')?;
    let synced: Position = (segment.parse().ok()?, end.parse().ok()?);
    (synced.0 <= NUMBER_MAX && name == synced_name(synced)).then_some(synced)
}
