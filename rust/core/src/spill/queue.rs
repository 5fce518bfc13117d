//! A queue of messages in files, first in, first out.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io::{self, Write};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use zeroxide_proto::message::Message;

use super::cursor::{self, Cursor, read_up_to};
use super::record::{self, Found};
use super::{BLOCK, new_file, sync};

const ABOUT: &str = "about";
const VERSION: &str = "zeroxide spill 1";
const SEGMENT: &str = "segment-";

/// See the module text. Its folder is removed by [`remove`](Queue::remove) only, so that a process that is killed leaves
/// its messages.
pub(crate) struct Queue {
    dir: PathBuf,
    segment_size: u64,
    /// The files with messages that were not read: the first is being read, the last is written.
    segments: VecDeque<Segment>,
    /// The number of the next file.
    next: u64,
    /// The offset in the first file of the next message to read.
    at: u64,
    /// The bytes that were read from the first file, and their offset.
    block: Vec<u8>,
    block_at: u64,
    buffer: Vec<u8>,
    /// Some if the queue is kept.
    cursor: Option<Cursor>,
    messages: u64,
    bytes: u64,
    /// An incomplete message was found at the end, and cut off.
    is_cut: bool,
}

struct Segment {
    number: u64,
    /// Open while it is the first or the last.
    file: Option<File>,
    end: u64,
    messages: u64,
}

impl Queue {
    pub(super) fn create(
        dir: PathBuf,
        name: Option<&[u8]>,
        is_kept: bool,
        segment_size: u64,
    ) -> io::Result<Queue> {
        DirBuilder::new().mode(0o700).create(&dir)?;
        let mut queue = Queue::empty(dir, segment_size);
        let made = queue.describe(name, is_kept);
        if made.is_err() {
            let _ = fs::remove_file(queue.dir.join(ABOUT));
            let _ = fs::remove_dir(&queue.dir);
        }
        made.map(|()| queue)
    }

    fn empty(dir: PathBuf, segment_size: u64) -> Queue {
        Queue {
            dir,
            segment_size,
            segments: VecDeque::new(),
            next: 0,
            at: 0,
            block: Vec::new(),
            block_at: 0,
            buffer: Vec::new(),
            cursor: None,
            messages: 0,
            bytes: 0,
            is_cut: false,
        }
    }

    /// Writes the file that says what the folder is.
    fn describe(&mut self, name: Option<&[u8]>, is_kept: bool) -> io::Result<()> {
        let fate = if is_kept { "kept" } else { "temporary" };
        let name = name.map_or("any peer".to_owned(), hex);
        let text = format!("{VERSION}\n{fate}\n{name}\n");
        let mut file = new_file().create_new(true).open(self.dir.join(ABOUT))?;
        file.write_all(text.as_bytes())?;
        if is_kept {
            self.cursor = Some(Cursor::open(&self.dir)?.0);
        }
        Ok(())
    }

    /// Opens a queue that is kept, with its name. `None` if it has no messages or was not to be kept; its files are then
    /// removed.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if a file is damaged other than at its end.
    pub(super) fn open(dir: PathBuf) -> io::Result<Option<(Option<Vec<u8>>, Queue)>> {
        let mut queue = Queue::empty(dir, super::SEGMENT_MAX);
        let about = match fs::read_to_string(queue.dir.join(ABOUT)) {
            // Its creation or its removal was interrupted.
            Err(error) if error.kind() == io::ErrorKind::NotFound => String::new(),
            about => about?,
        };
        let lines: Vec<_> = about.split('\n').collect();
        let [version, fate, name, ""] = lines[..] else {
            queue.list()?;
            queue.remove()?;
            return Ok(None);
        };
        if version != VERSION {
            return Err(damaged(&queue.dir, "is of another version of zeroxide"));
        }
        queue.list()?;
        if fate == "kept" {
            let (cursor, position) = Cursor::open(&queue.dir)?;
            queue.cursor = Some(cursor);
            queue.recover(position)?;
        }
        if fate != "kept" || (queue.messages == 0 && !queue.is_cut) {
            queue.remove()?;
            return Ok(None);
        }
        let name = match name {
            "any peer" => None,
            digits => Some(unhex(digits).ok_or_else(|| damaged(&queue.dir, "is damaged"))?),
        };
        Ok(Some((name, queue)))
    }

    /// Finds the files.
    fn list(&mut self) -> io::Result<()> {
        let mut numbers: Vec<u64> = Vec::new();
        for entry in fs::read_dir(&self.dir)? {
            let name = entry?.file_name();
            let number = name.to_str().and_then(|name| name.strip_prefix(SEGMENT));
            numbers.extend(number.and_then(|number| number.parse::<u64>().ok()));
        }
        numbers.sort_unstable();
        self.next = numbers.last().map_or(0, |last| last + 1);
        self.segments = numbers
            .into_iter()
            .map(|number| Segment {
                number,
                file: None,
                end: 0,
                messages: 0,
            })
            .collect();
        Ok(())
    }

    /// Counts the messages from this position on, and cuts off an incomplete one at the end.
    fn recover(&mut self, position: Option<(u64, u64)>) -> io::Result<()> {
        let (first, offset) = position.unwrap_or((0, 0));
        while let Some(segment) = self.segments.front()
            && segment.number < first
        {
            fs::remove_file(self.path(segment.number))?;
            self.segments.pop_front();
        }
        let count = self.segments.len();
        for index in 0..count {
            let number = self.segments[index].number;
            self.at = if number == first { offset } else { 0 };
            let file = new_file().truncate(false).open(self.path(number))?;
            let length = file.metadata()?.len();
            self.block.clear();
            let mut messages = 0;
            loop {
                if self.at >= length {
                    break;
                }
                match look(&file, self.at, BLOCK, &mut self.block, &mut self.block_at)? {
                    Found::Message(message, size) => {
                        messages += 1;
                        self.bytes += record::size_of(&message);
                        self.at += size as u64;
                    }
                    // The process or the machine stopped while it was written.
                    Found::Short(_) | Found::Damaged
                        if index + 1 == count && self.is_tail(&file, length)? =>
                    {
                        file.set_len(self.at)?;
                        self.is_cut = true;
                        break;
                    }
                    _ => {
                        let text = format!(
                            "is damaged at byte {}: move the folder away to give up its messages",
                            self.at
                        );
                        return Err(damaged(&self.path(number), &text));
                    }
                }
            }
            self.messages += messages;
            let segment = &mut self.segments[index];
            segment.messages = messages;
            segment.end = self.at;
        }
        let front = self.segments.front().map(|segment| segment.number);
        self.at = if front == Some(first) { offset } else { 0 };
        self.block.clear();
        Ok(())
    }

    /// Whether what follows the last whole message is the rest of one write, which was cut short.
    fn is_tail(&self, file: &File, length: u64) -> io::Result<bool> {
        let mut header = [0; record::HEADER];
        if read_up_to(file, &mut header, self.at)? < header.len() {
            return Ok(true);
        }
        let claimed = record::u64_at(&header, 0).saturating_add(record::HEADER as u64);
        // Zeros are what a file system leaves for what it had not written.
        Ok(header == [0; record::HEADER] || claimed >= length - self.at)
    }

    /// The number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Their size on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether an earlier process was stopped while it wrote the last message, which is lost.
    pub(crate) fn is_cut(&self) -> bool {
        self.is_cut
    }

    /// Whether it stays when the socket closes.
    pub(crate) fn is_kept(&self) -> bool {
        self.cursor.is_some()
    }

    /// Adds a message. If this fails, the queue is as it was.
    pub(crate) fn push(&mut self, message: &Message) -> io::Result<()> {
        let size = record::size_of(message);
        let fits = self.segments.back().is_some_and(|last| {
            last.file.is_some() && (last.end == 0 || last.end + size <= self.segment_size)
        });
        if !fits {
            self.begin_segment()?;
        }
        let Some(last) = self.segments.back_mut() else {
            return Err(io::ErrorKind::NotFound.into());
        };
        let Some(file) = &last.file else {
            return Err(io::ErrorKind::NotFound.into());
        };
        if let Err(error) = record::write(file, last.end, message, &mut self.buffer) {
            // An incomplete message would be taken for damage after the next message.
            if file.set_len(last.end).is_err() {
                last.file = None;
            }
            return Err(error);
        }
        last.end += size;
        last.messages += 1;
        self.messages += 1;
        self.bytes += size;
        Ok(())
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        let number = self.next;
        let file = new_file().create_new(true).open(self.path(number))?;
        self.next += 1;
        // Only the first and the last file are open.
        if self.segments.len() > 1
            && let Some(last) = self.segments.back_mut()
        {
            last.file = None;
        }
        self.segments.push_back(Segment {
            number,
            file: Some(file),
            end: 0,
            messages: 0,
        });
        Ok(())
    }

    /// Takes the first message; `None` if the queue is empty. It is recorded as read before this returns, so that it is
    /// not sent again after a restart. If this fails, the message stays. Up to `ahead` bytes are read at once, or more for
    /// a larger message.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if the message is damaged.
    pub(crate) fn take(&mut self, ahead: usize) -> io::Result<Option<Message>> {
        let Some((message, size)) = self.front(ahead)? else {
            return Ok(None);
        };
        if let (Some(cursor), Some(first)) = (&mut self.cursor, self.segments.front()) {
            cursor.write(first.number, self.at + size)?;
        }
        self.at += size;
        self.messages -= 1;
        self.bytes -= size;
        if let Some(first) = self.segments.front_mut() {
            first.messages -= 1;
        }
        Ok(Some(message))
    }

    fn front(&mut self, ahead: usize) -> io::Result<Option<(Message, u64)>> {
        while let Some(first) = self.segments.front_mut() {
            if self.at >= first.end {
                self.leave_file();
                continue;
            }
            let path = segment_path(&self.dir, first.number);
            if first.file.is_none() {
                first.file = Some(new_file().create(false).open(&path)?);
            }
            let Some(file) = &first.file else { break };
            return match look(file, self.at, ahead, &mut self.block, &mut self.block_at)? {
                Found::Message(message, size) => Ok(Some((message, size as u64))),
                _ => Err(damaged(&path, &format!("is damaged at byte {}", self.at))),
            };
        }
        Ok(None)
    }

    /// Gives up the messages of the first file, because it is damaged. Returns their number.
    pub(crate) fn skip_file(&mut self) -> u64 {
        let Some(first) = self.segments.front() else {
            return 0;
        };
        let lost = first.messages;
        self.bytes -= first.end.saturating_sub(self.at).min(self.bytes);
        self.messages -= lost;
        self.leave_file();
        lost
    }

    fn leave_file(&mut self) {
        if let Some(first) = self.segments.pop_front() {
            // All of its messages were read. If it cannot be removed now, it will be with the queue.
            let _ = fs::remove_file(self.path(first.number));
        }
        self.at = 0;
        self.block.clear();
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn sync(&self) -> io::Result<()> {
        for segment in &self.segments {
            sync(&self.path(segment.number))?;
        }
        if self.cursor.is_some() {
            sync(&self.dir.join(cursor::NAME))?;
        }
        sync(&self.dir.join(ABOUT))?;
        sync(&self.dir)?;
        self.dir.parent().map_or(Ok(()), sync)
    }

    /// Removes the files. The messages in them are lost.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        let numbers: Vec<_> = self
            .segments
            .drain(..)
            .map(|segment| segment.number)
            .collect();
        for number in numbers {
            fs::remove_file(self.path(number))?;
        }
        // The cursor goes after the messages that it marks as read.
        for entry in fs::read_dir(&self.dir)? {
            fs::remove_file(entry?.path())?;
        }
        fs::remove_dir(&self.dir)
    }

    fn path(&self, number: u64) -> PathBuf {
        segment_path(&self.dir, number)
    }
}

fn segment_path(dir: &Path, number: u64) -> PathBuf {
    dir.join(format!("{SEGMENT}{number:010}"))
}

/// Reads the record at `at`, through a block of the file.
fn look(
    file: &File,
    at: u64,
    ahead: usize,
    block: &mut Vec<u8>,
    block_at: &mut u64,
) -> io::Result<Found> {
    let mut wanted = 0;
    loop {
        let skip = at
            .checked_sub(*block_at)
            .and_then(|skip| usize::try_from(skip).ok());
        if let Some(bytes) = skip.and_then(|skip| block.get(skip..)) {
            match record::read(bytes) {
                Found::Short(size) if size > wanted => wanted = size,
                found => return Ok(found),
            }
        }
        let length = file.metadata()?.len().saturating_sub(at);
        if wanted > length {
            return Ok(Found::Short(wanted));
        }
        let size = wanted.max(ahead as u64).min(length);
        let size = usize::try_from(size).map_err(|_| io::ErrorKind::OutOfMemory)?;
        // A queue of which little is read at once gives back what it had.
        *block = Vec::new();
        block
            .try_reserve_exact(size)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
        block.resize(size, 0);
        *block_at = at;
        let count = read_up_to(file, block, at)?;
        block.truncate(count);
    }
}

fn damaged(path: &Path, what: &str) -> io::Error {
    let text = format!("{} {what}", path.display());
    io::Error::new(io::ErrorKind::InvalidData, text)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn unhex(digits: &str) -> Option<Vec<u8>> {
    let pairs = digits.as_bytes().chunks(2);
    let byte = |pair: &[u8]| u8::from_str_radix(str::from_utf8(pair).ok()?, 16).ok();
    pairs.map(byte).collect()
}
