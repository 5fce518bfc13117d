//! One pattern under test, with the test controlling the far end of each of its pipes.
//!
//! It replaces the socket: it passes the pipes' events to the pattern, flushes after each call, and removes the pipes
//! that leave, all on request. No threads, no sockets, no time.

use std::collections::{HashMap, VecDeque};
use std::fmt::Debug;
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;

use crate::error::{Error, ErrorKind};
use crate::options::PatternOption;
use crate::patterns::pipe_set::{DoomReason, DropReason, PipeSet, Side};
use crate::patterns::{Pattern, PatternSpec};
use crate::pipe::{Limit, Pipe, PipeConfig, PipeEvent, PipeId, PipeOwner};

#[derive(Default)]
struct Inbox(Mutex<VecDeque<(PipeId, PipeEvent)>>);

impl PipeOwner for Inbox {
    fn on_pipe(&self, id: PipeId, event: PipeEvent) {
        self.0.lock().unwrap().push_back((id, event));
    }
}

pub(super) struct Rig {
    pub(super) pattern: Box<dyn Pattern>,
    pub(super) pipes: PipeSet,
    eager: bool,
    hwm: usize,
    inbox: Arc<Inbox>,
    far: HashMap<PipeId, Pipe>,
    doomed: HashMap<PipeId, DoomReason>,
}

/// A message that was not sent, in the state in which the pattern left it.
#[derive(Debug)]
pub(super) struct Rejected {
    pub(super) message: Message,
    pub(super) error: Error,
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
    pub(super) fn new(spec: &PatternSpec) -> Rig {
        Rig::with_hwm(spec, 0)
    }

    /// Both directions of each pipe are limited to `hwm` messages.
    pub(super) fn with_hwm(spec: &PatternSpec, hwm: usize) -> Rig {
        Rig {
            pattern: (spec.new)(),
            pipes: PipeSet::new(),
            eager: spec.eager,
            hwm,
            inbox: Arc::default(),
            far: HashMap::new(),
            doomed: HashMap::new(),
        }
    }

    // ---- connections ----------------------------------------------------------------------

    /// The socket connects; the connection is not established yet.
    pub(super) fn connect(&mut self) -> PipeId {
        self.attach(Side::Connecting)
    }

    /// A peer with the routing id `routing_id` connects.
    pub(super) fn accept(&mut self, routing_id: &str) -> PipeId {
        self.accept_as(peer(routing_id))
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
        let id = self.pipes.insert(near, "test://", side);
        let inbox = self.inbox.clone();
        self.pipes.get(id).unwrap().set_owner(inbox, id);
        self.far.insert(id, far);
        self.pattern.attach(&mut self.pipes, id);
        self.pattern.readable(&mut self.pipes, id);
        self.finish_call();
        id
    }

    /// A peer connects, with its first event before any other event is processed, as over inproc.
    pub(super) fn accept_at_once(&mut self, routing_id: &str) -> PipeId {
        let id = self.attach(Side::Accepting);
        self.far[&id].set_far_peer(Arc::new(peer(routing_id)));
        self.pattern.ready(&mut self.pipes, id);
        self.pattern.readable(&mut self.pipes, id);
        self.finish_call();
        id
    }

    /// The handshake is complete.
    pub(super) fn ready(&mut self, id: PipeId, routing_id: &str) {
        self.ready_as(id, peer(routing_id));
    }

    pub(super) fn ready_as(&mut self, id: PipeId, peer: PeerInfo) {
        self.far[&id].announce_ready(Arc::new(peer));
        self.settle();
    }

    /// The connection is lost, and will be re-established.
    pub(super) fn disconnected(&mut self, id: PipeId) {
        self.far[&id].announce_disconnected();
        self.settle();
    }

    /// The session adds its mark after the messages of a lost connection.
    pub(super) fn far_lapse(&mut self, id: PipeId) {
        self.far.get_mut(&id).unwrap().mark_lapse();
    }

    /// The connection loses messages that were passed to the kernel; `never_arrived` of them had certainly not arrived.
    pub(super) fn far_loses(&mut self, id: PipeId, lost: u64, never_arrived: u64) {
        let far = &self.far[&id];
        far.account(lost);
        far.account_lost(0, lost, never_arrived);
    }

    /// The far end leaves. The socket is notified at the next `settle`.
    pub(super) fn far_close(&mut self, id: PipeId) {
        self.far.remove(&id).unwrap();
    }

    // ---- the far ends ---------------------------------------------------------------------

    pub(super) fn far_send<F: AsRef<[u8]>>(
        &mut self,
        id: PipeId,
        frames: impl IntoIterator<Item = F>,
    ) {
        self.far_send_message(id, message(frames));
    }

    pub(super) fn far_send_message(&mut self, id: PipeId, message: Message) {
        let far = self.far.get_mut(&id).unwrap();
        far.write(message).expect("room in the pipe");
        far.flush();
    }

    /// Like [`far_send`](Self::far_send), as long as there is room.
    pub(super) fn far_try_send(&mut self, id: PipeId, message: Message) -> bool {
        let far = self.far.get_mut(&id).unwrap();
        let sent = far.write(message).is_ok();
        far.flush();
        sent
    }

    pub(super) fn far_recv(&mut self, id: PipeId) -> Option<Text> {
        self.far_recv_message(id).as_ref().map(text)
    }

    pub(super) fn far_recv_message(&mut self, id: PipeId) -> Option<Message> {
        let far = self.far.get_mut(&id)?;
        if far.check_read() { far.read() } else { None }
    }

    /// The far end is a connection, which accepts runs.
    pub(super) fn far_takes_runs(&mut self, id: PipeId) {
        self.far[&id].take_runs();
    }

    /// The far end asks for the gathered messages, if it was notified.
    pub(super) fn far_asks(&mut self, id: PipeId) {
        self.far[&id].ask();
        self.settle();
    }

    /// The messages that arrived at a far end, as the number of messages in each frame, and how many are waiting there.
    pub(super) fn far_loads(&mut self, id: PipeId) -> (Vec<u32>, u64) {
        let far = self.far.get_mut(&id).unwrap();
        let queued = far.queued_in();
        let frames = std::iter::from_fn(|| far.read_frame());
        let loads = frames.map(|frame| frame.load().messages.max(1)).collect();
        assert_eq!(far.queued_in(), 0);
        (loads, queued)
    }

    /// Whether the far end still exists.
    pub(super) fn has_far(&self, id: PipeId) -> bool {
        self.far.contains_key(&id)
    }

    /// Everything that arrived at a far end, frames of one message joined with a slash.
    pub(super) fn far_recv_all(&mut self, id: PipeId) -> Vec<String> {
        let mut all = Vec::new();
        while let Some(message) = self.far_recv(id) {
            all.push(message.join("/"));
        }
        self.settle();
        all
    }

    /// Whether the socket has closed its end.
    pub(super) fn is_far_end_closed(&self, id: PipeId) -> bool {
        self.far[&id].is_far_closed()
    }

    // ---- the application ------------------------------------------------------------------

    pub(super) fn send<F: AsRef<[u8]>>(
        &mut self,
        frames: impl IntoIterator<Item = F>,
    ) -> Result<(), Rejected> {
        self.send_message(message(frames))
    }

    pub(super) fn send_message(&mut self, mut message: Message) -> Result<(), Rejected> {
        let result = self.pattern.send(&mut self.pipes, &mut message);
        self.finish_call();
        result.map_err(|error| Rejected { message, error })
    }

    pub(super) fn recv(&mut self) -> Result<Text, ErrorKind> {
        self.recv_from().map(|(message, _)| message)
    }

    pub(super) fn recv_from(&mut self) -> Result<(Text, Option<PipeId>), ErrorKind> {
        let result = self.recv_message();
        self.finish_call();
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

    pub(super) fn recv_all(&mut self) -> Vec<String> {
        let mut all = Vec::new();
        while let Ok(message) = self.recv() {
            all.push(message.join("/"));
        }
        self.settle();
        all
    }

    pub(super) fn can_send(&mut self) -> bool {
        let can = self.pattern.can_send(&mut self.pipes);
        self.finish_call();
        can
    }

    pub(super) fn can_recv(&mut self) -> bool {
        let can = self.pattern.can_recv(&mut self.pipes);
        self.finish_call();
        can
    }

    pub(super) fn set(&mut self, option: PatternOption) -> Result<(), ErrorKind> {
        let result = self.pattern.set(&mut self.pipes, &option);
        self.finish_call();
        result.map_err(|error| error.kind())
    }

    // ---- the socket's part ----------------------------------------------------------------

    /// Passes on events, as a socket does when it looks.
    pub(super) fn settle(&mut self) {
        loop {
            let next = self.inbox.0.lock().unwrap().pop_front();
            let Some((id, event)) = next else { break };
            if self.pipes.get(id).is_none() {
                continue;
            }
            match event {
                PipeEvent::Readable => self.pattern.readable(&mut self.pipes, id),
                PipeEvent::Writable => self.pattern.writable(&mut self.pipes, id),
                PipeEvent::Closed => self.pattern.far_closed(&mut self.pipes, id),
                PipeEvent::Ready => self.pattern.ready(&mut self.pipes, id),
                PipeEvent::Disconnected => self.pattern.disconnected(&mut self.pipes, id),
                PipeEvent::Sent | PipeEvent::Gathering => {}
                PipeEvent::Asked => self.pipes.publish_gathered(),
            }
            self.finish_call();
        }
        if !self.eager {
            // A socket looks before it sleeps, which arms the pipes.
            self.can_recv();
        }
    }

    fn finish_call(&mut self) {
        self.pipes.flush();
        while let Some(id) = self.pipes.next_leaving() {
            self.pattern.detach(&mut self.pipes, id);
            let removed = self.pipes.remove(id).expect("a pipe leaves once");
            if let Some(reason) = removed.doomed {
                self.doomed.insert(id, reason);
            }
            self.pipes.flush();
        }
    }

    // ---- results ---------------------------------------------------------------------------

    pub(super) fn doomed(&self, id: PipeId) -> Option<DoomReason> {
        self.doomed.get(&id).copied()
    }

    pub(super) fn is_gone(&mut self, id: PipeId) -> bool {
        self.pipes.get(id).is_none()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pipes.ids().is_empty()
    }

    pub(super) fn dropped(&self, reason: DropReason) -> u64 {
        self.pipes.counters().dropped(reason)
    }

    pub(super) fn dropped_in_all(&self) -> u64 {
        let counters = self.pipes.counters();
        DropReason::ALL.iter().map(|r| counters.dropped(*r)).sum()
    }
}

pub(super) fn message<F: AsRef<[u8]>>(frames: impl IntoIterator<Item = F>) -> Message {
    Message::from_frames(
        frames
            .into_iter()
            .map(|frame| Frame::copy_from(frame.as_ref())),
    )
}

pub(super) fn peer(routing_id: impl AsRef<[u8]> + Debug) -> PeerInfo {
    PeerInfo {
        routing_id: Bytes::copy_from_slice(routing_id.as_ref()),
        ..PeerInfo::default()
    }
}

pub(super) fn subscribe(topic: &str) -> Message {
    Message::single(Frame::with_kind(FrameKind::Subscribe, topic.as_bytes()))
}

pub(super) fn cancel(topic: &str) -> Message {
    Message::single(Frame::with_kind(FrameKind::Cancel, topic.as_bytes()))
}
