//! A socket's events: for readers in this process, and over an inproc PAIR as libzmq's programs expect.

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

/// The events of a socket, one after the other, until it or this is closed.
pub struct EventStream {
    queue: Arc<EventQueue>,
    socket: Weak<Core>,
}

fn no_event() -> Error {
    Error::with(ErrorKind::Again, "no event has happened")
}

impl EventStream {
    /// The next event; `None` when the socket, or this, was closed and everything has been read.
    ///
    /// # Errors
    /// `Again` when none came in the time that `wait` allows ([`Wait::Default`] is for ever), `Interrupted` when a
    /// signal handler ran, `Terminated` with the context.
    pub fn next(&self, wait: Wait) -> Result<Option<MonitorEvent>> {
        if self.is_inherited() {
            return Err(Error::with(
                ErrorKind::NotSocket,
                "these are the events of a socket of the process that forked",
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

    /// A descriptor that is readable for as long as [`next`](Self::next) need not wait. For other event loops; do not
    /// read, write or close it.
    ///
    /// # Errors
    /// What the system says when it cannot be made.
    pub fn fd(&self) -> Result<RawFd> {
        Ok(self.queue.descriptor()?.as_raw_fd())
    }

    /// No more events; [`next`](Self::next) ends in whoever waits there.
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
    /// In a forked child, whose copies of the locks are in whatever state the fork met them.
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
    /// The events of `mask` (a sum of [`EventKind`](crate::monitor::EventKind)s) from now on. There may be several readers, beside
    /// [`monitor`](Self::monitor).
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

    /// Starts to send the events of `mask` to a PAIR socket bound to `endpoint`, which is over inproc. Ends a monitor of
    /// this kind that the socket had before.
    ///
    /// # Errors
    /// `NoProtocol` when the endpoint is not over inproc; as `bind` otherwise.
    pub fn monitor(&self, endpoint: &str, mask: u32) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        if !core.registry.transports.is_local(endpoint) {
            return Err(Error::with(
                ErrorKind::NoProtocol,
                format!("{endpoint}: events go over inproc only"),
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

    /// Ends what [`monitor`](Self::monitor) began, with an event that says so.
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

    /// Readers that wait must learn that the context ends; sockets do by themselves.
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
        // A close that came in between has not seen it, and nobody else would end it.
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
