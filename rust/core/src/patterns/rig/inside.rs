//! What only the tests of the library's own patterns need: the inside of pipes.

use std::fmt::Debug;

use super::*;
use crate::options::PatternOption;

impl Rig {
    /// A peer connects, with its first event before any other event is processed, as over inproc.
    pub(in crate::patterns) fn accept_at_once(&mut self, routing_id: &str) -> PipeId {
        let id = self.attach(Side::Accepting);
        self.far[&id].set_far_peer(Arc::new(peer(routing_id)));
        self.pattern.ready(&mut self.pipes, id);
        self.pattern.readable(&mut self.pipes, id);
        self.finish_call();
        id
    }

    /// The session adds its mark after the messages of a lost connection.
    pub(in crate::patterns) fn far_lapse(&mut self, id: PipeId) {
        self.far.get_mut(&id).unwrap().mark_lapse();
    }

    /// The connection loses messages that were passed to the kernel; `never_arrived` of them had certainly not arrived.
    pub(in crate::patterns) fn far_loses(&mut self, id: PipeId, lost: u64, never_arrived: u64) {
        let far = &self.far[&id];
        far.account(lost);
        assert!(
            far.account_lost(0, lost, never_arrived),
            "the socket has the pipe"
        );
    }

    pub(in crate::patterns) fn far_send_message(&mut self, id: PipeId, message: Message) {
        assert!(self.far_try_send(id, message), "room in the pipe");
    }

    pub(in crate::patterns) fn far_recv(&mut self, id: PipeId) -> Option<Text> {
        self.far_recv_message(id).as_ref().map(text)
    }

    /// The far end is a connection, which accepts runs.
    pub(in crate::patterns) fn far_takes_runs(&mut self, id: PipeId) {
        self.far[&id].take_runs();
    }

    /// The far end asks for the gathered messages, if it was notified.
    pub(in crate::patterns) fn far_asks(&mut self, id: PipeId) {
        self.far[&id].ask();
        self.settle();
    }

    /// The messages that arrived at a far end, as the number of messages in each frame, and how many are waiting there.
    pub(in crate::patterns) fn far_loads(&mut self, id: PipeId) -> (Vec<u32>, u64) {
        let far = self.far.get_mut(&id).unwrap();
        let queued = far.queued_in();
        let frames = std::iter::from_fn(|| far.read_frame());
        let loads = frames.map(|frame| frame.load().messages.max(1)).collect();
        assert_eq!(far.queued_in(), 0);
        (loads, queued)
    }

    /// A connection is established and its peer hangs up before the socket looks.
    pub(in crate::patterns) fn far_comes_and_goes(&mut self, id: PipeId, routing_id: &str) {
        self.far[&id].announce_ready(Arc::new(peer(routing_id)));
        self.far_hang_up(id);
    }

    /// The peer hangs up, while messages that it sent wait for room. One to which the socket connects may return.
    pub(in crate::patterns) fn far_hang_up(&mut self, id: PipeId) {
        let returns = self.pipes.side(id) == Some(Side::Connecting);
        self.far[&id].announce_hang_up(returns);
        self.settle();
    }

    /// The same for a peer that does not return.
    pub(in crate::patterns) fn far_hang_up_for_good(&mut self, id: PipeId) {
        self.far[&id].announce_hang_up(false);
        self.settle();
    }

    /// Whether the far end still exists.
    pub(in crate::patterns) fn has_far(&self, id: PipeId) -> bool {
        self.far.contains_key(&id)
    }

    /// Whether the socket has closed its end.
    pub(in crate::patterns) fn is_far_end_closed(&self, id: PipeId) -> bool {
        self.far[&id].is_far_closed()
    }

    pub(in crate::patterns) fn recv(&mut self) -> Result<Text, ErrorKind> {
        self.recv_from().map(|(message, _)| message)
    }

    pub(in crate::patterns) fn set(&mut self, option: PatternOption) -> Result<(), ErrorKind> {
        let result = self.pattern.set(&mut self.pipes, &option);
        self.finish_call();
        result.map_err(|error| error.kind())
    }

    pub(in crate::patterns) fn doomed(&self, id: PipeId) -> Option<DoomReason> {
        self.doomed.get(&id).copied()
    }

    pub(in crate::patterns) fn is_empty(&self) -> bool {
        self.pipes.ids().is_empty()
    }

    pub(in crate::patterns) fn dropped_in_all(&self) -> u64 {
        let counters = self.pipes.counters();
        DropReason::ALL.iter().map(|r| counters.dropped(*r)).sum()
    }
}

pub(in crate::patterns) fn peer(routing_id: impl AsRef<[u8]> + Debug) -> PeerInfo {
    PeerInfo {
        routing_id: Bytes::copy_from_slice(routing_id.as_ref()),
        ..PeerInfo::default()
    }
}

pub(in crate::patterns) fn subscribe(topic: &str) -> Message {
    Message::single(Frame::with_kind(FrameKind::Subscribe, topic.as_bytes()))
}

pub(in crate::patterns) fn cancel(topic: &str) -> Message {
    Message::single(Frame::with_kind(FrameKind::Cancel, topic.as_bytes()))
}
