//! SUB: receives messages that match its subscriptions.

use std::time::Instant;

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::{DoomReason, DropReason};
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::lag::Lag;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::subscriber::Subscriber;
use crate::patterns::{Pattern, PatternSpec, Priority};
use crate::pipe::PipeId;
use crate::sys::clock;

#[derive(Default)]
struct Sub {
    subscriber: Subscriber,
    inbound: FairQueue,
    /// Whether to receive messages that do not match.
    invert: bool,
    /// This is received before the messages in the pipes.
    found: Option<Found>,
    /// Set with MAX_LAG.
    lag: Option<Lag>,
}

enum Found {
    /// A matching message that was found but not taken yet.
    Message(Message, PipeId),
    /// The next call fails. The message, if there is one, is received after that.
    Trouble(Trouble, Option<(Message, PipeId)>),
}

enum Trouble {
    /// In these pipes, a message has waited for longer than MAX_LAG.
    Late(Vec<PipeId>),
    /// An error that is already known.
    Error(Error),
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
            if !pipes.drop_read(Some(id), message, DropReason::Filtered) {
                return None;
            }
        }
    }

    #[cold]
    fn take_found(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        match self.found.take() {
            Some(Found::Message(found, id)) => {
                *message = found;
                Ok(Some(id))
            }
            Some(Found::Trouble(trouble, next)) => {
                self.found = next.map(|(message, id)| Found::Message(message, id));
                Err(match trouble {
                    Trouble::Late(late) => self.catch_up(pipes, &late),
                    Trouble::Error(error) => error,
                })
            }
            None => Err(Error::new(ErrorKind::Again)),
        }
    }

    /// Drops everything that waits in these pipes, and leaves their publishers, because the buffers on the way hold older
    /// messages as well. Messages that a publisher sends after the socket has joined it again are current.
    fn catch_up(&mut self, pipes: &mut PipeSet, late: &[PipeId]) -> Error {
        let mut dropped = 0;
        if let Some(Found::Message(_, id)) = &self.found
            && late.contains(id)
        {
            pipes.count_drop(Some(*id), DropReason::TooSlow);
            self.found = None;
            dropped += 1;
        }
        for id in late {
            dropped += pipes.queued_in(*id);
            pipes.discard(*id, DropReason::TooSlow);
            if !pipes.is_local(*id) {
                pipes.doom(*id, DoomReason::Late);
            }
            self.lag.iter_mut().for_each(|lag| lag.forget(*id));
        }
        let max = self.lag.as_ref().map_or(0, |lag| lag.max().as_millis());
        let text = format!(
            "a message has waited for more than {max} ms (MAX_LAG); {dropped} waiting messages were dropped, and those that are sent from now on can be received. Receive faster, subscribe to less, or raise MAX_LAG"
        );
        Error::with(ErrorKind::TooSlow, text)
    }

    /// Makes the next call of the application fail.
    fn fail(&mut self, trouble: Trouble) {
        let next = match self.found.take() {
            Some(Found::Message(message, id) | Found::Trouble(_, Some((message, id)))) => {
                Some((message, id))
            }
            Some(Found::Trouble(_, None)) | None => None,
        };
        self.found = Some(Found::Trouble(trouble, next));
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

    fn hung_up(&mut self, _: &mut PipeSet, id: PipeId) {
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

    fn withdrawn(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard(id, DropReason::TooSlow);
        let text = "the publisher has disconnected this socket, because its queue was full (SLOW_SUBSCRIBER). Connect again to receive what is sent from now on";
        self.fail(Trouble::Error(Error::with(ErrorKind::TooSlow, text)));
    }

    fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.subscriber.remove(id);
        self.inbound.remove(id);
        if let Some(lag) = &mut self.lag {
            lag.forget(id);
        }
    }

    fn send(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<()> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        if self.found.is_some() {
            return self.take_found(pipes, message);
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
            let next = self.next(pipes, &mut message);
            self.found = next.map(|id| Found::Message(message, id));
        }
        self.found.is_some()
    }

    fn set(&mut self, pipes: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::Subscribe(topic) => self.subscriber.subscribe(pipes, topic),
            PatternOption::Unsubscribe(topic) => self.subscriber.unsubscribe(pipes, topic),
            PatternOption::InvertMatching(on) => self.invert = *on,
            PatternOption::MaxLag(max) => self.lag = max.map(|max| Lag::new(max, clock::now())),
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }

    fn put_off(&mut self, error: Error) {
        self.fail(Trouble::Error(error));
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.lag.as_ref().map(Lag::due)
    }

    fn handle_timeout(&mut self, pipes: &mut PipeSet, now: Instant) {
        let Some(lag) = &mut self.lag else { return };
        let late = lag.look(pipes, now);
        let is_known = matches!(&self.found, Some(Found::Trouble(Trouble::Error(_), _)));
        if !late.is_empty() && !is_known {
            self.fail(Trouble::Late(late));
        }
    }
}

pub(super) static SUB: PatternSpec = PatternSpec {
    can_send: false,
    conflates: true,
    single_connect: true,
    lingers: false,
    timed: true,
    options: &[
        ids::SUBSCRIBE,
        ids::UNSUBSCRIBE,
        ids::INVERT_MATCHING,
        ids::TOPICS_COUNT,
        ids::MAX_LAG,
    ],
    ..PatternSpec::new(SocketType::Sub, || Box::new(Sub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;
    use bytes::Bytes;
    use std::time::Duration;

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
    fn a_publisher_that_has_hung_up_gets_nothing_more() {
        let mut rig = Rig::new(&SUB);
        let id = rig.connect();
        rig.ready(id, "");
        rig.far_hang_up(id);
        subscribe(&mut rig, "a");
        assert!(rig.far_recv_all(id).is_empty());
        rig.disconnected(id);
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["Subscribe a"]);
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
    fn limited(max: Duration) -> (Rig, Instant) {
        let mut rig = Rig::new(&SUB);
        subscribe(&mut rig, "");
        rig.set(PatternOption::MaxLag(Some(max))).unwrap();
        let due = rig.pattern.poll_timeout().unwrap();
        (rig, due)
    }

    #[test]
    fn an_application_that_is_too_slow_learns_it_and_leaves_that_publisher() {
        const MAX: Duration = Duration::from_millis(400);
        let (mut rig, due) = limited(MAX);
        let (late, prompt) = (rig.accept(""), rig.accept(""));
        for body in ["1", "2", "3"] {
            rig.far_send(late, [body]);
        }
        rig.handle_timeout(due);
        rig.far_send(prompt, ["prompt"]);
        rig.settle();
        rig.handle_timeout(due + MAX);
        assert!(rig.can_recv());
        // Whatever arrives until the error is dropped, too.
        rig.far_send(late, ["4"]);
        let mut message = Message::new();
        let error = rig.pattern.recv(&mut rig.pipes, &mut message).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TooSlow);
        let text = error.to_string();
        assert!(
            text.contains("400 ms") && text.contains("; 4 waiting"),
            "{text}"
        );
        assert_eq!(rig.dropped(DropReason::TooSlow), 4);
        assert_eq!(rig.recv_all(), ["prompt"]);
        assert_eq!(rig.doomed(late), Some(DoomReason::Late));
        assert_eq!(rig.doomed(prompt), None);
        rig.handle_timeout(due + 2 * MAX);
        assert!(!rig.can_recv(), "one error for one gap");
    }

    #[test]
    fn an_error_that_did_not_reach_the_application_is_returned_again() {
        let (mut rig, due) = limited(Duration::from_millis(1));
        let id = rig.accept("");
        rig.far_send(id, ["1"]);
        rig.handle_timeout(due);
        rig.handle_timeout(due + Duration::from_secs(1));
        let mut message = Message::new();
        let error = rig.pattern.recv(&mut rig.pipes, &mut message).unwrap_err();
        rig.pattern.put_off(error);
        assert_eq!(rig.recv(), Err(ErrorKind::TooSlow));
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        rig.set(PatternOption::MaxLag(None)).unwrap();
        assert_eq!(rig.pattern.poll_timeout(), None);
    }
}
