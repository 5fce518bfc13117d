//! What a connection may ask of the socket it serves.

use crate::monitor::MonitorEvent;
use crate::pipe::Pipe;

/// The socket as seen from below. Called from I/O threads: an implementation enqueues and wakes, it never blocks.
pub(crate) trait SocketPort: Send + Sync {
    /// A connection, or another socket of the context if `local`, made a pipe for the socket. `source` numbers the
    /// bind or connect call that it came through. Its peer is known if the handshake is done.
    fn attach(&self, pipe: Pipe, endpoint: &str, source: u64, local: bool);

    /// Something worth telling a monitor happened.
    fn emit(&self, event: MonitorEvent);
}
