//! A queue of messages in files, first in, first out.

use std::collections::VecDeque;
use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use zeroxide_proto::message::Message;

use super::about::{self, About};
use super::cursor::{self, Cursor};
use super::lock::Lock;
use super::marks::Marks;
use super::record::{self, Found, read_up_to};
use super::segment::{self, START, Segment};
use super::{damaged, existing_file, new_file, sync};
use crate::sys::sync::Arc;

/// See the module text. Its folder is removed by [`remove`](Queue::remove) only, so that a process that is killed leaves
/// its messages.
pub(crate) struct Queue {
    lock: Arc<Lock>,
    pub(super) dir: PathBuf,
    /// The number in the name of the folder.
    number: u64,
    segment_size: u64,
    /// The files with messages that were not read: the first is being read, the last is written.
    pub(super) segments: VecDeque<Segment>,
    /// The files that were read to the end, and could not be removed yet.
    pub(super) read: Vec<u64>,
    /// The number of the next file.
    pub(super) next: u64,
    /// The offset in the first file of the next message to read.
    pub(super) at: u64,
    /// The bytes that were read from the first file, and their offset.
    pub(super) block: Vec<u8>,
    pub(super) block_at: u64,
    buffer: Vec<u8>,
    /// Some if the queue is kept.
    pub(super) cursor: Option<Cursor>,
    pub(super) marks: Marks,
    /// The cursor has to be written when the queue closes: a full disk had no room for the last message that was read, or a
    /// power failure has left none.
    pub(super) is_behind: bool,
    pub(super) messages: u64,
    pub(super) bytes: u64,
}

impl Queue {
    /// A queue without a folder.
    pub(super) fn empty(dir: PathBuf, number: u64, segment_size: u64, lock: Arc<Lock>) -> Queue {
        Queue {
            lock,
            dir,
            number,
            segment_size,
            segments: VecDeque::new(),
            read: Vec::new(),
            next: 0,
            at: START,
            block: Vec::new(),
            block_at: 0,
            buffer: Vec::new(),
            cursor: None,
            marks: Marks::default(),
            is_behind: false,
            messages: 0,
            bytes: 0,
        }
    }

    /// Creates the folder.
    pub(super) fn create(mut self, about: &About) -> io::Result<Queue> {
        self.lock.check()?;
        DirBuilder::new().mode(0o700).create(&self.dir)?;
        let made = about.create(&self.dir, self.number).and_then(|()| {
            if about.is_kept {
                self.cursor = Some(Cursor::create(&self.dir)?);
            }
            Ok(())
        });
        match made {
            Ok(()) => Ok(self),
            Err(error) => {
                let _ = self.remove();
                Err(error)
            }
        }
    }

    /// The number of the queue: a later one has a higher number.
    pub(crate) fn number(&self) -> u64 {
        self.number
    }

    /// The number of messages.
    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// Their size on disk.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether it stays when the socket closes.
    pub(crate) fn is_kept(&self) -> bool {
        self.cursor.is_some()
    }

    /// Adds a message. If this fails, the queue is as it was.
    pub(crate) fn push(&mut self, message: &Message) -> io::Result<()> {
        let size = record::size_of(message);
        if !self.has_room(size)? {
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
            last.is_sealed |= file.set_len(last.end).is_err();
            return Err(error);
        }
        last.end += size;
        last.messages += 1;
        self.messages += 1;
        self.bytes += size;
        Ok(())
    }

    /// Opens the last file, if it has room.
    fn has_room(&mut self, size: u64) -> io::Result<bool> {
        let Some(last) = self.segments.back_mut() else {
            return Ok(false);
        };
        if last.is_sealed || (last.end > START && last.end + size > self.segment_size) {
            return Ok(false);
        }
        if last.file.is_none() {
            let opened = self.lock.check();
            match opened.and_then(|()| existing_file().open(segment::path(&self.dir, last.number)))
            {
                Ok(file) => last.file = Some(file),
                Err(error) if is_gone(&error) => last.is_sealed = true,
                Err(error) => return Err(error),
            }
        }
        Ok(!last.is_sealed)
    }

    fn begin_segment(&mut self) -> io::Result<()> {
        self.lock.check()?;
        let number = self.next;
        let path = self.path(number);
        let before = self.segments.back().map_or(0, |last| last.end);
        let file = new_file().open(&path)?;
        if let Err(error) = segment::begin(&file, number, before) {
            let _ = remove_file(&path);
            return Err(error);
        }
        self.next += 1;
        // Only the first and the last file are open.
        if self.segments.len() > 1
            && let Some(last) = self.segments.back_mut()
        {
            last.file = None;
        }
        self.segments.push_back(Segment::open(number, file));
        Ok(())
    }

    /// Takes the first message; `None` if the queue is empty. It is recorded as read before this returns, so that it is
    /// not sent again after a restart. If this fails, the message stays. Up to `ahead` bytes are read at once, or more for
    /// a larger message.
    ///
    /// A message that cannot be recorded because the disk is full is taken nevertheless: only this makes room on the disk.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if the message is damaged or its file is gone.
    pub(crate) fn take(&mut self, ahead: usize) -> io::Result<Option<Message>> {
        let Some((message, size)) = self.front(ahead)? else {
            return Ok(None);
        };
        if let (Some(cursor), Some(first)) = (&mut self.cursor, self.segments.front()) {
            if cursor.is_resting()
                && let Err(error) = self.lock.check()
            {
                return Err(damaged(&self.dir, &error.to_string()));
            }
            let recorded = cursor.write(&self.dir, (first.number, self.at + size));
            self.is_behind = match recorded {
                Err(error) if is_full(&error) => true,
                recorded => recorded.map(|()| false)?,
            };
        }
        self.at += size;
        self.messages -= 1;
        self.bytes -= size;
        if let Some(first) = self.segments.front_mut() {
            first.messages -= 1;
        }
        Ok(Some(message))
    }

    /// Returns the message that was just [taken](Self::take) to the front. Its file is left only when the next one is read,
    /// so it is still there.
    pub(crate) fn put_back(&mut self, message: &Message) {
        let Some(first) = self.segments.front_mut() else {
            return;
        };
        let size = record::size_of(message);
        self.at -= size;
        self.messages += 1;
        self.bytes += size;
        first.messages += 1;
        if let Some(cursor) = &mut self.cursor {
            let recorded = cursor.write(&self.dir, (first.number, self.at));
            self.is_behind = recorded.is_err();
        }
    }

    fn front(&mut self, ahead: usize) -> io::Result<Option<(Message, u64)>> {
        while let Some(first) = self.segments.front_mut() {
            if self.at >= first.end {
                self.leave_file();
                continue;
            }
            let path = segment::path(&self.dir, first.number);
            if first.file.is_none() {
                let opened = self.lock.check();
                match opened.and_then(|()| existing_file().open(&path)) {
                    Ok(file) => first.file = Some(file),
                    Err(error) if is_gone(&error) => {
                        self.seal_unlinked();
                        return Err(damaged(&path, "is gone"));
                    }
                    Err(error) => return Err(error),
                }
            }
            let Some(file) = &first.file else { break };
            return match look(file, self.at, ahead, &mut self.block, &mut self.block_at)? {
                Found::Message(message, size) => Ok(Some((message, size as u64))),
                _ => Err(damaged(&path, &format!("is damaged at byte {}", self.at))),
            };
        }
        Ok(None)
    }

    /// Writes no more to the last file if that has been removed, too. The next file cannot be created then, and the sender
    /// gets that error. The messages in the last file can still be read while it is open.
    fn seal_unlinked(&mut self) {
        if let Some(last) = self.segments.back_mut()
            && let Some(file) = &last.file
        {
            last.is_sealed |= file.metadata().is_ok_and(|file| file.nlink() == 0);
        }
    }

    /// Gives up the messages of the first file, because it is damaged or gone. Returns their number.
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
        if let Some(Segment { number, file, .. }) = self.segments.pop_front() {
            drop(file);
            self.read.push(number);
        }
        self.at = START;
        self.block.clear();
        // All of its messages were read. If it cannot be removed now, it will be with the next one, or with the queue.
        let _ = self.remove_read();
    }

    /// Removes the files that were read to the end.
    ///
    /// # Errors
    /// The system's. The next call removes the rest.
    pub(super) fn remove_read(&mut self) -> io::Result<()> {
        if self.read.is_empty() {
            return Ok(());
        }
        if self.is_another_sockets()? {
            self.read.clear();
            return Ok(());
        }
        if self.cursor.is_some() {
            let first = self.segments.front().map(|first| first.number);
            self.marks
                .set_first(&self.dir, first.unwrap_or(self.next))?;
        }
        while let Some(number) = self.read.last() {
            remove_file(&self.path(*number))?;
            self.read.pop();
        }
        Ok(())
    }

    /// Gives back descriptors and memory until the next call.
    pub(crate) fn rest(&mut self) {
        for segment in &mut self.segments {
            segment.file = None;
        }
        if let Some(cursor) = &mut self.cursor {
            cursor.rest();
        }
        self.block = Vec::new();
        self.buffer = Vec::new();
    }

    /// Makes everything durable.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn sync(&mut self) -> io::Result<()> {
        self.lock.check()?;
        for segment in &self.segments {
            sync(&self.path(segment.number))?;
        }
        if let Some(cursor) = &mut self.cursor {
            if self.is_behind
                && let Some(first) = self.segments.front()
            {
                cursor.write(&self.dir, (first.number, self.at))?;
            }
            sync(&self.dir.join(cursor::NAME))?;
        }
        sync(&self.dir.join(about::NAME))?;
        let end = self.segments.back().map(|last| (last.number, last.end));
        let marked = end.map_or(Ok(()), |end| self.marks.set_synced(&self.dir, end));
        sync(&self.dir)?;
        self.dir.parent().map_or(Ok(()), sync)?;
        marked
    }

    /// Removes the files, and the folder if there are no others in it. The messages are lost.
    ///
    /// # Errors
    /// The system's.
    pub(crate) fn remove(mut self) -> io::Result<()> {
        self.rest();
        if self.is_another_sockets()? {
            return Ok(());
        }
        let segments = self.segments.drain(..);
        self.read.extend(segments.map(|segment| segment.number));
        self.remove_read()?;
        // The cursor goes after the messages that it marks as read, the marks after the cursor, and the description is last.
        remove_file(&self.dir.join(cursor::NAME))?;
        for path in self.marks.paths(&self.dir) {
            remove_file(&path)?;
        }
        remove_file(&self.dir.join(about::NAME))?;
        fs::remove_dir(&self.dir)
    }

    /// Whether the files with the names of this queue's are those of another socket.
    fn is_another_sockets(&self) -> io::Result<bool> {
        match self.lock.check() {
            Err(error) if is_gone(&error) => Ok(true),
            checked => checked.map(|()| false),
        }
    }

    pub(super) fn path(&self, number: u64) -> PathBuf {
        segment::path(&self.dir, number)
    }
}

fn remove_file(path: &Path) -> io::Result<()> {
    match fs::remove_file(path) {
        Err(error) if is_gone(&error) => Ok(()),
        removed => removed,
    }
}

/// Whether a file or its folder has been removed.
fn is_gone(error: &io::Error) -> bool {
    use io::ErrorKind::{NotADirectory, NotFound};
    matches!(error.kind(), NotFound | NotADirectory)
}

fn is_full(error: &io::Error) -> bool {
    use io::ErrorKind::{QuotaExceeded, StorageFull};
    matches!(error.kind(), StorageFull | QuotaExceeded)
}

/// Reads the record at `at`, through a block of the file.
pub(super) fn look(
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
        let result = read_up_to(file, block, at);
        // After an error, nothing was read: the zeros are not the file's.
        block.truncate(*result.as_ref().unwrap_or(&0));
        result?;
    }
}

#[cfg(test)]
mod tests;
