//! A socket's events, sent over an inproc PAIR as libzmq's programs expect.

use std::sync::PoisonError;
use std::sync::atomic::Ordering;
use std::time::Duration;

use zeroxide_proto::socket_type::SocketType;

use super::core::Core;
use super::{Socket, Wait};
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, MonitorEvent};

impl Socket {
    /// Starts to send the events of `mask` to a PAIR socket bound to `endpoint`, which is over inproc. Ends a monitor
    /// that the socket had before.
    ///
    /// # Errors
    /// `NoProtocol` when the endpoint is not over inproc; as `bind` otherwise.
    pub fn monitor(&self, endpoint: &str, mask: u32) -> Result<()> {
        let core = self.core();
        core.check_open()?;
        if !endpoint.starts_with("inproc://") {
            return Err(Error::with(
                ErrorKind::NoProtocol,
                format!("{endpoint}: events go over inproc only"),
            ));
        }
        core.stop_monitor();
        let pair = Socket::new(&core.registry, SocketType::Pair)?;
        pair.bind(endpoint)?;
        *core.monitor.lock().unwrap_or_else(PoisonError::into_inner) = Some(pair);
        core.monitor_mask.store(mask, Ordering::Release);
        // A close that came in between has not seen it, and nobody else would end it.
        if core.is_closed() {
            core.stop_monitor();
        }
        core.check_open()
    }

    /// Ends the monitor, if there is one, with an event that says so.
    pub fn stop_monitor(&self) {
        self.core().stop_monitor();
    }
}

impl Core {
    pub(super) fn send_event(&self, event: &MonitorEvent) {
        let pair = self.monitor.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(pair) = &*pair {
            // A monitor that nobody reads is full at some time; the socket's work does not wait for it, and the
            // monitor's own counters say how much it missed.
            let _ = pair.send(event.to_message(), Wait::Dont);
        }
    }

    pub(super) fn stop_monitor(&self) {
        let mask = self.monitor_mask.swap(0, Ordering::AcqRel);
        let pair = self
            .monitor
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .take();
        if let Some(pair) = pair {
            if mask & EventKind::MonitorStopped as u32 != 0 {
                let last = MonitorEvent::new(EventKind::MonitorStopped, 0, "");
                let _ = pair.send(last.to_message(), Wait::Dont);
            }
            // What the application has not read yet it may still read.
            pair.close(Some(Some(Duration::ZERO)));
        }
    }
}
