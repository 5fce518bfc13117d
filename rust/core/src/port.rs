//! The interface of a socket to its connections.

use std::any::Any;

use crate::monitor::{EventKind, MonitorEvent};
use crate::patterns::{DropReason, Side};
use crate::pipe::Pipe;
use crate::sys::sync::Arc;
use crate::undelivered::UndeliveredPeer;

/// The origin of a pipe.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// The number of the socket's bind or connect call.
    pub(crate) source: u64,
    /// Whether the far end is another socket of this context, over inproc.
    pub(crate) local: bool,
    /// Whether it was a bind or a connect.
    pub(crate) side: Side,
}

/// A socket, as lower layers see it. Called from I/O threads: an implementation enqueues and wakes, and never blocks.
pub(crate) trait SocketPort: Send + Sync {
    /// Adds a pipe that a connection, or another socket of the context, created for the socket. Its peer is known if
    /// the handshake is complete.
    fn attach(&self, pipe: Pipe, endpoint: &str, origin: Origin);

    /// Counts `count` lost messages that no pipe of the socket can report, because the socket has closed its end.
    fn count_drop(&self, reason: DropReason, count: u64);

    /// Counts the messages that a peer did not get although the socket had closed its end and waited for them, and
    /// keeps them for the socket's report.
    fn give_up(&self, reason: DropReason, left: UndeliveredPeer) {
        self.count_drop(reason, left.messages);
    }

    /// A connection to a peer begins. The socket's report waits for its end.
    fn begin_delivery(&self) {}

    /// A connection to a peer has ended, and nothing is left of what it had to deliver.
    fn end_delivery(&self) {}

    /// The number of messages that connections still deliver after the socket has closed its end changes from `before` to
    /// `now`.
    fn note_lingering(&self, before: u64, now: u64) {
        let _ = (before, now);
    }

    /// Why the last attempt of a bind or connect failed, or its last connection ended, for the texts of errors; `None` once
    /// a connection is up.
    fn note_setback(&self, source: u64, why: Option<String>) {
        let _ = (source, why);
    }

    /// Whether so many messages of departed peers wait to be received that no more peers should be admitted.
    fn is_backlogged(&self) -> bool;

    /// Whether a monitor wants events of this kind.
    fn wants(&self, kind: EventKind) -> bool;

    /// Reports an event to the monitors.
    fn emit(&self, event: MonitorEvent);

    /// Keeps the context from ending until the result is dropped.
    fn hold_context(&self) -> Box<dyn Any + Send + Sync> {
        Box::new(())
    }
}

/// Counts a connection as one that the report of its socket waits for, until it is dropped.
pub(crate) struct Delivery(Arc<dyn SocketPort>);

impl Delivery {
    pub(crate) fn begin(port: &Arc<dyn SocketPort>) -> Delivery {
        port.begin_delivery();
        Delivery(port.clone())
    }
}

impl Drop for Delivery {
    fn drop(&mut self) {
        self.0.end_delivery();
    }
}
