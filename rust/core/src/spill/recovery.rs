//! The files that an earlier socket has left in the folder of a queue. They are read first, and changed only when all of the socket's
//! queues can be used.

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};

use super::about::{self, About};
use super::cursor::{self, Cursor};
use super::lock::Lock;
use super::marks::Marks;
use super::queue::{Queue, look};
use super::record::{self, Found, read_up_to};
use super::segment::{self, START, Segment, Start, read_start};
use super::{BLOCK, SEGMENT_MAX, damaged, existing_file, foreign};
use crate::sys::sync::Arc;

/// See the module text.
pub(super) struct Left {
    /// `None` if the creation or the removal of the queue was interrupted.
    pub(super) about: Option<About>,
    /// The messages that were not read, if the queue is kept.
    queue: Queue,
    /// An incomplete message is at the end of the last file.
    is_cut: bool,
    /// There is a file that only kept queues have.
    was_kept: bool,
}

impl Left {
    /// Reads the folder.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if a file is damaged other than at its end, or is not one of a queue.
    pub(super) fn find(dir: PathBuf, number: u64, lock: Arc<Lock>) -> io::Result<Left> {
        if !fs::symlink_metadata(&dir)?.is_dir() {
            return Err(foreign(&dir));
        }
        let files = Files::list(&dir)?;
        let about = match files.has_about {
            true => About::read(&dir, number)?,
            false => None,
        };
        let mut left = Left {
            about,
            queue: Queue::empty(dir, number, SEGMENT_MAX, lock),
            is_cut: false,
            was_kept: files.has_cursor || files.marks.any(),
        };
        let last = files.segments.last().copied();
        left.queue.next = last.map_or(0, |last| last + 1);
        left.queue.marks = files.marks;
        left.queue.segments = files.segments.into_iter().map(Segment::closed).collect();
        if !left.about.as_ref().is_some_and(|about| about.is_kept) {
            return Ok(left);
        }
        if !files.has_cursor {
            if left.queue.segments.is_empty() {
                return Ok(left);
            }
            let what = "is missing, so that messages could be sent again";
            return Err(damaged(&left.queue.dir.join(cursor::NAME), what));
        }
        let (cursor, position) = Cursor::open(&left.queue.dir)?;
        left.queue.cursor = Some(cursor);
        left.recover(position)?;
        Ok(left)
    }

    /// Counts the messages from this position on.
    fn recover(&mut self, position: Option<cursor::Position>) -> io::Result<()> {
        let queue = &mut self.queue;
        if position.is_none() && queue.marks.synced().is_some() {
            let what = "is empty, so that messages could be sent again";
            return Err(damaged(&queue.dir.join(cursor::NAME), what));
        }
        let marked = (queue.marks.first().unwrap_or(0), START);
        // After a power failure, the mark may be newer. Without a position, nothing was recorded as read.
        let (first, offset) = position.unwrap_or(marked).max(marked);
        while let Some(segment) = queue
            .segments
            .pop_front_if(|segment| segment.number < first)
        {
            queue.read.push(segment.number);
        }
        let missing = match queue.segments.is_empty() {
            true => ((first, offset) != marked).then_some(first),
            false => {
                let mut expected = queue.segments.iter().zip(first..);
                let gap = expected.find(|(segment, number)| segment.number != *number);
                gap.map(|(_, number)| number)
            }
        };
        if let Some(number) = missing {
            return Err(damaged(&queue.path(number), "is missing"));
        }
        let ends = self.ends()?;
        for index in 0..self.queue.segments.len() {
            let from = if index == 0 { offset } else { START };
            self.count(index, from, ends.get(index).copied())?;
        }
        let queue = &mut self.queue;
        queue.at = offset;
        queue.is_behind = position.is_none();
        queue.rest();
        self.check_synced(first)
    }

    /// Where each file but the last one ends, according to the next one. A last file without a start is left out.
    fn ends(&mut self) -> io::Result<Vec<u64>> {
        let queue = &mut self.queue;
        let mut ends = Vec::new();
        let numbers: Vec<_> = queue
            .segments
            .iter()
            .map(|segment| segment.number)
            .collect();
        for (index, number) in numbers.iter().enumerate() {
            let path = queue.path(*number);
            let file = existing_file().open(&path)?;
            match read_start(&file, *number)? {
                Start::After(before) if index > 0 => ends.push(before),
                Start::After(_) => {}
                // The process or the machine stopped while the file was created for a message.
                Start::Unwritten
                    if index + 1 == numbers.len()
                        && is_zero(&file, START, file.metadata()?.len())? =>
                {
                    queue.segments.pop_back();
                    queue.read.push(*number);
                    queue.next = *number;
                    self.is_cut = true;
                }
                _ => return Err(damaged(&path, "is damaged at byte 0")),
            }
        }
        Ok(ends)
    }

    /// Counts the messages of one file from this offset on. `end` is where it ends; `None` if it is the last one.
    fn count(&mut self, index: usize, from: u64, end: Option<u64>) -> io::Result<()> {
        let queue = &mut self.queue;
        let path = queue.path(queue.segments[index].number);
        let file = existing_file().open(&path)?;
        let length = file.metadata()?.len();
        let is_last = end.is_none();
        let end = end.unwrap_or(length);
        if end > length || (from > end && !is_last) {
            let what = format!("ends at byte {length}, before its last messages");
            return Err(damaged(&path, &what));
        }
        // A power failure may leave the record of what was read, and not the messages.
        self.is_cut |= from > end;
        let (mut at, mut messages) = (from, 0);
        queue.block.clear();
        while at < end {
            match look(&file, at, BLOCK, &mut queue.block, &mut queue.block_at)? {
                Found::Message(message, size) if size as u64 <= end - at => {
                    messages += 1;
                    queue.bytes += record::size_of(&message);
                    at += size as u64;
                }
                // The process or the machine stopped while it was written.
                found if is_last && is_tail(&file, at, length, &found)? => {
                    self.is_cut = true;
                    break;
                }
                _ => return Err(damaged(&path, &format!("is damaged at byte {at}"))),
            }
        }
        queue.messages += messages;
        let segment = &mut queue.segments[index];
        segment.messages = messages;
        segment.end = at;
        Ok(())
    }

    /// Checks that nothing is missing of what was durable when a socket closed. The files before `first` were read.
    fn check_synced(&self, first: u64) -> io::Result<()> {
        let queue = &self.queue;
        let synced = queue.marks.synced().filter(|(number, _)| *number >= first);
        let last = queue.segments.back().map(|last| (last.number, last.end));
        match (synced, last) {
            (Some((number, end)), Some((last, at))) if last == number && at < end => {
                let what = format!("is damaged at byte {at}");
                Err(damaged(&queue.path(number), &what))
            }
            (Some(synced), last) if last < Some(synced) => {
                Err(damaged(&queue.path(synced.0), "is missing or incomplete"))
            }
            _ => Ok(()),
        }
    }

    /// The number of messages that are kept.
    pub(super) fn messages(&self) -> u64 {
        self.queue.messages
    }

    /// Whether an earlier process was stopped while it wrote the last message, which is lost.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// The file that is missing or incomplete, although there are messages. `keeps` says whether such messages are kept if
    /// nothing else tells.
    pub(super) fn lacks(&self, keeps: bool) -> Option<PathBuf> {
        let has_bytes = |segment: &Segment| {
            let length = fs::symlink_metadata(self.queue.path(segment.number));
            length.is_ok_and(|length| length.len() > START)
        };
        let is_kept = keeps || self.was_kept;
        let is_void = is_kept && self.about.is_none() && self.queue.segments.iter().any(has_bytes);
        is_void.then(|| self.queue.dir.join(about::NAME))
    }

    /// Removes what is not needed, and cuts off an incomplete message. `None` if no messages are kept.
    ///
    /// # Errors
    /// The system's.
    pub(super) fn settle(mut self) -> io::Result<Option<Queue>> {
        self.queue.remove_read()?;
        if self.queue.messages == 0 {
            self.queue.remove()?;
            return Ok(None);
        }
        if self.is_cut
            && let Some(last) = self.queue.segments.back()
        {
            let file = existing_file().open(self.queue.path(last.number))?;
            file.set_len(last.end)?;
        }
        Ok(Some(self.queue))
    }
}

/// The files of a queue.
struct Files {
    segments: Vec<u64>,
    has_about: bool,
    has_cursor: bool,
    marks: Marks,
}

impl Files {
    /// Lists the folder.
    ///
    /// # Errors
    /// `InvalidData` if it has anything else: a name that is not one of a queue, or is not that of a file.
    fn list(dir: &Path) -> io::Result<Files> {
        let mut files = Files {
            segments: Vec::new(),
            has_about: false,
            has_cursor: false,
            marks: Marks::default(),
        };
        for entry in fs::read_dir(dir)? {
            let entry = entry?;
            let name = entry.file_name();
            match name.to_str() {
                _ if !entry.file_type()?.is_file() => return Err(foreign(&entry.path())),
                Some(about::NAME) => files.has_about = true,
                Some(cursor::NAME) => files.has_cursor = true,
                Some(name) if files.marks.read(name) => {}
                name => match name.and_then(segment::number) {
                    Some(number) => files.segments.push(number),
                    None => return Err(foreign(&entry.path())),
                },
            }
        }
        files.segments.sort_unstable();
        Ok(files)
    }
}

/// Whether what follows the last whole message is the rest of one write, which was cut short. The finding is not a message.
fn is_tail(file: &File, at: u64, length: u64, found: &Found) -> io::Result<bool> {
    let size = match found {
        Found::Short(_) => return Ok(true),
        Found::Damaged(size) => *size,
        _ => record::HEADER as u64,
    };
    // Zeros are what a file system leaves for what it had not written.
    is_zero(file, at.saturating_add(size), length)
}

/// Whether there are only zeros in this part of a file.
fn is_zero(file: &File, mut at: u64, end: u64) -> io::Result<bool> {
    let mut bytes = vec![0; 64 << 10];
    while at < end {
        let count = read_up_to(file, &mut bytes, at)?;
        if bytes[..count].iter().any(|byte| *byte != 0) {
            return Ok(false);
        }
        if count < bytes.len() {
            break;
        }
        at += count as u64;
    }
    Ok(true)
}

#[cfg(test)]
mod tests;
