//! XSUB: a subscriber whose application sends its subscriptions as messages.

use std::mem;

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::ids;
use crate::patterns::distributor::Distributor;
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::subscriber::Subscriber;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Xsub {
    subscriber: Subscriber,
    inbound: FairQueue,
    /// For messages that are not subscriptions.
    upstream: Distributor,
}

impl Xsub {
    fn send_upstream(&mut self, pipes: &mut PipeSet, message: &mut Message) {
        self.upstream.mark_all();
        if self.upstream.marked() == 0 {
            self.upstream.unmark();
            pipes.count_drop(None, DropReason::NoPeer);
            return;
        }
        self.upstream.send(pipes, message);
    }

    fn send_part(&mut self, pipes: &mut PipeSet, part: Frame) {
        match called(&part) {
            Some((FrameKind::Subscribe, topic)) => self.subscriber.subscribe(pipes, topic),
            Some((_, topic)) => self.subscriber.unsubscribe(pipes, topic),
            None => self.send_upstream(pipes, &mut Message::single(part)),
        }
    }
}

/// A subscription or its end in the application's format: 1 or 0, then the topic. Proxies may pass on frames whose kind
/// already identifies them.
fn called(frame: &Frame) -> Option<(FrameKind, &[u8])> {
    match (frame.kind(), frame.as_slice()) {
        (kind @ (FrameKind::Subscribe | FrameKind::Cancel), topic) => Some((kind, topic)),
        (_, [1, topic @ ..]) => Some((FrameKind::Subscribe, topic)),
        (_, [0, topic @ ..]) => Some((FrameKind::Cancel, topic)),
        _ => None,
    }
}

impl Pattern for Xsub {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
        self.upstream.insert(id);
    }

    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        self.inbound.set_priority(id, priority.recv);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.subscriber.ready(pipes, id);
    }

    fn disconnected(&mut self, _: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
    }

    fn hung_up(&mut self, _: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
    }

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.upstream.writable(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
        self.upstream.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn withdrawn(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard(id, DropReason::TooSlow);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
        self.upstream.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        if called(message.head()).is_some() {
            // Each part of such a message is a separate subscription or message.
            message.take_frames(|part| self.send_part(pipes, mem::take(part)));
        } else {
            self.send_upstream(pipes, message);
        }
        Ok(())
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.inbound.recv_to(pipes, message) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn topics(&self) -> Option<usize> {
        Some(self.subscriber.topics())
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        true
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.inbound.can_recv(pipes)
    }
}

pub(super) static XSUB: PatternSpec = PatternSpec {
    lingers: false,
    options: &[ids::ONLY_FIRST_SUBSCRIBE, ids::TOPICS_COUNT],
    ..PatternSpec::new(SocketType::Xsub, || Box::new(Xsub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::PatternOption;
    use crate::patterns::rig::{Rig, cancel, subscribe};
    use bytes::Bytes;

    #[test]
    fn messages_that_begin_with_one_or_zero_are_subscriptions() {
        let mut rig = Rig::new(&XSUB);
        assert!(rig.can_send());
        rig.send(["\x01early"]).unwrap();
        let id = rig.accept("");
        rig.send(["\x01a"]).unwrap();
        rig.send(["\x01a"]).unwrap();
        rig.send(["\x00a"]).unwrap();
        rig.send(["\x00never"]).unwrap();
        rig.send(["\x01"]).unwrap();
        assert_eq!(
            rig.far_recv_all(id),
            [
                "Subscribe early",
                "Subscribe a",
                "Subscribe a",
                "Subscribe "
            ]
        );
        rig.send(["\x00a"]).unwrap();
        rig.send_message(subscribe("k")).unwrap();
        rig.send_message(cancel("k")).unwrap();
        assert_eq!(
            rig.far_recv_all(id),
            ["Cancel a", "Subscribe k", "Cancel k"]
        );
    }

    #[test]
    fn each_part_of_a_subscription_message_stands_alone() {
        let mut rig = Rig::new(&XSUB);
        let id = rig.accept("");
        rig.send(["\x01a", "\x01b", "hello", "\x00a"]).unwrap();
        assert_eq!(
            rig.far_recv_all(id),
            ["Subscribe a", "Subscribe b", "hello", "Cancel a"]
        );
        // A message that begins otherwise is one message.
        rig.send(["hello", "\x01c"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["hello/\\x01c"]);
    }

    #[test]
    fn other_messages_go_to_every_publisher_and_wait_for_none() {
        let mut rig = Rig::with_hwm(&XSUB, 2);
        rig.send(["nobody"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoPeer), 1);
        let a = rig.accept("");
        let b = rig.accept("");
        for n in 0..4 {
            rig.send([format!("m{n}")]).unwrap();
            rig.far_recv_all(b);
        }
        assert_eq!(rig.far_recv_all(a), ["m0", "m1"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 2);
        rig.send([""]).unwrap();
        assert_eq!(rig.far_recv_all(a), [""]);
    }

    #[test]
    fn everything_is_received_whatever_was_subscribed_to() {
        let mut rig = Rig::new(&XSUB);
        let id = rig.accept("");
        rig.far_send(id, ["x", "y"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(
            rig.recv_from().unwrap(),
            (vec!["x".into(), "y".into()], Some(id))
        );
        assert_eq!(
            rig.set(PatternOption::Subscribe(Bytes::new())),
            Err(ErrorKind::Invalid)
        );
    }

    #[test]
    fn publishers_get_the_subscriptions_again_after_a_reconnect() {
        let mut rig = Rig::with_hwm(&XSUB, 1);
        let id = rig.connect();
        rig.send(["\x01a"]).unwrap();
        rig.send(["\x01b"]).unwrap();
        for _ in 0..2 {
            rig.ready(id, "");
            assert_eq!(rig.far_recv_all(id), ["Subscribe a", "Subscribe b"]);
            rig.disconnected(id);
        }
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_empty());
    }
}
