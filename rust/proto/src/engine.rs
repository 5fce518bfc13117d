//! [`Engine`]: one side of one connection, as a value.

mod handshake;
mod heartbeat;
mod stall;
mod traffic;
mod watch;

use crate::decoder::{Decoder, Limits};
use crate::encoder::Encoder;
use crate::frame::Frame;
use crate::framing::Framing;
use crate::greeting::{self, Greeting};
use crate::mechanisms::{Credentials, MechanismConfig, Random, Verdict, system_random};
use crate::socket_type::SocketType;
use crate::wires::{self, Form, Mapping};
use bytes::Bytes;
use handshake::Negotiation;
use heartbeat::{Heartbeat, earlier};
use stall::Stall;
use std::collections::{TryReserveError, VecDeque};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::{Duration, Instant};
use traffic::Traffic;
use watch::Watch;

pub use crate::error::{CloseReason, ProtocolError};

/// The time without traffic after which a connection releases its buffers.
const TRIM_AFTER: Duration = Duration::from_secs(1);
/// The default of [`EngineConfig::max_frames`].
const MAX_FRAMES: usize = 64 * 1024;

/// The settings of an engine.
#[derive(Clone, Debug)]
pub struct EngineConfig {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Our routing id, sent to the peer if our type does that. At most 255 bytes.
    pub routing_id: Bytes,
    /// The security mechanism and its settings.
    pub mechanism: MechanismConfig,
    /// Whether we are the side of the mechanism that authenticates the other one; NULL has no such side.
    pub as_server: bool,
    /// Whether to ask the driver about each peer before it is admitted: see [`Event::Authenticate`]. Peers before ZMTP
    /// 3 are then refused, because they have no credentials.
    pub authenticate: bool,
    /// The maximum duration of the handshake; `None` or zero waits forever.
    pub handshake_ivl: Option<Duration>,
    /// The interval of PINGs; `None` or zero sends none.
    pub heartbeat_ivl: Option<Duration>,
    /// The time that the peer should wait for traffic after our PING; zero leaves it to the peer.
    pub heartbeat_ttl: Duration,
    /// The time to wait for traffic after a PING; `None` waits as long as the interval, zero forever.
    pub heartbeat_timeout: Option<Duration>,
    /// The silence after which the driver should check the peer, and the interval of further checks: see
    /// [`Engine::take_doubt`]. `None` or zero disables this.
    pub watch_ivl: Option<Duration>,
    /// See `watch_ivl`.
    pub watch_again_ivl: Duration,
    /// The maximum silence of the peer in the middle of a message, up to twice as long in practice; `None` or zero
    /// waits forever.
    pub stall_ivl: Option<Duration>,
    /// The maximum number of bytes in a frame, and in all frames of a message together.
    pub max_msg_size: Option<u64>,
    /// The maximum number of frames in a message.
    pub max_frames: usize,
    /// The maximum number of bytes to read at a time.
    pub in_batch: usize,
    /// The number of unsent bytes from which on no more frames are accepted.
    pub out_batch: usize,
    /// The source of keys and nonces: the operating system, except in tests.
    pub random: Random,
    /// Further properties to send to the peer, such as `X-...`.
    pub properties: Vec<(String, Bytes)>,
    /// The resource to request from the peer; empty for none.
    pub resource: Bytes,
    /// No ZMTP: every read is a frame, and every frame is sent unchanged.
    pub raw: bool,
    /// How the transport carries messages.
    pub mapping: Mapping,
    /// Whether the transport has pings of its own, as ws has. The driver then sends one whenever
    /// [`Engine::take_ping`] returns true, and reports the answers with [`Engine::handle_sign_of_life`].
    pub carrier_pings: bool,
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
            max_frames: MAX_FRAMES,
            in_batch: 64 * 1024,
            out_batch: 64 * 1024,
            random: system_random,
            properties: Vec::new(),
            resource: Bytes::new(),
            raw: socket_type.is_raw(),
            mapping: Mapping::Sized,
            carrier_pings: false,
        }
    }
}

/// The peer, as known from the handshake.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PeerInfo {
    /// Its socket type; `None` for a peer of ZMTP 1.0, which does not send it, and for a raw peer.
    pub socket_type: Option<SocketType>,
    /// Its routing id; empty if it has none.
    pub routing_id: Bytes,
    /// The version used with it, major and minor; zero for a peer that does not speak ZMTP.
    pub version: (u8, u8),
    /// The security mechanism; empty for a peer that does not speak ZMTP.
    pub mechanism: &'static str,
    /// Its user id, if an authenticator or the mechanism provided one. That of an authenticator may be empty, which
    /// identifies no user.
    pub user_id: Option<String>,
    /// With CURVE, its authenticated public key.
    pub key: Option<Bytes>,
    /// The properties it sent, in order.
    pub properties: Vec<(String, Bytes)>,
}

impl PeerInfo {
    /// The user that was identified, if there is one.
    pub fn user(&self) -> Option<&str> {
        self.user_id.as_deref().filter(|user| !user.is_empty())
    }
}

/// An event of an engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Event {
    /// Asks whether to admit this peer. Asked at most once, and only if [`EngineConfig::authenticate`] is set: by
    /// either side of NULL, by the server of other mechanisms. The handshake waits for [`Engine::handle_verdict`].
    Authenticate(Credentials),
    /// The handshake is complete, and messages can be exchanged.
    Ready(Arc<PeerInfo>),
    /// A frame of a message, or a subscription or its end. The frames of a message are consecutive.
    Frame(Frame),
    /// The connection must be closed. Always the last event.
    Closed(CloseReason),
}

/// One side of one connection, which speaks ZMTP, or another [wire protocol](crate::wires) if its socket type does.
/// Bytes and a clock are inputs, bytes and events are outputs.
///
/// The methods come in three families. *Inputs* are [`handle_input`](Engine::handle_input),
/// [`handle_eof`](Engine::handle_eof), [`handle_timeout`](Engine::handle_timeout),
/// [`handle_verdict`](Engine::handle_verdict) and [`send`](Engine::send).
/// *Outputs* are [`poll_event`](Engine::poll_event), [`poll_transmit`](Engine::poll_transmit) (answered with
/// [`transmitted`](Engine::transmitted)) and [`poll_timeout`](Engine::poll_timeout); after any input they must be
/// drained in this order. The other methods are queries.
///
/// Decoding happens in `poll_event`, one frame per call. A driver whose pipe is full stops polling; the bytes
/// stay where they are, and [`wants_input`](Engine::wants_input) returns false, so that no more is read. In this way,
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
    /// Events that do not come directly from the decoder; at most three.
    events: VecDeque<Event>,
    peer: Option<Arc<PeerInfo>>,
    traffic: Traffic,
    heartbeat: Heartbeat,
    watch: Watch,
    /// Set when the peer has been silent; true if a PING is sent because of that.
    doubt: Option<bool>,
    /// A ping of the transport is due.
    carrier_ping: bool,
    /// Bytes were sent since [`note_carrier_ping`](Engine::note_carrier_ping).
    has_sent: bool,
    stall: Stall,
    handshake_deadline: Option<Instant>,
    /// When to check whether the connection is idle and has unnecessary memory, and whether bytes have moved since the
    /// last check.
    trim_at: Option<Instant>,
    moved: usize,
    /// How many bytes have moved before that check.
    volume: usize,
    /// The memory of an incomplete message when the connection ended.
    stranded: usize,
    /// The last time passed in.
    now: Instant,
    /// Whether the peer will send no more.
    eof: bool,
    /// Whether everything received has been decoded, down to an incomplete frame.
    dry: bool,
}

/// The state of a connection.
///
/// ```text
/// Greeting --> Mechanism --> Traffic --> Closed      ZMTP 3
///    |  `----> RoutingId -----^                      ZMTP 1.0 and 2.0
/// Opening ---------------------^                      other wire protocols
///    `-- raw connections start in Traffic            any state may go to Closed
/// ```
enum State {
    Greeting(Greeting),
    Opening(&'static Form),
    RoutingId(greeting::Peer),
    Mechanism(Negotiation),
    Traffic,
    Closed,
}

impl Engine {
    /// Creates a connection. Its greeting is ready to be sent.
    pub fn new(config: EngineConfig, now: Instant) -> Engine {
        let form = wires::of(config.socket_type).form.as_ref();
        let framing = match form {
            _ if config.raw => Framing::Raw,
            Some(form) => Framing::Other(form, config.mapping),
            None => Framing::V2,
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
            if let Some(form) = form {
                encoder.put_raw(&(form.opening)(config.socket_type));
                State::Opening(form)
            } else {
                State::Greeting(Greeting::new(
                    config.socket_type,
                    config.mechanism.spec.name,
                    &config.routing_id,
                    &mut encoder,
                ))
            }
        };
        let mut decoder = Decoder::new(framing, limits, config.in_batch);
        if config.mapping == Mapping::Pieces {
            decoder.allow_pieces();
        }
        Engine {
            decoder,
            encoder,
            state,
            events,
            peer,
            traffic: Traffic::new(config.socket_type),
            heartbeat: Heartbeat::new(&config),
            watch,
            doubt: None,
            carrier_ping: false,
            has_sent: false,
            stall: Stall::new(config.stall_ivl),
            handshake_deadline,
            trim_at: None,
            moved: 0,
            volume: 0,
            stranded: 0,
            now,
            eof: false,
            dry: true,
            config,
        }
    }

    /// The buffer to which received bytes are appended; it has room for a read.
    ///
    /// Call [`handle_input`](Engine::handle_input) when something has been appended.
    ///
    /// # Panics
    /// If there is no memory for that. Drivers that must survive this call [`try_input`](Engine::try_input).
    pub fn input(&mut self) -> &mut Vec<u8> {
        self.try_input().expect("memory for a read")
    }

    /// Like [`input`](Engine::input), but reports a lack of memory.
    ///
    /// # Errors
    /// There is no memory for a read. Received bytes are kept.
    pub fn try_input(&mut self) -> Result<&mut Vec<u8>, TryReserveError> {
        self.decoder.input().input()
    }

    /// Records that the driver intentionally does not read for a while, so that silence does not count against the
    /// peer. Ends with the next call of [`poll_event`](Engine::poll_event) that returns nothing. Releases the buffer for the next
    /// read if it is empty.
    pub fn hold_back(&mut self) {
        self.decoder.input().trim();
        if self.is_ready() {
            self.dry = false;
        }
    }

    /// The reason if the connection ended while data was given to the engine, because it had no memory or no number for
    /// the data; [`Event::Closed`] reports it, too.
    pub fn send_failure(&self) -> Option<&CloseReason> {
        match self.events.back() {
            Some(Event::Closed(
                reason @ (CloseReason::OutOfMemory | CloseReason::NumbersUsedUp),
            )) => Some(reason),
            _ => None,
        }
    }

    /// Bytes of memory for received data that is not decoded yet.
    pub fn held(&self) -> usize {
        self.decoder.held()
    }

    /// The memory, in bytes, that an incomplete message takes, or took when the connection ended.
    pub fn stranded(&self) -> usize {
        match self.is_partial() {
            true => self.held(),
            false => self.stranded,
        }
    }

    /// Processes bytes that were appended to [`input`](Engine::input).
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

    /// Records that the peer will send no more. [`Event::Closed`] follows the frames that have been received.
    pub fn handle_eof(&mut self, now: Instant) {
        self.now = now;
        self.eof = true;
        match self.state {
            State::Traffic => {}
            State::Greeting(_) | State::Opening(_) => self.close(CloseReason::NotGreeted),
            _ => self.close(CloseReason::PeerClosed),
        }
    }

    /// Handles the deadline of [`poll_timeout`](Engine::poll_timeout). Harmless at any other time.
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

    /// Releases spare memory after the application has taken all received messages.
    pub fn shed_spare(&mut self) {
        self.decoder.input().shed();
    }

    /// Answers [`Event::Authenticate`]. Does nothing if there was no question, or if the connection has ended since.
    pub fn handle_verdict(&mut self, verdict: Verdict, now: Instant) {
        self.now = now;
        self.judge(verdict);
    }

    /// Ends the connection for a reason of the driver's, without notifying the peer.
    pub fn abort(&mut self, reason: CloseReason, now: Instant) {
        self.now = now;
        self.close(reason);
    }

    /// Whether [`handle_timeout`](Engine::handle_timeout) would judge the peer by its silence. The driver then reads first:
    /// after the process was stopped, the timers may come before what has arrived.
    pub fn judges(&self, now: Instant) -> bool {
        match self.state {
            State::Closed => false,
            State::Traffic => {
                self.dry
                    && (self.heartbeat.is_expired(now)
                        || self.watch.is_silent(now)
                        || self.stall.poll_timeout().is_some_and(|at| at <= now))
            }
            _ => self.handshake_deadline.is_some_and(|at| at <= now),
        }
    }

    /// Whether the peer has been silent for [`EngineConfig::watch_ivl`], and a check is due.
    pub fn finds_silence(&self, now: Instant) -> bool {
        self.watch.is_silent(now)
    }

    /// The peer's machine has acknowledged bytes at `at`. Call this before
    /// [`handle_timeout`](Engine::handle_timeout), so that a peer that only receives is not asked for a sign of life.
    pub fn handle_acknowledgement(&mut self, at: Instant) {
        self.watch.handle_acknowledgement(at);
    }

    /// Whether the peer has been silent for so long (see [`EngineConfig::watch_ivl`]) that the driver should check
    /// whether its machine still responds. The inner value is true if a PING is sent because of that. Returned once for
    /// each time that [`handle_timeout`](Engine::handle_timeout) found it.
    pub fn take_doubt(&mut self) -> Option<bool> {
        self.doubt.take()
    }

    /// Whether the driver should send a ping of the transport; see [`EngineConfig::carrier_pings`]. Returned once for
    /// each ping that [`handle_timeout`](Engine::handle_timeout) found due.
    pub fn take_ping(&mut self) -> bool {
        std::mem::take(&mut self.carrier_ping)
    }

    /// Whether the transport still holds the ping that [`take_ping`](Engine::take_ping) asked for. If it does, and other
    /// bytes were sent meanwhile, the peer does not have to answer yet. Call this before
    /// [`handle_timeout`](Engine::handle_timeout).
    pub fn note_carrier_ping(&mut self, is_held: bool, now: Instant) {
        let has_sent = std::mem::take(&mut self.has_sent);
        match is_held {
            true if has_sent => self.heartbeat.handle_delay(now),
            true => {}
            false => self.heartbeat.handle_sent(),
        }
    }

    /// The peer has sent something for the transport only, such as the answer to a ping. It counts like bytes for
    /// [`input`](Engine::input), but does not continue a message.
    pub fn handle_sign_of_life(&mut self, now: Instant) {
        self.now = now;
        if self.is_ready() {
            self.heartbeat.handle_input();
            self.watch.handle_input(now);
        }
    }

    /// The next event, or `None` if more bytes are needed.
    #[inline]
    pub fn poll_event(&mut self) -> Option<Event> {
        let mut frame = Frame::new();
        if self.poll_small(&mut frame) {
            return Some(Event::Frame(frame));
        }
        self.poll_any_event()
    }

    /// Like [`poll_event`](Engine::poll_event), but decodes directly into `frame`, if the next event is a small frame.
    /// Otherwise returns false, and the caller uses [`poll_any_event`](Engine::poll_any_event).
    #[inline]
    pub fn poll_small(&mut self, frame: &mut Frame) -> bool {
        self.events.is_empty() && self.decoder.decode_small(frame)
    }

    /// Like [`poll_event`](Engine::poll_event), after [`poll_small`](Engine::poll_small) has returned false.
    pub fn poll_any_event(&mut self) -> Option<Event> {
        if !self.events.is_empty() {
            return self.events.pop_front();
        }
        match self.state {
            // Nothing has arrived since the last call. A driver asks before each read, too.
            State::Traffic if self.dry && !self.eof => None,
            State::Traffic => self.poll_traffic(),
            _ => None,
        }
    }

    /// Whether the driver should read, because everything received so far has been decoded.
    #[inline]
    pub fn wants_input(&self) -> bool {
        self.dry && !self.eof && !self.is_closed()
    }

    /// Whether [`send`](Engine::send) may be called: the handshake is complete and the backlog is short.
    #[inline]
    pub fn can_send(&self) -> bool {
        self.is_ready() && self.encoder.backlog() < self.config.out_batch
    }

    /// Queues a frame. The frames of a message are consecutive, with `more` set on all but the last. Frames for a
    /// connection that is not [ready](Engine::is_ready) are dropped.
    #[inline]
    pub fn send(&mut self, frame: Frame) {
        if self.is_ready() {
            self.send_traffic(frame);
        }
    }

    /// Like [`send`](Engine::send), by reference, if the frame's body is copied anyway. Otherwise returns false, and
    /// the caller must pass the frame by value.
    #[inline]
    pub fn send_copy(&mut self, frame: &Frame) -> bool {
        self.is_ready() && self.send_traffic_copy(frame)
    }

    /// Adds the next slices to send, up to `max` bytes and no more than one system call takes, and returns their total
    /// size.
    ///
    /// After [`Event::Closed`] there may still be a last command for the peer, with the reason for the refusal. It
    /// deserves one attempt to send.
    pub fn poll_transmit<'a>(&'a self, slices: &mut Vec<IoSlice<'a>>, max: usize) -> usize {
        self.encoder.poll_transmit(slices, max)
    }

    /// Records that the first `count` bytes offered by [`poll_transmit`](Engine::poll_transmit) have been sent.
    pub fn transmitted(&mut self, count: usize, now: Instant) {
        self.now = now;
        self.encoder.transmitted(count);
        if matches!(self.state, State::Mechanism(_)) {
            // The sent bytes may have included a password.
            self.encoder.wipe_sent();
        }
        self.note_moved(count);
        if self.traffic.holds_ping() {
            self.note_before_ping(count);
        }
        self.has_sent |= count > 0;
        if self.traffic.owes() && self.is_ready() {
            self.send_owed();
        }
    }

    /// Whether there is anything to send.
    #[inline]
    pub fn has_transmit(&self) -> bool {
        self.encoder.backlog() > 0
    }

    /// Number of bytes that are encoded and not sent.
    pub fn backlog(&self) -> usize {
        self.encoder.backlog()
    }

    /// Number of bytes of messages that are encoded and not sent.
    pub fn messages_backlog(&self) -> usize {
        self.encoder.messages_backlog()
    }

    /// Number of bytes that were sent and belong to no message: the handshake, commands and subscriptions.
    #[inline]
    pub fn others_transmitted(&self) -> u64 {
        self.encoder.others_sent()
    }

    /// Complete messages of the application that were sent to their last byte; subscriptions and commands do not count.
    pub fn messages_transmitted(&self) -> u64 {
        self.encoder.messages_sent()
    }

    /// The time of the next call of [`handle_timeout`](Engine::handle_timeout).
    pub fn poll_timeout(&self) -> Option<Instant> {
        match self.state {
            State::Closed => None,
            State::Traffic => {
                let peer = earlier(self.heartbeat.poll_timeout(), self.watch.poll_timeout());
                earlier(peer, earlier(self.stall.poll_timeout(), self.trim_at))
            }
            _ => self.handshake_deadline,
        }
    }

    /// The peer, once the handshake is complete.
    pub fn peer(&self) -> Option<&Arc<PeerInfo>> {
        self.peer.as_ref()
    }

    /// As [`peer`](Engine::peer), for a driver that keeps the result: the engine drops its own handle.
    pub fn take_peer(&mut self) -> Option<Arc<PeerInfo>> {
        self.peer.take()
    }

    /// Whether the handshake is complete and the connection is not closed.
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

    /// Releases the buffers of an idle connection.
    fn trim(&mut self) {
        if self.trim_at.is_none_or(|at| at > self.now) {
            return;
        }
        let moved = std::mem::take(&mut self.moved);
        self.volume = self.volume.saturating_add(moved);
        if moved > 0 {
            self.trim_at = self.now.checked_add(TRIM_AFTER);
            // The application may have caused the backlog, whose end the engine does not see.
            self.shed_spare();
        } else {
            self.trim_at = None;
            self.decoder.input().trim();
            self.encoder.trim();
        }
    }

    /// How many bytes have moved since the last call, once the connection is idle. Zero while it is not idle, unless
    /// the connection `ends`.
    pub fn take_volume(&mut self, ends: bool) -> usize {
        if self.trim_at.is_some() && !ends {
            return 0;
        }
        let before = std::mem::take(&mut self.volume);
        before.saturating_add(std::mem::take(&mut self.moved))
    }

    /// Whether the received bytes end within a message.
    #[inline]
    pub fn is_partial(&self) -> bool {
        self.decoder.is_partial() || self.traffic.is_opened()
    }

    /// How many bytes at least have to arrive before the message is complete; 0 between two messages.
    pub fn missing(&self) -> usize {
        self.decoder
            .missing()
            .max(usize::from(self.traffic.is_opened()))
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

    /// Ends the connection, but keeps the encoder's last command for the peer.
    fn close_politely(&mut self, reason: CloseReason) {
        self.state = State::Closed;
        self.stranded = self.stranded();
        self.decoder.input().clear();
        self.events.push_back(Event::Closed(reason));
    }
}
