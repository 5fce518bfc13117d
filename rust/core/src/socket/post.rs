//! The entries of a socket's mailbox.

use crate::pipe::{Pipe, PipeEvent, PipeId};
use crate::port::Origin;

/// An event for a socket, posted by any thread.
pub(super) enum Post {
    Attach {
        pipe: Box<Pipe>,
        endpoint: Box<str>,
        origin: Origin,
    },
    Pipe(PipeId, PipeEvent),
    /// A deadline of the pattern has passed.
    Alarm,
}
