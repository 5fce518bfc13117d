//! The kernel's means to tell whether the machine of a TCP peer is alive. `sys::stream` uses them.

use std::time::Duration;

/// The kernel's view of whether the peer's machine acknowledges data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Acks {
    /// Whether there are sent bytes that were not acknowledged.
    pub(crate) unacknowledged: bool,
    /// The number of consecutive probes, for room or for life, without an answer.
    pub(crate) probes: u8,
    /// The time since the last acknowledgement.
    pub(crate) last: Duration,
    /// The time since bytes were last sent.
    pub(crate) sent: Duration,
}

/// The kernel's probes for life. `None` leaves the system's value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keepalive {
    /// The silence before the first probe.
    pub(crate) idle: Option<Duration>,
    /// The time between probes.
    pub(crate) interval: Option<Duration>,
    /// How many unanswered probes end the connection.
    pub(crate) count: Option<u32>,
}
