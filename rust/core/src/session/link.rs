//! The life of a session's link: the work of each turn, losing the connection, reconnecting, and the end.

use std::time::{Duration, Instant};

use zeroxide_proto::error::CloseReason;

use super::backlog;
use super::life::LifeEvent;
use super::refusal::refuse;
use super::sides::{Inlet, Phase};
use super::stage::Step;
use super::traffic::{Input, Output};
use super::{Link, Session, State};
use crate::budget::Share;
use crate::connecter::{Connecter, Setback};
use crate::monitor::EventKind;
use crate::pace::READ_BUDGET;
use crate::patterns::DropReason;
use crate::pipe::Pipe;
use crate::reactor::Reactor;
use crate::signal::deferring_wakes;
use crate::transports::Stream;

/// How long a finished connection waits for a peer whose kernel neither takes what was written nor answers.
const DRAIN_MAX: Duration = Duration::from_secs(1);
/// Maximum number of bytes of unwanted input per turn of the I/O thread.
const SINK_BUDGET: usize = 1 << 20;
/// Shortest and longest interval of the checks while the connection drains.
const DRAIN_STEP: Duration = Duration::from_millis(5);
const DRAIN_STEP_MAX: Duration = Duration::from_millis(200);
/// How long a connection whose time is up waits for acknowledgements. A kernel delays them by up to 200 ms.
const CLOSER_LOOK: Duration = Duration::from_millis(250);

impl Session {
    /// Does everything that can be done now. Runs in the I/O thread only.
    pub(super) fn drive(&self, state: &mut State, io: &mut Reactor) {
        if self.has_ended() {
            return;
        }
        if self.notice_close(state, io) {
            return;
        }
        self.check_revoked(state, io);
        self.check_driver(state, io.now());
        self.check_patience(state, io);
        match &state.link {
            Link::Idle => self.start_round(state, io),
            Link::Resolving => self.take_resolved(state, io),
            Link::Waiting { until } if *until <= io.now() => self.start_round(state, io),
            Link::Queued => self.try_next(state, io),
            Link::Connecting {
                deadline: Some(deadline),
                ..
            }
            | Link::Layering {
                deadline: Some(deadline),
                ..
            } if *deadline <= io.now() => self.attempt_timed_out(state, io),
            _ => {}
        }
        if let Link::Layering { .. } = state.link {
            self.shake_hands(state, io);
        }
        if let Link::Up(_) = state.link {
            self.traffic(state, io);
        }
        if let Link::Draining { .. } = state.link {
            self.drain(state, io);
        }
        self.check_closing(state, io);
        self.note_lingering(state);
        self.arm_timer(state, io);
    }

    pub(super) fn traffic(&self, state: &mut State, io: &mut Reactor) {
        match &state.link {
            // The end of a handshake, the messages after it and the peer's end often arrive together. Waiting threads
            // need only one wake-up for all of them.
            Link::Up(up) if up.phase == Phase::Handshake => {
                drop(deferring_wakes(|| self.exchange(state, io)))
            }
            _ => self.exchange(state, io),
        }
    }

    fn exchange(&self, state: &mut State, io: &mut Reactor) {
        let ended = match &mut state.link {
            Link::Up(up) => up.ended.take(),
            _ => None,
        };
        let input = match ended {
            // The panic may have left the engine in an inconsistent state.
            Some(CloseReason::Internal) => return self.lost(state, io, &CloseReason::Internal),
            Some(reason) => Input::Closed(reason),
            None => self.input(state, io.now(), READ_BUDGET),
        };
        if let Link::Up(up) = &state.link
            && up.phase != Phase::Handshake
        {
            self.give_turn_back(state, io);
        }
        let output = self.output(state, io.now());
        if let Some(pipe) = &state.pipe {
            state.backlog.note(pipe.queued_bytes(), io.now());
            let others = state.share.as_mut().map_or(0, Share::watched);
            state.backlog.note_others(others, io.now());
        }
        if (matches!(input, Input::More) || output != Output::Idle)
            && let Some(token) = state.token
        {
            io.defer(token);
        }
        if let Input::Closed(reason) = input {
            self.lost(state, io, &reason);
        }
    }

    /// Gives the turn back if other sessions have waited long enough for this attempt.
    fn check_patience(&self, state: &mut State, io: &mut Reactor) {
        let connecter = state.connecter.as_ref();
        let patience = connecter.and_then(Connecter::patience);
        if patience.is_some_and(|until| until <= io.now()) {
            self.give_turn_back(state, io);
        }
    }

    /// Begins to close if the socket has closed its end of the pipe. Only the queued messages are delivered then. Returns
    /// true if the session ends at once, because the socket has withdrawn them.
    fn notice_close(&self, state: &mut State, io: &mut Reactor) -> bool {
        if state.closing.has_begun() {
            return false;
        }
        if let Some(pipe) = &mut state.pipe
            && pipe.is_far_closed()
        {
            // The rest of a message that has begun will be refused, and counted then.
            pipe.rollback();
            let withdrew = pipe.far_withdrew();
            if (withdrew || pipe.far_gave_up()) && state.connecter.is_some() {
                self.start_over(state, io);
                return false;
            }
            if withdrew {
                self.withdraw(state, io);
                self.finish(state, io);
                return true;
            }
            let deadline = pipe
                .far_linger()
                .and_then(|linger| io.now().checked_add(linger));
            state.closing = state.closing.next(deadline);
        }
        false
    }

    /// Disconnects from a peer that the pattern drops, and tries again later with a new pipe.
    fn start_over(&self, state: &mut State, io: &mut Reactor) {
        self.withdraw(state, io);
        self.drop_stream(state, io);
        self.wait_for_next_round(state, io);
    }

    /// Drops the pipe, because the socket gives up the connection, and counts what is not sent any more. Only the session
    /// knows how much of it the kernel has taken.
    fn withdraw(&self, state: &mut State, io: &Reactor) {
        // The messages that were read and not decoded count as refused.
        let _ = self.input(state, io.now(), 0);
        let reason = fate(state.pipe.as_ref());
        // A subscriber that begins anew subscribes again.
        if reason == DropReason::PeerGone || self.options.pattern.lingers {
            let (messages, _) = state.undelivered();
            self.port.count_drop(reason, messages);
        }
        self.take_pipe(state);
    }

    fn check_closing(&self, state: &mut State, io: &mut Reactor) {
        if !state.closing.has_begun()
            || self.has_ended()
            || matches!(state.link, Link::Draining { .. })
        {
            return;
        }
        let deadline = state.closing.deadline();
        let drained = state.pipe.as_mut().is_none_or(|pipe| pipe.is_finished())
            && match &state.link {
                Link::Up(up) => {
                    let is_sent = !up.engine.has_transmit() && !up.stream.has_unsent();
                    !up.engine.is_ready() || is_sent
                }
                _ => true,
            };
        let is_late = deadline.is_some_and(|at| at <= io.now());
        if !drained && !is_late {
            let connecter = state.connecter.as_ref();
            let hopeless =
                connecter.is_some_and(Connecter::has_stopped) && !matches!(state.link, Link::Up(_));
            if hopeless {
                self.finish(state, io);
            }
            return;
        }
        match std::mem::replace(&mut state.link, Link::Idle) {
            // When the time is up, nothing more is written, but what is in transit may be arriving.
            Link::Up(mut up) if up.engine.is_ready() && (!is_late || up.is_in_transit()) => {
                let held = up.stream.held();
                // Closing a socket with unread input makes the kernel discard unsent data, so only the write side is
                // shut down.
                up.stream.shutdown_write();
                // There is usually no more input, or only the end of the stream.
                up.engine.hold_back();
                let unsent = up.stream.unacknowledged();
                if unsent > 0 && state.connecter.is_some() {
                    up.probe(&self.options);
                }
                let draining = Link::Draining {
                    up,
                    since: io.now(),
                    until: drain_until(io.now(), deadline),
                    unsent,
                    held,
                    look: None,
                };
                state.enter(Step::Drain, draining);
                self.drain(state, io);
            }
            other => {
                state.link = other;
                self.emit_unfinished(
                    state,
                    "this side ended it before its handshake was complete",
                );
                if let Link::Up(up) = &state.link
                    && up.phase != Phase::Handshake
                {
                    self.emit(EventKind::Closed, up.stream.id());
                }
                self.finish(state, io);
            }
        }
    }

    /// Waits until the peer's kernel has everything. Closing earlier could lose it: if the peer sends something to a
    /// closed connection, even the answer to a PING, our kernel resets the connection and discards what it still holds.
    /// When the time is up, a closer look tells what was only in transit at that moment from what may never arrive.
    fn drain(&self, state: &mut State, io: &mut Reactor) {
        let deadline = state.closing.deadline();
        let Link::Draining {
            up,
            until,
            unsent,
            held,
            look,
            ..
        } = &mut state.link
        else {
            return;
        };
        if let Some(at) = deadline {
            *until = at.min(*until);
        }
        let (mut heard, mut refused) = (0, 0);
        let ended = loop {
            let Ok(buffer) = up.engine.try_input() else {
                break true;
            };
            match up.stream.recv(buffer) {
                Ok(0) => break true,
                Ok(n) => heard += n,
                Err(error) => break error.kind() != std::io::ErrorKind::WouldBlock,
            }
            refused += refuse(&mut up.engine, io.now());
            if heard >= SINK_BUDGET {
                if let Some(token) = state.token {
                    io.defer(token);
                }
                break false;
            }
        };
        let left = up.stream.unacknowledged();
        let moved = left < *unsent;
        if moved {
            *unsent = left;
            self.registry.note_progress();
        }
        // A peer that still sends is alive, and so is one whose kernel answers. Only LINGER limits their time.
        if moved || heard > 0 || (*until <= io.now() && up.is_answered(DRAIN_MAX)) {
            *until = drain_until(io.now(), deadline);
        }
        if refused > 0 {
            self.port.count_drop(DropReason::Refused, refused);
        }
        let is_silent = *until <= io.now() && deadline.is_none_or(|at| at > io.now());
        if ended || (is_silent && left > 0) {
            let (messages, bytes) = up.unheard_at_end(*held);
            // They are counted here.
            *unsent = 0;
            self.give_up(DropReason::PeerGone, messages, bytes);
        }
        if !ended && deadline.is_some_and(|at| at <= io.now()) && up.is_in_transit() {
            *until = *look.get_or_insert(io.now() + CLOSER_LOOK);
        }
        let Link::Draining { up, until, .. } = &state.link else {
            return;
        };
        if ended || left == 0 || *until <= io.now() {
            self.emit(EventKind::Closed, up.stream.id());
            self.finish(state, io);
        }
    }

    // ---- losing it -------------------------------------------------------------------------------------------------

    pub(super) fn drop_stream(&self, state: &mut State, io: &mut Reactor) {
        match std::mem::replace(&mut state.link, Link::Idle) {
            Link::Up(mut up) | Link::Draining { mut up, .. } => {
                self.forget_driver();
                if backlog::is_large(up.engine.take_volume(true)) {
                    io.give_memory_back();
                }
                close(up.stream, io);
            }
            Link::Connecting { stream, .. } | Link::Layering { stream, .. } => close(stream, io),
            Link::Idle | Link::Resolving | Link::Waiting { .. } | Link::Queued => {}
        }
        state.enter(Step::Drop, Link::Idle);
        self.give_turn_back(state, io);
    }

    /// Handles the loss of the connection.
    pub(super) fn lost(&self, state: &mut State, io: &mut Reactor, reason: &CloseReason) {
        let Link::Up(up) = &state.link else { return };
        let fd = up.stream.id();
        let phase = up.phase;
        if *reason == CloseReason::OutOfMemory {
            self.port.count_drop(DropReason::NoMemory, 1);
        }
        let begun = state.pipe.as_ref().map_or(0, Pipe::weight_begun);
        if let Some(share) = &mut state.share
            && share.lost(up.engine.stranded() as u64 + begun)
        {
            io.give_memory_back();
        }
        let stranded = up.stranded();
        // Messages that the peer's kernel has not acknowledged by now will not be read. The kernel is asked only once, because
        // a second answer could differ.
        let unsent = up.stream.unsent() as u64;
        let (unheard, unheard_bytes) = up.unheard(unsent);
        let lost_bytes = up.engine.messages_backlog() as u64 + unheard_bytes;
        let left = self.undelivered_peer(stranded + unheard, lost_bytes);
        // If the peer has finished, it had acknowledged everything that arrived until then. After a reset, more may
        // have arrived than was acknowledged.
        let never_arrived = stranded
            + if up.inlet == Inlet::Finished {
                unheard
            } else {
                0
            };
        let why = up.explain(reason);
        if phase == Phase::Handshake {
            self.emit_handshake_failure(up, reason);
            if let Some(connecter) = &mut state.connecter {
                connecter.suffer(Setback::Handshake);
            }
        } else if *reason != CloseReason::PeerClosed || up.stream.failure().is_some() {
            self.note_setback("connection ended", &why);
        }
        if *reason == CloseReason::HeartbeatTimeout && unsent > 0 && !up.is_answered(DRAIN_MAX) {
            // The peer is out of reach. Messages that count as lost must not arrive after newer ones when it is back. The kernel
            // of a peer that only does not read has to keep what it has.
            up.stream.reset();
        }
        self.drop_stream(state, io);
        let is_too_large = matches!(reason, CloseReason::MessageTooBig { .. });
        if is_too_large {
            self.port.count_drop(DropReason::TooLarge, 1);
        }
        if let Some(pipe) = &mut state.pipe {
            match is_too_large {
                true => drop(pipe.rollback()),
                false => pipe.tear(),
            }
            if phase != Phase::Handshake
                && state.connecter.is_some()
                && !state.closing.has_begun()
                && let Some(mut hiccup) = self.options.on_lost()
            {
                // An application that does not receive does not get one for each of many connections.
                match pipe.check_write() {
                    true => pipe.write_unchecked(&mut hiccup),
                    false => self.port.count_drop(DropReason::HighWater, 1),
                }
            }
            pipe.flush();
            let is_counted =
                !state.closing.has_begun() && pipe.account_lost(stranded, unheard, never_arrived);
            if !is_counted && left.messages > 0 {
                self.port.give_up(fate(Some(pipe)), left);
            }
        }
        let comes_back = state.connecter.is_some();
        let keeps_pipe = comes_back && !self.options.immediate;
        if keeps_pipe && let Some(pipe) = &mut state.pipe {
            if phase == Phase::Heard && self.options.pattern.eager {
                pipe.mark_lapse();
            }
            if phase != Phase::Handshake {
                pipe.announce_disconnected();
            }
        } else if !state.closing.has_begun() {
            self.leave_pipe(state);
        }
        // The socket has to know first: a program that sees the event and then sends must reach another peer.
        self.emit_because(EventKind::Disconnected, fd, why);
        if keeps_pipe || (comes_back && !state.closing.has_begun()) {
            self.wait_for_next_round(state, io);
        } else {
            self.finish(state, io);
        }
    }

    /// Ends the session: releases the stream, the pipe, the reactor and the context.
    pub(super) fn finish(&self, state: &mut State, io: &mut Reactor) {
        if !self.life.change(LifeEvent::End) {
            return;
        }
        if state.closing.has_begun() {
            let (messages, bytes) = state.undelivered();
            self.give_up(DropReason::Lingered, messages, bytes);
        }
        self.drop_stream(state, io);
        if let Some(token) = state.token.take() {
            io.remove(token);
        }
        self.leave_pipe(state);
        self.note_lingering(state);
        state.share = None;
        state.delivery = None;
        state.guard = None;
        if state.backlog.end() {
            io.give_memory_back();
        }
    }

    /// Drops the pipe. The socket counts what is in it, unless it has closed its end in the meantime and the session does not
    /// know yet.
    fn leave_pipe(&self, state: &mut State) {
        if let Some(pipe) = self.take_pipe(state)
            && pipe.end_reading()
            && !state.closing.has_begun()
        {
            let (messages, bytes) = (pipe.queued_in(), pipe.queued_bytes_in());
            self.give_up(fate(Some(&pipe)), messages, bytes);
        }
    }

    /// Takes the pipe out, to drop it.
    fn take_pipe(&self, state: &mut State) -> Option<Pipe> {
        let pipe = state.pipe.take()?;
        self.count_refused(&pipe);
        Some(pipe)
    }

    /// Counts what the peer sent and the socket did not read. The socket has counted what was in the pipe when it closed its
    /// end; the session may have written more before it knew.
    pub(super) fn count_refused(&self, pipe: &Pipe) {
        // What peers send to a publisher are subscriptions.
        let unread = match self.options.pattern.eager {
            true => 0,
            false => pipe.lost_unread(),
        };
        let replaced = pipe.take_replaced();
        if replaced > 0 {
            self.port.count_drop(DropReason::Conflated, replaced);
        }
        if unread > 0 {
            self.port.count_drop(DropReason::Refused, unread);
        }
    }

    /// Tells the socket how much is left of what it has left this session to deliver.
    fn note_lingering(&self, state: &mut State) {
        let is_counted = state.closing.has_begun() && self.options.pattern.lingers;
        let now = match is_counted && !self.has_ended() {
            true => state.undelivered().0,
            false => 0,
        };
        if now != state.lingering {
            self.port.note_lingering(state.lingering, now);
            state.lingering = now;
        }
    }

    pub(super) fn give_up(&self, reason: DropReason, messages: u64, bytes: u64) {
        if messages > 0 {
            self.port
                .give_up(reason, self.undelivered_peer(messages, bytes));
        }
    }

    // ---- time ------------------------------------------------------------------------------------------------------

    fn arm_timer(&self, state: &mut State, io: &mut Reactor) {
        let Some(token) = state.token else { return };
        let link = match &state.link {
            Link::Up(up) => match (up.engine.poll_timeout(), up.driver.poll_timeout()) {
                (Some(a), Some(b)) => Some(a.min(b)),
                (a, b) => a.or(b),
            },
            Link::Waiting { until } => Some(*until),
            Link::Connecting { deadline, .. } | Link::Layering { deadline, .. } => *deadline,
            Link::Draining { since, until, .. } => {
                // The kernel does not report when the peer's kernel has everything.
                let so_far = io.now().saturating_duration_since(*since);
                let step = (so_far / 4).clamp(DRAIN_STEP, DRAIN_STEP_MAX);
                Some((*until).min(io.now() + step))
            }
            Link::Idle | Link::Resolving | Link::Queued => None,
        };
        // While the link drains, its own deadline already includes this one.
        let closing = match state.link {
            Link::Draining { .. } => None,
            _ => state.closing.deadline(),
        };
        let patience = state.connecter.as_ref().and_then(Connecter::patience);
        let held_back = state.share.as_ref().and_then(Share::poll_timeout);
        let times = [
            link,
            closing,
            patience,
            state.backlog.poll_timeout(),
            held_back,
        ];
        if let Some(at) = times.into_iter().flatten().min() {
            io.set_timer(token, at);
        }
    }
}

/// Closes a stream that the reactor may watch.
pub(super) fn close(stream: Stream, io: &mut Reactor) {
    io.unwatch(stream.fd());
    stream.close();
}

/// When a draining connection stops waiting for a silent peer.
fn drain_until(now: Instant, deadline: Option<Instant>) -> Instant {
    let longest = now + DRAIN_MAX;
    deadline.map_or(longest, |at| at.min(longest))
}

/// The reason for which messages count as dropped that are left when the connection ends.
fn fate(pipe: Option<&Pipe>) -> DropReason {
    match pipe.is_some_and(Pipe::far_withdrew) {
        true => DropReason::TooSlow,
        false => DropReason::PeerGone,
    }
}
