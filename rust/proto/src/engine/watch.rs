//! [`Watch`] detects a peer that has been silent for a while.
//!
//! A PING asks for a sign of life. A missing answer proves nothing, because a peer that is stopped, or whose receiver
//! is full, does not read it. So this ends no connection, and the driver checks whether the peer's machine still
//! acknowledges bytes.
//!
//! While we do not read, because the application does not receive, the peer is not asked. Its silence is our fault. It may
//! also have sent everything and closed. Its kernel then still holds the rest, and a PING would make it discard that: a
//! kernel resets a closed connection when something arrives (RFC 9293, section 3.6.1).

use super::EngineConfig;
use std::time::{Duration, Instant};

/// The result of a check.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Look {
    /// Nothing to do: it is too early, or something was received.
    Rest,
    /// The peer has been silent: send a PING.
    Ask,
    /// The peer is still silent.
    Doubt,
}

/// See the module text.
#[derive(Debug)]
pub(super) struct Watch {
    interval: Option<Duration>,
    again: Duration,
    /// The time of the next check. Moved when it has come, and not with each input.
    at: Option<Instant>,
    heard: Option<Instant>,
    asked: bool,
}

impl Watch {
    pub(super) fn new(config: &EngineConfig) -> Watch {
        Watch {
            interval: config.watch_ivl.filter(|interval| !interval.is_zero()),
            again: config.watch_again_ivl,
            at: None,
            heard: None,
            asked: false,
        }
    }

    /// The handshake is complete.
    pub(super) fn start(&mut self, now: Instant) {
        self.heard = Some(now);
        self.at = self.interval.and_then(|interval| now.checked_add(interval));
    }

    /// Received anything from the peer.
    #[inline]
    pub(super) fn handle_input(&mut self, now: Instant) {
        self.heard = Some(now);
        self.asked = false;
    }

    /// The peer's machine has acknowledged something at `at`, so it was alive then.
    pub(super) fn handle_acknowledgement(&mut self, at: Instant) {
        self.heard = self.heard.map(|heard| heard.max(at));
    }

    /// Whether the peer has been silent for too long, and a check is due.
    pub(super) fn is_silent(&self, now: Instant) -> bool {
        let is_past = |at: Instant| at <= now;
        self.at.is_some_and(is_past) && self.due().is_some_and(is_past)
    }

    /// When the peer will have been silent for too long.
    fn due(&self) -> Option<Instant> {
        self.heard?.checked_add(self.interval?)
    }

    /// Handles the passing of time. `listening` tells whether we have processed everything that arrived.
    pub(super) fn handle_timeout(&mut self, now: Instant, listening: bool) -> Look {
        if self.heard.is_none() || self.at.is_none_or(|at| at > now) {
            return Look::Rest;
        }
        if !listening {
            self.heard = Some(now);
            self.at = self.due();
            return Look::Rest;
        }
        let due = self.due();
        if due.is_some_and(|due| due > now) {
            self.at = due;
            return Look::Rest;
        }
        self.at = now.checked_add(self.again);
        if std::mem::replace(&mut self.asked, true) {
            Look::Doubt
        } else {
            Look::Ask
        }
    }

    /// When [`handle_timeout`](Watch::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        self.at
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket_type::SocketType;

    const SECOND: Duration = Duration::from_secs(1);

    fn watch(interval: Duration) -> (Watch, Instant) {
        let config = EngineConfig {
            watch_ivl: Some(interval),
            watch_again_ivl: SECOND * 5,
            ..EngineConfig::new(SocketType::Pair)
        };
        let now = Instant::now();
        let mut watch = Watch::new(&config);
        watch.start(now);
        (watch, now)
    }

    #[test]
    fn a_silent_peer_is_asked_once_and_doubted_until_it_sends() {
        let (mut watch, start) = watch(SECOND * 6);
        assert_eq!(watch.poll_timeout(), Some(start + SECOND * 6));
        assert_eq!(watch.handle_timeout(start + SECOND * 5, true), Look::Rest);
        assert_eq!(watch.handle_timeout(start + SECOND * 6, true), Look::Ask);
        for number in 1..4 {
            let at = start + SECOND * (6 + number * 5);
            assert_eq!(watch.poll_timeout(), Some(at));
            assert_eq!(watch.handle_timeout(at, true), Look::Doubt);
        }
        watch.handle_input(start + SECOND * 22);
        assert_eq!(watch.handle_timeout(start + SECOND * 26, true), Look::Rest);
        assert_eq!(watch.handle_timeout(start + SECOND * 28, true), Look::Ask);
    }

    #[test]
    fn a_peer_that_sends_is_never_asked() {
        let (mut watch, start) = watch(SECOND * 6);
        for number in 1..100 {
            let now = start + SECOND * number;
            watch.handle_input(now);
            assert_eq!(watch.handle_timeout(now, true), Look::Rest);
        }
    }

    #[test]
    fn the_silence_of_a_peer_that_we_do_not_read_does_not_count() {
        let (mut watch, start) = watch(SECOND * 6);
        for number in 1..100 {
            let at = start + SECOND * (6 * number);
            assert_eq!(watch.poll_timeout(), Some(at));
            assert_eq!(watch.handle_timeout(at, false), Look::Rest);
        }
        let resumed = start + SECOND * 594;
        let later = SECOND * 6;
        assert_eq!(watch.handle_timeout(resumed + later, true), Look::Ask);
    }

    #[test]
    fn a_peer_whose_machine_acknowledges_what_we_send_is_not_asked() {
        let (mut watch, start) = watch(SECOND * 6);
        for number in 1..100 {
            let now = start + SECOND * (6 * number);
            assert!(watch.is_silent(now));
            watch.handle_acknowledgement(now - SECOND);
            assert!(!watch.is_silent(now));
            assert_eq!(watch.handle_timeout(now, true), Look::Rest);
            assert_eq!(
                watch.handle_timeout(now + SECOND * 5 - SECOND / 2, true),
                Look::Rest
            );
        }
        let last = start + SECOND * 594 - SECOND;
        watch.handle_acknowledgement(last - SECOND);
        assert_eq!(watch.handle_timeout(last + SECOND * 6, true), Look::Ask);
    }

    #[test]
    fn zero_is_off() {
        let (mut watch, start) = watch(Duration::ZERO);
        assert_eq!(watch.poll_timeout(), None);
        assert_eq!(watch.handle_timeout(start + SECOND * 100, true), Look::Rest);
    }
}
