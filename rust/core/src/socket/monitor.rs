//! A reader of a socket's events.

use std::sync::Arc;
use std::time::Duration;

use super::{Socket, Wait};
use crate::monitor::{EventKind, EventQueue, MonitorEvent, Over};

/// A reader, and the events that it receives.
pub(super) struct Monitor {
    pub(super) to: Listener,
    pub(super) mask: u32,
}

pub(super) enum Listener {
    /// A PAIR socket that programs connect to. There is at most one.
    Pair(Socket),
    Queue(Arc<EventQueue>),
}

impl Monitor {
    /// Passes on an event. Returns false if there is no room for it: the socket does not wait for a monitor that is not
    /// read.
    pub(super) fn tell(&self, event: &MonitorEvent) -> bool {
        if self.mask & event.kind as u32 == 0 {
            return true;
        }
        match &self.to {
            Listener::Pair(pair) => pair.send(event.to_message(), Wait::Dont).is_ok(),
            Listener::Queue(queue) => queue.push(event),
        }
    }

    pub(super) fn end(self) {
        self.tell(&MonitorEvent::new(EventKind::MonitorStopped, 0, ""));
        match self.to {
            // The application can still read the events that it has not read yet.
            Listener::Pair(pair) => pair.close(Some(Some(Duration::ZERO))),
            Listener::Queue(queue) => queue.end(Over::Closed),
        }
    }
}
