//! A reader of a socket's events.

use std::sync::Arc;
use std::time::Duration;

use super::{Socket, Wait};
use crate::monitor::{EventKind, EventQueue, MonitorEvent, Over};

/// Somebody who is told of events, and of which.
pub(super) struct Monitor {
    pub(super) to: Listener,
    pub(super) mask: u32,
}

pub(super) enum Listener {
    /// A PAIR socket that programs connect to. There is one at most.
    Pair(Socket),
    Queue(Arc<EventQueue>),
}

impl Monitor {
    /// Returns false if there is no room: a monitor that is not read fills up, and the socket does not wait for it.
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
            // What the application has not read yet it may still read.
            Listener::Pair(pair) => pair.close(Some(Some(Duration::ZERO))),
            Listener::Queue(queue) => queue.end(Over::Closed),
        }
    }
}
