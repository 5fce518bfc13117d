//! What a socket's mailbox holds.

use crate::pipe::{Pipe, PipeEvent, PipeId};
use crate::port::Origin;

/// News for a socket, from any thread.
pub(super) enum Post {
    Attach {
        pipe: Box<Pipe>,
        endpoint: Box<str>,
        origin: Origin,
    },
    Pipe(PipeId, PipeEvent),
}
