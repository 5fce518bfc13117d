//! Priorities of peers.

/// The number of priorities.
pub(crate) const PRIORITIES: usize = 16;

/// The priority of a peer for which none was set.
pub(crate) const DEFAULT_PRIORITY: u8 = 8;

/// The priorities of the peers of a bind or connect: 1 is the best, 16 the last, and 8 the default. Peers with a worse
/// one wait as long as a better one can take or give messages, and peers with the same one take turns.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Priority {
    /// For the messages that are sent to them.
    pub send: u8,
    /// For the messages that are received from them.
    pub recv: u8,
}

impl Default for Priority {
    fn default() -> Priority {
        Priority {
            send: DEFAULT_PRIORITY,
            recv: DEFAULT_PRIORITY,
        }
    }
}
