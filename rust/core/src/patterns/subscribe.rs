//! SUB: receives messages that match its subscriptions.

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::pipe_set::{DropReason, PipeSet};
use crate::patterns::subscriber::Subscriber;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;

#[derive(Default)]
struct Sub {
    subscriber: Subscriber,
    inbound: FairQueue,
    /// Whether to receive messages that do not match.
    invert: bool,
    /// A matching message that was found but not taken yet.
    found: Option<(Message, PipeId)>,
}

impl Sub {
    /// The next matching message. A publisher may have sent other messages before it learned about the end of a
    /// subscription, and some publishers do not filter at all.
    #[inline]
    fn next(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Option<PipeId> {
        loop {
            let id = self.inbound.recv_to(pipes, message)?;
            if self.subscriber.matches(message.head()) != self.invert {
                return Some(id);
            }
            *message = Message::new();
            pipes.count_drop(Some(id), DropReason::Filtered);
        }
    }
}

impl Pattern for Sub {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
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

    fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
    }

    fn writable(&mut self, _: &mut PipeSet, _: PipeId) {}

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
        self.inbound.far_closed(pipes, id);
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
        self.inbound.remove(id);
    }

    fn send(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<()> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        if let Some((found, id)) = self.found.take() {
            *message = found;
            return Ok(Some(id));
        }
        match self.next(pipes, message) {
            Some(id) => Ok(Some(id)),
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    fn topics(&self) -> Option<usize> {
        Some(self.subscriber.topics())
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        if self.found.is_none() {
            let mut message = Message::new();
            self.found = self.next(pipes, &mut message).map(|id| (message, id));
        }
        self.found.is_some()
    }

    fn set(&mut self, pipes: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::Subscribe(topic) => self.subscriber.subscribe(pipes, topic),
            PatternOption::Unsubscribe(topic) => self.subscriber.unsubscribe(pipes, topic),
            PatternOption::InvertMatching(on) => self.invert = *on,
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

pub(super) static SUB: PatternSpec = PatternSpec {
    can_send: false,
    conflates: true,
    single_connect: true,
    lingers: false,
    options: &[
        ids::SUBSCRIBE,
        ids::UNSUBSCRIBE,
        ids::INVERT_MATCHING,
        ids::TOPICS_COUNT,
    ],
    ..PatternSpec::new(SocketType::Sub, || Box::new(Sub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;
    use bytes::Bytes;

    fn subscribe(rig: &mut Rig, topic: &str) {
        let topic = Bytes::copy_from_slice(topic.as_bytes());
        rig.set(PatternOption::Subscribe(topic)).unwrap();
    }

    fn unsubscribe(rig: &mut Rig, topic: &str) {
        let topic = Bytes::copy_from_slice(topic.as_bytes());
        rig.set(PatternOption::Unsubscribe(topic)).unwrap();
    }

    #[test]
    fn publishers_get_the_subscriptions_and_again_after_each_reconnect() {
        let mut rig = Rig::new(&SUB);
        subscribe(&mut rig, "b");
        let id = rig.connect();
        subscribe(&mut rig, "a");
        assert!(rig.far_recv_all(id).is_empty(), "not connected yet");
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["Subscribe a", "Subscribe b"]);
        subscribe(&mut rig, "c");
        assert_eq!(rig.far_recv_all(id), ["Subscribe c"]);
        rig.disconnected(id);
        unsubscribe(&mut rig, "b");
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["Subscribe a", "Subscribe c"]);
        let other = rig.accept("");
        assert_eq!(rig.far_recv_all(other), ["Subscribe a", "Subscribe c"]);
    }

    #[test]
    fn references_are_counted_and_only_the_last_end_is_sent() {
        let mut rig = Rig::new(&SUB);
        let id = rig.accept("");
        subscribe(&mut rig, "t");
        subscribe(&mut rig, "t");
        unsubscribe(&mut rig, "t");
        unsubscribe(&mut rig, "never");
        assert_eq!(rig.far_recv_all(id), ["Subscribe t", "Subscribe t"]);
        rig.far_send(id, ["t1"]);
        rig.settle();
        assert_eq!(rig.recv().unwrap(), ["t1"]);
        unsubscribe(&mut rig, "t");
        unsubscribe(&mut rig, "t");
        assert_eq!(rig.far_recv_all(id), ["Cancel t"]);
    }

    #[test]
    fn messages_that_do_not_match_are_dropped_completely_and_counted() {
        let mut rig = Rig::new(&SUB);
        let id = rig.accept("");
        rig.far_send(id, ["t0", "t"]);
        rig.settle();
        assert!(!rig.can_recv());
        subscribe(&mut rig, "t");
        for message in [&["t1", "x"][..], &["x", "t"], &[""], &["t2"]] {
            rig.far_send(id, message);
        }
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv_all(), ["t1/x", "t2"]);
        assert_eq!(rig.dropped(DropReason::Filtered), 3);
        subscribe(&mut rig, "");
        rig.far_send(id, [""]);
        rig.settle();
        assert_eq!(rig.recv_from().unwrap(), (vec!["".into()], Some(id)));
        assert_eq!(
            rig.send(["x"]).unwrap_err().error.kind(),
            ErrorKind::NotSupported
        );
    }

    #[test]
    fn inverted_matching_receives_everything_else() {
        let mut rig = Rig::new(&SUB);
        rig.set(PatternOption::InvertMatching(true)).unwrap();
        let id = rig.accept("");
        subscribe(&mut rig, "t");
        rig.far_send(id, ["t"]);
        rig.far_send(id, ["x"]);
        rig.settle();
        assert_eq!(rig.recv_all(), ["x"]);
    }

    #[test]
    fn subscriptions_need_no_room() {
        let mut rig = Rig::with_hwm(&SUB, 10);
        let id = rig.accept("");
        for n in 0..100_000 {
            subscribe(&mut rig, &format!("{n:06}"));
        }
        assert_eq!(rig.far_recv_all(id).len(), 100_000);
        let late = rig.connect();
        rig.ready(late, "");
        let told = rig.far_recv_all(late);
        assert_eq!(
            (told.len(), &told[99_999][..]),
            (100_000, "Subscribe 099999")
        );
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn publishers_are_read_fairly_and_dead_ones_get_nothing() {
        let mut rig = Rig::new(&SUB);
        subscribe(&mut rig, "");
        let a = rig.accept("");
        let b = rig.accept("");
        rig.far_send(a, ["a1"]);
        rig.far_send(a, ["a2"]);
        rig.far_send(b, ["b1"]);
        rig.far_close(a);
        subscribe(&mut rig, "x");
        rig.settle();
        assert_eq!(rig.recv_all(), ["a1", "b1", "a2"]);
        assert!(rig.is_gone(a));
        assert_eq!(rig.far_recv_all(b), ["Subscribe ", "Subscribe x"]);
    }
}
