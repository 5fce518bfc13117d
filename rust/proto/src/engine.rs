//! [`Engine`]: one side of one connection, as a value.

mod handshake;
mod heartbeat;
mod stall;
mod traffic;
mod watch;

use crate::decoder::{Decoder, Framing, Limits};
use crate::encoder::Encoder;
use crate::frame::Frame;
use crate::greeting::{self, Greeting};
use crate::mechanisms::{Credentials, MechanismConfig, Random, Verdict, system_random};
use crate::socket_type::SocketType;
use bytes::Bytes;
use handshake::Negotiation;
use heartbeat::Heartbeat;
use stall::Stall;
use std::collections::{TryReserveError, VecDeque};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traffic::Traffic;
use watch::Watch;

pub use crate::error::{CloseReason, ProtocolError};

/// How long nothing must move until a connection gives its buffers back.
const TRIM_AFTER: Duration = Duration::from_secs(1);

/// Everything an engine must know before the first byte.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Our routing id; told to the peer if our type does that. At most 255 bytes.
    pub routing_id: Bytes,
    /// The security mechanism and its settings.
    pub mechanism: MechanismConfig,
    /// Whether we are the side of the mechanism that checks the other one; NULL has no sides.
    pub as_server: bool,
    /// Whether to ask the driver about each peer before it is let in: see [`Event::Authenticate`]. Peers before
    /// ZMTP 3 are refused then, there is nothing to ask.
    pub authenticate: bool,
    /// How long the handshake may take; `None` or zero waits forever.
    pub handshake_ivl: Option<Duration>,
    /// How often to send a PING; `None` or zero sends none.
    pub heartbeat_ivl: Option<Duration>,
    /// How long the peer should wait for a sign of life after our PING; zero leaves it to the peer.
    pub heartbeat_ttl: Duration,
    /// How long to wait for a sign of life after a PING; `None` waits as long as the interval, zero forever.
    pub heartbeat_timeout: Option<Duration>,
    /// After how much silence to look for the peer, and how often then: see [`Engine::take_doubt`]. `None` or zero does
    /// not.
    pub watch_ivl: Option<Duration>,
    /// See `watch_ivl`.
    pub watch_again_ivl: Duration,
    /// How long the peer may be silent in the middle of a message, give or take as much again; `None` or zero
    /// waits forever.
    pub stall_ivl: Option<Duration>,
    /// The most bytes in a frame, and in all frames of a message together.
    pub max_msg_size: Option<u64>,
    /// The most frames in a message.
    pub max_frames: usize,
    /// The most bytes to read at a time.
    pub in_batch: usize,
    /// From how many unsent bytes on no more frames are taken.
    pub out_batch: usize,
    /// Where keys and nonces come from: the operating system, except in tests.
    pub random: Random,
    /// Further properties to tell the peer, such as `X-...`.
    pub properties: Vec<(String, Bytes)>,
    /// The resource to ask the peer for; empty names none.
    pub resource: Bytes,
    /// No ZMTP at all: every read is a frame, every frame is sent as it is.
    pub raw: bool,
}

impl EngineConfig {
    /// The defaults for a type of socket.
    pub fn new(socket_type: SocketType) -> EngineConfig {
        EngineConfig {
            socket_type,
            routing_id: Bytes::new(),
            mechanism: MechanismConfig::default(),
            as_server: false,
            authenticate: false,
            handshake_ivl: Some(Duration::from_secs(30)),
            heartbeat_ivl: None,
            heartbeat_ttl: Duration::ZERO,
            heartbeat_timeout: None,
            watch_ivl: None,
            watch_again_ivl: Duration::from_secs(5),
            stall_ivl: Some(Duration::from_secs(60)),
            max_msg_size: None,
            max_frames: 64 * 1024,
            in_batch: 64 * 1024,
            out_batch: 64 * 1024,
            random: system_random,
            properties: Vec::new(),
            resource: Bytes::new(),
            raw: socket_type == SocketType::Stream,
        }
    }
}

/// What the handshake revealed about the peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its socket type; a peer of ZMTP 1.0 does not say, a raw one has none.
    pub socket_type: Option<SocketType>,
    /// Its routing id; empty when it has none.
    pub routing_id: Bytes,
    /// The version spoken with it, major and minor; zero for a raw peer.
    pub version: (u8, u8),
    /// The security mechanism; empty for a raw peer.
    pub mechanism: &'static str,
    /// Who it is, if somebody vouched for it.
    pub user_id: Option<String>,
    /// The public key that it has proved to be its own, with CURVE.
    pub key: Option<Bytes>,
    /// The properties it sent, in order.
    pub properties: Vec<(String, Bytes)>,
}

/// What an engine reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// May this peer come in? Asked at most once, and only if [`EngineConfig::authenticate`] is set: by either
    /// side of NULL, by the server of other mechanisms. The handshake waits for
    /// [`Engine::handle_verdict`].
    Authenticate(Credentials),
    /// The handshake is over; messages may pass.
    Ready(Arc<PeerInfo>),
    /// A frame of a message, or a subscription or its end. The frames of a message come in order with nothing
    /// in between.
    Frame(Frame),
    /// The connection is to be closed. Always the last event.
    Closed(CloseReason),
}

/// One side of one ZMTP connection: bytes and a clock in, bytes and events out.
///
/// The methods come in three families. *Inputs* are [`handle_input`](Engine::handle_input),
/// [`handle_eof`](Engine::handle_eof), [`handle_timeout`](Engine::handle_timeout),
/// [`handle_verdict`](Engine::handle_verdict) and [`send`](Engine::send).
/// *Outputs* are [`poll_event`](Engine::poll_event), [`poll_transmit`](Engine::poll_transmit) (answered with
/// [`transmitted`](Engine::transmitted)) and [`poll_timeout`](Engine::poll_timeout); after any input they are
/// to be drained in this order. The rest are questions.
///
/// Decoding happens in `poll_event`, one frame per call. A driver whose pipe is full stops polling; the bytes
/// stay where they are, and [`wants_input`](Engine::wants_input) says not to read more. That is how
/// back-pressure reaches the peer.
///
/// # Examples
///
/// Two engines joined by hand:
///
/// ```
/// use std::time::Instant;
/// use zeroxide_proto::{Engine, EngineConfig, Event, Frame, SocketType};
///
/// fn carry(from: &mut Engine, to: &mut Engine, now: Instant) {
///     let mut slices = Vec::new();
///     let count = from.poll_transmit(&mut slices, 64);
///     for slice in slices {
///         to.input().extend_from_slice(&slice);
///     }
///     from.transmitted(count, now);
///     to.handle_input(now);
/// }
///
/// let now = Instant::now();
/// let mut push = Engine::new(EngineConfig::new(SocketType::Push), now);
/// let mut pull = Engine::new(EngineConfig::new(SocketType::Pull), now);
/// while push.has_transmit() || pull.has_transmit() {
///     carry(&mut push, &mut pull, now);
///     carry(&mut pull, &mut push, now);
/// }
/// assert!(matches!(push.poll_event(), Some(Event::Ready(_))));
/// assert!(matches!(pull.poll_event(), Some(Event::Ready(_))));
///
/// push.send(Frame::from("hello"));
/// carry(&mut push, &mut pull, now);
/// assert_eq!(pull.poll_event(), Some(Event::Frame(Frame::from("hello"))));
/// assert_eq!(push.messages_transmitted(), 1);
/// ```
pub struct Engine {
    config: EngineConfig,
    decoder: Decoder,
    encoder: Encoder,
    state: State,
    /// Events that do not come straight out of the decoder; at most three.
    events: VecDeque<Event>,
    peer: Option<Arc<PeerInfo>>,
    traffic: Traffic,
    heartbeat: Heartbeat,
    watch: Watch,
    /// The peer has been silent, and whether a PING leaves for that.
    doubt: Option<bool>,
    stall: Stall,
    handshake_deadline: Option<Instant>,
    /// When to look whether the connection is idle and holds memory it does not need, and whether bytes have
    /// moved since the last look.
    trim_at: Option<Instant>,
    moved: usize,
    /// How many bytes have moved before that look.
    volume: usize,
    /// The last time anybody told us.
    now: Instant,
    /// The peer will send no more.
    eof: bool,
    /// Everything received has been decoded, down to an incomplete frame.
    dry: bool,
}

/// How far a connection is.
///
/// ```text
/// Greeting --> Mechanism --> Traffic --> Closed      ZMTP 3
///    |  `----> RoutingId -----^                      ZMTP 1.0 and 2.0
///    `-- raw connections start in Traffic            any state may go to Closed
/// ```
enum State {
    Greeting(Greeting),
    RoutingId(greeting::Peer),
    Mechanism(Negotiation),
    Traffic,
    Closed,
}

impl Engine {
    /// A new connection. Its greeting is ready to be sent.
    pub fn new(config: EngineConfig, now: Instant) -> Engine {
        let framing = if config.raw {
            Framing::Raw
        } else {
            Framing::V2
        };
        let mut encoder = Encoder::new(framing);
        let mut events = VecDeque::new();
        let mut peer = None;
        let mut handshake_deadline = None;
        let mut limits = Limits::handshake();
        let mut watch = Watch::new(&config);
        let state = if config.raw {
            watch.start(now);
            let info = Arc::new(PeerInfo::default());
            peer = Some(info.clone());
            events.push_back(Event::Ready(info));
            limits = traffic::limits(&config);
            State::Traffic
        } else {
            handshake_deadline = config
                .handshake_ivl
                .filter(|after| !after.is_zero())
                .and_then(|after| now.checked_add(after));
            State::Greeting(Greeting::new(
                config.socket_type,
                config.mechanism.spec.name,
                &config.routing_id,
                &mut encoder,
            ))
        };
        Engine {
            decoder: Decoder::new(framing, limits, config.in_batch),
            encoder,
            state,
            events,
            peer,
            traffic: Traffic::new(config.socket_type),
            heartbeat: Heartbeat::new(&config),
            watch,
            doubt: None,
            stall: Stall::new(config.stall_ivl),
            handshake_deadline,
            trim_at: None,
            moved: 0,
            volume: 0,
            now,
            eof: false,
            dry: true,
            config,
        }
    }

    /// The buffer to append received bytes to; it has room for a read.
    ///
    /// Call [`handle_input`](Engine::handle_input) when something has been appended.
    ///
    /// # Panics
    /// If there is no memory for that. Drivers that must survive it call [`try_input`](Engine::try_input).
    pub fn input(&mut self) -> &mut Vec<u8> {
        self.try_input().expect("memory for a read")
    }

    /// As [`input`](Engine::input), where memory may be short.
    ///
    /// # Errors
    /// There is no memory for a read. What was received stays.
    pub fn try_input(&mut self) -> Result<&mut Vec<u8>, TryReserveError> {
        self.decoder.input().input()
    }

    /// The driver does not read for a while, although it could: so silence is no fault of the peer's. Over with the next
    /// call of [`poll_event`](Engine::poll_event) that returns nothing.
    pub fn hold_back(&mut self) {
        if self.is_ready() {
            self.dry = false;
        }
    }

    /// Whether it has ended because there was no memory for what was to be sent; [`Event::Closed`] says so, too.
    pub fn is_out_of_memory(&self) -> bool {
        let last = self.events.back();
        matches!(last, Some(Event::Closed(CloseReason::OutOfMemory)))
    }

    /// Bytes of memory for what was received and is not decoded yet.
    pub fn held(&self) -> usize {
        self.decoder.held()
    }

    /// Bytes have been appended to [`input`](Engine::input).
    pub fn handle_input(&mut self, now: Instant) {
        self.now = now;
        let read = self.decoder.input().note_read();
        self.dry = false;
        self.note_moved(read);
        match self.state {
            State::Traffic => {
                self.heartbeat.handle_input();
                self.watch.handle_input(now);
                self.stall.handle_input();
            }
            State::Closed => self.decoder.input().clear(),
            _ => self.advance_handshake(),
        }
    }

    /// The peer will send no more. [`Event::Closed`] follows the frames that have been received.
    pub fn handle_eof(&mut self, now: Instant) {
        self.now = now;
        self.eof = true;
        match self.state {
            State::Traffic => {}
            State::Greeting(_) => self.close(CloseReason::NotGreeted),
            _ => self.close(CloseReason::PeerClosed),
        }
    }

    /// The time that [`poll_timeout`](Engine::poll_timeout) named has come. Harmless at any other time.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.now = now;
        match self.state {
            State::Closed => {}
            State::Traffic => {
                self.trim();
                let partial = self.is_partial();
                if self.stall.handle_timeout(now, self.dry, partial) {
                    return self.close(CloseReason::Stalled);
                }
                self.handle_heartbeat();
                self.look_for_peer();
            }
            _ => {
                if self
                    .handshake_deadline
                    .is_some_and(|deadline| deadline <= now)
                {
                    self.close(CloseReason::HandshakeTimeout);
                }
            }
        }
    }

    /// What was received and waited for the application is gone: gives back memory that is only kept for more of that.
    pub fn shed_spare(&mut self) {
        self.decoder.input().shed();
    }

    /// The answer to [`Event::Authenticate`]. Nothing happens if there was no question, or the connection has
    /// ended since.
    pub fn handle_verdict(&mut self, verdict: Verdict, now: Instant) {
        self.now = now;
        self.judge(verdict);
    }

    /// Ends the connection for a reason of the driver's own, without a word to the peer.
    pub fn abort(&mut self, reason: CloseReason, now: Instant) {
        self.now = now;
        self.close(reason);
    }

    /// Whether the peer has been silent for so long (see [`EngineConfig::watch_ivl`]) that the driver should look whether its
    /// machine is still there; true inside when a PING leaves for that. Once for each time that
    /// [`handle_timeout`](Engine::handle_timeout) found it so.
    pub fn take_doubt(&mut self) -> Option<bool> {
        self.doubt.take()
    }

    /// The next event, or `None` when more bytes are needed.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        let mut frame = Frame::new();
        if self.poll_small(&mut frame) {
            return Some(Event::Frame(frame));
        }
        self.poll_any_event()
    }

    /// As [`poll_event`](Engine::poll_event), straight to where the frame shall be, if that is the next event and the frame
    /// is a small one. False if not: then `poll_event` knows.
    #[inline]
    pub fn poll_small(&mut self, frame: &mut Frame) -> bool {
        self.events.is_empty() && self.decoder.decode_small(frame)
    }

    fn poll_any_event(&mut self) -> Option<Event> {
        if !self.events.is_empty() {
            return self.events.pop_front();
        }
        match self.state {
            State::Traffic => self.poll_traffic(),
            _ => None,
        }
    }

    /// Whether the driver should read: everything received so far has been decoded.
    #[inline]
    pub fn wants_input(&self) -> bool {
        self.dry && !self.eof && !self.is_closed()
    }

    /// Whether [`send`](Engine::send) may be called: the handshake is over and the backlog is short.
    #[inline]
    pub fn can_send(&self) -> bool {
        self.is_ready() && self.encoder.backlog() < self.config.out_batch
    }

    /// Queues a frame. The frames of a message come in order, with nothing in between, `more` set on all but
    /// the last. Frames for a connection that is not [ready](Engine::is_ready) go nowhere.
    #[inline]
    pub fn send(&mut self, frame: Frame) {
        if self.is_ready() {
            self.send_traffic(frame);
        }
    }

    /// As [`send`](Engine::send), from where the frame lies, if its body is copied anyway. False if not: then it has to be
    /// given away.
    #[inline]
    pub fn send_copy(&mut self, frame: &Frame) -> bool {
        self.is_ready() && self.send_traffic_copy(frame)
    }

    /// Adds slices to be sent next, up to `max` bytes and no more than one system call takes, and returns how
    /// many bytes they are.
    ///
    /// After [`Event::Closed`] this may still offer a last word to the peer, why it is refused; it is worth
    /// one attempt to send.
    pub fn poll_transmit<'a>(&'a self, slices: &mut Vec<IoSlice<'a>>, max: usize) -> usize {
        self.encoder.poll_transmit(slices, max)
    }

    /// The first `count` bytes that [`poll_transmit`](Engine::poll_transmit) offered have been sent.
    pub fn transmitted(&mut self, count: usize, now: Instant) {
        self.now = now;
        self.encoder.transmitted(count);
        if matches!(self.state, State::Mechanism(_)) {
            // What was said may have been a password.
            self.encoder.wipe_sent();
        }
        self.note_moved(count);
        if self.traffic.owes() && self.is_ready() {
            self.send_owed();
        }
    }

    /// Whether there is anything to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        self.encoder.backlog() > 0
    }

    /// Whole messages of the application sent to their last byte; subscriptions and commands do not count.
    pub fn messages_transmitted(&self) -> u64 {
        self.encoder.messages_sent()
    }

    /// When [`handle_timeout`](Engine::handle_timeout) wants to be called next.
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::Traffic => {
                let timers = [
                    self.heartbeat.poll_timeout(),
                    self.watch.poll_timeout(),
                    self.stall.poll_timeout(),
                    self.trim_at,
                ];
                timers.into_iter().flatten().min()
            }
            _ => self.handshake_deadline,
        }
    }

    /// The peer, once the handshake is over.
    pub fn peer(&self) -> Option<&Arc<PeerInfo>> {
        self.peer.as_ref()
    }

    /// Whether the handshake is over and the connection is not closed.
    #[inline]
    pub fn is_ready(&self) -> bool {
        matches!(self.state, State::Traffic)
    }

    #[inline]
    fn note_moved(&mut self, bytes: usize) {
        self.moved = self.moved.saturating_add(bytes);
        if self.trim_at.is_none() && (self.decoder.holds_spare() || self.encoder.holds_spare()) {
            self.trim_at = self.now.checked_add(TRIM_AFTER);
        }
    }

    /// Gives back the buffers of a connection over which nothing has moved for a while.
    fn trim(&mut self) {
        if self.trim_at.is_none_or(|at| at > self.now) {
            return;
        }
        let moved = std::mem::take(&mut self.moved);
        self.volume = self.volume.saturating_add(moved);
        if moved > 0 {
            self.trim_at = self.now.checked_add(TRIM_AFTER);
            // The backlog may have been the application's, where nobody sees it end.
            self.shed_spare();
        } else {
            self.trim_at = None;
            self.decoder.input().trim();
            self.encoder.trim();
        }
    }

    /// How many bytes have moved since this was last asked of a connection over which nothing moves any more. Zero while
    /// something does, unless the connection `ends`.
    pub fn take_volume(&mut self, ends: bool) -> usize {
        if self.trim_at.is_some() && !ends {
            return 0;
        }
        let before = std::mem::take(&mut self.volume);
        before.saturating_add(std::mem::take(&mut self.moved))
    }

    /// Whether what was received ends within a message.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.decoder.is_partial() || self.traffic.is_opened()
    }

    fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed)
    }

    /// Ends the connection; nothing more is sent.
    fn close(&mut self, reason: CloseReason) {
        if !self.is_closed() {
            self.encoder.clear();
            self.close_politely(reason);
        }
    }

    /// Ends the connection, leaving in the encoder what the peer should still hear.
    fn close_politely(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.decoder.input().clear();
        self.events.push_back(Event::Closed(reason));
    }
}
