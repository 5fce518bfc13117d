//! What a connection may ask of the socket it serves.

use crate::monitor::{EventKind, MonitorEvent};
use crate::patterns::{DropReason, Side};
use crate::pipe::Pipe;

/// Where a pipe comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Origin {
    /// Numbers the socket's bind or connect call.
    pub(crate) source: u64,
    /// Over inproc: the far end is another socket of this context.
    pub(crate) local: bool,
    /// Which of the two it was.
    pub(crate) side: Side,
}

/// The socket as seen from below. Called from I/O threads: an implementation enqueues and wakes, it never blocks.
pub(crate) trait SocketPort: Send + Sync {
    /// A connection, or another socket of the context, made a pipe for the socket. Its peer is known if the handshake
    /// is done.
    fn attach(&self, pipe: Pipe, endpoint: &str, origin: Origin);

    /// `count` messages are lost that no pipe of the socket's can tell of, because the socket closed its end of it.
    fn count_drop(&self, reason: DropReason, count: u64);

    /// So much waits to be received from peers that are gone that no more peers should be let in.
    fn is_backlogged(&self) -> bool;

    /// Whether a monitor wants to be told of such events.
    fn wants(&self, kind: EventKind) -> bool;

    /// Something worth telling a monitor happened.
    fn emit(&self, event: MonitorEvent);
}
