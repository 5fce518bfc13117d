//! The state that frames do not contain, or only all of them together. It is written to a new file, which replaces the
//! old one atomically.

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use crate::book::{Book, Last, Published, Writer};
use crate::disk;
use crate::error::LogError;
use crate::frame::{are_numbers, are_offsets};
use crate::private;
use crate::segment::LogId;

const MAGIC: [u8; 8] = *b"ZXSNAP\x02\0";

/// This version has the epoch and the last sequence number of a producer, but not the runs that wrote rows.
const OLDER_MAGIC: [u8; 8] = *b"ZXSNAP\x01\0";
pub(crate) const NAME: &str = "snapshot";
const NEW_NAME: &str = "snapshot.new";

/// Stands for a missing sequence number; real ones are smaller.
const NO_SEQ: u64 = u64::MAX;

/// The state at `base`, and state that frames do not contain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Snapshot {
    pub id: LogId,
    /// The book covers everything below this offset, which is the start of a segment or the end of the log.
    pub base: u64,
    /// Rows below this offset were on disk.
    pub durable: u64,
    pub book: Book,
    pub groups: BTreeMap<String, u64>,
    /// The first offset and the greatest time of receipt of sealed segments.
    pub segments: Vec<(u64, i64)>,
}

impl Snapshot {
    /// Writes the snapshot atomically: after a power cut, either the old or the new one is there.
    pub fn save(&self, dir: &Path) -> Result<(), LogError> {
        let (path, new) = (dir.join(NAME), dir.join(NEW_NAME));
        let write = || -> io::Result<()> {
            let mut file = private::new_file().truncate(true).open(&new)?;
            file.write_all(&self.encode())?;
            file.sync_all()?;
            disk::rename(&new, &path)?;
            disk::sync_folder(dir)
        };
        write().map_err(|error| {
            let _ = disk::remove_file(&new); // an incomplete file, which no reader uses
            LogError::from_io("write", &path, error)
        })
    }

    /// Loads the snapshot of a folder: None if there is none; an error text if it is damaged.
    pub fn load(dir: &Path) -> io::Result<Result<Option<Snapshot>, &'static str>> {
        match disk::read(dir.join(NAME)) {
            Ok(bytes) => Ok(Snapshot::decode(&bytes).map(Some).ok_or("it is damaged")),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(Ok(None)),
            Err(error) => Err(error),
        }
    }

    fn encode(&self) -> Vec<u8> {
        let mut out = Vec::new();
        out.extend_from_slice(&MAGIC);
        out.extend_from_slice(&[0; 8]); // the checksum
        out.extend_from_slice(&self.id);
        put(&mut out, self.base);
        put(&mut out, self.durable);
        put(&mut out, self.book.producers.len() as u64);
        for (name, last) in &self.book.producers {
            put_text(&mut out, name);
            put(&mut out, last.epoch);
            put(&mut out, last.seen.cast_unsigned());
            put(&mut out, u64::from(last.is_cut));
            put(&mut out, last.writers.len() as u64);
            for writer in &*last.writers {
                put(&mut out, writer.epoch);
                put(&mut out, writer.last_seq);
            }
        }
        put(&mut out, self.book.queries.len() as u64);
        for (name, published) in &self.book.queries {
            put_text(&mut out, name);
            put(&mut out, published.batch);
            put(&mut out, published.range.start);
            put(&mut out, published.range.end);
            put(&mut out, published.next_seq);
        }
        put(&mut out, self.groups.len() as u64);
        for (name, offset) in &self.groups {
            put_text(&mut out, name);
            put(&mut out, *offset);
        }
        put(&mut out, self.segments.len() as u64);
        for (first, latest) in &self.segments {
            put(&mut out, *first);
            put(&mut out, latest.cast_unsigned());
        }
        let crc = u64::from(crc32c::crc32c(&out[16..]));
        out[8..16].copy_from_slice(&crc.to_le_bytes());
        out
    }

    fn decode(bytes: &[u8]) -> Option<Snapshot> {
        let mut input = Input(bytes);
        let magic = input.take(8)?;
        if input.number()? != u64::from(crc32c::crc32c(input.0)) {
            return None;
        }
        let read_last = match magic {
            _ if magic == MAGIC => read_last,
            _ if magic == OLDER_MAGIC => read_older_last,
            _ => return None,
        };
        let id = input.take(16)?.try_into().ok()?;
        let (base, durable) = (input.number()?, input.number()?);
        let mut book = Book::default();
        for _ in 0..input.number()? {
            let name = input.text()?;
            book.producers
                .insert(Arc::from(name), read_last(&mut input)?);
        }
        for _ in 0..input.number()? {
            let name = input.text()?;
            let published = Published {
                batch: input.number()?,
                range: input.number()?..input.number()?,
                next_seq: input.number()?,
            };
            book.queries.insert(Arc::from(name), published);
        }
        let mut groups = BTreeMap::new();
        for _ in 0..input.number()? {
            groups.insert(input.text()?.to_owned(), input.number()?);
        }
        let mut segments = Vec::new();
        for _ in 0..input.number()? {
            segments.push((input.number()?, input.number()?.cast_signed()));
        }
        let snapshot = Snapshot {
            id,
            base,
            durable,
            book,
            groups,
            segments,
        };
        (input.0.is_empty() && snapshot.is_possible()).then_some(snapshot)
    }

    /// Whether a log can continue from here.
    fn is_possible(&self) -> bool {
        let firsts = self.segments.iter().map(|(first, _)| *first);
        let mut offsets = firsts.chain([self.base, self.durable]);
        let mut queries = self.book.queries.values();
        let mut writers = self.book.producers.values().flat_map(|last| &*last.writers);
        offsets.all(|offset| are_offsets(offset, 0))
            && queries.all(|last| are_offsets(last.range.end, 0) && are_offsets(last.next_seq, 0))
            && writers.all(|writer| are_numbers(writer.last_seq, 1))
    }
}

fn read_last(input: &mut Input<'_>) -> Option<Last> {
    let (epoch, seen) = (input.number()?, input.number()?.cast_signed());
    let is_cut = input.number()? != 0;
    let writers = 0..input.number()?;
    let writers = writers.map(|_| {
        Some(Writer {
            epoch: input.number()?,
            last_seq: input.number()?,
        })
    });
    Some(Last {
        epoch,
        writers: writers.collect::<Option<_>>()?,
        is_cut,
        seen,
    })
}

fn read_older_last(input: &mut Input<'_>) -> Option<Last> {
    let epoch = input.number()?;
    let last_seq = Some(input.number()?).filter(|seq| *seq != NO_SEQ);
    Some(Last {
        epoch,
        writers: last_seq
            .map(|last_seq| Writer { epoch, last_seq })
            .into_iter()
            .collect(),
        is_cut: false,
        seen: input.number()?.cast_signed(),
    })
}

fn put(out: &mut Vec<u8>, number: u64) {
    out.extend_from_slice(&number.to_le_bytes());
}

fn put_text(out: &mut Vec<u8>, text: &str) {
    put(out, text.len() as u64);
    out.extend_from_slice(text.as_bytes());
}

/// The bytes that have not been read yet.
struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn number(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    fn text(&mut self) -> Option<&'a str> {
        let length = usize::try_from(self.number()?).ok()?;
        std::str::from_utf8(self.take(length)?).ok()
    }
}
