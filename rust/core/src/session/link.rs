//! The life of a session's link: connecting, losing the connection, coming back, and the end.

use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use zeroxide_proto::engine::Engine;
use zeroxide_proto::error::CloseReason;

use super::traffic::{Input, Output};
use super::{Connection, Link, Session, State, engine_config};
use crate::error::Result;
use crate::monitor::EventKind;
use crate::patterns::DropReason;
use crate::reactor::Reactor;
use crate::transports::{Opening, Stream, Target, Targets};

/// How long a finished connection may wait for the kernel of a silent peer to take what was written.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// How much unwanted input it throws away in one go.
const SINK_MAX: usize = 16 * 1024;
/// How much of it in a turn of the I/O thread.
const SINK_BUDGET: usize = 1 << 20;
/// How often it looks meanwhile.
const DRAIN_STEP: Duration = Duration::from_millis(5);

/// How often it looks whether the socket has received what earlier connections left.
const BACKLOG_STEP: Duration = Duration::from_millis(100);

/// Linux errnos that monitor events carry.
const ETIMEDOUT: u64 = 110;

impl Session {
    /// Does whatever can be done now. Runs in the I/O thread only.
    pub(super) fn drive(&self, state: &mut State, io: &mut Reactor) {
        if state.done {
            return;
        }
        self.notice_close(state, io);
        self.check_revoked(state, io);
        match &state.link {
            Link::Idle => self.start_round(state, io),
            Link::Resolving => self.take_resolved(state, io),
            Link::Waiting { until } if *until <= io.now() => self.start_round(state, io),
            Link::Connecting {
                deadline: Some(deadline),
                ..
            } if *deadline <= io.now() => {
                self.emit_because(
                    EventKind::Closed,
                    ETIMEDOUT,
                    "the connection attempt took too long",
                );
                self.drop_stream(state, io);
                self.try_next(state, io);
            }
            _ => {}
        }
        if let Link::Up(_) = state.link {
            self.traffic(state, io);
        }
        if let Link::Draining { .. } = state.link {
            self.drain(state, io);
        }
        self.check_closing(state, io);
        self.arm_timer(state, io);
    }

    fn traffic(&self, state: &mut State, io: &mut Reactor) {
        let input = self.input(state, io);
        let output = self.output(state, io.now());
        if (matches!(input, Input::More) || output != Output::Idle)
            && let Some(token) = state.token
        {
            io.defer(token);
        }
        if let Input::Closed(reason) = input {
            self.lost(state, io, &reason);
        }
    }

    /// The socket closed its end of the pipe: from now on only what is queued counts.
    fn notice_close(&self, state: &mut State, io: &mut Reactor) {
        if state.closing.is_some() {
            return;
        }
        if let Some(pipe) = &state.pipe
            && pipe.is_far_closed()
        {
            if pipe.far_gave_up() && state.connecter.is_some() {
                return self.start_over(state, io);
            }
            let deadline = pipe
                .far_linger()
                .and_then(|linger| io.now().checked_add(linger));
            state.closing = Some(deadline);
        }
    }

    /// The pattern wants nothing to do with this peer: try again later, with a new pipe.
    fn start_over(&self, state: &mut State, io: &mut Reactor) {
        self.drop_stream(state, io);
        state.pipe = None;
        self.wait_for_next_round(state, io);
    }

    fn check_closing(&self, state: &mut State, io: &mut Reactor) {
        let Some(deadline) = state.closing else {
            return;
        };
        if state.done || matches!(state.link, Link::Draining { .. }) {
            return;
        }
        let drained = state.pipe.as_mut().is_none_or(|pipe| pipe.is_finished())
            && match &state.link {
                Link::Up(up) => !up.engine.is_ready() || !up.engine.has_transmit(),
                _ => true,
            };
        if !drained {
            if deadline.is_some_and(|at| at <= io.now()) {
                self.finish(state, io);
            }
            return;
        }
        match std::mem::replace(&mut state.link, Link::Idle) {
            Link::Up(up) if up.engine.is_ready() && deadline.is_none_or(|at| at > io.now()) => {
                // What the kernel still holds would be thrown away by a close with unread input.
                up.stream.shutdown_write();
                let longest = io.now() + DRAIN_MAX;
                let until = deadline.map_or(longest, |at| at.min(longest));
                state.link = Link::Draining {
                    stream: up.stream,
                    until,
                };
                self.drain(state, io);
            }
            other => {
                state.link = other;
                self.finish(state, io);
            }
        }
    }

    fn drain(&self, state: &mut State, io: &mut Reactor) {
        let deadline = state.closing.flatten();
        let Link::Draining { stream, until } = &mut state.link else {
            return;
        };
        let mut sink = Vec::new();
        let mut heard = 0;
        let ended = loop {
            sink.clear();
            sink.reserve(SINK_MAX);
            match stream.recv(&mut sink) {
                Ok(0) => break true,
                Ok(n) => heard += n,
                Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
            }
            if heard >= SINK_BUDGET {
                if let Some(token) = state.token {
                    io.defer(token);
                }
                break false;
            }
        };
        if heard > 0 {
            // Whoever talks is alive, and what it says after the close would reset the connection before it has read
            // everything: from now on only LINGER limits its time.
            let longest = io.now() + DRAIN_MAX;
            *until = deadline.map_or(longest, |at| at.min(longest)).max(*until);
        }
        if ended || stream.unsent() == 0 || *until <= io.now() {
            self.emit(EventKind::Closed, stream.id());
            self.finish(state, io);
        }
    }

    // ---- connecting ------------------------------------------------------------------------------------------------

    fn start_round(&self, state: &mut State, io: &mut Reactor) {
        let Some(connecter) = &mut state.connecter else {
            return;
        };
        if self.options.immediate && self.port.is_backlogged() {
            // Each connection would leave another pipe behind.
            state.link = Link::Waiting {
                until: io.now() + BACKLOG_STEP,
            };
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
                state.link = Link::Resolving;
                let me = self.me.clone();
                let submitted = self.registry.resolver.submit(job, move |answer| {
                    if let Some(session) = me.upgrade() {
                        session.lock().resolved = Some(answer);
                        session.wake();
                    }
                });
                if let Err(error) = submitted {
                    self.emit_because(EventKind::Closed, error.errno() as u64, &error);
                    self.wait_for_next_round(state, io);
                }
            }
            Err(error) => {
                self.emit_because(EventKind::Closed, error.errno() as u64, &error);
                self.wait_for_next_round(state, io);
            }
        }
    }

    fn take_resolved(&self, state: &mut State, io: &mut Reactor) {
        match state.resolved.take() {
            None => {}
            Some(Ok(targets)) => {
                if let Some(connecter) = &mut state.connecter {
                    connecter.set_targets(targets);
                }
                self.try_next(state, io);
            }
            Some(Err(error)) => {
                self.emit_because(EventKind::Closed, error.errno() as u64, &error);
                self.wait_for_next_round(state, io);
            }
        }
    }

    /// Tries the addresses of this round one after the other until one connects or hangs on.
    fn try_next(&self, state: &mut State, io: &mut Reactor) {
        loop {
            let Some(connecter) = &mut state.connecter else {
                return;
            };
            let Some(target) = connecter.next_target() else {
                return self.wait_for_next_round(state, io);
            };
            match self.open(connecter.transport, &target, state, io) {
                Ok(()) => return,
                Err(error) => self.emit_because(EventKind::Closed, error.errno() as u64, &error),
            }
        }
    }

    fn open(
        &self,
        transport: &dyn crate::transports::Transport,
        target: &Target,
        state: &mut State,
        io: &mut Reactor,
    ) -> Result<()> {
        let Some(token) = state.token else {
            return Ok(());
        };
        let Opening { stream, connected } = transport.open(target, &self.options)?;
        io.watch(token, stream.fd())?;
        if connected {
            self.up(state, io, stream);
        } else {
            self.emit(EventKind::ConnectDelayed, 0);
            let deadline = self
                .options
                .connect_timeout
                .and_then(|limit| io.now().checked_add(limit));
            state.link = Link::Connecting { stream, deadline };
        }
        Ok(())
    }

    /// The connecting stream became writable: either it is up or it failed.
    pub(super) fn connect_finished(&self, state: &mut State, io: &mut Reactor) {
        let Link::Connecting { stream, .. } = std::mem::replace(&mut state.link, Link::Idle) else {
            return;
        };
        match stream.take_error() {
            Ok(()) => self.up(state, io, stream),
            Err(error) => {
                self.emit_because(
                    EventKind::Closed,
                    error.raw_os_error().unwrap_or(0) as u64,
                    &error,
                );
                io.unwatch(stream.fd());
                drop(stream);
                self.try_next(state, io);
            }
        }
    }

    fn up(&self, state: &mut State, io: &mut Reactor, stream: Stream) {
        self.emit(EventKind::Connected, stream.id());
        let engine = Engine::new(engine_config(&self.options, self.socket_type), io.now());
        state.link = Link::Up(Box::new(Connection::new(engine, stream)));
        self.traffic(state, io);
    }

    fn wait_for_next_round(&self, state: &mut State, io: &mut Reactor) {
        let delay = state
            .connecter
            .as_mut()
            .and_then(|connecter| connecter.next_delay());
        match delay {
            Some(delay) if !state.done => {
                self.emit(EventKind::ConnectRetried, delay.as_millis() as u64);
                state.link = Link::Waiting {
                    until: io.now() + delay,
                };
            }
            _ => self.finish(state, io),
        }
    }

    // ---- losing it -------------------------------------------------------------------------------------------------

    fn drop_stream(&self, state: &mut State, io: &mut Reactor) {
        match std::mem::replace(&mut state.link, Link::Idle) {
            Link::Up(up) => io.unwatch(up.stream.fd()),
            Link::Connecting { stream, .. } | Link::Draining { stream, .. } => {
                io.unwatch(stream.fd())
            }
            Link::Idle | Link::Resolving | Link::Waiting { .. } => {}
        }
    }

    /// The connection is over.
    pub(super) fn lost(&self, state: &mut State, io: &mut Reactor, reason: &CloseReason) {
        let Link::Up(up) = &state.link else { return };
        let fd = up.stream.id();
        let was_ready = up.was_ready;
        let stranded = up.stranded();
        if !was_ready {
            self.emit_handshake_failure(up, reason);
        }
        self.emit_because(EventKind::Disconnected, fd, up.explain(reason));
        self.drop_stream(state, io);
        if let Some(pipe) = &mut state.pipe {
            pipe.rollback();
            pipe.flush();
            if stranded > 0 && state.closing.is_none() {
                pipe.account(0, stranded);
            } else if stranded > 0 {
                self.port.count_drop(DropReason::PeerGone, stranded);
            }
        }
        if state.connecter.is_none() || (self.options.immediate && state.closing.is_some()) {
            return self.finish(state, io);
        }
        if self.options.immediate {
            state.pipe = None;
        } else if was_ready && let Some(pipe) = &state.pipe {
            pipe.announce_disconnected();
        }
        self.wait_for_next_round(state, io);
    }

    /// The end: lets go of the stream, the pipe, the reactor and the context.
    pub(super) fn finish(&self, state: &mut State, io: &mut Reactor) {
        if state.done {
            return;
        }
        state.done = true;
        self.ended.store(true, Ordering::Release);
        if state.closing.is_some() {
            // Without a closed end the socket sees for itself what was not read.
            let left = state.undelivered();
            if left > 0 {
                self.port.count_drop(DropReason::Lingered, left);
            }
        }
        self.drop_stream(state, io);
        if let Some(token) = state.token.take() {
            io.remove(token);
        }
        state.pipe = None;
        state.guard = None;
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    fn arm_timer(&self, state: &mut State, io: &mut Reactor) {
        let Some(token) = state.token else { return };
        let link = match &state.link {
            Link::Up(up) => up.engine.poll_timeout(),
            Link::Waiting { until } => Some(*until),
            Link::Connecting { deadline, .. } => *deadline,
            Link::Draining { .. } => Some(io.now() + DRAIN_STEP),
            Link::Idle | Link::Resolving => None,
        };
        // Draining has taken the deadline over.
        let closing = match state.link {
            Link::Draining { .. } => None,
            _ => state.closing.flatten(),
        };
        let next: Option<Instant> = match (link, closing) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        if let Some(at) = next {
            io.set_timer(token, at);
        }
    }
}
