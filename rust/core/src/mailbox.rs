//! The mailbox of an I/O thread: a queue of commands that any thread may post, and a descriptor that wakes the reader
//! only if it sleeps.

use std::os::fd::{AsFd, BorrowedFd};

use zeroxide_queue::doorbell::Doorbell;
use zeroxide_queue::mpsc::{Batch, Queue};

use crate::command::Command;
use crate::error::Result;
use crate::sys::sync::atomic::{AtomicBool, Ordering, fence};
use crate::sys::wake_fd::WakeFd;

/// See the module text.
pub(crate) struct Mailbox {
    queue: Queue<Command>,
    bell: Doorbell,
    wake: WakeFd,
    closed: AtomicBool,
}

impl Mailbox {
    pub(crate) fn new() -> Result<Mailbox> {
        Ok(Mailbox {
            queue: Queue::new(),
            bell: Doorbell::new(),
            wake: WakeFd::new()?,
            closed: AtomicBool::new(false),
        })
    }

    /// Posts a command from any thread.
    pub(crate) fn post(&self, command: Command) {
        self.queue.push(command);
        if self.bell.ring() {
            self.wake.signal();
        }
        // `ring` fences, as `close` does. So either `close` finds the command, or this thread finds the mailbox closed.
        if self.closed.load(Ordering::Relaxed) {
            drop(self.queue.take_all());
        }
    }

    /// Closes the mailbox and returns the commands that are left. Commands that are posted later are dropped. Otherwise
    /// they would never be freed, because commands hold handlers, and handlers hold this mailbox.
    pub(crate) fn close(&self) -> Batch<Command> {
        self.closed.store(true, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        self.queue.take_all()
    }

    /// Prepares the reader to sleep on the descriptor. Returns false if there are commands instead.
    pub(crate) fn sleep(&self) -> bool {
        self.bell.arm();
        if self.queue.is_empty() {
            return true;
        }
        self.bell.disarm();
        false
    }

    /// Records that the reader is awake, so posting need not wake it. `readable` says whether the descriptor was seen
    /// readable.
    pub(crate) fn awake(&self, readable: bool) {
        self.bell.disarm();
        if readable {
            self.wake.drain();
        }
    }

    /// Removes and returns all commands posted so far, oldest first.
    pub(crate) fn take_all(&self) -> Batch<Command> {
        self.queue.take_all()
    }

    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.wake.as_fd()
    }
}
