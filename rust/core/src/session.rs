//! A session: the connection of one endpoint or of one accepted peer, joined to the socket by a pipe.
//!
//! The engine and the stream are one object behind one lock, and the thread that holds the lock drives it. The I/O
//! thread is the default driver. A thread that sends on an idle connection writes to the wire itself
//! ([`Session::send_inline`]), which saves two hand-offs between threads. If messages arrive faster than that, or if
//! writing them takes too much of the thread's time, the I/O thread takes over and batches. A thread that waits for
//! messages reads them off the wire itself ([`line`]). [`pace`](crate::pace) decides both.
//!
//! On the connecting side, the session outlives its connections. Its pipe does too, unless the session knows that a
//! different peer has answered. On the accepting side, both end with the connection.
//!
//! The states of a session, of its link and of its connection are in [`life`], [`stage`], [`sides`] and [`driver`].

mod admission;
mod backlog;
mod connect;
mod driver;
mod inline;
mod life;
mod line;
mod link;
mod pulse;
mod refusal;
mod sides;
mod stage;
mod tail;
mod traffic;

use std::fmt::Display;
use std::time::{Duration, Instant};

use bytes::Bytes;
use zeroxide_proto::engine::Engine;
use zeroxide_proto::error::CloseReason;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_queue::loan::Lending;

use self::admission::{Admission, HANDLER};
use self::backlog::Backlog;
use self::driver::Driver;
use self::life::{Closing, Life, LifeCell};
use self::pulse::Pulse;
use self::sides::{Inlet, InletEvent, Outlet, OutletEvent, Phase};
use self::stage::{Stage, Step};
use self::tail::Tail;
use crate::budget::{Holder, Share};
use crate::connecter::{Connecter, Setback};
use crate::error::Result;
use crate::io_thread::IoHandle;
use crate::monitor::{EventKind, MonitorEvent, Party};
use crate::options::Options;
use crate::pace::Writing;
use crate::pipe::{Limit, Line, Pipe, PipeConfig, PipeEvent, PipeId, PipeOwner};
use crate::port::{Delivery, SocketPort};
use crate::reactor::{End, EventHandler, Reactor, Token};
use crate::registry::{Deliverer, LiveGuard, Registry, SocketKey};
use crate::sys::selector::Readiness;
use crate::sys::sync::atomic::{AtomicBool, Ordering};
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use crate::sys::{chance, clock};
use crate::transports::{ByteTransport, Stream, Target};
use crate::undelivered::UndeliveredPeer;

/// See the module text.
pub(crate) struct Session {
    me: Weak<Session>,
    io: IoHandle,
    registry: Arc<Registry>,
    port: Arc<dyn SocketPort>,
    options: Arc<Options>,
    socket_type: SocketType,
    endpoint: String,
    source: u64,
    /// The application's name for the peer, whichever peer answers (CONNECT_ROUTING_ID).
    peer_name: Option<Bytes>,
    wake_posted: AtomicBool,
    life: LifeCell,
    /// The peer was admitted, but its admission has been revoked.
    revoked: AtomicBool,
    /// Records which thread has the connection while the I/O thread does not drive it.
    lending: Lending,
    /// The peer, as monitor events report it.
    party: Mutex<Party>,
    state: Mutex<State>,
}

struct State {
    token: Option<Token>,
    pipe: Option<Pipe>,
    link: Link,
    /// The state of the link. It stays valid while the stream is moved out of `link`.
    stage: Stage,
    /// Some on the connecting side only.
    connecter: Option<Connecter>,
    /// The resolver's answer, until the I/O thread takes it.
    resolved: Option<Result<Vec<Target>>>,
    closing: Closing,
    /// Messages left to deliver, as the socket knows.
    lingering: u64,
    backlog: Backlog,
    /// The connection's share of the context's memory budget.
    share: Option<Share>,
    /// Counts the session as alive for the context until the session ends.
    guard: Option<LiveGuard>,
    /// Makes the socket's report wait for the end of the session.
    delivery: Option<Delivery>,
}

enum Link {
    Idle,
    Resolving,
    Waiting {
        until: Instant,
    },
    Queued,
    Connecting {
        stream: Stream,
        deadline: Option<Instant>,
    },
    Layering {
        stream: Stream,
        since: Instant,
        deadline: Option<Instant>,
    },
    Up(Box<Connection>),
    Draining {
        up: Box<Connection>,
        since: Instant,
        until: Instant,
        /// The smallest number of bytes so far that the peer's kernel did not have; 0 once they are counted as lost.
        unsent: usize,
        /// How many bytes the layers held for the kernel when the write side was shut down.
        held: usize,
        /// Until when a connection whose time is up waits for acknowledgements that are in transit.
        look: Option<Instant>,
    },
}

struct Connection {
    engine: Engine,
    stream: Stream,
    phase: Phase,
    inlet: Inlet,
    outlet: Outlet,
    /// The peer has finished or the connection broke. Only a read that returns nothing shows that everything was read.
    hung_up: bool,
    admission: Admission,
    writing: Writing,
    driver: Driver,
    /// Why the connection is over, if a thread of the application that drove it has found out.
    ended: Option<CloseReason>,
    /// Number of messages given to the engine, and how many of them had been transmitted when they were last accounted
    /// for.
    given: u64,
    accounted: u64,
    /// How many of those given are not the application's: the first ones, for PROBE_ROUTER and HELLO_MSG.
    greeted: u64,
    /// Subscriptions among this many first messages of the pipe are from an earlier connection.
    stale: u64,
    tail: Tail,
    pulse: Pulse,
}

impl Session {
    /// Creates a session for an accepted stream. It attaches a pipe to the socket when the handshake has succeeded.
    pub(crate) fn accepted(seed: Seed, stream: Stream) -> Arc<Session> {
        Session::build(seed, None, None, Some(stream))
    }

    /// Creates a session that connects to `address` until it is closed. Returns the socket's end of its pipe, or `None`
    /// if IMMEDIATE asks for a pipe per connection.
    pub(crate) fn connecting(
        seed: Seed,
        transport: &'static dyn ByteTransport,
        address: &str,
    ) -> (Arc<Session>, Option<Pipe>) {
        let connecter = Connecter::new(transport, address, &seed.options, chance::number());
        let (near, far) = if seed.options.immediate {
            (None, None)
        } else {
            let (socket_end, session_end) = pipe_pair(&seed.options, &seed.peer_name);
            (Some(session_end), Some(socket_end))
        };
        (Session::build(seed, Some(connecter), near, None), far)
    }

    fn build(
        seed: Seed,
        connecter: Option<Connecter>,
        pipe: Option<Pipe>,
        stream: Option<Stream>,
    ) -> Arc<Session> {
        let now = clock::now();
        let party = Party {
            address: stream.as_ref().map(Stream::peer_name).unwrap_or_default(),
            peer: None,
        };
        let link = match stream {
            Some(stream) if stream.is_opening() => Link::Layering {
                stream,
                since: now,
                deadline: seed
                    .options
                    .handshake_ivl
                    .and_then(|limit| now.checked_add(limit)),
            },
            Some(stream) => {
                let config = connect::config(&seed.options, seed.socket_type, &stream, true);
                let engine = Engine::new(config, now);
                Link::Up(Box::new(Connection::new(engine, stream, now)))
            }
            None => Link::Idle,
        };
        let session = Arc::new_cyclic(|me: &Weak<Session>| Session {
            me: me.clone(),
            io: seed.io,
            registry: seed.registry,
            port: seed.port,
            options: seed.options,
            socket_type: seed.socket_type,
            endpoint: seed.endpoint,
            source: seed.source,
            peer_name: seed.peer_name,
            wake_posted: AtomicBool::new(false),
            life: LifeCell::new(),
            revoked: AtomicBool::new(false),
            lending: Lending::new(),
            party: Mutex::new(party),
            state: Mutex::new(State {
                token: None,
                pipe: None,
                stage: link.stage(),
                link,
                connecter,
                resolved: None,
                closing: Closing::No,
                lingering: 0,
                backlog: Backlog::default(),
                share: None,
                guard: Some(seed.guard),
                delivery: None,
            }),
        });
        let mut state = session.lock();
        state.delivery = Some(Delivery::begin(&session.port));
        let mut share = session.registry.budget.join();
        if let Link::Layering { stream, .. } = &state.link {
            share.keep(stream.layers_size());
        }
        state.share = Some(share);
        if let Some(pipe) = pipe {
            session.adopt(&mut state, pipe);
        }
        if let Some(guard) = &mut state.guard {
            let deliverer: Weak<Session> = session.me.clone();
            guard.report(SocketKey::of(&session.port), deliverer);
        }
        drop(state);
        session
    }

    /// Hands the session to its I/O thread.
    pub(crate) fn start(self: &Arc<Self>) {
        self.io.start(self.clone());
    }

    /// Ends the session when everything it still holds is delivered, or when `linger` has passed (`None`: no limit).
    pub(crate) fn close(&self, linger: Option<Duration>) {
        let mut state = self.lock();
        let deadline = linger.and_then(|linger| clock::now().checked_add(linger));
        state.closing = state.closing.next(deadline);
        drop(state);
        self.wake();
    }

    /// The application has disconnected, and [`close`](Self::close) was called.
    pub(crate) fn disconnect(&self) {
        if let Some(connecter) = &mut self.lock().connecter {
            connecter.suffer(Setback::Disconnect);
        }
        self.wake();
    }

    /// Ends the session unless the socket has one of its pipes.
    pub(crate) fn abandon(&self) {
        {
            let mut state = self.lock();
            if state.pipe.is_some() || state.closing.has_begun() {
                return;
            }
            state.closing = state.closing.next(Some(clock::now()));
        }
        self.wake();
    }

    /// Whether the session has not completed its first handshake yet.
    pub(crate) fn is_joining(&self) -> bool {
        self.life.get() == Life::Joining
    }

    /// Whether the session's first handshake has succeeded.
    pub(crate) fn has_joined(&self) -> bool {
        self.life.get().has_joined()
    }

    /// Whether the session has ended.
    pub(crate) fn has_ended(&self) -> bool {
        self.life.is_over()
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // After a panic under this lock, `on_end` ends the session, and the remaining state is only dropped.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Describes what the peer did not get.
    fn undelivered_peer(&self, messages: u64, bytes: u64) -> UndeliveredPeer {
        let party = self.party();
        UndeliveredPeer {
            endpoint: self.endpoint.clone(),
            address: party.address.clone(),
            routing_id: party
                .peer
                .as_ref()
                .map(|peer| peer.routing_id.clone())
                .unwrap_or_default(),
            messages,
            bytes,
        }
    }

    fn adopt(&self, state: &mut State, pipe: Pipe) {
        if let Some(me) = self.me.upgrade() {
            pipe.take_runs();
            pipe.set_owner(me, PipeId(0));
        }
        if let Some(share) = &mut state.share {
            share.follow(&pipe);
        }
        state.pipe = Some(pipe);
    }

    fn wake(&self) {
        if !self.wake_posted.swap(true, Ordering::AcqRel)
            && let Some(me) = self.me.upgrade()
        {
            self.io.wake(me);
        }
    }

    fn emit(&self, kind: EventKind, value: u64) {
        if self.port.wants(kind) {
            self.tell(MonitorEvent::new(kind, value, &self.endpoint));
        }
    }

    fn emit_because(&self, kind: EventKind, value: u64, reason: impl ToString) {
        if self.port.wants(kind) {
            self.tell(MonitorEvent::new(kind, value, &self.endpoint).because(reason));
        }
    }

    /// Reports that an attempt to connect failed: to monitors, and in the texts of the socket's errors.
    fn tell_failure(&self, kind: EventKind, value: u64, reason: impl Display) {
        self.note_setback("attempt failed", &reason);
        self.emit_because(kind, value, reason);
    }

    /// Records why an attempt failed or a connection ended, for the texts of the socket's errors.
    fn note_setback(&self, what: &str, reason: impl Display) {
        let why = format!("the last {what}: {reason}");
        self.port.note_setback(self.source, Some(why));
    }

    fn tell(&self, event: MonitorEvent) {
        let event = event.about(&self.party());
        self.port.emit(event);
    }

    fn party(&self) -> MutexGuard<'_, Party> {
        self.party.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The parts from which a session is built.
pub(crate) struct Seed {
    pub(crate) io: IoHandle,
    pub(crate) guard: LiveGuard,
    pub(crate) registry: Arc<Registry>,
    pub(crate) port: Arc<dyn SocketPort>,
    pub(crate) options: Arc<Options>,
    pub(crate) socket_type: SocketType,
    pub(crate) endpoint: String,
    /// The socket's number for the bind or connect call that this session belongs to.
    pub(crate) source: u64,
    /// The application's name for the peer, if it has set one.
    pub(crate) peer_name: Option<Bytes>,
}

/// Creates a pipe and returns the socket's end first.
fn pipe_pair(options: &Options, peer_name: &Option<Bytes>) -> (Pipe, Pipe) {
    let (conflate_out, conflate_in) = options.conflation();
    let (mut socket_end, session_end) = Pipe::pair(
        PipeConfig {
            limit_out: Some(Limit::outbound(options)),
            limit_in: Some(Limit::inbound(options)),
            conflate: conflate_out,
        },
        PipeConfig {
            conflate: conflate_in,
            ..PipeConfig::default()
        },
    );
    socket_end.set_peer_name(peer_name.clone());
    (socket_end, session_end)
}

impl Link {
    fn stage(&self) -> Stage {
        match self {
            Link::Idle => Stage::Idle,
            Link::Resolving => Stage::Resolving,
            Link::Waiting { .. } => Stage::Waiting,
            Link::Queued => Stage::Queued,
            Link::Connecting { .. } => Stage::Connecting,
            Link::Layering { .. } => Stage::Layering,
            Link::Up(_) => Stage::Up,
            Link::Draining { .. } => Stage::Draining,
        }
    }
}

impl State {
    /// Changes the link. In tests, this panics if the table of [`Stage`] has a different next state.
    fn enter(&mut self, step: Step, link: Link) {
        let next = self.stage.next(step);
        if cfg!(test) {
            assert_eq!(next, link.stage(), "{:?}, {step:?}", self.stage);
        }
        self.stage = next;
        self.link = link;
    }

    /// Number of messages, complete or begun, that have not been transmitted, and of their bytes. While it closes, those that
    /// the peer's kernel has not acknowledged count, too: they may still arrive, or be lost with the connection.
    fn undelivered(&self) -> (u64, u64) {
        let (begun, begun_bytes) = match &self.link {
            Link::Up(up) => {
                let kept = match self.closing.has_begun() {
                    true => up.stream.unsent(),
                    false => up.stream.held(),
                };
                let (below, bytes) = up.unheard(kept as u64);
                let above = up.engine.messages_backlog() as u64;
                (up.stranded() + below, above + bytes)
            }
            Link::Draining {
                up, unsent, held, ..
            } => {
                let (below, bytes) = match *unsent {
                    0 => (0, 0),
                    _ => up.unheard_at_end(*held),
                };
                let (kept, kept_bytes) = up.unheard(*held as u64);
                let above = up.engine.messages_backlog() as u64 + kept_bytes;
                (up.stranded() + kept + below, above + bytes)
            }
            _ => (0, 0),
        };
        let (queued, queued_bytes) = self
            .pipe
            .as_ref()
            .map_or((0, 0), |pipe| (pipe.queued_in(), pipe.queued_bytes_in()));
        (begun + queued, begun_bytes + queued_bytes)
    }
}

impl Connection {
    /// Number of messages of the application that the engine was given and has not transmitted.
    fn stranded(&self) -> u64 {
        let transmitted = self.engine.messages_transmitted();
        self.given - transmitted.max(self.greeted)
    }

    /// How many messages of the application have left the engine, and are among the last `unsent` bytes that did, and how
    /// many of these bytes are theirs.
    fn unheard(&self, unsent: u64) -> (u64, u64) {
        let (messages, bytes) = self.tail.within(unsent);
        (messages.min(self.sent()), bytes)
    }

    /// How many of the messages the peer's kernel has not acknowledged, with their bytes, after the write side was shut
    /// down while the layers held some bytes.
    fn unheard_at_end(&self, held: usize) -> (u64, u64) {
        // The end of the stream counts as a byte. What layers have taken since then is a farewell.
        let bytes = self.stream.unacknowledged().saturating_sub(1) as u64;
        let (all, held) = (self.unheard(held as u64 + bytes), self.unheard(held as u64));
        (all.0 - held.0, all.1 - held.1)
    }

    /// Number of messages of the application that have left the engine.
    fn sent(&self) -> u64 {
        let transmitted = self.engine.messages_transmitted();
        transmitted.saturating_sub(self.greeted)
    }

    /// Sends a message before those of the application.
    fn greet(&mut self, greeting: Message) {
        for frame in greeting {
            self.engine.send(frame);
        }
        self.given += 1;
        self.greeted += 1;
        self.accounted += 1;
    }

    /// Whether the peer has hung up, so that only the bytes it sent before are left to read and nothing written would
    /// be read. A raw peer that has finished may still read.
    fn is_over(&self, is_raw: bool) -> bool {
        self.hung_up && !is_raw && self.engine.is_ready()
    }

    /// Whether the peer has hung up before the end of a message, so that the rest of it will never arrive.
    fn has_left_within_message(&self) -> bool {
        self.hung_up && !self.stream.has_more() && self.stream.unread() < self.engine.missing()
    }

    fn new(engine: Engine, stream: Stream, now: Instant) -> Connection {
        Connection {
            engine,
            stream,
            phase: Phase::Handshake,
            inlet: Inlet::Bytes,
            outlet: Outlet::Room,
            hung_up: false,
            admission: Admission::default(),
            writing: Writing::new(now),
            driver: Driver::new(),
            ended: None,
            given: 0,
            accounted: 0,
            greeted: 0,
            stale: 0,
            tail: Tail::default(),
            pulse: Pulse::default(),
        }
    }
}

impl PipeOwner for Session {
    fn line(self: Arc<Self>, id: PipeId) -> Option<Arc<dyn Line>> {
        (id != HANDLER).then_some(self as Arc<dyn Line>)
    }

    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        match event {
            // The caller holds the lock of the handler's socket, so the I/O thread looks instead.
            _ if id == HANDLER => self.wake(),
            PipeEvent::Readable => {
                if !self.send_inline() {
                    self.wake();
                }
            }
            PipeEvent::Writable | PipeEvent::Closed | PipeEvent::Gathering => self.wake(),
            PipeEvent::Ready
            | PipeEvent::Disconnected
            | PipeEvent::HungUp
            | PipeEvent::Sent
            | PipeEvent::Asked => {}
        }
    }
}

impl Holder for Session {
    fn on_notice(&self) {
        self.wake();
    }
}

impl Deliverer for Session {
    fn undelivered(&self) -> UndeliveredPeer {
        let (messages, bytes) = self.lock().undelivered();
        self.undelivered_peer(messages, bytes)
    }

    fn end_by(&self, deadline: Instant) {
        let mut state = self.lock();
        state.closing = state.closing.next(Some(deadline));
        drop(state);
        self.wake();
    }
}

impl EventHandler for Session {
    fn on_start(&self, io: &mut Reactor, token: Token) {
        let mut state = self.lock();
        state.token = Some(token);
        let stream = match &state.link {
            Link::Up(up) => Some(&up.stream),
            Link::Layering { stream, .. } => Some(stream),
            _ => None,
        };
        if let Some(stream) = stream
            && let Err(error) = io.watch(token, stream.fd())
        {
            self.emit_because(EventKind::AcceptFailed, error.errno() as u64, error);
            return self.finish(&mut state, io);
        }
        self.drive(&mut state, io);
    }

    fn on_ready(&self, io: &mut Reactor, ready: Readiness) {
        let mut state = self.lock();
        let succeeded = match state.link {
            Link::Connecting { .. } if ready.is_writable() => self.connect_finished(&mut state, io),
            _ => true,
        };
        // If an attempt has failed, its readiness says nothing about the next attempt, which may already be up.
        if succeeded && let Link::Up(up) = &mut state.link {
            if ready.is_readable() {
                up.inlet = up.inlet.next(InletEvent::Arrive);
            }
            if ready.is_writable() {
                up.outlet = up.outlet.next(OutletEvent::Free);
            }
            up.hung_up |= ready.is_hangup();
        }
        self.drive(&mut state, io);
    }

    fn on_wake(&self, io: &mut Reactor) {
        // This is a swap rather than a store. It makes visible what a thread did before it called `wake` and found a
        // wake-up already posted.
        self.wake_posted.swap(false, Ordering::AcqRel);
        let mut state = self.lock();
        if let Some(pipe) = &state.pipe {
            pipe.ask();
        }
        self.drive(&mut state, io);
    }

    fn on_timeout(&self, io: &mut Reactor) {
        let mut state = self.lock();
        let now = io.now();
        self.catch_up(&mut state, now);
        if let Link::Up(up) = &mut state.link {
            up.note_acks(now);
            if up.stream.has_pings() {
                up.engine.note_carrier_ping(up.stream.owes_ping(), now);
            }
            up.engine.handle_timeout(now);
            if up.engine.take_ping() {
                up.stream.ping();
            }
            if backlog::is_large(up.engine.take_volume(false)) {
                io.give_memory_back();
            }
        }
        self.check_pulse(&mut state, now);
        if let Some(share) = &mut state.share {
            share.handle_timeout(now);
        }
        let waiting = state.pipe.as_ref().map_or(0, Pipe::queued_bytes);
        let others = state.share.as_mut().map_or(0, |share| share.watch(now));
        if state.backlog.handle_timeout(waiting, others, now) {
            if let Link::Up(up) = &mut state.link {
                up.engine.shed_spare();
            }
            io.give_memory_back();
        }
        self.drive(&mut state, io);
    }

    fn on_end(&self, io: &mut Reactor, end: End) {
        let mut state = self.lock();
        if end == End::Panicked {
            self.emit_because(
                EventKind::Disconnected,
                0,
                "internal error in this connection",
            );
        }
        self.finish(&mut state, io);
    }
}
