//! The requests that an I/O thread handles.

use std::sync::Arc;

use crate::reactor::EventHandler;

/// A request to an I/O thread.
pub(crate) enum Command {
    /// Take charge of a handler: its `on_start` runs in the I/O thread.
    Start(Arc<dyn EventHandler>),
    /// Let a handler check what other threads left for it: its `on_wake` runs.
    Wake(Arc<dyn EventHandler>),
    /// Leave the loop. The `on_end` of every remaining handler runs.
    Stop,
}
