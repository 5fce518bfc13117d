//! [`Rig`]: one pattern under test, with the test controlling the far end of each of its pipes.

#[cfg(test)]
mod inside;

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;

use crate::error::{Error, ErrorKind};
use crate::patterns::drops::{DoomReason, DropReason};
use crate::patterns::pipe_set::{PipeSet, Side};
#[cfg(test)]
pub(super) use crate::patterns::rig::inside::{cancel, peer, subscribe};
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::{Limit, Pipe, PipeConfig, PipeEvent, PipeId, PipeOwner};

#[derive(Default)]
struct Inbox(Mutex<VecDeque<(PipeId, PipeEvent)>>);

impl Inbox {
    fn next(&self) -> Option<(PipeId, PipeEvent)> {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.pop_front()
    }
}

impl PipeOwner for Inbox {
    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        let mut events = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        events.push_back((id, event));
    }
}

/// A pattern for tests, without threads, sockets or time.
///
/// The rig replaces the socket: it passes the events of pipes to the pattern, flushes after each call, and removes the
/// pipes that leave. The test has the far ends, each named by the pipe's id, and [`settle`](Self::settle) is the moment
/// when the socket looks at what happened there. The calls panic if a test uses a far end that is gone.
pub struct Rig {
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) pipes: PipeSet,
    eager: bool,
    hwm: usize,
    inbox: Arc<Inbox>,
    pub(super) far: HashMap<PipeId, Pipe>,
    doomed: HashMap<PipeId, DoomReason>,
    /// Whether the last call ended before the pattern had read everything.
    is_behind: bool,
    /// The size of the largest datagram of the next pipes.
    largest: Option<usize>,
}

/// A message that was not sent, in the state in which the pattern left it.
#[derive(Debug)]
pub struct Rejected {
    /// The message, which must be unchanged.
    pub message: Message,
    /// The reason.
    pub error: Error,
}

/// The frames of a message as text; other bytes are escaped.
pub(super) type Text = Vec<String>;

pub(super) fn text(message: &Message) -> Text {
    message
        .iter()
        .map(|frame| match frame.kind() {
            FrameKind::Data => frame.escape_ascii().to_string(),
            kind => format!("{kind:?} {}", frame.escape_ascii()),
        })
        .collect()
}

impl Rig {
    /// A socket of this pattern. Its pipes have no high-water mark.
    pub fn new(spec: &PatternSpec) -> Rig {
        Rig::with_hwm(spec, 0)
    }

    /// A socket of this pattern. Both directions of each pipe are limited to `hwm` messages.
    pub fn with_hwm(spec: &PatternSpec, hwm: usize) -> Rig {
        Rig {
            pattern: (spec.new)(),
            pipes: PipeSet::new(),
            eager: spec.eager,
            hwm,
            inbox: Arc::default(),
            far: HashMap::new(),
            doomed: HashMap::new(),
            is_behind: false,
            largest: None,
        }
    }

    /// The next peers get datagrams of up to `largest` bytes.
    pub fn limit_datagrams(&mut self, largest: usize) {
        self.largest = Some(largest);
    }

    // ---- connections ----------------------------------------------------------------------

    /// The socket connects; the connection is not established yet.
    pub fn connect(&mut self) -> PipeId {
        self.attach(Side::Connecting)
    }

    /// A peer with the routing id `routing_id` connects.
    pub fn accept(&mut self, routing_id: &str) -> PipeId {
        self.accept_as(named(routing_id))
    }

    pub(super) fn accept_as(&mut self, peer: PeerInfo) -> PipeId {
        let id = self.attach(Side::Accepting);
        if self.far.contains_key(&id) {
            self.ready_as(id, peer);
        }
        id
    }

    fn attach(&mut self, side: Side) -> PipeId {
        let config = PipeConfig {
            limit_out: Some(Limit {
                messages: self.hwm,
                bytes: 0,
            }),
            ..PipeConfig::default()
        };
        let (mut near, far) = Pipe::pair(config, config);
        if side == Side::Connecting {
            near.set_peer_name(self.pattern.take_peer_name());
        }
        if let Some(largest) = self.largest {
            near.set_largest(largest);
        }
        let id = self.pipes.insert(near, "test://", side);
        if let Some(near) = self.pipes.get(id) {
            near.set_owner(self.inbox.clone(), id);
        }
        self.far.insert(id, far);
        self.pattern.attach(&mut self.pipes, id);
        self.pattern.readable(&mut self.pipes, id);
        self.end_call();
        id
    }

    /// The priorities of a peer change.
    pub fn set_priority(&mut self, id: PipeId, send: u8, recv: u8) {
        self.pattern.set_priority(id, Priority { send, recv });
    }

    /// The handshake is complete.
    pub fn ready(&mut self, id: PipeId, routing_id: &str) {
        self.ready_as(id, named(routing_id));
    }

    pub(super) fn ready_as(&mut self, id: PipeId, peer: PeerInfo) {
        self.far[&id].announce_ready(Arc::new(peer));
        self.settle();
    }

    /// The connection is lost, and will be re-established.
    pub fn disconnected(&mut self, id: PipeId) {
        self.far[&id].announce_disconnected();
        self.settle();
    }

    /// The far end leaves. The socket is notified at the next [`settle`](Self::settle).
    pub fn far_close(&mut self, id: PipeId) {
        let far = self.far.remove(&id);
        assert!(far.is_some(), "the far end of {id:?} has left before");
    }

    // ---- the far ends ---------------------------------------------------------------------

    /// The peer sends a message of these frames. The socket is notified at the next [`settle`](Self::settle).
    pub fn far_send<F: AsRef<[u8]>>(&mut self, id: PipeId, frames: impl IntoIterator<Item = F>) {
        let sent = self.far_try_send(id, message(frames));
        assert!(sent, "the pipe {id:?} is full");
    }

    pub(super) fn far_try_send(&mut self, id: PipeId, mut message: Message) -> bool {
        let far = self.far.get_mut(&id).expect("a far end that has not left");
        let has_room = far.check_write();
        if has_room {
            far.write_unchecked(&mut message);
            far.flush();
        }
        has_room
    }

    /// Everything that arrived at a far end, with the frames of one message joined by a slash.
    pub fn far_recv_all(&mut self, id: PipeId) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(message) = self.far_recv_message(id) {
            all.push(text(&message).join("/"));
        }
        self.settle();
        all
    }

    pub(super) fn far_recv_message(&mut self, id: PipeId) -> Option<Message> {
        let far = self.far.get_mut(&id)?;
        if far.check_read() { far.read() } else { None }
    }

    // ---- the application ------------------------------------------------------------------

    /// The application sends a message of these frames.
    ///
    /// # Errors
    /// That of the pattern.
    pub fn send<F: AsRef<[u8]>>(
        &mut self,
        frames: impl IntoIterator<Item = F>,
    ) -> Result<(), Rejected> {
        self.send_message(message(frames))
    }

    pub(super) fn send_message(&mut self, mut message: Message) -> Result<(), Rejected> {
        let result = self.pattern.send(&mut self.pipes, &mut message);
        self.end_call();
        result.map_err(|error| Rejected { message, error })
    }

    /// The application receives the frames of the next message, and learns which pipe it came from.
    ///
    /// # Errors
    /// That of the pattern.
    pub fn recv_from(&mut self) -> Result<(Vec<String>, Option<PipeId>), ErrorKind> {
        let mut result = self.recv_message();
        self.finish_call();
        while result.is_err() && self.is_behind {
            result = self.recv_message();
            self.finish_call();
        }
        result.map(|(message, from)| (text(&message), from))
    }

    /// Like [`recv_from`](Self::recv_from), before anything else happens.
    pub(super) fn recv_message(&mut self) -> Result<(Message, Option<PipeId>), ErrorKind> {
        let mut message = Message::new();
        match self.pattern.recv(&mut self.pipes, &mut message) {
            Ok(from) => Ok((message, from)),
            Err(error) => Err(error.kind()),
        }
    }

    /// The application receives everything there is, with the frames of one message joined by a slash.
    pub fn recv_all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok((message, _)) = self.recv_from() {
            all.push(message.join("/"));
        }
        self.settle();
        all
    }

    /// Whether the application could send.
    pub fn can_send(&mut self) -> bool {
        let can = self.pattern.can_send(&mut self.pipes);
        self.finish_call();
        can
    }

    /// Whether the application could receive.
    pub fn can_recv(&mut self) -> bool {
        loop {
            let can = self.pattern.can_recv(&mut self.pipes);
            // A peer may pass its name on to one that waits for it. A socket has an event of its end then.
            let has_leaving = self.pipes.has_leaving();
            self.finish_call();
            if can || !(self.is_behind || has_leaving) {
                return can;
            }
        }
    }

    // ---- the socket's part ----------------------------------------------------------------

    /// Passes on events, as a socket does when it looks.
    pub fn settle(&mut self) {
        while let Some((id, event)) = self.inbox.next() {
            if self.pipes.get(id).is_none() {
                continue;
            }
            match event {
                PipeEvent::Readable => self.pattern.readable(&mut self.pipes, id),
                PipeEvent::Writable => self.pattern.writable(&mut self.pipes, id),
                PipeEvent::Closed => self.pattern.far_closed(&mut self.pipes, id),
                PipeEvent::Ready => {
                    self.pipes.get(id).map(Pipe::meets_peer);
                    self.pattern.ready(&mut self.pipes, id);
                }
                PipeEvent::Disconnected => {
                    self.pipes.get(id).map(Pipe::parts_from_peer);
                    self.pattern.disconnected(&mut self.pipes, id);
                }
                PipeEvent::HungUp => self.pattern.hung_up(&mut self.pipes, id),
                PipeEvent::Sent | PipeEvent::Gathering => {}
                PipeEvent::Asked => self.pipes.publish_gathered(),
            }
            self.end_call();
        }
        if !self.eager {
            // A socket looks before it sleeps, which arms the pipes.
            self.can_recv();
        }
    }

    /// A call is over, and what it has left is done.
    fn end_call(&mut self) {
        self.finish_call();
        while self.is_behind {
            self.pattern.go_on(&mut self.pipes);
            self.finish_call();
        }
    }

    pub(super) fn finish_call(&mut self) {
        self.pipes.flush();
        while let Some(id) = self.pipes.next_leaving() {
            self.pattern.detach(&mut self.pipes, id);
            if let Some(reason) = self.pipes.remove(id).and_then(|removed| removed.doomed) {
                self.doomed.insert(id, reason);
            }
            self.pipes.flush();
        }
        self.is_behind = self.pipes.is_spent();
        self.pipes.restore_effort();
    }

    /// Time has passed: deadlines up to `now` are due.
    pub fn handle_timeout(&mut self, now: Instant) {
        self.pattern.handle_timeout(&mut self.pipes, now);
        self.end_call();
    }

    // ---- results ---------------------------------------------------------------------------

    /// Whether the socket has removed the pipe.
    pub fn is_gone(&mut self, id: PipeId) -> bool {
        self.pipes.get(id).is_none()
    }

    /// The number of messages that were dropped for this reason.
    pub fn dropped(&self, reason: DropReason) -> u64 {
        self.pipes.counters().dropped(reason)
    }
}

pub(super) fn message<F: AsRef<[u8]>>(frames: impl IntoIterator<Item = F>) -> Message {
    Message::from_frames(
        frames
            .into_iter()
            .map(|frame| Frame::copy_from(frame.as_ref())),
    )
}

fn named(routing_id: &str) -> PeerInfo {
    PeerInfo {
        routing_id: Bytes::copy_from_slice(routing_id.as_bytes()),
        ..PeerInfo::default()
    }
}
