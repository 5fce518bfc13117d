//! Traffic after the handshake: messages, subscriptions and heartbeats, in both directions.

use super::heartbeat::Beat;
use super::watch::Look;
use super::{Engine, EngineConfig, Event};
use crate::command::{self, MAX_COMMAND};
use crate::decoder::{Limits, Meter};
use crate::error::CloseReason;
use crate::frame::{Frame, FrameKind};
use crate::mechanisms::{Cipher, Content};
use crate::message::PART;
use crate::run;
use crate::socket_type::SocketType;

/// The state of traffic.
pub(super) struct Traffic {
    /// Whether we send to subscribers, and therefore handle subscriptions.
    publishes: bool,
    /// Whether we send to groups, and therefore handle what joins and leaves them.
    has_groups: bool,
    version: (u8, u8),
    cipher: Option<Box<dyn Cipher>>,
    /// The current message, as far as the decoder cannot see it.
    opened: Meter,
    /// Whether the current message came in parts and has subscriptions.
    upstream_more: bool,
    upstream_subscribes: bool,
    /// A PING to send as soon as possible.
    owed_ping: bool,
    /// The number of bytes to send up to the end of the first PING that is not sent; 0 if there is none.
    before_ping: usize,
    /// The context of the last PING that is not answered. One is sufficient: a peer that sends more without reading the
    /// answers gains nothing from them, and must not make us store them.
    owed_pong: Option<Frame>,
}

/// The limits after the handshake.
pub(super) fn limits(config: &EngineConfig) -> Limits {
    let message = config.max_msg_size.unwrap_or(u64::MAX);
    Limits {
        message,
        // Parts take memory in addition to their bytes, which must not exceed the memory for the bytes.
        frames: config.max_frames.min(frames_for(message)),
        // A topic may be as long as a message.
        command: if config.socket_type.publishes() {
            message
                .saturating_add(command::SUBSCRIBE.len() as u64)
                .max(MAX_COMMAND)
        } else {
            MAX_COMMAND
        },
        commands_only: false,
    }
}

/// The maximum number of parts of a message with a limit of `bytes` bytes. Ordinary messages have fewer.
fn frames_for(bytes: u64) -> usize {
    const ALWAYS: usize = 1024;
    usize::try_from(bytes).map_or(usize::MAX, |bytes| (bytes / PART).max(ALWAYS))
}

impl Traffic {
    pub(super) fn new(socket_type: SocketType) -> Traffic {
        Traffic {
            publishes: socket_type.publishes(),
            has_groups: socket_type.has_groups(),
            version: (0, 0),
            cipher: None,
            opened: Meter::default(),
            upstream_more: false,
            upstream_subscribes: false,
            owed_ping: false,
            before_ping: 0,
            owed_pong: None,
        }
    }

    pub(super) fn start(&mut self, version: (u8, u8), cipher: Option<Box<dyn Cipher>>) {
        self.version = version;
        self.cipher = cipher;
    }

    pub(super) fn publishes(&self) -> bool {
        self.publishes
    }

    /// Whether there is an incomplete message that the decoder cannot see.
    #[inline]
    pub(super) fn is_opened(&self) -> bool {
        self.opened.in_message()
    }

    /// Whether a PING of ours has not been sent to its last byte.
    #[inline]
    pub(super) fn holds_ping(&self) -> bool {
        self.owed_ping || self.before_ping > 0
    }

    /// Whether a heartbeat waits to be sent.
    #[inline]
    pub(super) fn owes(&self) -> bool {
        self.owed_ping || self.owed_pong.is_some()
    }
}

impl Engine {
    pub(super) fn poll_traffic(&mut self) -> Option<Event> {
        loop {
            let decoded = match &mut self.traffic.cipher {
                None => self.decoder.decode(),
                Some(cipher) => self.decoder.decode_wrapped(&mut **cipher),
            };
            let accepted = match decoded {
                Ok(Some(frame)) => self.accept(frame),
                Ok(None) => {
                    self.dry = true;
                    if self.is_partial() {
                        self.stall.handle_part(self.now);
                    }
                    if !self.eof {
                        return None;
                    }
                    Err(match self.is_partial() {
                        true => CloseReason::Truncated,
                        false => CloseReason::PeerClosed,
                    })
                }
                Err(reason) => Err(reason),
            };
            match accepted {
                Ok(Some(frame)) => return Some(Event::Frame(frame)),
                Ok(None) => {}
                Err(reason) => {
                    self.close(reason);
                    return self.events.pop_front();
                }
            }
        }
    }

    /// Returns the frame if it is for the application, or `None` if it was for us.
    #[inline]
    fn accept(&mut self, frame: Frame) -> Result<Option<Frame>, CloseReason> {
        let traffic = &mut self.traffic;
        let data = frame.kind() == FrameKind::Data;
        let mut in_message = self.decoder.in_message();
        if traffic.cipher.is_some() {
            in_message = traffic.opened.in_message();
            if data {
                let size = frame.len() as u64;
                traffic.opened.check(size, &limits(&self.config))?;
                traffic.opened.count(size, frame.more());
            } else {
                // The decoder saw only the wrapping, which may be as long as a message.
                limits(&self.config).check_command(frame.len() as u64)?;
            }
        }
        if !data {
            return self.handle_command(frame, in_message);
        }
        if traffic.publishes {
            return Ok(Some(self.read_upstream(frame)));
        }
        Ok(Some(frame))
    }

    /// A message to a publisher. Before ZMTP 3.1, subscriptions are sent in this way, and it is still allowed.
    fn read_upstream(&mut self, mut frame: Frame) -> Frame {
        let traffic = &mut self.traffic;
        let first = !std::mem::replace(&mut traffic.upstream_more, frame.more());
        let kind = match frame.first() {
            Some(1) => FrameKind::Subscribe,
            Some(0) => FrameKind::Cancel,
            _ => FrameKind::Data,
        };
        if first {
            traffic.upstream_subscribes = kind != FrameKind::Data;
        }
        if !traffic.upstream_subscribes {
            return frame;
        }
        // Each part of such a message is a subscription, so no part continues another.
        frame.set_more(false);
        match kind {
            FrameKind::Data => frame,
            kind => topic(frame, 1, kind),
        }
    }

    fn handle_command(
        &mut self,
        frame: Frame,
        in_message: bool,
    ) -> Result<Option<Frame>, CloseReason> {
        let (name, data) = command::split(&frame)?;
        let unexpected = |expected| command::unexpected(expected, name);
        if self.traffic.version.0 < 3 {
            return Err(unexpected("messages of ZMTP 2.0").into());
        }
        match name {
            command::PING => {
                let (ttl, context) = command::parse_ping(data)?;
                self.traffic.owed_pong = Some(Frame::copy_from(context));
                self.heartbeat.handle_ping(ttl, self.now);
                self.send_owed();
            }
            command::SUBSCRIBE | command::CANCEL if self.traffic.publishes => {
                if in_message {
                    return Err(unexpected("the next frame of a message").into());
                }
                let kind = if name == command::SUBSCRIBE {
                    FrameKind::Subscribe
                } else {
                    FrameKind::Cancel
                };
                let prefix = name.len();
                return Ok(Some(topic(frame, prefix, kind)));
            }
            command::JOIN | command::LEAVE if self.traffic.has_groups => {
                if in_message {
                    return Err(unexpected("the next frame of a message").into());
                }
                let (kind, command) = if name == command::JOIN {
                    (FrameKind::Join, "JOIN")
                } else {
                    (FrameKind::Leave, "LEAVE")
                };
                command::check_group(command, data)?;
                return Ok(Some(Frame::with_kind(kind, data)));
            }
            command::READY => return Err(unexpected("messages").into()),
            command::ERROR => return Err(command::refusal(data)?),
            // A PONG has its effect by arriving. Unknown commands may come from a later version.
            _ => {}
        }
        Ok(None)
    }

    pub(super) fn handle_heartbeat(&mut self) {
        if self.traffic.owed_ping && self.encoder.backlog() == 0 {
            // The application has not finished a message, and no command may be within one.
            self.heartbeat.handle_delay(self.now);
        }
        match self.heartbeat.handle_timeout(self.now, self.dry) {
            Beat::Rest => {}
            Beat::Ping => self.ping(),
            Beat::Expired => self.close(CloseReason::HeartbeatTimeout),
        }
    }

    pub(super) fn look_for_peer(&mut self) {
        if self.is_closed() {
            return;
        }
        // Peers of an earlier version may not know the command.
        let understands = self.config.carrier_pings || self.traffic.version >= (3, 1);
        self.doubt = match self.watch.handle_timeout(self.now, self.dry) {
            Look::Rest => return,
            Look::Ask => Some(understands),
            Look::Doubt => Some(false),
        };
        if self.doubt == Some(true) {
            self.ping();
        }
    }

    fn ping(&mut self) {
        if self.config.carrier_pings {
            self.carrier_ping = true;
            return;
        }
        self.traffic.owed_ping = true;
        self.send_owed();
    }

    /// Bytes were sent while a PING of ours waited.
    #[cold]
    pub(super) fn note_before_ping(&mut self, count: usize) {
        let before = self.traffic.before_ping;
        self.traffic.before_ping = before.saturating_sub(count);
        if count > 0 {
            self.heartbeat.handle_delay(self.now);
        }
        if before > 0 && self.traffic.before_ping == 0 {
            self.heartbeat.handle_sent();
        }
    }

    /// Sends heartbeats, unless a message is incomplete or the peer does not read.
    pub(super) fn send_owed(&mut self) {
        if self.encoder.in_message() || self.encoder.backlog() >= self.config.out_batch {
            return;
        }
        if let Some(context) = self.traffic.owed_pong.take() {
            self.send_command(command::PONG, context);
        }
        if std::mem::take(&mut self.traffic.owed_ping) {
            let tenths = self.config.heartbeat_ttl.as_millis() / 100;
            let ttl = u16::try_from(tenths).unwrap_or(u16::MAX);
            self.send_command(command::PING, Frame::from(&ttl.to_be_bytes()));
            if self.traffic.before_ping == 0 {
                self.traffic.before_ping = self.encoder.backlog();
            }
        }
    }

    #[inline]
    pub(super) fn send_traffic(&mut self, mut frame: Frame) {
        match frame.kind() {
            FrameKind::Data => {
                if self.config.raw {
                    frame.set_more(false);
                }
                let more = frame.more();
                match &mut self.traffic.cipher {
                    None => self.encoder.put_data(frame),
                    Some(cipher) => {
                        let put = self.encoder.put_wrapped_data(&mut **cipher, &frame);
                        if let Err(reason) = put {
                            return self.close(reason);
                        }
                    }
                }
                if !more && self.traffic.owes() {
                    self.send_owed();
                }
            }
            FrameKind::Run => self.send_run(frame),
            _ => self.send_control(frame),
        }
    }

    #[inline]
    pub(super) fn send_traffic_copy(&mut self, frame: &Frame) -> bool {
        if self.config.raw || self.traffic.cipher.is_some() || frame.kind() != FrameKind::Data {
            return false;
        }
        if !self.encoder.put_small(frame) {
            return false;
        }
        if !frame.more() && self.traffic.owes() {
            self.send_owed();
        }
        true
    }

    fn send_run(&mut self, run: Frame) {
        if self.traffic.cipher.is_none() && self.encoder.put_run(&run) {
            if self.traffic.owes() {
                self.send_owed();
            }
        } else {
            run::frames(run).for_each(|frame| self.send_traffic(frame));
        }
    }

    fn send_control(&mut self, frame: Frame) {
        if self.config.raw {
            return;
        }
        debug_assert!(!self.encoder.in_message(), "inside a message");
        let has_commands = self.traffic.version >= (3, 0);
        let subscribes = self.traffic.version >= (3, 1);
        match frame.kind() {
            FrameKind::Subscribe if subscribes => self.send_command(command::SUBSCRIBE, frame),
            FrameKind::Cancel if subscribes => self.send_command(command::CANCEL, frame),
            FrameKind::Subscribe => self.send_subscription(1, frame),
            FrameKind::Cancel => self.send_subscription(0, frame),
            // libzmq 4.2 speaks ZMTP 3.0 and has groups, and so does ZWS 2.0.
            FrameKind::Join if has_commands => self.send_command(command::JOIN, frame),
            FrameKind::Leave if has_commands => self.send_command(command::LEAVE, frame),
            FrameKind::Command if has_commands => self.send_command(&[], frame),
            // Old peers, without commands.
            FrameKind::Join
            | FrameKind::Leave
            | FrameKind::Command
            | FrameKind::Data
            | FrameKind::Run => {}
        }
    }

    fn send_subscription(&mut self, byte: u8, topic: Frame) {
        match &mut self.traffic.cipher {
            None => self.encoder.put_control(&[byte], topic),
            Some(cipher) => {
                let prefix = [byte];
                let content = control(false, &prefix, &topic);
                if let Err(reason) = self.encoder.put_wrapped(&mut **cipher, content) {
                    self.close(reason);
                }
            }
        }
    }

    fn send_command(&mut self, name: &[u8], data: Frame) {
        match &mut self.traffic.cipher {
            None => self.encoder.put_command(name, data),
            Some(cipher) => {
                let content = control(true, name, &data);
                if let Err(reason) = self.encoder.put_wrapped(&mut **cipher, content) {
                    self.close(reason);
                }
            }
        }
    }
}

fn control<'a>(command: bool, prefix: &'a [u8], body: &'a [u8]) -> Content<'a> {
    Content {
        command,
        more: false,
        prefix,
        body,
    }
}

/// The topic after `prefix` bytes of a frame.
fn topic(frame: Frame, prefix: usize, kind: FrameKind) -> Frame {
    let mut topic = if frame.is_inline() {
        Frame::copy_from(&frame[prefix..])
    } else {
        Frame::from_bytes(frame.into_bytes().slice(prefix..))
    };
    topic.set_kind(kind);
    topic
}
