//! Reads, decodes, encodes and writes: the work that a session's driver does for its connection.

use std::io::{self, IoSlice};
use std::sync::{Arc, Weak};
use std::time::Instant;

use bytes::Bytes;
use zeroxide_proto::engine::{Engine, Event, PeerInfo};
use zeroxide_proto::error::CloseReason;
use zeroxide_proto::frame::{Frame, FrameKind};

use super::life::LifeEvent;
use super::refusal::ends_message;
use super::sides::{Inlet, InletEvent, Outlet, OutletEvent, Phase, PhaseEvent};
use super::{Connection, Link, Session, State, pipe_pair};
use crate::budget::{Holder, Ruling, Share};
use crate::connecter::Connecter;
use crate::monitor::{EventKind, announced};
use crate::pace::{FLUSH_RUN, SLICES_MAX, WRITE_BUDGET, WRITE_MAX};
use crate::patterns::{DropReason, Side};
use crate::pipe::Pipe;
use crate::port::Origin;
use crate::sys::clock;

/// How a turn of input ended.
pub(super) enum Input {
    /// Nothing more to do until the descriptor or the pipe reports something.
    Idle,
    /// The budget is used up; there is more.
    More,
    /// The connection is over, for this reason.
    Closed(CloseReason),
}

/// How a turn of output ended.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Output {
    /// Nothing more to do until the pipe or the descriptor reports something.
    Idle,
    /// The budget is used up; there is more.
    More,
    /// The write side broke, but the rest of the read side has to be read.
    Broken,
}

impl Session {
    /// Reads and decodes until the descriptor is empty, the pipe is full, or the budget is used up.
    pub(super) fn input(&self, state: &mut State, now: Instant, budget: usize) -> Input {
        let mut budget = budget;
        if let Link::Up(up) = &mut state.link {
            self.take_answer(up, now);
        }
        let result = loop {
            match self.decode(state, now) {
                Decoded::Starved => {}
                Decoded::Stalled => break Input::Idle,
                Decoded::Closed(reason) => break Input::Closed(reason),
            }
            let Link::Up(up) = &mut state.link else {
                break Input::Idle;
            };
            if !up.engine.wants_input() && up.hung_up && up.phase == Phase::Handshake {
                // The peer sent more than it may before it is admitted, and left. Its remaining bytes will not be read.
                up.engine.handle_eof(now);
                continue;
            }
            if up.engine.is_partial()
                && let Some(share) = &state.share
                && share.has_to_go(|| open(&up.engine, state.pipe.as_ref()))
            {
                // The connection ends here, because there is no next look while the peer is silent.
                break Input::Closed(CloseReason::OutOfMemory);
            }
            if up.inlet != Inlet::Bytes || !up.engine.wants_input() {
                break Input::Idle;
            }
            if budget == 0 {
                break Input::More;
            }
            if let Some(share) = &mut state.share {
                match self.may_grow(share, &up.engine, state.pipe.as_ref(), now) {
                    Ruling::Go => {}
                    Ruling::Wait if up.has_left_within_message() => {
                        // It would only keep memory that others wait for.
                        up.engine.handle_eof(now);
                        continue;
                    }
                    Ruling::Wait => {
                        up.engine.hold_back();
                        break Input::Idle;
                    }
                    Ruling::End => break Input::Closed(CloseReason::OutOfMemory),
                }
            }
            up.writing.note_look(now);
            let Ok(buffer) = up.engine.try_input() else {
                break Input::Closed(CloseReason::OutOfMemory);
            };
            let room = buffer.capacity() - buffer.len();
            match up.stream.recv(buffer) {
                Ok(0) => {
                    up.inlet = up.inlet.next(InletEvent::Finish);
                    up.engine.handle_eof(now);
                }
                Ok(n) => {
                    // The read did not fill the buffer, so the kernel has no more bytes and will report the next ones
                    // with an event. A layer may still have bytes.
                    let may_have_more = n >= room
                        || up.hung_up
                        || up.outlet == Outlet::Broken
                        || up.stream.has_more();
                    if !may_have_more {
                        up.inlet = up.inlet.next(InletEvent::Drain);
                    }
                    budget = budget.saturating_sub(n);
                    up.engine.handle_input(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if up.stream.take_sign_of_life() {
                        up.engine.handle_sign_of_life(now);
                    }
                    if up.outlet == Outlet::Broken {
                        // There is no point in reading from a peer that cannot be answered.
                        up.cut(now);
                    } else if up.stream.has_more() {
                        // The peer sends much that is only for a layer.
                        break Input::More;
                    } else {
                        up.inlet = up.inlet.next(InletEvent::Drain);
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                // A reset means the same as the end of the stream: everything received before it counts.
                Err(_) => up.cut(now),
            }
        };
        if let (Some(share), Link::Up(up)) = (&mut state.share, &state.link)
            && share.is_unsettled(|| open(&up.engine, state.pipe.as_ref()))
        {
            let open = open(&up.engine, state.pipe.as_ref());
            share.settle(open, up.engine.is_partial(), now);
        }
        if let Some(pipe) = &mut state.pipe {
            pipe.flush();
            if let (Input::Idle, Link::Up(up)) = (&result, &state.link)
                && up.is_over(self.options.is_raw())
            {
                // The peer is gone, but its messages wait for room.
                let connects = |connecter: &Connecter| !connecter.has_stopped();
                let returns =
                    state.connecter.as_ref().is_some_and(connects) && self.options.keeps_pipes();
                pipe.announce_hang_up(returns);
            }
        }
        result
    }

    /// Whether the connection may hold more than it does.
    #[inline]
    fn may_grow(
        &self,
        share: &mut Share,
        engine: &Engine,
        pipe: Option<&Pipe>,
        now: Instant,
    ) -> Ruling {
        let gross = engine.held() as u64 + pipe.map_or(0, Pipe::weight_written);
        if !share.is_due(gross) {
            return Ruling::Go;
        }
        let holder = || -> Weak<dyn Holder> { self.me.clone() };
        share.look(gross, open(engine, pipe), engine.is_partial(), now, holder)
    }

    /// Moves the frames that the engine can decode into the pipe.
    fn decode(&self, state: &mut State, now: Instant) -> Decoded {
        // Small frames are decoded into this variable and written to the pipe from it.
        let mut frame = Frame::new();
        loop {
            let Link::Up(up) = &mut state.link else {
                return Decoded::Stalled;
            };
            if self.is_revoked() {
                return Decoded::Stalled;
            }
            if up.phase != Phase::Handshake
                && let Some(pipe) = &mut state.pipe
                && !pipe.in_message()
                && !pipe.is_far_closed()
                && !pipe.check_write()
            {
                return Decoded::Stalled;
            }
            if !up.engine.poll_small(&mut frame) {
                match up.engine.poll_any_event() {
                    None => return Decoded::Starved,
                    Some(Event::Closed(reason)) => return Decoded::Closed(reason),
                    Some(Event::Frame(next)) => frame = next,
                    Some(Event::Authenticate(credentials)) => {
                        self.inquire(up, credentials, now);
                        continue;
                    }
                    Some(Event::Ready(peer)) => {
                        self.handshake_done(state, peer);
                        continue;
                    }
                }
            }
            // The socket will not read this frame if it has closed its end, or has left the endpoint during the handshake.
            let is_refused = match &state.pipe {
                Some(pipe) => pipe.is_far_closed(),
                None => up.phase != Phase::Handshake,
            };
            if is_refused {
                // The first parts of the message may be in the pipe, and do not count once more when it ends.
                if let Some(pipe) = &mut state.pipe {
                    pipe.rollback();
                }
                if ends_message(&frame) {
                    self.port.count_drop(DropReason::Refused, 1);
                }
                continue;
            }
            if let Some(pipe) = &mut state.pipe {
                up.phase = up.phase.next(PhaseEvent::Hear);
                if !frame.more() {
                    up.writing.note_message();
                }
                pipe.write_frame_taken(&mut frame);
                // Frames are published in runs, so that a long read wakes the socket while it continues.
                if pipe.unflushed() >= FLUSH_RUN {
                    if !pipe.in_message() {
                        pipe.flush();
                    }
                    if let Some(share) = &mut state.share {
                        match self.may_grow(share, &up.engine, state.pipe.as_ref(), now) {
                            Ruling::Go => {}
                            Ruling::Wait => return Decoded::Stalled,
                            Ruling::End => return Decoded::Closed(CloseReason::OutOfMemory),
                        }
                    }
                }
            }
        }
    }

    fn handshake_done(&self, state: &mut State, peer: Arc<PeerInfo>) {
        let Link::Up(up) = &mut state.link else {
            return;
        };
        let address = up.stream.peer_address();
        up.phase = up.phase.next(PhaseEvent::Succeed);
        self.life.change(LifeEvent::Join);
        let security = &self.options.security;
        let authenticated = up.is_authenticated(security);
        let warning = up.warning(security.mechanism, &address);
        // Afterwards `info` is the only reference, so it need not be copied.
        drop(up.engine.take_peer());
        let mut info = peer;
        let descriptor = up.stream.id();
        vouch(
            Arc::make_mut(&mut info),
            &address,
            descriptor,
            authenticated,
        );
        if let Some(share) = &mut state.share {
            share.keep(announced(&info) as u64 + up.stream.layers_size());
        }
        self.party().peer = Some(info.clone());
        match warning {
            Some(warning) => self.emit_because(EventKind::HandshakeSucceeded, 0, warning),
            None => self.emit(EventKind::HandshakeSucceeded, 0),
        }
        self.port.note_setback(self.source, None);
        for greeting in self.options.greetings() {
            up.greet(greeting);
        }
        if let Some(connecter) = &mut state.connecter {
            connecter.succeeded();
        }
        if let Some(pipe) = state.pipe.take_if(|pipe| self.is_another(pipe, &info)) {
            let ends = state.closing.has_begun() || (pipe.is_far_closed() && !pipe.far_gave_up());
            self.count_refused(&pipe);
            if pipe.end_reading() || ends {
                // The remaining messages of the closed socket are not for this peer.
                let mut left = self.undelivered_peer(pipe.queued_in(), pipe.queued_bytes_in());
                (left.address, left.routing_id) = Default::default();
                self.port.give_up(DropReason::PeerGone, left);
            }
            if ends {
                // No other peer will follow.
                state.closing = state.closing.next(Some(clock::now()));
                return;
            }
        }
        if let Some(pipe) = &state.pipe {
            // The socket repeats the subscriptions that it still has.
            up.stale = pipe.read_so_far().0 + pipe.queued_in();
            pipe.announce_ready(info);
        } else if !state.closing.has_begun() {
            let (socket_end, session_end) = pipe_pair(&self.options, &self.peer_name);
            session_end.set_far_peer(info);
            self.adopt(state, session_end);
            let side = if state.connecter.is_some() {
                Side::Connecting
            } else {
                socket_end.expect_last_words(self.options.on_left());
                Side::Accepting
            };
            let origin = Origin {
                source: self.source,
                local: false,
                side,
            };
            self.port.attach(socket_end, &self.endpoint, origin);
        }
    }

    /// Whether the peer is certainly different from the one that the pipe was for. If so, the messages received from
    /// the earlier peer must not be attributed to the new one, and messages that wait for the earlier peer must not be
    /// sent to the new one. Names that peers give themselves count if messages are addressed by them, unless the
    /// application has set the name.
    fn is_another(&self, pipe: &Pipe, now: &PeerInfo) -> bool {
        let Some(before) = pipe.far_peer() else {
            return false;
        };
        let renamed = |before: &Bytes, now: &Bytes| {
            self.options.pattern.addresses_names
                && self.peer_name.is_none()
                && !before.is_empty()
                && !now.is_empty()
                && before != now
        };
        before.user() != now.user()
            || is_known_for_sure(&before) != is_known_for_sure(now)
            || renamed(&before.routing_id, &now.routing_id)
    }

    /// Encodes and writes until nothing is left, the descriptor is full, or the budget is used up.
    pub(super) fn output(&self, state: &mut State, now: Instant) -> Output {
        let State {
            link: Link::Up(up),
            pipe,
            token,
            closing,
            ..
        } = state
        else {
            return Output::Idle;
        };
        if up.is_over(self.options.is_raw()) {
            return Output::Idle;
        }
        let mut budget = WRITE_BUDGET;
        let mut moved = false;
        let mut result = loop {
            if let Some(pipe) = pipe {
                fill(&mut up.engine, pipe, &mut up.given, up.stale);
            }
            // This check comes after the pipe was read, so that nothing leaves that was written after the peer was
            // revoked.
            let has_more = up.engine.has_transmit() || up.stream.has_unsent();
            if !has_more || up.outlet != Outlet::Room || self.is_revoked() {
                break Output::Idle;
            }
            if budget == 0 {
                break Output::More;
            }
            let is_last = closing.has_begun()
                && up.engine.is_ready()
                && pipe.as_mut().is_none_or(Pipe::is_finished);
            let mut slices: Vec<IoSlice<'_>> = Vec::with_capacity(SLICES_MAX);
            up.engine.poll_transmit(&mut slices, WRITE_MAX);
            let sent = up.stream.send(&slices, is_last);
            drop(slices);
            match sent {
                Ok(n) => {
                    up.engine.transmitted(n, now);
                    let others = up.engine.others_transmitted();
                    up.tail.note(n, others, up.engine.messages_transmitted());
                    budget = budget.saturating_sub(n);
                    moved = true;
                    up.writing.note_write(now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    up.outlet = up.outlet.next(OutletEvent::Fill);
                    self.note_no_room(up, *token);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => {
                    // The bytes that the peer sent before it left can still be read. The connection ends when they have
                    // been read.
                    up.outlet = up.outlet.next(OutletEvent::Break);
                    up.inlet = up.inlet.next(InletEvent::Arrive);
                    break Output::Broken;
                }
            }
        };
        if !up.engine.is_ready()
            && let Some(reason) = up.engine.send_failure()
        {
            up.ended = Some(reason.clone());
            result = Output::Broken;
        }
        let transmitted = up.engine.messages_transmitted();
        if transmitted > up.accounted {
            if let Some(pipe) = pipe {
                pipe.account(transmitted - up.accounted);
            }
            up.accounted = transmitted;
        }
        if moved && state.closing.has_begun() {
            self.registry.note_progress();
        }
        result
    }
}

impl Connection {
    /// Stops reading. The bytes that were read before still count.
    pub(super) fn cut(&mut self, now: Instant) {
        self.inlet = self.inlet.next(InletEvent::Cut);
        self.engine.handle_eof(now);
    }
}

/// Number of bytes that the connection holds for incomplete messages, including spare room.
#[inline]
fn open(engine: &Engine, pipe: Option<&Pipe>) -> u64 {
    engine.held() as u64 + pipe.map_or(0, Pipe::weight_begun)
}

/// Adds what we know about a peer to its properties. Properties of the same name that the peer sent are replaced.
fn vouch(info: &mut PeerInfo, address: &str, descriptor: u64, authenticated: bool) {
    let fixed = |value: &'static str| Bytes::from_static(value.as_bytes());
    let known = [
        ("Peer-Address", Bytes::copy_from_slice(address.as_bytes())),
        ("Mechanism", fixed(info.mechanism)),
        (
            "Authenticated",
            fixed(if authenticated { "yes" } else { "no" }),
        ),
        ("__fd", Bytes::from(descriptor.to_string())),
    ];
    info.properties.retain(|(said, _)| {
        let ours = |(name, _): &(&str, Bytes)| name.eq_ignore_ascii_case(said);
        !known.iter().any(ours)
    });
    info.properties.reserve_exact(known.len());
    let own = known.map(|(name, value)| (name.to_owned(), value));
    info.properties.extend(own);
}

/// Whether [`vouch`] has recorded that the peer is authenticated.
fn is_known_for_sure(info: &PeerInfo) -> bool {
    let mut properties = info.properties.iter();
    properties.any(|(name, value)| name == "Authenticated" && value == "yes")
}

/// How decoding ended.
enum Decoded {
    /// The engine needs more bytes.
    Starved,
    /// The pipe is full, so the peer has to wait.
    Stalled,
    Closed(CloseReason),
}

/// Moves messages from the pipe to the engine while the engine accepts them. The engine does not count subscriptions of
/// SUB and XSUB as messages. For the socket, they have been sent when the engine has them. Those among the `stale` first
/// messages of the pipe are left out.
fn fill(engine: &mut Engine, pipe: &mut Pipe, given: &mut u64, stale: u64) {
    let mut uncounted = 0;
    let mut more = false;
    while more || engine.can_send() {
        // A small body is copied from its place in the queue straight into the batch.
        if let Some(frame) = pipe.peek_frame()
            && engine.send_copy(frame)
        {
            let len = frame.len();
            more = frame.more();
            *given += u64::from(!more);
            pipe.skip_frame(len, more);
            continue;
        }
        let Some(frame) = pipe.read_frame() else {
            if pipe.check_read() {
                continue;
            }
            break;
        };
        more = frame.more();
        let kind = frame.kind();
        let run = frame.load();
        let is_call = !matches!(kind, FrameKind::Data | FrameKind::Run);
        if !is_call || pipe.read_so_far().0 > stale {
            engine.send(frame);
        }
        match kind {
            FrameKind::Run => *given += u64::from(run.messages),
            FrameKind::Data => *given += u64::from(!more),
            _ => uncounted += u64::from(!more),
        }
    }
    if uncounted > 0 {
        pipe.account(uncounted);
    }
}
