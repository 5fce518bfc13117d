//! The common part of SUB and XSUB: the subscriptions, and sending them to all publishers.

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;
use zeroxide_proto::subscription::{Removal, Subscriptions};

use crate::patterns::pipe_set::PipeSet;
use crate::patterns::ring::Ring;
use crate::pipe::PipeId;

/// The subscriptions, which every connected publisher knows.
///
/// A publisher that connects or reconnects gets all of them, so none is lost with a connection, and none needs room in
/// a queue. They are exempt from the high-water mark.
#[derive(Default)]
pub(super) struct Subscriber {
    subscriptions: Subscriptions,
    connected: Ring,
}

impl Subscriber {
    /// A connection is established, and its publisher knows no subscriptions yet.
    pub(super) fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.connected.insert(id);
        self.subscriptions.for_each(|topic| {
            pipes.write_exempt(id, call(FrameKind::Subscribe, topic));
        });
    }

    /// A connection has ended.
    pub(super) fn remove(&mut self, id: PipeId) {
        self.connected.remove(id);
    }

    /// Adds a reference to a prefix. It is sent each time, because a publisher may want to see each (XPUB_VERBOSE).
    pub(super) fn subscribe(&mut self, pipes: &mut PipeSet, topic: &[u8]) {
        self.subscriptions.add(topic);
        self.tell(pipes, FrameKind::Subscribe, topic);
    }

    /// Removes a reference. The last removal is sent.
    pub(super) fn unsubscribe(&mut self, pipes: &mut PipeSet, topic: &[u8]) {
        if self.subscriptions.remove(topic) == Removal::Last {
            self.tell(pipes, FrameKind::Cancel, topic);
        }
    }

    /// The number of distinct topics.
    pub(super) fn topics(&self) -> usize {
        self.subscriptions.len()
    }

    /// Whether any prefix matches.
    #[inline]
    pub(super) fn matches(&self, text: &[u8]) -> bool {
        self.subscriptions.matches(text)
    }

    fn tell(&self, pipes: &mut PipeSet, kind: FrameKind, topic: &[u8]) {
        self.connected
            .for_each(|id| pipes.write_exempt(id, call(kind, topic)));
    }
}

fn call(kind: FrameKind, topic: &[u8]) -> Message {
    Message::single(Frame::with_kind(kind, topic))
}
