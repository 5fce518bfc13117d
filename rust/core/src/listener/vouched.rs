//! Checks whether there is memory for another connection, without a system call for each connection.

use std::time::{Duration, Instant};

/// One check covers this many connections within this time. Together they use a small part of the memory that must
/// remain free.
const CONNECTIONS: usize = 16;
const SPAN: Duration = Duration::from_millis(10);

/// The connections that the last check still covers.
#[derive(Debug, Default)]
pub(super) struct Vouched {
    connections: usize,
    until: Option<Instant>,
}

impl Vouched {
    /// Whether another connection may be accepted. Calls `look` unless a recent call covers this connection.
    pub(super) fn admits(&mut self, now: Instant, look: impl FnOnce() -> bool) -> bool {
        if self.connections > 0 && self.until.is_some_and(|until| now < until) {
            return true;
        }
        let admits = look();
        self.connections = if admits { CONNECTIONS } else { 0 };
        self.until = now.checked_add(SPAN);
        admits
    }

    /// Records that a connection was accepted.
    pub(super) fn accepted(&mut self) {
        self.connections = self.connections.saturating_sub(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_that_arrive_together_need_one_check() {
        let now = Instant::now();
        let mut vouched = Vouched::default();
        let mut looks = 0;
        for _ in 0..10 * CONNECTIONS {
            let look = || {
                looks += 1;
                true
            };
            assert!(vouched.admits(now, look));
            vouched.accepted();
        }
        assert_eq!(looks, 10);
    }

    #[test]
    fn a_check_expires_and_a_failed_check_covers_nothing() {
        let now = Instant::now();
        let mut vouched = Vouched::default();
        assert!(vouched.admits(now, || true));
        assert!(vouched.admits(now + SPAN / 2, || false));
        assert!(!vouched.admits(now + SPAN, || false));
        assert!(!vouched.admits(now + SPAN, || false));
        assert!(vouched.admits(now + SPAN, || true));
    }
}
