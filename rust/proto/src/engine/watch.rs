//! [`Watch`] detects a peer that has been silent for a while.
//!
//! A PING asks for a sign of life. A missing answer proves nothing, because a peer that is stopped, or whose receiver
//! is full, does not read it. So this ends no connection, and the driver checks whether the peer's machine still
//! acknowledges bytes.

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

    /// Handles the passing of time.
    pub(super) fn handle_timeout(&mut self, now: Instant) -> Look {
        let (Some(interval), Some(heard)) = (self.interval, self.heard) else {
            return Look::Rest;
        };
        if self.at.is_none_or(|at| at > now) {
            return Look::Rest;
        }
        let due = heard.checked_add(interval);
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
        assert_eq!(watch.handle_timeout(start + SECOND * 5), Look::Rest);
        assert_eq!(watch.handle_timeout(start + SECOND * 6), Look::Ask);
        for number in 1..4 {
            let at = start + SECOND * (6 + number * 5);
            assert_eq!(watch.poll_timeout(), Some(at));
            assert_eq!(watch.handle_timeout(at), Look::Doubt);
        }
        watch.handle_input(start + SECOND * 22);
        assert_eq!(watch.handle_timeout(start + SECOND * 26), Look::Rest);
        assert_eq!(watch.handle_timeout(start + SECOND * 28), Look::Ask);
    }

    #[test]
    fn a_peer_that_sends_is_never_asked() {
        let (mut watch, start) = watch(SECOND * 6);
        for number in 1..100 {
            let now = start + SECOND * number;
            watch.handle_input(now);
            assert_eq!(watch.handle_timeout(now), Look::Rest);
        }
    }

    #[test]
    fn zero_is_off() {
        let (mut watch, start) = watch(Duration::ZERO);
        assert_eq!(watch.poll_timeout(), None);
        assert_eq!(watch.handle_timeout(start + SECOND * 100), Look::Rest);
    }
}
