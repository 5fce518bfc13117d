//! [`IoWorker`]: what a message transport does in an I/O thread of its context.

use std::any::Any;
use std::fmt;
use std::os::fd::BorrowedFd;
use std::time::{Duration, Instant};

use crate::io_thread::IoHandle;
use crate::reactor::{End, EventHandler, Reactor, Token};
use crate::sys::selector::Readiness;
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// The work of a message transport on one descriptor. It runs in an I/O thread, together with the connections of other
/// sockets, so it must never block.
pub trait IoWork: Send {
    /// The descriptor to watch. It is always the same one, and does not block.
    fn descriptor(&self) -> BorrowedFd<'_>;

    /// Does what is possible now. It is called at the start, when the descriptor has become readable or writable, after
    /// a call of the [`waker`](IoWorker::waker), and at the time that it asked for. The descriptor reports only changes: reading and writing
    /// must go on until a call would block, or return [`Next::Again`].
    fn run(&mut self, now: Instant) -> Next;
}

/// When [`IoWork::run`] is called again.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Next {
    /// When there is an event.
    Event,
    /// When there is an event, and at this time.
    At(Instant),
    /// Soon, after the other work of the thread: there is more to do.
    Again,
    /// Never: the work is dropped.
    Never,
}

/// The place of an [`IoWork`] in an I/O thread. Clones are the same place.
#[derive(Clone)]
pub struct IoWorker(Arc<Place>);

struct Place {
    me: Weak<Place>,
    io: IoHandle,
    state: Mutex<State>,
}

struct State {
    work: Option<Box<dyn IoWork>>,
    token: Option<Token>,
    /// Counts the work as alive for the context.
    guard: Option<Box<dyn Any + Send + Sync>>,
    is_watched: bool,
}

/// When to try again to watch a descriptor, after the system had no memory for it.
const PAUSE: Duration = Duration::from_millis(100);

impl IoWorker {
    pub(super) fn new(io: IoHandle, guard: Box<dyn Any + Send + Sync>) -> IoWorker {
        IoWorker(Arc::new_cyclic(|me| Place {
            me: me.clone(),
            io,
            state: Mutex::new(State {
                work: None,
                token: None,
                guard: Some(guard),
                is_watched: false,
            }),
        }))
    }

    /// Begins the work.
    pub fn start(&self, work: impl IoWork + 'static) {
        self.0.lock().work = Some(Box::new(work));
        self.0.io.start(self.0.clone());
    }

    /// A function that makes the thread run the work soon. Any thread may call it, with any locks held. It does nothing
    /// after the end of the work.
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        // The work holds pipes, and these hold this function.
        let place = self.0.me.clone();
        move || {
            if let Some(place) = place.upgrade() {
                place.wake();
            }
        }
    }

    /// Ends the work. It is dropped before this returns, which closes its descriptor.
    pub fn stop(&self) {
        let work = self.0.lock().work.take();
        if let Some(work) = &work {
            self.0.io.unwatch(work.descriptor());
        }
        drop(work);
        self.0.wake();
    }
}

impl fmt::Debug for IoWorker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("IoWorker").finish_non_exhaustive()
    }
}

impl Place {
    fn wake(&self) {
        if let Some(place) = self.me.upgrade() {
            self.io.wake(place);
        }
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn run(&self, io: &mut Reactor) {
        let mut state = self.lock();
        let Some(token) = state.token else {
            // It has not started, or has left.
            return;
        };
        let State {
            work, is_watched, ..
        } = &mut *state;
        let next = match work {
            Some(work) => {
                if !*is_watched {
                    *is_watched = io.watch(token, work.descriptor()).is_ok();
                    if !*is_watched {
                        io.set_timer(token, io.now() + PAUSE);
                    }
                }
                work.run(io.now())
            }
            None => Next::Never,
        };
        match next {
            Next::Event => {}
            Next::At(at) => io.set_timer(token, at),
            Next::Again => io.defer(token),
            Next::Never => {
                drop(state);
                self.end(io);
            }
        }
    }

    fn end(&self, io: &mut Reactor) {
        let (work, token, guard) = {
            let mut state = self.lock();
            (state.work.take(), state.token.take(), state.guard.take())
        };
        if let Some(work) = &work {
            io.unwatch(work.descriptor());
        }
        if let Some(token) = token {
            io.remove(token);
        }
        // The context may end as soon as the guard is gone.
        drop(work);
        drop(guard);
    }
}

impl EventHandler for Place {
    fn on_start(&self, io: &mut Reactor, token: Token) {
        self.lock().token = Some(token);
        self.run(io);
    }

    fn on_ready(&self, io: &mut Reactor, _: Readiness) {
        self.run(io);
    }

    fn on_wake(&self, io: &mut Reactor) {
        self.run(io);
    }

    fn on_timeout(&self, io: &mut Reactor) {
        self.run(io);
    }

    fn on_end(&self, io: &mut Reactor, _: End) {
        self.end(io);
    }
}

#[cfg(test)]
mod tests {
    use std::os::fd::{AsFd, AsRawFd};
    use std::sync::mpsc::{Sender, channel};

    use super::*;
    use crate::io_thread;
    use crate::sys::thread::ThreadSettings;
    use crate::sys::wake_fd::WakeFd;

    /// Reports that it runs.
    struct Work(WakeFd, Sender<()>);

    impl IoWork for Work {
        fn descriptor(&self) -> BorrowedFd<'_> {
            self.0.as_fd()
        }

        fn run(&mut self, _: Instant) -> Next {
            let _ = self.1.send(());
            Next::Event
        }
    }

    #[test]
    fn the_descriptor_of_stopped_work_is_not_watched_even_if_a_forked_child_has_it() {
        let (io, thread) = io_thread::spawn(ThreadSettings::default()).unwrap();
        let worker = IoWorker::new(io.clone(), Box::new(()));
        let idle = WakeFd::new().unwrap();
        let (fd, inherited) = (idle.as_fd().as_raw_fd(), idle.as_fd().try_clone_to_owned());
        let (sender, runs) = channel();
        worker.start(Work(idle, sender));
        runs.recv().unwrap();
        assert!(io.watched().contains(&fd));
        worker.stop();
        assert!(!io.watched().contains(&fd));
        drop((worker, inherited));
        io.stop();
        thread.join().unwrap();
    }
}
