//! Decides where and when a connecting session tries next: the addresses of its endpoint, and the backoff between
//! rounds.

mod attempt;

use std::collections::VecDeque;
use std::mem;
use std::time::{Duration, Instant};

use self::attempt::Attempt;
pub(crate) use self::attempt::AttemptEvent;
use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::reactor::Turn;
use crate::sys::errno;
use crate::transports::{ByteTransport, Target};

/// See the module text.
pub(crate) struct Connecter {
    pub(crate) transport: &'static dyn ByteTransport,
    pub(crate) address: String,
    targets: VecDeque<Target>,
    failures: Failures,
    attempt: Attempt<Turn>,
    backoff: Backoff,
    /// The bits of RECONNECT_STOP.
    stop: i32,
    stopped: bool,
}

/// How the addresses failed that this round has tried.
#[derive(Default)]
struct Failures {
    /// No socket listens at one of them.
    refused: bool,
    /// The handshake of a layer failed at one of them.
    handshake: bool,
    /// A socket may listen at one of them, although the attempt failed.
    unclear: bool,
}

/// An event after which RECONNECT_STOP may end all attempts. The values are its bits.
#[derive(Clone, Copy)]
pub(crate) enum Setback {
    /// No socket listens at the address.
    Refused = 1,
    /// The handshake failed, so the socket cannot talk to the peer.
    Handshake = 2,
    /// The application has disconnected.
    Disconnect = 4,
}

impl Connecter {
    /// `seed` makes the jitter of this connecter differ from that of other connecters.
    pub(crate) fn new(
        transport: &'static dyn ByteTransport,
        address: &str,
        options: &Options,
        seed: u64,
    ) -> Connecter {
        let backoff = Backoff::new(options.reconnect_ivl, options.reconnect_ivl_max, seed);
        Connecter {
            transport,
            address: address.to_owned(),
            targets: VecDeque::new(),
            failures: Failures::default(),
            attempt: Attempt::None,
            backoff,
            stop: options.reconnect_stop,
            stopped: false,
        }
    }

    /// Records an event that ended the round. If RECONNECT_STOP names it, there is no further round.
    pub(crate) fn suffer(&mut self, setback: Setback) {
        self.stopped |= self.stop & setback as i32 != 0;
    }

    /// Records that the attempt at one address of this round failed.
    pub(crate) fn attempt_failed(&mut self, error: &Error) {
        match error.kind() {
            ErrorKind::ConnectionRefused => self.failures.refused = true,
            // This machine has no way to the address. Many names have an address of IPv6 and many machines do not use it.
            ErrorKind::AddressNotAvailable
            | ErrorKind::NoProtocol
            | ErrorKind::Os(errno::NETWORK_UNREACHABLE) => {}
            _ => self.failures.unclear = true,
        }
    }

    /// Records that a layer could not complete its handshake with the peer at one address of this round.
    pub(crate) fn handshake_failed(&mut self) {
        self.failures.handshake = true;
    }

    /// Records that no address of this round is left. RECONNECT_STOP applies only now, because another address might have
    /// answered.
    pub(crate) fn end_round(&mut self) {
        let Failures {
            refused,
            handshake,
            unclear,
        } = mem::take(&mut self.failures);
        if refused && !unclear {
            self.suffer(Setback::Refused);
        }
        if handshake {
            self.suffer(Setback::Handshake);
        }
    }

    /// The turn that the next or the current attempt has asked for.
    pub(crate) fn turn(&self) -> Option<&Turn> {
        match &self.attempt {
            Attempt::None => None,
            Attempt::Queued(turn) | Attempt::UnderWay { turn, .. } => Some(turn),
        }
    }

    /// Until when other sessions wait for the attempt that is under way.
    pub(crate) fn patience(&self) -> Option<Instant> {
        match self.attempt {
            Attempt::None | Attempt::Queued(_) => None,
            Attempt::UnderWay { patience, .. } => patience,
        }
    }

    /// Handles an event of the attempt. Returns the turn to give back if there is one.
    pub(crate) fn on_attempt(&mut self, event: AttemptEvent<Turn>) -> Option<Turn> {
        let (next, turn) = mem::take(&mut self.attempt).next(event);
        self.attempt = next;
        turn
    }

    /// Whether there will be no further round.
    pub(crate) fn has_stopped(&self) -> bool {
        self.stopped
    }

    /// Sets the addresses of this round.
    pub(crate) fn set_targets(&mut self, targets: Vec<Target>) {
        self.targets = targets.into();
        self.failures = Failures::default();
    }

    /// Removes and returns the next address of this round.
    pub(crate) fn next_target(&mut self) -> Option<Target> {
        self.targets.pop_front()
    }

    /// Whether this round has an address that was not tried yet.
    pub(crate) fn has_more_targets(&self) -> bool {
        !self.targets.is_empty()
    }

    /// Puts back an address that was not tried, as the next one.
    pub(crate) fn put_back(&mut self, target: Target) {
        self.targets.push_front(target);
    }

    /// Records that a connection was made. The backoff starts again with its shortest delay.
    pub(crate) fn succeeded(&mut self) {
        self.targets = VecDeque::new();
        self.backoff.reset();
    }

    /// How long to wait before the next round; `None` means that there is no further round.
    pub(crate) fn next_delay(&mut self) -> Option<Duration> {
        if self.stopped {
            return None;
        }
        self.backoff.next()
    }
}

/// Delays between rounds: constant with jitter, or doubling up to a limit with jitter. The jitter keeps a thousand
/// clients from coming back in the same instant.
struct Backoff {
    base: Option<Duration>,
    max: Option<Duration>,
    current: Duration,
    random: u64,
}

impl Backoff {
    fn new(base: Option<Duration>, max: Option<Duration>, seed: u64) -> Backoff {
        let max = max.filter(|max| Some(*max) > base);
        Backoff {
            base,
            max,
            current: base.unwrap_or_default(),
            random: seed | 1,
        }
    }

    fn reset(&mut self) {
        self.current = self.base.unwrap_or_default();
    }

    fn next(&mut self) -> Option<Duration> {
        // Users who set a zero interval want no delay. One millisecond keeps it from being a busy loop.
        let base = self.base?.max(Duration::from_millis(1));
        let Some(max) = self.max else {
            return Some(base + self.jitter(base));
        };
        let delay = self.current.max(base);
        self.current = (delay * 2).min(max);
        // Between half of the delay and all of it: spread out, but still growing.
        Some(delay / 2 + self.jitter(delay / 2))
    }

    /// A random duration from zero up to `span`.
    fn jitter(&mut self, span: Duration) -> Duration {
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let nanos = u64::try_from(span.as_nanos()).unwrap_or(u64::MAX).max(1);
        Duration::from_nanos(self.random % nanos)
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::socket_type::SocketType;

    use super::*;
    use crate::options::ContextOptions;
    use crate::transports;

    const MS: Duration = Duration::from_millis(1);

    /// A connecter that RECONNECT_STOP stops for these events.
    fn stopping(stop: i32) -> Connecter {
        let mut options = Options::new(SocketType::Dealer, &ContextOptions::default());
        options.reconnect_stop = stop;
        Connecter::new(transports::find("tcp").unwrap(), "two.test:5", &options, 7)
    }

    #[test]
    fn a_round_is_refused_if_nothing_listens_at_any_address_in_reach() {
        use ErrorKind::{AddressNotAvailable, ConnectionRefused, HostUnreachable, TimedOut};
        let no_route = ErrorKind::Os(errno::NETWORK_UNREACHABLE);
        for (failures, is_refused) in [
            ([ConnectionRefused, ConnectionRefused], true),
            ([AddressNotAvailable, ConnectionRefused], true),
            ([ConnectionRefused, no_route], true),
            ([ConnectionRefused, TimedOut], false),
            ([HostUnreachable, ConnectionRefused], false),
            ([no_route, no_route], false),
        ] {
            let mut connecter = stopping(1);
            connecter.set_targets(Vec::new());
            for kind in failures {
                connecter.attempt_failed(&Error::new(kind));
                assert!(!connecter.has_stopped(), "another address may answer");
            }
            connecter.end_round();
            assert_eq!(connecter.has_stopped(), is_refused, "{failures:?}");
        }
    }

    #[test]
    fn failures_of_one_round_do_not_count_in_the_next() {
        let mut connecter = stopping(1 | 2);
        connecter.attempt_failed(&Error::new(ErrorKind::ConnectionRefused));
        connecter.handshake_failed();
        // Another address has answered, and its connection was lost.
        connecter.succeeded();
        connecter.set_targets(Vec::new());
        connecter.end_round();
        assert!(!connecter.has_stopped());
    }

    #[test]
    fn a_failed_handshake_of_a_layer_counts_when_no_address_is_left() {
        let mut connecter = stopping(2);
        connecter.handshake_failed();
        assert!(!connecter.has_stopped());
        connecter.end_round();
        assert!(connecter.has_stopped());
    }

    #[test]
    fn a_constant_interval_has_jitter_below_the_interval() {
        let mut backoff = Backoff::new(Some(100 * MS), None, 7);
        let delays: Vec<_> = (0..50).filter_map(|_| backoff.next()).collect();
        assert_eq!(delays.len(), 50);
        assert!(
            delays.iter().all(|d| (100 * MS..200 * MS).contains(d)),
            "{delays:?}"
        );
        assert!(delays.iter().any(|d| *d != delays[0]));
    }

    #[test]
    fn doubling_stops_at_the_limit_and_starts_again_after_success() {
        let mut backoff = Backoff::new(Some(100 * MS), Some(800 * MS), 7);
        let delays: Vec<_> = (0..8).filter_map(|_| backoff.next()).collect();
        assert!(delays[0] <= 100 * MS);
        assert!(delays[7] >= 400 * MS && delays[7] <= 800 * MS, "{delays:?}");
        backoff.reset();
        assert!(backoff.next().is_some_and(|d| d <= 100 * MS));
    }

    #[test]
    fn a_negative_interval_never_retries() {
        assert_eq!(Backoff::new(None, None, 7).next(), None);
    }

    #[test]
    fn a_zero_interval_is_not_a_busy_loop() {
        assert!(
            Backoff::new(Some(Duration::ZERO), None, 7)
                .next()
                .is_some_and(|d| d >= MS)
        );
    }
}
