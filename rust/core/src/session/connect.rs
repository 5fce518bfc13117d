//! Connects a session: tries the addresses of a round one after the other, runs the handshakes of layers if there are
//! any, and starts the next round.

use std::fmt::Display;
use std::time::{Duration, Instant};

use zeroxide_proto::engine::{Engine, EngineConfig};
use zeroxide_proto::socket_type::SocketType;

use super::link::close;
use super::sides::{InletEvent, Phase};
use super::stage::Step;
use super::{Connection, Link, Session, State, pulse};
use crate::connecter::AttemptEvent;
use crate::error::{Error, ErrorKind, Result};
use crate::monitor::{EventKind, Party};
use crate::options::Options;
use crate::reactor::{Reactor, Token};
use crate::sys::{errno, limits};
use crate::transports::{Opening, Stream, Target, Targets};

/// Interval between checks whether the socket has received what earlier connections left.
const BACKLOG_STEP: Duration = Duration::from_millis(100);

/// How long an unanswered attempt keeps other sessions waiting that connect to the same address.
const PATIENCE: Duration = Duration::from_millis(100);

/// How long an address may be silent if another one or another round follows. The kernel asks again after 1, 3, 7, 15, 31 and
/// 63 seconds, so that a machine that comes back after a minute would wait for the next minute to pass.
const SILENCE_BEFORE_ADDRESS: Duration = Duration::from_secs(3);
const SILENCE_BEFORE_ROUND: Duration = Duration::from_secs(10);

impl Session {
    pub(super) fn start_round(&self, state: &mut State, io: &mut Reactor) {
        let Some(connecter) = &mut state.connecter else {
            return;
        };
        if self.options.immediate && self.port.is_backlogged() {
            // Each new connection would leave another pipe that the socket has not read.
            let until = io.now() + BACKLOG_STEP;
            state.enter(Step::Wait, Link::Waiting { until });
            return;
        }
        match connecter
            .transport
            .targets(&connecter.address, &self.options)
        {
            Ok(Targets::Ready(targets)) => {
                connecter.set_targets(targets);
                self.try_next(state, io);
            }
            Ok(Targets::Resolve(job)) => {
                state.enter(Step::LookUp, Link::Resolving);
                // The answer to a lookup that was given up may have come since.
                state.resolved = None;
                let (me, waiting) = (self.me.clone(), self.me.clone());
                let is_waiting = move || waiting.strong_count() > 0;
                let submitted = self
                    .registry
                    .resolver
                    .submit(job, is_waiting, move |answer| {
                        if let Some(session) = me.upgrade() {
                            session.lock().resolved = Some(answer);
                            session.wake();
                        }
                    });
                if let Err(error) = submitted {
                    self.round_failed(state, io, &error);
                }
            }
            Ok(Targets::NotYet(error)) | Err(error) => {
                self.round_failed(state, io, &error);
            }
        }
    }

    pub(super) fn take_resolved(&self, state: &mut State, io: &mut Reactor) {
        match state.resolved.take() {
            None => {}
            Some(Ok(targets)) => {
                if let Some(connecter) = &mut state.connecter {
                    connecter.set_targets(targets);
                }
                self.try_next(state, io);
            }
            Some(Err(error)) => {
                self.round_failed(state, io, &error);
            }
        }
    }

    /// There is no address to connect to.
    fn round_failed(&self, state: &mut State, io: &mut Reactor, error: &Error) {
        self.tell_failure(EventKind::Closed, error.errno() as u64, error);
        self.wait_for_next_round(state, io);
    }

    /// Tries the addresses of this round one after the other until one connects, is in progress, or has to wait for its
    /// turn.
    pub(super) fn try_next(&self, state: &mut State, io: &mut Reactor) {
        loop {
            let (Some(connecter), Some(token)) = (&mut state.connecter, state.token) else {
                return;
            };
            let Some(target) = connecter.next_target() else {
                connecter.end_round();
                return self.wait_for_next_round(state, io);
            };
            if connecter.turn().is_none() {
                let turn = io.ask_for_turn(target.address(), token);
                connecter.on_attempt(AttemptEvent::Ask(turn));
            }
            if !connecter.turn().is_some_and(|turn| io.has_come(turn)) {
                connecter.put_back(target);
                state.enter(Step::Queue, Link::Queued);
                return;
            }
            let patience = io.now().checked_add(PATIENCE);
            connecter.on_attempt(AttemptEvent::Begin { patience });
            match self.open(&target, token, state, io) {
                Ok(()) => return,
                Err(error) => self.attempt_failed(state, io, &error),
            }
        }
    }

    /// Gives the turn at the address to the next session.
    pub(super) fn give_turn_back(&self, state: &mut State, io: &mut Reactor) {
        if let Some(connecter) = &mut state.connecter
            && let Some(turn) = connecter.on_attempt(AttemptEvent::End)
        {
            io.give_turn_back(turn);
        }
    }

    fn open(
        &self,
        target: &Target,
        token: Token,
        state: &mut State,
        io: &mut Reactor,
    ) -> Result<()> {
        let Some(connecter) = &state.connecter else {
            return Ok(());
        };
        let transport = connecter.transport;
        let Opening {
            mut stream,
            mut connected,
        } = transport.open(&connecter.address, target, &self.options)?;
        if self.options.is_led_by_peers && limits::is_reserved(stream.id()) {
            stream.close();
            return Err(Error::descriptors_reserved());
        }
        io.watch(token, stream.fd())?;
        let silence = match (connecter.has_more_targets(), self.options.reconnect_ivl) {
            (true, _) => Some(SILENCE_BEFORE_ADDRESS),
            (false, Some(_)) => Some(SILENCE_BEFORE_ROUND),
            // This is the only attempt.
            (false, None) => None,
        };
        let deadline = in_future(io, self.options.connect_timeout.or(silence));
        if !connected {
            self.emit(EventKind::ConnectDelayed, errno::IN_PROGRESS as u64);
            // Within one machine, the kernel has usually connected by now.
            match stream.is_connected() {
                Ok(by_now) => connected = by_now,
                Err(error) => {
                    close(stream, io);
                    return Err(error.into());
                }
            }
        }
        if connected {
            self.connected(state, io, stream, deadline);
        } else {
            state.enter(Step::Connect, Link::Connecting { stream, deadline });
        }
        Ok(())
    }

    /// Handles that the connecting stream became writable. Returns true if it is connected and false if it failed.
    pub(super) fn connect_finished(&self, state: &mut State, io: &mut Reactor) -> bool {
        let Link::Connecting {
            mut stream,
            deadline,
        } = std::mem::replace(&mut state.link, Link::Idle)
        else {
            return false;
        };
        let result = stream.take_error();
        let succeeded = result.is_ok();
        match result {
            Ok(()) => self.connected(state, io, stream, deadline),
            Err(error) => self.connect_failed(state, io, stream, &error.into()),
        }
        succeeded
    }

    fn connect_failed(&self, state: &mut State, io: &mut Reactor, stream: Stream, error: &Error) {
        self.attempt_failed(state, io, error);
        close(stream, io);
        self.try_next(state, io);
    }

    fn attempt_failed(&self, state: &mut State, io: &mut Reactor, error: &Error) {
        self.give_turn_back(state, io);
        self.tell_failure(EventKind::Closed, error.errno() as u64, error);
        if let Some(connecter) = &mut state.connecter {
            connecter.attempt_failed(error);
        }
    }

    /// The kernel has connected the stream. The deadline also applies to the handshakes of layers if it is an option's.
    fn connected(
        &self,
        state: &mut State,
        io: &mut Reactor,
        stream: Stream,
        deadline: Option<Instant>,
    ) {
        if !stream.is_opening() {
            // An event reports the stream's first bytes.
            return self.up(state, io, stream, io.now(), false);
        }
        // The handshakes of layers are part of the attempt and also handshakes, so both limits apply.
        let limit = in_future(io, self.options.handshake_ivl);
        let deadline = deadline.filter(|_| self.options.connect_timeout.is_some());
        let deadline = match (deadline, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        let since = io.now();
        let layering = Link::Layering {
            stream,
            since,
            deadline,
        };
        state.enter(Step::Layer, layering);
        self.shake_hands(state, io);
    }

    /// Advances the handshakes of the stream's layers as far as possible now.
    pub(super) fn shake_hands(&self, state: &mut State, io: &mut Reactor) {
        let Link::Layering { stream, .. } = &mut state.link else {
            return;
        };
        let result = stream.advance();
        if matches!(result, Ok(false)) {
            if stream.is_unread()
                && let Some(token) = state.token
            {
                // The peer sends much without completing the handshake. Others have their turn.
                io.defer(token);
            }
            return;
        }
        let Link::Layering { stream, since, .. } = std::mem::replace(&mut state.link, Link::Idle)
        else {
            return;
        };
        match result {
            // The layers may have read beyond their handshakes.
            Ok(_) => self.up(state, io, stream, since, true),
            Err(error) => {
                if stream.is_at_peer() {
                    self.layer_failed(state, error.errno(), &error);
                }
                if state.connecter.is_some() {
                    return self.connect_failed(state, io, stream, &error);
                }
                let fd = stream.id();
                close(stream, io);
                self.emit_because(EventKind::Disconnected, fd, &error);
                self.finish(state, io);
            }
        }
    }

    /// A layer could not complete its handshake with the peer.
    fn layer_failed(&self, state: &mut State, errno: i32, reason: impl Display) {
        self.tell_failure(EventKind::HandshakeFailedNoDetail, errno as u64, reason);
        if let Some(connecter) = &mut state.connecter {
            connecter.handshake_failed();
        }
    }

    /// Handles that the attempt, or the handshakes of the stream's layers, did not finish in time.
    pub(super) fn attempt_timed_out(&self, state: &mut State, io: &mut Reactor) {
        let reason = "the connection attempt took too long";
        if let Link::Layering { stream, .. } = &state.link
            && stream.is_at_peer()
        {
            self.layer_failed(state, errno::TIMED_OUT, reason);
        }
        if let Some(connecter) = &mut state.connecter {
            connecter.attempt_failed(&Error::new(ErrorKind::TimedOut));
            self.tell_failure(EventKind::Closed, errno::TIMED_OUT as u64, reason);
            self.drop_stream(state, io);
            self.try_next(state, io);
        } else {
            self.emit_unfinished(state, reason);
            self.finish(state, io);
        }
    }

    /// Reports the end of an accepted connection whose handshakes are not complete, so that each ACCEPTED is followed by the
    /// end of its connection.
    pub(super) fn emit_unfinished(&self, state: &State, reason: &str) {
        let stream = match &state.link {
            Link::Layering { stream, .. } => stream,
            Link::Up(up) if up.phase == Phase::Handshake => &up.stream,
            _ => return,
        };
        if state.connecter.is_none() {
            self.emit_because(EventKind::Disconnected, stream.id(), reason);
        }
    }

    /// Starts ZMTP on the stream, whose handshakes began at `since`. With `readable`, the stream may already have bytes.
    fn up(
        &self,
        state: &mut State,
        io: &mut Reactor,
        stream: Stream,
        since: Instant,
        readable: bool,
    ) {
        self.party().address = stream.peer_name();
        let accepted = state.connecter.is_none();
        if !accepted {
            self.emit(EventKind::Connected, stream.id());
        }
        let now = io.now();
        let mut config = config(&self.options, self.socket_type, &stream, accepted);
        // One limit applies to all handshakes together.
        let spent = now.saturating_duration_since(since);
        let left = |limit: Duration| limit.saturating_sub(spent);
        config.handshake_ivl = config.handshake_ivl.map(left);
        let mut up = Connection::new(Engine::new(config, now), stream, now);
        if !readable {
            up.inlet = up.inlet.next(InletEvent::Drain);
        }
        state.enter(Step::Begin, Link::Up(Box::new(up)));
        self.traffic(state, io);
    }

    pub(super) fn wait_for_next_round(&self, state: &mut State, io: &mut Reactor) {
        *self.party() = Party::default();
        let delay = state
            .connecter
            .as_mut()
            .and_then(|connecter| connecter.next_delay());
        match delay {
            Some(delay) if !self.has_ended() => {
                self.emit(EventKind::ConnectRetried, delay.as_millis() as u64);
                let until = io.now() + delay;
                state.enter(Step::Wait, Link::Waiting { until });
            }
            _ => self.finish(state, io),
        }
    }
}

fn in_future(io: &Reactor, limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| io.now().checked_add(limit))
}

/// Returns the configuration of the engine for a new connection.
pub(super) fn config(
    options: &Options,
    socket_type: SocketType,
    stream: &Stream,
    accepted: bool,
) -> EngineConfig {
    let mut config = EngineConfig::new(socket_type);
    config.routing_id = options.routing_id.clone();
    config.properties = options.metadata.clone();
    config.handshake_ivl = options.handshake_ivl;
    config.heartbeat_ivl = options.heartbeat_ivl;
    config.heartbeat_ttl = options.heartbeat_ttl;
    config.heartbeat_timeout = options.heartbeat_timeout;
    config.stall_ivl = options.stall_ivl;
    config.max_msg_size = options.max_msg_size;
    options.security.configure(&mut config);
    config.raw = options.is_raw();
    config.mapping = stream.mapping();
    config.carrier_pings = stream.has_pings();
    pulse::configure(&mut config, options, stream, accepted);
    config
}
