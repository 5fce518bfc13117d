//! Loads the staged batches of an earlier process. A file that cannot be read, or whose head is damaged, is renamed and
//! stays, so that it keeps neither the collector from starting nor a later file from its name.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use zeroxide_log::disk::{self, File, OpenOptions};
use zeroxide_log::{Place, private};

use super::format::{self, Found};
use super::{BatchOf, PARTS, Past, Stage, Staged, StagedPart};
use crate::wire::Attempt;

/// How often a file is read before it counts as unreadable.
const TRIES: usize = 3;

/// A file of an earlier process.
struct Loaded {
    of: BatchOf,
    staged: Staged,
    /// The length of the file with what follows the last complete record.
    bytes: u64,
    /// Records in it whose checksums are wrong.
    damaged: u64,
    /// Parts that are not loaded, because there are too many.
    surplus: usize,
}

impl Stage {
    /// Loads the staged batches of a log's folder. Other files are left alone. [`Stage::notes`] names what was lost.
    pub fn open(log: &Path, most: u64) -> io::Result<Stage> {
        Stage::open_with(log, most, PARTS)
    }

    /// The same with another maximum number of parts.
    pub(super) fn open_with(log: &Path, most: u64, most_parts: usize) -> io::Result<Stage> {
        let dir = log.join("staged");
        private::make_folder(&dir)?;
        let mut stage = Stage {
            place: Place::of(&dir)?,
            dir,
            most,
            most_parts,
            batches: BTreeMap::new(),
            next_file: 0,
            bytes: 0,
            expired: VecDeque::new(),
            aside: Vec::new(),
            notes: Vec::new(),
            lost: 0,
        };
        let mut files = Vec::new();
        for entry in disk::read_dir(&stage.dir)? {
            let path = entry?.path();
            let name = path.file_name().and_then(|name| name.to_str());
            let (number, kind) = name
                .and_then(|name| name.split_once('.'))
                .unwrap_or_default();
            let number = number.parse().unwrap_or(0);
            // Files that were set aside keep their numbers.
            stage.next_file = stage.next_file.max(number + 1);
            match kind {
                "stage" => files.push((number, path)),
                "stage.aside" => {
                    // That start may have failed before it reported the file.
                    stage.notes.push(format!(
                        "{}: an earlier start could not use this file of staged rows, and set it aside: delete it once their \
                         batch was written again",
                        path.display()
                    ));
                    stage.aside.push(path);
                }
                _ => {}
            }
        }
        files.sort();
        for (_, path) in files {
            let recovered = stage.recover(path.clone());
            recovered.map_err(|error| {
                io::Error::new(error.kind(), format!("{}: {error}", path.display()))
            })?;
        }
        // An earlier process may have ended before it synced the names of its files.
        disk::sync_folder(&stage.dir)?;
        Ok(stage)
    }

    /// Loads a file, truncated after its last complete record.
    fn recover(&mut self, path: PathBuf) -> io::Result<()> {
        let room = self.most_parts.saturating_sub(self.parts());
        let mut loaded = load(&path, room);
        for _ in 1..TRIES {
            if loaded.is_ok() {
                break;
            }
            loaded = load(&path, room);
        }
        let loaded = match loaded {
            // Without memory, any other file would fail, too.
            Err(error) if error.kind() == io::ErrorKind::OutOfMemory => return Err(error),
            Err(error) => {
                // So would this without descriptors.
                disk::read_dir(&self.dir)?;
                let why = format!("cannot be read ({error})");
                return self.set_aside(path, &why, 1);
            }
            Ok(loaded) => loaded,
        };
        let Some(loaded) = loaded else {
            let (file, length) = open(&path)?;
            let Some(parts) = format::count_headless(&file, length)? else {
                // Its head was never on disk, so nothing in it was acknowledged.
                return disk::remove_file(&path);
            };
            let why = format!("has a damaged head, and at least {parts} parts");
            return self.set_aside(path, &why, parts.max(1));
        };
        self.note_losses(&path, &loaded);
        let Loaded {
            of,
            mut staged,
            bytes,
            ..
        } = loaded;
        if staged.length < bytes {
            staged.file.set_len(staged.length)?;
        }
        // The data may be in the page cache only, from a process that ended before its sync.
        format::write_again(&staged.file, staged.length)?;
        staged.synced = staged.length;
        self.bytes += staged.length;
        if let Some(older) = self.batches.insert(of, staged) {
            // It was discarded before the newer file was created, and could not be removed.
            self.bytes -= older.length;
            disk::remove_file(&older.path)?;
        }
        Ok(())
    }

    fn note_losses(&mut self, path: &Path, loaded: &Loaded) {
        let path = path.display();
        let of = &loaded.of;
        if loaded.damaged > 0 {
            self.lost += loaded.damaged;
            self.notes.push(format!(
                "{path}: staged parts of batch {} of query {:?} with a wrong checksum: {}. They are lost, unless the machine \
                 lost power before they were acknowledged: write the batch again if it cannot be published",
                of.batch, of.query, loaded.damaged
            ));
        }
        if loaded.surplus > 0 {
            self.lost += loaded.surplus as u64;
            self.notes.push(format!(
                "{path}: {} staged parts of batch {} of query {:?} are more than the {} that a collector keeps, and were not \
                 loaded, the oldest first: write the batch again if it cannot be published",
                loaded.surplus, of.batch, of.query, self.most_parts
            ));
        }
        let cut = loaded.bytes - loaded.staged.length;
        if cut > 0 {
            self.notes.push(format!(
                "{path}: the last {cut} bytes hold no complete part of batch {} of query {:?} and were cut off, as after a \
                 crash; parts in them were not acknowledged, unless the disk has damaged them",
                of.batch, of.query
            ));
        }
    }

    /// Renames a file that cannot be used.
    fn set_aside(&mut self, path: PathBuf, why: &str, lost: u64) -> io::Result<()> {
        let mut name = path.clone().into_os_string();
        name.push(".aside");
        let aside = PathBuf::from(name);
        disk::rename(&path, &aside)?;
        self.lost += lost;
        self.notes.push(format!(
            "{}: this file of staged rows {why}, and is now {}; its parts are lost to the collector: write their batch again \
             if it cannot be published, and delete the file",
            path.display(),
            aside.display()
        ));
        self.aside.push(aside);
        Ok(())
    }
}

pub(super) fn open(path: &Path) -> io::Result<(Arc<File>, u64)> {
    let file = OpenOptions::new().read(true).write(true).open(path)?;
    let length = file.metadata()?.len();
    Ok((Arc::new(file), length))
}

/// Reads a file, and keeps at most `room` of its parts. None if it has no head.
fn load(path: &Path, room: usize) -> io::Result<Option<Loaded>> {
    let (file, bytes) = open(path)?;
    let Some((of, start)) = format::read_head(&file, bytes)? else {
        return Ok(None);
    };
    let mut parts = Parts::default();
    let (mut position, mut length) = (start, start);
    let (mut damaged, mut pending) = (0, 0);
    while let Some((found, end)) = format::read_record(&file, position, bytes)? {
        position = end;
        match found {
            Found::Part(..) | Found::Discarded(_) => {
                match found {
                    Found::Part(key, part) => parts.add(key, part, room),
                    Found::Discarded(attempt) => parts.discard(attempt, position),
                    Found::Damage => {}
                }
                // Damage between parts stays in the file. At its end, it is cut off.
                length = end;
                damaged += std::mem::take(&mut pending);
            }
            Found::Damage => pending += 1,
        }
    }
    let surplus = parts.finish(room);
    let staged = Staged {
        path: path.to_owned(),
        length,
        synced: start,
        parts: parts.kept,
        // No client could write to it while the collector was not running.
        touched: Instant::now(),
        is_broken: false,
        past: match damaged + pending + surplus as u64 == 0 && length == bytes {
            true => Past::Whole,
            false => Past::Damaged,
        },
        file,
    };
    Ok(Some(Loaded {
        of,
        staged,
        bytes,
        damaged: damaged + pending,
        surplus,
    }))
}

/// The parts of a file that is being read.
#[derive(Default)]
struct Parts {
    kept: HashMap<(Attempt, u32), StagedPart>,
    /// Discarded attempts, and the positions up to which they were.
    discarded: HashMap<Attempt, u64>,
    surplus: usize,
}

impl Parts {
    /// Adds a part. Files of earlier versions do not say which attempts were discarded, and may have any number of parts.
    fn add(&mut self, key: (Attempt, u32), part: StagedPart, room: usize) {
        self.kept.insert(key, part);
        if self.kept.len() >= (room + 1) * 2 {
            self.trim(room);
        }
    }

    fn discard(&mut self, attempt: Attempt, position: u64) {
        self.discarded.insert(attempt, position);
    }

    /// Removes the parts that do not count, and the oldest ones beyond `room`, which later attempts may have replaced.
    fn trim(&mut self, room: usize) {
        let discarded = &self.discarded;
        self.kept.retain(|(attempt, _), part| {
            discarded
                .get(attempt)
                .is_none_or(|position| part.position > *position)
        });
        let surplus = self.kept.len().saturating_sub(room);
        if surplus > 0 {
            let mut positions: Vec<u64> = self.kept.values().map(|part| part.position).collect();
            let (_, last, _) = positions.select_nth_unstable(surplus - 1);
            let last = *last;
            self.kept.retain(|_, part| part.position > last);
            self.surplus += surplus;
        }
    }

    /// Returns how many parts were not kept.
    fn finish(&mut self, room: usize) -> usize {
        self.trim(room);
        self.surplus
    }
}
