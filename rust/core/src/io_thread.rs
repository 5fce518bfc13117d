//! The loop of an I/O thread, and the handle by which other threads reach it.
//!
//! A turn waits, notes the time, and dispatches ready descriptors, then commands, then timers, then deferred work. A
//! handler that panics is dropped. The other handlers and the process continue.

#[cfg(test)]
use std::os::fd::AsRawFd;
use std::os::fd::BorrowedFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Arc;
use std::time::Duration;

use crate::command::Command;
use crate::error::Result;
use crate::mailbox::Mailbox;
use crate::reactor::{End, EventHandler, Reactor, Token};
use crate::sys::clock;
use crate::sys::memory;
pub(crate) use crate::sys::selector::Interest;
use crate::sys::selector::{Events, Selector};
use crate::sys::sync::thread::JoinHandle;
use crate::sys::thread::{self, ThreadSettings};

/// A handle to an I/O thread, which any thread can use.
#[derive(Clone)]
pub(crate) struct IoHandle {
    mailbox: Arc<Mailbox>,
    selector: Arc<Selector>,
}

impl IoHandle {
    /// Hands a handler over to the thread.
    pub(crate) fn start(&self, handler: Arc<dyn EventHandler>) {
        self.mailbox.post(Command::Start(handler));
    }

    /// Makes the thread call the handler's `on_wake`.
    pub(crate) fn wake(&self, handler: Arc<dyn EventHandler>) {
        self.mailbox.post(Command::Wake(handler));
    }

    /// Changes what the thread watches of a descriptor for the handler `token`. Returns false if the thread does not
    /// watch the descriptor.
    pub(crate) fn watch(&self, token: Token, fd: BorrowedFd<'_>, interest: Interest) -> bool {
        self.selector.modify(fd, token.0 as u64, interest).is_ok()
    }

    /// Makes the thread watch a descriptor no longer. Closing it is not enough if a forked child has it, too: then the
    /// system would go on reporting its events.
    pub(crate) fn unwatch(&self, fd: BorrowedFd<'_>) {
        // This fails only if the thread does not watch it, which is the wanted result.
        let _ = self.selector.delete(fd);
    }

    /// The descriptors that the thread watches now, except for that of its mailbox.
    #[cfg(test)]
    pub(crate) fn watched(&self) -> Vec<i32> {
        let own = self.mailbox.descriptor().as_raw_fd();
        let mut watched = self.selector.watched();
        watched.retain(|fd| *fd != own);
        watched
    }

    /// Makes the thread leave its loop.
    pub(crate) fn stop(&self) {
        self.mailbox.post(Command::Stop);
    }
}

/// Starts an I/O thread.
pub(crate) fn spawn(settings: ThreadSettings) -> Result<(IoHandle, JoinHandle<()>)> {
    let mailbox = Arc::new(Mailbox::new()?);
    let selector = Arc::new(Selector::new()?);
    // Input only: emptying the mailbox makes room in it, which must not wake the thread.
    selector.add_for(mailbox.descriptor(), MAILBOX, Interest::Input)?;
    let handle = IoHandle {
        mailbox: mailbox.clone(),
        selector: selector.clone(),
    };
    let thread = thread::spawn(settings, move || {
        let mut io = Reactor::new(selector);
        run(&mailbox, &mut io);
        end(&mailbox, &mut io);
    })?;
    Ok((handle, thread))
}

/// The time until the next wait after one that failed.
const BACK_OFF: Duration = Duration::from_millis(10);

/// The mailbox's own key among the tokens.
const MAILBOX: u64 = u64::MAX;

/// Ends all handlers when the thread ends, including those that it has just received. They hold descriptors, and some
/// hold each other.
fn end(mailbox: &Mailbox, io: &mut Reactor) {
    for handler in io.all() {
        guarded(&*handler, io, |handler, io| {
            handler.on_end(io, End::Stopped)
        });
    }
    for command in mailbox.close() {
        if let Command::Start(handler) = command {
            guarded(&*handler, io, |handler, io| {
                handler.on_end(io, End::Stopped)
            });
        }
    }
    io.tidy(memory::give_back);
}

fn run(mailbox: &Mailbox, io: &mut Reactor) {
    let mut events = Events::with_capacity(256);
    let mut stopped = false;
    loop {
        wait(mailbox, io, &mut events);
        for event in events.iter() {
            if event.key != MAILBOX {
                dispatch(io, Token(event.key as usize), |handler, io| {
                    handler.on_ready(io, event.ready)
                });
            }
        }
        for command in mailbox.take_all() {
            match command {
                Command::Start(handler) => {
                    let token = io.add(handler);
                    dispatch(io, token, |handler, io| handler.on_start(io, token));
                }
                Command::Wake(handler) => guarded(&*handler, io, |handler, io| handler.on_wake(io)),
                Command::Stop => stopped = true,
            }
        }
        if stopped {
            return;
        }
        for token in io.take_due() {
            dispatch(io, token, |handler, io| handler.on_timeout(io));
        }
        for token in io.take_deferred() {
            dispatch(io, token, |handler, io| handler.on_wake(io));
        }
        io.tidy(memory::give_back);
    }
}

fn wait(mailbox: &Mailbox, io: &mut Reactor, events: &mut Events) {
    let deadline = if io.has_deferred() || !mailbox.sleep() {
        Some(clock::now())
    } else {
        io.next_timer()
    };
    let waited = io.selector().wait(events, deadline);
    // A failed wait has no events. The loop turns and waits again, but not at once: a sandbox may refuse every wait.
    if waited.is_err() {
        events.clear();
        std::thread::sleep(BACK_OFF);
    }
    mailbox.awake(events.iter().any(|event| event.key == MAILBOX));
    io.set_now(clock::now());
}

fn dispatch(io: &mut Reactor, token: Token, call: impl FnOnce(&dyn EventHandler, &mut Reactor)) {
    if let Some(handler) = io.handler(token) {
        guarded(&*handler, io, call);
    }
}

fn guarded(
    handler: &dyn EventHandler,
    io: &mut Reactor,
    call: impl FnOnce(&dyn EventHandler, &mut Reactor),
) {
    // The reactor holds no inconsistent state across a handler's call. A handler that panicked is given up, so its own
    // state is not used again.
    if panic::catch_unwind(AssertUnwindSafe(|| call(handler, io))).is_err() {
        let _ = panic::catch_unwind(AssertUnwindSafe(|| handler.on_end(io, End::Panicked)));
    }
}
