//! What an I/O thread can be asked to do.

use std::sync::Arc;

use crate::reactor::EventHandler;

/// A request to an I/O thread, carrying what it needs.
pub(crate) enum Command {
    /// Take charge of a handler: its `on_start` runs in the I/O thread.
    Start(Arc<dyn EventHandler>),
    /// Let a handler look at what others left for it: its `on_wake` runs.
    Wake(Arc<dyn EventHandler>),
    /// Leave the loop; every handler that is still there is told its end.
    Stop,
}
