//! [`Queues`]: the queues of a socket on disk for the fuzzer.

use std::io;
use std::path::Path;

use zeroxide_proto::message::Message;

use super::{BLOCK, Folder, Queue};
use crate::error::Result;

/// The queues in a folder, without the socket.
pub struct Queues {
    folder: Folder,
    queues: Vec<Queue>,
}

impl Queues {
    /// Opens the folder of a PUSH with SPILL_KEEP.
    ///
    /// # Errors
    /// As those of `bind` and `connect`.
    pub fn open(dir: &Path) -> Result<Queues> {
        let (folder, contents) = Folder::open(dir, "PUSH", true)?;
        let queues = contents.queues.into_iter().map(|found| found.queue);
        Ok(Queues {
            folder,
            queues: queues.collect(),
        })
    }

    /// The number of messages that wait.
    pub fn messages(&self) -> u64 {
        self.queues.iter().map(Queue::messages).sum()
    }

    /// Takes this many messages of each queue, or all that it has.
    ///
    /// # Errors
    /// The system's, and `InvalidData` if a message is damaged.
    pub fn take(&mut self, count: u64) -> io::Result<()> {
        for queue in &mut self.queues {
            for _ in 0..count.min(queue.messages()) {
                let message = queue.take(BLOCK)?;
                message.ok_or(io::ErrorKind::UnexpectedEof)?;
            }
        }
        Ok(())
    }

    /// Adds a message to each queue, or to a new one.
    ///
    /// # Errors
    /// The system's.
    pub fn push(&mut self, message: &Message) -> io::Result<()> {
        if self.queues.is_empty() {
            self.queues.push(self.folder.create(None, 0)?);
        }
        self.queues
            .iter_mut()
            .try_for_each(|queue| queue.push(message))
    }

    /// Closes the queues as a socket does.
    ///
    /// # Errors
    /// The system's.
    pub fn close(mut self) -> io::Result<()> {
        self.queues.iter_mut().try_for_each(Queue::sync)
    }
}
