//! [`Heartbeat`]: every timer of a connection after its handshake.

use super::EngineConfig;
use std::time::{Duration, Instant};

/// The action that a timer requests.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Beat {
    /// No action.
    Rest,
    /// Send a PING.
    Ping,
    /// The peer is gone.
    Expired,
}

/// The timers for a peer; see RFC 37 on connection heartbeating.
#[derive(Debug)]
pub(super) struct Heartbeat {
    interval: Option<Duration>,
    patience: Duration,
    /// Fires every interval, with or without traffic: send a PING.
    ping: Option<Instant>,
    /// Armed by a PING of ours; any input disarms it. When it fires, the peer is gone.
    timeout: Option<Instant>,
    /// Whether the PING that armed it waits to be sent. Later ones do not give the peer more time.
    is_held: bool,
    /// Armed by a PING of the peer with a time to live; any input disarms it. When it fires, the peer is gone.
    ttl: Option<(Instant, Duration)>,
}

impl Heartbeat {
    pub(super) fn new(config: &EngineConfig) -> Heartbeat {
        // Zero means off in every implementation, for both; here it would also be a busy loop.
        let interval = config.heartbeat_ivl.filter(|interval| !interval.is_zero());
        Heartbeat {
            interval,
            patience: config
                .heartbeat_timeout
                .or(interval)
                .filter(|patience| !patience.is_zero())
                .unwrap_or(Duration::MAX),
            ping: None,
            timeout: None,
            is_held: false,
            ttl: None,
        }
    }

    /// The handshake is complete.
    pub(super) fn start(&mut self, now: Instant) {
        self.ping = self.interval.and_then(|interval| now.checked_add(interval));
    }

    /// Received anything from the peer.
    #[inline]
    pub(super) fn handle_input(&mut self) {
        self.timeout = None;
        self.ttl = None;
    }

    /// Our PING has not been sent yet, but other bytes have, or we cannot send it: the peer does not have to answer yet.
    pub(super) fn handle_delay(&mut self, now: Instant) {
        if self.timeout.is_some() && self.is_held {
            self.timeout = now.checked_add(self.patience);
        }
    }

    /// Our PING has been sent.
    pub(super) fn handle_sent(&mut self) {
        self.is_held = false;
    }

    /// Received a PING with this time to live, in tenths of a second.
    pub(super) fn handle_ping(&mut self, ttl: u16, now: Instant) {
        if ttl > 0 {
            let ttl = Duration::from_millis(u64::from(ttl) * 100);
            self.ttl = Some((now + ttl, ttl));
        }
    }

    /// Handles the passing of time. `listening` tells whether we have processed everything the peer sent; if not, its
    /// silence is our fault.
    pub(super) fn handle_timeout(&mut self, now: Instant, listening: bool) -> Beat {
        if let Some(deadline) = self.timeout
            && deadline <= now
        {
            if listening {
                return Beat::Expired;
            }
            self.timeout = now.checked_add(self.patience);
        }
        if let Some((deadline, ttl)) = self.ttl
            && deadline <= now
        {
            if listening {
                return Beat::Expired;
            }
            self.ttl = Some((now + ttl, ttl));
        }
        match (self.ping, self.interval) {
            (Some(due), Some(interval)) if due <= now => {
                self.ping = now.checked_add(interval);
                if self.timeout.is_none() {
                    self.timeout = now.checked_add(self.patience);
                    self.is_held = true;
                }
                Beat::Ping
            }
            _ => Beat::Rest,
        }
    }

    /// Whether the peer has been silent for too long.
    pub(super) fn is_expired(&self, now: Instant) -> bool {
        let ttl = self.ttl.map(|(deadline, _)| deadline);
        earlier(self.timeout, ttl).is_some_and(|deadline| deadline <= now)
    }

    /// When [`handle_timeout`](Heartbeat::handle_timeout) is due.
    pub(super) fn poll_timeout(&self) -> Option<Instant> {
        let ttl = self.ttl.map(|(deadline, _)| deadline);
        earlier(earlier(self.ping, self.timeout), ttl)
    }
}

/// The earlier of two deadlines, if there are any. A thread that reads for itself asks for all of them twice per read,
/// and the minimum of an iterator over them took three times as many instructions.
pub(super) fn earlier(one: Option<Instant>, other: Option<Instant>) -> Option<Instant> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::socket_type::SocketType;

    const SECOND: Duration = Duration::from_secs(1);

    fn heartbeat(interval: Option<Duration>, timeout: Option<Duration>) -> (Heartbeat, Instant) {
        let config = EngineConfig {
            heartbeat_ivl: interval,
            heartbeat_timeout: timeout,
            ..EngineConfig::new(SocketType::Pair)
        };
        let now = Instant::now();
        let mut heartbeat = Heartbeat::new(&config);
        heartbeat.start(now);
        (heartbeat, now)
    }

    #[test]
    fn a_ping_is_sent_every_interval() {
        let (mut heartbeat, start) = heartbeat(Some(SECOND), Some(SECOND * 10));
        for beat in 1..5 {
            let due = start + SECOND * beat;
            assert_eq!(heartbeat.poll_timeout(), Some(due));
            let early = due - Duration::from_millis(1);
            assert_eq!(heartbeat.handle_timeout(early, true), Beat::Rest);
            assert_eq!(heartbeat.handle_timeout(due, true), Beat::Ping);
            assert_eq!(heartbeat.handle_timeout(due, true), Beat::Rest);
        }
    }

    #[test]
    fn missed_beats_are_not_made_up_for() {
        let (mut heartbeat, start) = heartbeat(Some(SECOND), Some(SECOND * 100));
        let late = start + SECOND * 50;
        assert_eq!(heartbeat.handle_timeout(late, true), Beat::Ping);
        assert_eq!(heartbeat.poll_timeout(), Some(late + SECOND));
    }

    #[test]
    fn silence_after_a_ping_ends_the_connection() {
        let (mut heartbeat, start) = heartbeat(Some(SECOND), None);
        assert_eq!(heartbeat.handle_timeout(start + SECOND, true), Beat::Ping);
        heartbeat.handle_input();
        assert_eq!(
            heartbeat.handle_timeout(start + SECOND * 2, true),
            Beat::Ping
        );
        let expired = heartbeat.handle_timeout(start + SECOND * 3, true);
        assert_eq!(expired, Beat::Expired);
    }

    #[test]
    fn a_timeout_counts_from_the_first_unanswered_ping() {
        let (mut heartbeat, start) = heartbeat(Some(SECOND), Some(SECOND * 5 / 2));
        for beat in 1..=3 {
            let ping = heartbeat.handle_timeout(start + SECOND * beat, true);
            assert_eq!(ping, Beat::Ping);
        }
        let due = start + SECOND * 7 / 2;
        assert_eq!(heartbeat.poll_timeout(), Some(due));
        let expired = heartbeat.handle_timeout(due, true);
        assert_eq!(expired, Beat::Expired);
    }

    #[test]
    fn silence_does_not_count_while_we_do_not_read() {
        let (mut heartbeat, start) = heartbeat(None, None);
        heartbeat.handle_ping(10, start);
        assert_eq!(heartbeat.handle_timeout(start + SECOND, false), Beat::Rest);
        let expired = heartbeat.handle_timeout(start + SECOND * 2, true);
        assert_eq!(expired, Beat::Expired);
    }

    #[test]
    fn the_longest_ttl_does_not_wrap() {
        let (mut heartbeat, start) = heartbeat(None, None);
        assert_eq!(heartbeat.poll_timeout(), None);
        heartbeat.handle_ping(0, start);
        assert_eq!(heartbeat.poll_timeout(), None);
        heartbeat.handle_ping(u16::MAX, start);
        let ttl = Duration::from_millis(6_553_500);
        assert_eq!(heartbeat.poll_timeout(), Some(start + ttl));
        heartbeat.handle_input();
        assert_eq!(heartbeat.poll_timeout(), None);
    }

    #[test]
    fn zero_is_off() {
        assert_eq!(heartbeat(Some(Duration::ZERO), None).0.poll_timeout(), None);
        let (mut heartbeat, start) = heartbeat(Some(SECOND), Some(Duration::ZERO));
        for beat in 1..5 {
            let ping = heartbeat.handle_timeout(start + SECOND * beat, true);
            assert_eq!(ping, Beat::Ping);
        }
    }
}
