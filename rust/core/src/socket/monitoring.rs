//! A socket's events: for readers in this process, and over an inproc PAIR socket as programs written for libzmq
//! expect.

use std::os::fd::{AsRawFd, RawFd};
use std::sync::atomic::Ordering;

use super::core::Core;
use super::monitor::{Listener, Monitor};
use super::{Socket, Wait, limit};
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventQueue, Found, MonitorEvent, Over};
use crate::patterns::FOR_EVENTS;
use crate::signal::Woken;
use crate::sys::sync::{Arc, MutexGuard, PoisonError, Weak};

/// The events of a socket, one after the other, until the socket or the stream is closed.
pub struct EventStream {
    queue: Arc<EventQueue>,
    socket: Weak<Core>,
}

fn no_event() -> Error {
    Error::with(ErrorKind::Again, "no event has happened")
}

impl EventStream {
    /// Returns the next event, or `None` when the socket or the stream was closed and all events have been read.
    ///
    /// # Errors
    /// `Again` when no event happened in the time that `wait` allows ([`Wait::Default`] means forever), `Interrupted`
    /// when a signal handler ran, `Terminated` with the context.
    pub fn next(&self, wait: Wait) -> Result<Option<MonitorEvent>> {
        if self.is_inherited() {
            return Err(Error::with(
                ErrorKind::NotSocket,
                "these events belong to a socket of the parent process",
            ));
        }
        let deadline = limit(wait, None);
        loop {
            let ticket = self.queue.signal().ticket();
            match self.queue.pop() {
                Found::Event(event) => return Ok(Some(*event)),
                Found::Over(Over::Closed) => return Ok(None),
                Found::Over(Over::Terminated) => return Err(Error::new(ErrorKind::Terminated)),
                Found::Nothing if wait == Wait::Dont => return Err(no_event()),
                Found::Nothing => {}
            }
            match self.queue.signal().wait(ticket, deadline) {
                Woken::Notified => {}
                Woken::TimedOut => return Err(no_event()),
                Woken::Interrupted => return Err(Error::new(ErrorKind::Interrupted)),
            }
        }
    }

    /// Returns a descriptor that is readable while [`next`](Self::next) would not wait. It is meant for other event
    /// loops; do not read, write or close it.
    ///
    /// # Errors
    /// The system's error if the descriptor cannot be created.
    pub fn fd(&self) -> Result<RawFd> {
        Ok(self.queue.descriptor()?.as_raw_fd())
    }

    /// Ends the stream. Calls of [`next`](Self::next) that wait return.
    pub fn close(&self) {
        if self.is_inherited() {
            return;
        }
        self.queue.end(Over::Closed);
        if let Some(core) = self.socket.upgrade() {
            core.forget(
                |to| matches!(to, Listener::Queue(queue) if Arc::ptr_eq(queue, &self.queue)),
            );
        }
    }
}

impl EventStream {
    /// Whether this is a forked child, whose copies of the locks are in the state in which the fork found them.
    fn is_inherited(&self) -> bool {
        let core = self.socket.upgrade();
        core.is_some_and(|core| !core.registry.is_own_process())
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.close();
    }
}

impl Socket {
    /// Returns a stream of the events in `mask` (a sum of [`EventKind`](crate::monitor::EventKind)s) from now on. A
    /// socket can have several streams, in addition to its [`monitor`](Self::monitor).
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn event_stream(&self, mask: u32) -> Result<EventStream> {
        let core = self.core();
        let queue = Arc::new(EventQueue::new());
        core.add_monitor(Monitor {
            to: Listener::Queue(queue.clone()),
            mask,
        })?;
        Ok(EventStream {
            queue,
            socket: core.arc().as_ref().map(Arc::downgrade).unwrap_or_default(),
        })
    }

    /// Binds a PAIR socket to `endpoint`, which must be over inproc, and sends the events in `mask` from it. This ends
    /// the socket's previous monitor of this kind.
    ///
    /// # Errors
    /// `NoProtocol` when the endpoint is not over inproc; otherwise the errors of [`bind`](Self::bind).
    pub fn monitor(&self, endpoint: &str, mask: u32) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        if !core.registry.transports.is_local(endpoint) {
            return Err(Error::with(
                ErrorKind::NoProtocol,
                format!("{endpoint}: events are only sent over inproc"),
            ));
        }
        self.stop_monitor();
        let pair = Socket::new(&core.registry, FOR_EVENTS)?;
        pair.bind(endpoint)?;
        core.add_monitor(Monitor {
            to: Listener::Pair(pair),
            mask,
        })
    }

    /// Ends the monitor that [`monitor`](Self::monitor) started, with an event that reports the end.
    pub fn stop_monitor(&self) {
        self.core().forget(|to| matches!(to, Listener::Pair(_)));
    }
}

impl Core {
    pub(super) fn send_event(&self, event: &MonitorEvent) {
        for monitor in self.monitors().iter() {
            if !monitor.tell(event) {
                self.missed_events.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    pub(super) fn end_monitors(&self) {
        self.forget(|_| true);
    }

    /// Readers that wait must learn that the context ends. Sockets learn it by themselves.
    pub(super) fn terminate_monitors(&self) {
        for monitor in self.monitors().iter() {
            if let Listener::Queue(queue) = &monitor.to {
                queue.end(Over::Terminated);
            }
        }
    }

    fn add_monitor(&self, monitor: Monitor) -> Result<()> {
        {
            let mut monitors = self.monitors();
            monitors.push(monitor);
            self.note_mask(&monitors);
        }
        // A close that ran in between has not seen the new monitor, so it must be ended here.
        if self.is_closed() {
            self.end_monitors();
        }
        self.check_open()
    }

    fn forget(&self, which: impl Fn(&Listener) -> bool) {
        let ended: Vec<Monitor> = {
            let mut monitors = self.monitors();
            let (ended, kept) = monitors.drain(..).partition(|monitor| which(&monitor.to));
            *monitors = kept;
            self.note_mask(&monitors);
            ended
        };
        ended.into_iter().for_each(Monitor::end);
    }

    fn note_mask(&self, monitors: &[Monitor]) {
        let mask = monitors.iter().fold(0, |mask, monitor| mask | monitor.mask);
        self.monitor_mask.store(mask, Ordering::Release);
    }

    fn monitors(&self) -> MutexGuard<'_, Vec<Monitor>> {
        self.monitors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
