//! Making a session's connection: the addresses of a round one after the other, a proxy if there is one, and the next
//! round.

use std::io::{ErrorKind, IoSlice};
use std::time::{Duration, Instant};

use zeroxide_proto::engine::Engine;

use super::{Connection, Link, Session, State, engine_config, pulse};
use crate::connecter::Setback;
use crate::error::{self, Error, Result};
use crate::monitor::{EventKind, Party};
use crate::reactor::{Reactor, Token};
use crate::transports::{Opening, Socks, Stream, Target, Targets, Transport};

/// How often it looks whether the socket has received what earlier connections left.
const BACKLOG_STEP: Duration = Duration::from_millis(100);

/// How long an attempt that the peer has not answered keeps others waiting who connect to the same address.
const PATIENCE: Duration = Duration::from_millis(100);

/// How much of a conversation with a proxy is received at a time.
const HEARD_MAX: usize = 512;
const PROXY_GONE: &str = "the proxy ended the connection";

impl Session {
    pub(super) fn start_round(&self, state: &mut State, io: &mut Reactor) {
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
                self.emit_because(EventKind::Closed, error.errno() as u64, &error);
                self.wait_for_next_round(state, io);
            }
        }
    }

    /// Tries the addresses of this round one after the other until one connects, hangs on, or has to wait for its turn.
    pub(super) fn try_next(&self, state: &mut State, io: &mut Reactor) {
        loop {
            let (Some(connecter), Some(token)) = (&mut state.connecter, state.token) else {
                return;
            };
            let Some(target) = connecter.next_target() else {
                return self.wait_for_next_round(state, io);
            };
            let turn = match connecter.turn.take() {
                Some(turn) => turn,
                None => io.ask_for_turn(target.address(), token),
            };
            let come = io.has_come(&turn);
            connecter.turn = Some(turn);
            if !come {
                connecter.put_back(target);
                state.link = Link::Queued;
                return;
            }
            connecter.patience = io.now().checked_add(PATIENCE);
            match self.open(connecter.transport, &target, token, state, io) {
                Ok(()) => return,
                Err(error) => self.attempt_failed(state, io, &error),
            }
        }
    }

    /// Lets the next one connect to the address.
    pub(super) fn give_turn_back(&self, state: &mut State, io: &mut Reactor) {
        if let Some(connecter) = &mut state.connecter
            && let Some(turn) = connecter.turn.take()
        {
            connecter.patience = None;
            io.give_turn_back(turn);
        }
    }

    fn open(
        &self,
        transport: &dyn Transport,
        target: &Target,
        token: Token,
        state: &mut State,
        io: &mut Reactor,
    ) -> Result<()> {
        let Opening {
            mut stream,
            mut connected,
            proxy,
        } = transport.open(target, &self.options)?;
        io.watch(token, stream.fd())?;
        let deadline = in_future(io, self.options.connect_timeout);
        if !connected {
            self.emit(EventKind::ConnectDelayed, libc::EINPROGRESS as u64);
            // Within one machine the kernels have done with it by now.
            match stream.is_connected() {
                Ok(by_now) => connected = by_now,
                Err(error) => {
                    io.unwatch(stream.fd());
                    return Err(error.into());
                }
            }
        }
        if connected {
            self.connected(state, io, stream, proxy, deadline);
        } else {
            state.link = Link::Connecting {
                stream,
                proxy,
                deadline,
            };
        }
        Ok(())
    }

    /// The connecting stream became writable: either it is up, which is true, or it failed.
    pub(super) fn connect_finished(&self, state: &mut State, io: &mut Reactor) -> bool {
        let Link::Connecting {
            mut stream,
            proxy,
            deadline,
        } = std::mem::replace(&mut state.link, Link::Idle)
        else {
            return false;
        };
        let result = stream.take_error();
        let succeeded = result.is_ok();
        match result {
            Ok(()) => self.connected(state, io, stream, proxy, deadline),
            Err(error) => self.connect_failed(state, io, stream, &error.into()),
        }
        succeeded
    }

    fn connect_failed(&self, state: &mut State, io: &mut Reactor, stream: Stream, error: &Error) {
        self.attempt_failed(state, io, error);
        io.unwatch(stream.fd());
        drop(stream);
        self.try_next(state, io);
    }

    fn attempt_failed(&self, state: &mut State, io: &mut Reactor, error: &Error) {
        self.give_turn_back(state, io);
        self.emit_because(EventKind::Closed, error.errno() as u64, error);
        if let Some(connecter) = &mut state.connecter
            && error.kind() == error::ErrorKind::ConnectionRefused
        {
            connecter.suffer(Setback::Refused);
        }
    }

    /// The connection is made, to the peer or to a proxy.
    fn connected(
        &self,
        state: &mut State,
        io: &mut Reactor,
        stream: Stream,
        proxy: Option<Box<Socks>>,
        deadline: Option<Instant>,
    ) {
        let Some(proxy) = proxy else {
            return self.up(state, io, stream, None);
        };
        // The conversation is a part of the attempt, and a handshake as well.
        let limit = in_future(io, self.options.handshake_ivl);
        let deadline = match (deadline, limit) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
        state.link = Link::Asking {
            stream,
            proxy,
            deadline,
        };
        self.ask_proxy(state, io);
    }

    /// Goes on with the conversation with the proxy as far as it can now.
    pub(super) fn ask_proxy(&self, state: &mut State, io: &mut Reactor) {
        let Link::Asking { stream, proxy, .. } = &mut state.link else {
            return;
        };
        let answer = converse(stream, proxy);
        if matches!(answer, Ok(None)) {
            return;
        }
        let Link::Asking { stream, .. } = std::mem::replace(&mut state.link, Link::Idle) else {
            return;
        };
        match answer {
            Ok(heard) => self.up(state, io, stream, heard),
            Err(error) => self.connect_failed(state, io, stream, &error),
        }
    }

    /// The peer can be talked to. Behind a proxy's answer it has been `heard` saying this, and may have said more.
    fn up(&self, state: &mut State, io: &mut Reactor, stream: Stream, heard: Option<Vec<u8>>) {
        self.party().address = stream.peer_name();
        self.emit(EventKind::Connected, stream.id());
        let mut config = engine_config(&self.options, self.socket_type);
        pulse::configure(&mut config, &self.options, &stream, false);
        let mut engine = Engine::new(config, io.now());
        if let Some(heard) = heard.as_ref().filter(|heard| !heard.is_empty()) {
            engine.input().extend_from_slice(heard);
            engine.handle_input(io.now());
        }
        let mut up = Connection::new(engine, stream, io.now());
        // Otherwise an event tells of its first words.
        up.readable = heard.is_some();
        state.link = Link::Up(Box::new(up));
        self.traffic(state, io);
    }

    pub(super) fn wait_for_next_round(&self, state: &mut State, io: &mut Reactor) {
        *self.party() = Party::default();
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
}

fn in_future(io: &Reactor, limit: Option<Duration>) -> Option<Instant> {
    limit.and_then(|limit| io.now().checked_add(limit))
}

/// Says and hears what can be said and heard now. What the peer said behind the proxy's last word, once that has come.
fn converse(stream: &Stream, proxy: &mut Socks) -> Result<Option<Vec<u8>>> {
    let mut buffer = Vec::with_capacity(HEARD_MAX);
    loop {
        while let Some(bytes) = Some(proxy.poll_transmit()).filter(|bytes| !bytes.is_empty()) {
            match stream.send(&[IoSlice::new(bytes)]) {
                Ok(count) => proxy.transmitted(count),
                Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                Err(error) => return Err(Error::from(error).about(PROXY_GONE)),
            }
        }
        buffer.clear();
        match stream.recv(&mut buffer) {
            Ok(0) => return Err(Error::with(error::ErrorKind::ConnectionRefused, PROXY_GONE)),
            Ok(_) => {
                if let Some(behind) = proxy.handle_input(&buffer)? {
                    return Ok(Some(behind.to_vec()));
                }
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(None),
            Err(error) => return Err(Error::from(error).about(PROXY_GONE)),
        }
    }
}
