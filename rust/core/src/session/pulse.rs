//! Detects that a silent peer's machine is gone, by whether its kernel acknowledges what is sent.
//!
//! A silent peer may be stopped, or its receiver full, but its kernel keeps answering. A machine that has died
//! acknowledges nothing. The kernel's own limit for that, TCP_USER_TIMEOUT, cannot distinguish the two. It also ends
//! connections whose peer answers every probe with a closed window.

use std::time::{Duration, Instant};

use super::{Connection, Link, Session, State};
use crate::options::Options;
use crate::sys::stream::Acks;
use crate::transports::Stream;
use zeroxide_proto::engine::EngineConfig;
use zeroxide_proto::error::CloseReason;

/// How long a peer may be silent before it is checked. The two sides differ, because one PING is enough.
const CONNECTING: Duration = Duration::from_secs(6);
const ACCEPTING: Duration = Duration::from_secs(8);

/// How long the peer's kernel may then leave everything unacknowledged, and the interval of the checks.
const PATIENCE: Duration = Duration::from_secs(5);

/// Granularity of the kernel's times.
const STEP: Duration = Duration::from_millis(10);

/// Number of unanswered probes of a closed window after which the peer's machine counts as dead. A single probe may go
/// unanswered, because kernels limit the rate of their answers.
const PROBES: u8 = 3;

/// What earlier checks have found.
#[derive(Debug, Default)]
pub(super) struct Pulse {
    /// Since when data has been unacknowledged, as far as the checks have shown.
    since: Option<Instant>,
    /// The kernel has been asked to send probes.
    is_probed: bool,
}

impl Pulse {
    /// Whether the peer's machine is gone. With `asked`, a PING leaves now.
    fn is_gone(&mut self, asked: bool, acks: Acks, now: Instant) -> bool {
        let outstanding = acks.unacknowledged || acks.probes >= PROBES;
        let heard_since = |since| {
            now.checked_sub(acks.last)
                .is_none_or(|last| last + STEP >= since)
        };
        match self.since {
            _ if asked => self.since = Some(now),
            Some(since) if outstanding && !heard_since(since) => {
                return now.saturating_duration_since(since) + STEP >= PATIENCE;
            }
            _ => self.since = outstanding.then_some(now),
        }
        false
    }
}

/// Makes the engine check a silent peer, unless HEARTBEAT_IVL asks for heartbeats. An ipc peer is on this machine and
/// needs no check.
pub(super) fn configure(
    config: &mut EngineConfig,
    options: &Options,
    stream: &Stream,
    accepted: bool,
) {
    if options.heartbeat_ivl.is_none() && stream.is_remote() {
        config.watch_ivl = Some(if accepted { ACCEPTING } else { CONNECTING });
        config.watch_again_ivl = PATIENCE;
    }
}

impl Connection {
    /// Whether the peer's kernel answers, but has no room for what is left.
    pub(super) fn is_kept_waiting(&self) -> bool {
        let acks = self.stream.acks();
        acks.is_some_and(|acks| has_no_room(acks, self.stream.unacknowledged()))
    }

    /// Whether some bytes have left and are not acknowledged. They may be arriving, or the peer's machine is gone.
    pub(super) fn is_in_transit(&self) -> bool {
        self.stream.unacknowledged() > 0 && !self.is_kept_waiting()
    }

    /// Whether the peer's kernel has answered within `time`, or has no room for what is left. Bytes in flight at one
    /// moment say nothing, because the peer may just have made room.
    pub(super) fn is_answered(&self, time: Duration) -> bool {
        let acks = self.stream.acks();
        acks.is_some_and(|acks| acks.last <= time) || self.is_kept_waiting()
    }

    /// Makes the kernel probe the peer's machine. A connection that ends before a timer fires never pays for this.
    pub(super) fn probe(&mut self, options: &Options) {
        if !std::mem::replace(&mut self.pulse.is_probed, true) {
            self.stream.probe_silent(options);
        }
    }

    /// Tells the engine, before it asks a silent peer for a sign of life, that the peer's kernel acknowledges what is sent.
    /// The answer of a peer that only receives could come after this side has closed. It would reset the connection, and
    /// what our kernel still holds would be lost.
    pub(super) fn note_acks(&mut self, now: Instant) {
        if !self.engine.finds_silence(now) {
            return;
        }
        let Some(acks) = self.stream.acks() else {
            return;
        };
        // Probes for life are acknowledged, too, but say nothing about what is sent.
        let last = match self.stream.unacknowledged() > 0 {
            true => acks.last,
            false => acks.last.max(acks.sent),
        };
        if let Some(at) = now.checked_sub(last) {
            self.engine.handle_acknowledgement(at);
        }
    }
}

impl Session {
    /// Checks a silent peer if it is time. Runs in the I/O thread only.
    pub(super) fn check_pulse(&self, state: &mut State, now: Instant) {
        let Link::Up(up) = &mut state.link else {
            return;
        };
        if state.connecter.is_some() && up.engine.is_ready() {
            up.probe(&self.options);
        }
        let Some(asked) = up.engine.take_doubt() else {
            return;
        };
        let Some(acks) = up.stream.acks() else {
            return;
        };
        if !up.pulse.is_gone(asked, acks, now) {
            return;
        }
        up.engine.abort(CloseReason::HeartbeatTimeout, now);
    }
}

/// Whether nothing that left is unacknowledged, some has not left, and the peer's kernel answers the probes for room.
fn has_no_room(acks: Acks, left: usize) -> bool {
    !acks.unacknowledged && acks.probes < PROBES && left > 0
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: Duration = Duration::from_secs(1);

    fn acks(unacknowledged: bool, probes: u8, last: Duration) -> Acks {
        Acks {
            unacknowledged,
            probes,
            last,
            sent: last,
        }
    }

    #[test]
    fn a_machine_that_acknowledges_nothing_is_gone() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        assert!(!pulse.is_gone(true, acks(false, 0, SECOND * 6), start));
        assert!(pulse.is_gone(false, acks(true, 0, SECOND * 11), start + PATIENCE));
    }

    #[test]
    fn a_peer_that_does_not_read_is_not_gone_while_its_machine_answers() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        assert!(!pulse.is_gone(true, acks(false, 0, SECOND * 6), start));
        // The peer's kernel took the PING.
        for look in 1..1000 {
            let now = start + PATIENCE * look;
            assert!(!pulse.is_gone(false, acks(false, 0, PATIENCE * look), now));
        }
        // There is no room, but probes are answered from time to time.
        for look in 1000..2000 {
            let now = start + PATIENCE * look;
            let last = SECOND * (look % 120);
            assert!(!pulse.is_gone(false, acks(false, (look % 2) as u8, last), now));
        }
    }

    #[test]
    fn a_recent_message_may_still_be_in_transit() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        assert!(!pulse.is_gone(true, acks(false, 0, SECOND * 6), start));
        let hour = SECOND * 3600;
        assert!(!pulse.is_gone(false, acks(false, 0, hour), start + hour));
        let now = start + hour + PATIENCE;
        assert!(!pulse.is_gone(false, acks(true, 0, hour + PATIENCE), now));
        // PATIENCE later, it should have arrived.
        let last = hour + PATIENCE * 2;
        assert!(pulse.is_gone(false, acks(true, 0, last), now + PATIENCE));
    }

    #[test]
    fn a_full_receiver_whose_machine_dies_is_noticed_by_its_probes() {
        let start = Instant::now();
        let mut pulse = Pulse::default();
        assert!(!pulse.is_gone(false, acks(false, 1, SECOND), start));
        assert!(!pulse.is_gone(false, acks(false, 3, SECOND * 9), start + PATIENCE));
        assert!(pulse.is_gone(false, acks(false, 5, SECOND * 14), start + PATIENCE * 2));
    }

    #[test]
    fn only_a_kernel_that_answers_and_has_no_room_keeps_us_waiting() {
        for (unacknowledged, probes, left, expected) in [
            (false, 0, 1, true),
            // A single probe may go unanswered.
            (false, PROBES - 1, 1, true),
            (false, PROBES, 1, false),
            // In transit, or the machine is dead.
            (true, 0, 1, false),
            // Everything has arrived.
            (false, 0, 0, false),
        ] {
            let acks = acks(unacknowledged, probes, SECOND);
            assert_eq!(has_no_room(acks, left), expected, "{acks:?}, {left}");
        }
    }
}
