//! The last segment, where a crash may have interrupted a write.

use std::io;

use super::files::{SegmentFile, is_below};
use super::{Rebuilt, Recovery};
use crate::disk::OpenOptions;
use crate::error::LogError;
use crate::frame::{Header, Role};
use crate::segment::{Segment, Step, Walk};
use crate::shared::Written;

/// The last segment, read completely.
pub(super) struct Tail {
    items: Vec<Item>,
    /// Rows below this offset have been on disk, because later frames record it.
    pub durable: u64,
    /// Data from this position of the file on may be in the page cache only.
    trusted: u64,
    end: u64,
}

/// A frame, or damage in its place.
struct Item {
    position: u64,
    first: u64,
    frame: Option<TailFrame>,
    /// The offset after the frame or the damage, if it is known.
    end: Option<u64>,
}

struct TailFrame {
    header: Header,
    /// Whether its rows match their checksum.
    is_whole: bool,
}

impl Tail {
    pub fn read(
        file: &SegmentFile,
        durable: u64,
        trusted: Option<Written>,
    ) -> Result<Tail, LogError> {
        let failed = |error: io::Error| LogError::from_io("read", &file.path, error);
        let mut walk = Walk::new(&file.file, file.start, file.first, file.bytes);
        let (mut items, mut durable) = (Vec::new(), durable);
        let mut is_found = false;
        while let Some(step) = walk.next_reading(1 << 20).map_err(failed)? {
            items.push(match step {
                Step::Frame { position, header } => {
                    // The first frame after damage may be a value that looks like one.
                    if !std::mem::take(&mut is_found) {
                        durable = durable.max(header.durable);
                    }
                    let bytes = walk.frame(position, &header, 1 << 20).map_err(failed)?;
                    let is_whole = header.fits(&bytes);
                    Item {
                        position,
                        first: header.first_offset,
                        end: Some(header.end()),
                        frame: Some(TailFrame { header, is_whole }),
                    }
                }
                Step::Damage {
                    position,
                    first,
                    end,
                    ..
                } => {
                    is_found = true;
                    Item {
                        position,
                        first,
                        end,
                        frame: None,
                    }
                }
            });
        }
        let end = walk.offset();
        Ok(Tail {
            items,
            durable,
            trusted: match trusted {
                Some(trusted) if trusted.segment == file.first => trusted.position,
                Some(trusted) if trusted.segment < file.first => 0,
                _ => u64::MAX,
            },
            end,
        })
    }

    /// Drops rows that were never acknowledged. Returns the segment, with the position for the next frame if it can be
    /// continued. It cannot if its header is damaged: the next opening could take it for a file that never had rows.
    /// Nor can it if acknowledged rows are missing at its end; it then stays unchanged, for inspection. Returns None if
    /// its header is damaged and it has no rows, because it is then written anew. Data that stays and is not below
    /// `synced` is rewritten.
    pub fn keep(
        mut self,
        file: &SegmentFile,
        synced: u64,
        rebuilt: &mut Rebuilt,
        recovery: &mut Recovery,
    ) -> Result<Option<(Segment, Option<u64>)>, LogError> {
        let cut = self.cut();
        let mut kept = file.bytes;
        if let Some(cut) = cut {
            let item = &self.items[cut];
            let (position, first) = (item.position, item.first);
            let writable = OpenOptions::new().write(true).open(&file.path);
            let cut_off = writable.and_then(|writable| writable.set_len(position));
            cut_off.map_err(|error| LogError::from_io("truncate", &file.path, error))?;
            recovery.dropped_bytes += file.bytes - position;
            recovery.dropped_from = Some(file.path.clone());
            self.items.truncate(cut);
            self.end = first;
            kept = position;
        }
        let mut items = self.items.iter();
        let from = match items.position(|item| !is_below(item.first, item.end, synced)) {
            // If no row of the file was on disk, its header may not have been either.
            Some(0) => Some(0),
            None if self.items.is_empty() => Some(0),
            unproven => unproven.map(|at| self.items[at].position),
        };
        if let Some(from) = from {
            file.write_again(from..kept)?;
        }
        let segment = Segment::new(file.first, file.path.clone(), file.start);
        let mut index = segment.index();
        for item in &self.items {
            match &item.frame {
                Some(TailFrame { header, is_whole }) => {
                    index.add(item.position, header);
                    rebuilt.note(header);
                    if !is_whole {
                        recovery.damaged.push(header.first_offset..header.end());
                    }
                }
                None => recovery
                    .damaged
                    .push(item.first..item.end.unwrap_or(self.durable)),
            }
        }
        let position = index.bytes;
        let is_lost =
            index.end < self.durable || self.items.last().is_some_and(|item| item.frame.is_none());
        let latest = index.latest;
        drop(index);
        let is_damaged = file.id.is_none();
        if !is_lost && !is_damaged {
            return Ok(Some((segment, Some(position))));
        }
        let end = self.end.max(self.durable);
        if is_damaged && end == file.first {
            return Ok(None);
        }
        if is_lost
            && recovery
                .damaged
                .last()
                .is_none_or(|damaged| damaged.end < end)
        {
            recovery.damaged.push(self.end..end);
        }
        let bytes = if cut.is_some() { position } else { file.bytes };
        let sealed = Segment::sealed(
            file.first,
            file.path.clone(),
            file.start,
            end,
            bytes,
            latest,
        );
        Ok(Some((sealed, None)))
    }

    /// The first item that was never acknowledged and is incomplete, or begins an incomplete transaction.
    fn cut(&self) -> Option<usize> {
        let mut open = None;
        for (at, item) in self.items.iter().enumerate() {
            if item.position >= self.trusted {
                return open.or(Some(at));
            }
            let is_acknowledged = item.first < self.durable;
            match &item.frame {
                Some(frame) if frame.is_whole => match frame.header.role {
                    Role::Part => open = open.or(Some(at)),
                    Role::Last | Role::Single => open = None,
                },
                _ if is_acknowledged => open = None,
                _ => return open.or(Some(at)),
            }
        }
        open
    }
}
