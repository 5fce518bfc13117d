//! PUB: sends each message to its subscribers, and never waits.

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::publisher::{Audience, Publisher};
use crate::patterns::{Pattern, PatternSpec, Spills};
use crate::pipe::PipeId;

#[derive(Default)]
struct Pub {
    audience: Audience,
}

/// Processes the message of a peer: a subscription, or its end.
fn hear(publisher: &mut Publisher, pipes: &mut PipeSet, id: PipeId, topic: &Frame) {
    match topic.kind() {
        FrameKind::Subscribe => {
            if publisher.admits(pipes, id, topic, None) {
                publisher.subscribers.add(topic, id);
            }
        }
        FrameKind::Cancel => {
            publisher.subscribers.remove(topic, id);
        }
        // An XSUB may send messages upstream, but the application cannot receive them here.
        _ => pipes.count_drop(Some(id), DropReason::Filtered),
    }
}

impl Pattern for Pub {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.audience.publisher.attach(id);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.audience.publisher.ready(pipes, id);
        self.audience.ready(pipes, id, hear);
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.audience.listen(pipes, id, hear);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.audience.publisher.writable(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.audience.listen(pipes, id, hear);
    }

    fn go_on(&mut self, pipes: &mut PipeSet) {
        self.audience.go_on(pipes, hear);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.audience.detach(pipes, id);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        self.audience.publisher.send(pipes, message)
    }

    fn recv(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<Option<PipeId>> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn topics(&self) -> Option<usize> {
        Some(self.audience.publisher.subscribers.topics())
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        self.audience.publisher.can_send()
    }

    fn can_recv(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn subscribed(&mut self, _: &mut PipeSet, topic: &[u8]) -> Option<Vec<PipeId>> {
        Some(self.audience.publisher.subscribed(topic))
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            // These concern notifications, which PUB does not have.
            PatternOption::XpubVerbose(_) | PatternOption::XpubVerboser(_) => Ok(()),
            option => self.audience.publisher.set(option),
        }
    }
}

pub(super) static PUB: PatternSpec = PatternSpec {
    can_recv: false,
    conflates: true,
    single_connect: true,
    eager: true,
    spills: Spills::ForEachPeer,
    options: &[
        ids::XPUB_VERBOSE,
        ids::XPUB_NODROP,
        ids::XPUB_WELCOME_MSG,
        ids::INVERT_MATCHING,
        ids::XPUB_VERBOSER,
        ids::ONLY_FIRST_SUBSCRIBE,
        ids::TOPICS_COUNT,
        ids::MAX_SUBSCRIPTIONS,
        ids::MAX_SUBSCRIPTION_BYTES,
        ids::SLOW_SUBSCRIBER,
        ids::SPILL_DIR,
        ids::SPILL_BYTES,
        ids::SPILL_KEEP,
    ],
    ..PatternSpec::new(SocketType::Pub, || Box::new(Pub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SlowSubscriber;
    use crate::patterns::drops::DoomReason;
    use crate::patterns::pipe_set::Side;
    use crate::patterns::rig::{Rig, cancel, message, subscribe};
    use crate::pipe::{Pipe, PipeConfig};
    use bytes::Bytes;

    fn subscriber(rig: &mut Rig, topics: &[&str]) -> PipeId {
        let id = rig.accept("");
        for topic in topics {
            rig.far_send_message(id, subscribe(topic));
        }
        rig.settle();
        id
    }

    #[test]
    fn messages_go_once_to_each_subscriber_of_a_prefix() {
        let mut rig = Rig::new(&PUB);
        let a = subscriber(&mut rig, &["w", "we", "weather"]);
        let b = subscriber(&mut rig, &[""]);
        let none = subscriber(&mut rig, &[]);
        rig.send(["weather/ulm", "4"]).unwrap();
        rig.send(["sports"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["weather/ulm/4"]);
        assert_eq!(rig.far_recv_all(b), ["weather/ulm/4", "sports"]);
        assert!(rig.far_recv_all(none).is_empty());
        assert_eq!(rig.dropped_in_all(), 0);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::NotSupported);
    }

    #[test]
    fn messages_without_a_subscriber_are_counted_as_such() {
        let mut rig = Rig::new(&PUB);
        assert!(rig.can_send());
        rig.send(["x"]).unwrap();
        let id = subscriber(&mut rig, &["y"]);
        rig.send(["x"]).unwrap();
        rig.far_send_message(id, cancel("y"));
        rig.settle();
        rig.send(["y"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 3);
    }

    #[test]
    fn bytes_of_topics_are_limited_and_repeated_topics_cost_nothing() {
        let mut rig = Rig::new(&PUB);
        rig.set(PatternOption::MaxSubscriptionBytes(10)).unwrap();
        rig.set(PatternOption::MaxSubscriptions(3)).unwrap();
        let (a, b) = (rig.accept(""), rig.accept(""));
        let tell = |rig: &mut Rig, id, message| {
            rig.far_send_message(id, message);
            rig.settle();
        };
        for topic in ["01234567", "abc", "ab", "01234567", "ab"] {
            tell(&mut rig, a, subscribe(topic));
        }
        assert_eq!(rig.dropped(DropReason::Excess), 1, "abc alone");
        tell(&mut rig, b, subscribe("abc"));
        tell(&mut rig, a, cancel("unknown"));
        tell(&mut rig, a, cancel("01234567"));
        for topic in ["abc", "x", "x", "y"] {
            tell(&mut rig, a, subscribe(topic));
        }
        assert_eq!(rig.dropped(DropReason::Excess), 2, "y is a topic too many");
        rig.send(["abcd"]).unwrap();
        rig.send(["y"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["abcd"]);
        assert_eq!(rig.far_recv_all(b), ["abcd"]);
    }

    #[test]
    fn one_topic_too_many_is_ignored_and_counted() {
        let mut rig = Rig::new(&PUB);
        rig.set(PatternOption::MaxSubscriptions(2)).unwrap();
        let id = subscriber(&mut rig, &["a", "b", "c"]);
        let other = subscriber(&mut rig, &["c"]);
        rig.send(["c"]).unwrap();
        assert!(rig.far_recv_all(id).is_empty());
        assert_eq!(rig.far_recv_all(other), ["c"]);
        assert_eq!(rig.dropped(DropReason::Excess), 1);
        rig.far_send_message(id, cancel("a"));
        rig.far_send_message(id, subscribe("c"));
        rig.settle();
        rig.send(["c"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["c"]);
    }

    #[test]
    fn topics_of_a_lost_connection_count_until_the_peer_is_back() {
        for says_something in [true, false] {
            let mut rig = Rig::new(&PUB);
            let id = rig.connect();
            rig.ready(id, "");
            rig.far_send_message(id, subscribe("old"));
            rig.settle();
            rig.far_lapse(id);
            rig.disconnected(id);
            rig.send(["old, for later"]).unwrap();
            if says_something {
                // Both connections may be found before either was reported.
                rig.far_send_message(id, subscribe("new"));
            }
            rig.ready(id, "");
            rig.send(["old"]).unwrap();
            rig.send(["new"]).unwrap();
            let expected = ["old, for later", "new"];
            let count = 1 + usize::from(says_something);
            assert_eq!(rig.far_recv_all(id), expected[..count]);
            // No topic counts twice for the peer.
            rig.far_send_message(id, cancel("new"));
            rig.settle();
            rig.send(["new"]).unwrap();
            assert!(rig.far_recv_all(id).is_empty());
        }
    }

    #[test]
    fn a_cancel_without_a_subscription_changes_nothing() {
        let mut rig = Rig::new(&PUB);
        let id = subscriber(&mut rig, &["a"]);
        let other = subscriber(&mut rig, &["b"]);
        for topic in ["b", "b", "never", "", "a", "a"] {
            rig.far_send_message(id, cancel(topic));
        }
        rig.settle();
        rig.send(["a"]).unwrap();
        rig.send(["b"]).unwrap();
        assert!(rig.far_recv_all(id).is_empty());
        assert_eq!(rig.far_recv_all(other), ["b"]);
    }

    #[test]
    fn a_hundred_thousand_subscriptions_arrive_with_an_idle_application() {
        let mut rig = Rig::with_hwm(&PUB, 1000);
        for _ in 0..2 {
            let id = rig.accept("");
            for n in 0..100_000 {
                // The peer's connection waits while the pipe is full, and is notified of room.
                while !rig.far_try_send(id, subscribe(&format!("topic {n}."))) {
                    rig.settle();
                }
            }
            rig.settle();
            for n in [0, 999, 1000, 50_000, 99_999] {
                rig.send([format!("topic {n}.x")]).unwrap();
                assert_eq!(rig.far_recv_all(id), [format!("topic {n}.x")]);
            }
            assert_eq!(rig.dropped_in_all(), 0);
            rig.far_close(id);
            rig.settle();
            assert!(rig.is_empty());
        }
    }

    #[test]
    fn a_slow_subscriber_misses_messages_alone_until_it_has_read_half() {
        let mut rig = Rig::with_hwm(&PUB, 4);
        let slow = subscriber(&mut rig, &[""]);
        let fast = subscriber(&mut rig, &[""]);
        let mut seen = Vec::new();
        for n in 0..100 {
            rig.send([format!("{n}")]).unwrap();
            seen.extend(rig.far_recv_all(fast));
        }
        assert_eq!(seen.len(), 100);
        assert_eq!(rig.dropped(DropReason::HighWater), 96);
        // One read of four does not make enough room, two do.
        assert_eq!(rig.far_recv(slow).unwrap(), ["0"]);
        rig.settle();
        rig.send(["missed"]).unwrap();
        assert_eq!(rig.far_recv(slow).unwrap(), ["1"]);
        rig.settle();
        rig.send(["seen"]).unwrap();
        assert_eq!(rig.far_recv_all(slow), ["2", "3", "seen"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 97);
    }

    /// Subscribers with connections that are busy: none of them has asked for more messages.
    fn busy_subscribers(rig: &mut Rig) -> Vec<PipeId> {
        let ids: Vec<PipeId> = (0..5).map(|_| subscriber(rig, &[""])).collect();
        ids.iter().for_each(|id| rig.far_takes_runs(*id));
        ids
    }

    #[test]
    fn messages_for_many_busy_subscribers_are_gathered_until_one_asks() {
        let mut rig = Rig::new(&PUB);
        let ids = busy_subscribers(&mut rig);
        for n in 0..10 {
            rig.send([format!("{n}"), "more".to_owned()]).unwrap();
        }
        // The first write found them busy; each message has two frames.
        assert_eq!(rig.far_loads(ids[1]), (vec![1, 1], 1));
        let asked = ids.iter().filter(|id| {
            rig.far_asks(**id);
            rig.far_loads(ids[1]) == (vec![9], 9)
        });
        assert_eq!(asked.count(), 1);
        // Every subscriber gets every message once.
        for id in [ids[0], ids[4]] {
            assert_eq!(rig.far_loads(id), (vec![1, 1, 9], 10));
        }
        assert_eq!(rig.dropped_in_all(), 0);
    }

    #[test]
    fn nothing_is_gathered_for_waiting_subscribers() {
        let mut rig = Rig::new(&PUB);
        let ids = busy_subscribers(&mut rig);
        for n in 0..3 {
            rig.send([format!("{n}")]).unwrap();
            for id in &ids {
                assert_eq!(rig.far_recv_all(*id), [format!("{n}")]);
            }
        }
    }

    #[test]
    fn gathered_messages_come_before_all_others() {
        let mut rig = Rig::new(&PUB);
        let ids = busy_subscribers(&mut rig);
        let short = vec![b's'; 100];
        let long = vec![b'l'; 10_000];
        for body in [&short, &short, &short, &long, &short, &short] {
            rig.send([body]).unwrap();
        }
        // Another call of the application.
        rig.can_send();
        let (loads, queued) = rig.far_loads(ids[0]);
        assert_eq!(loads.iter().sum::<u32>(), 6);
        assert_eq!((&loads[..3], queued), (&[1, 2, 1][..], 6));
        // Not for all subscribers, so not in the same run.
        rig.send([&short]).unwrap();
        rig.send([&short]).unwrap();
        rig.far_send_message(ids[4], cancel(""));
        rig.settle();
        rig.send([&short]).unwrap();
        rig.can_send();
        assert_eq!(rig.far_loads(ids[0]).1, 3);
        assert_eq!(rig.far_loads(ids[4]).1, 6 + 2);
    }

    #[test]
    fn gathering_takes_no_more_than_there_is_room_for() {
        let mut rig = Rig::with_hwm(&PUB, 4);
        let ids = busy_subscribers(&mut rig);
        for n in 0..100 {
            rig.send([format!("{n}")]).unwrap();
        }
        rig.can_send();
        for id in &ids {
            assert_eq!(rig.far_loads(*id), (vec![1, 3], 4));
        }
        assert_eq!(rig.dropped(DropReason::HighWater), 5 * 96);
    }

    #[test]
    fn a_subscriber_that_leaves_while_messages_are_gathered_misses_them() {
        let mut rig = Rig::new(&PUB);
        let ids = busy_subscribers(&mut rig);
        for n in 0..4 {
            rig.send([format!("{n}")]).unwrap();
        }
        ids[..4].iter().for_each(|id| rig.far_close(*id));
        rig.settle();
        assert_eq!(rig.far_loads(ids[4]), (vec![1, 3], 4));
        assert_eq!(rig.dropped(DropReason::PeerGone), 4 * 3);
    }

    #[test]
    fn nodrop_waits_for_the_subscribers_of_the_message() {
        let mut rig = Rig::with_hwm(&PUB, 2);
        rig.set(PatternOption::SlowSubscriber(SlowSubscriber::Wait))
            .unwrap();
        let slow = subscriber(&mut rig, &["s"]);
        let fast = subscriber(&mut rig, &[""]);
        rig.send(["s", "1"]).unwrap();
        rig.send(["s", "2"]).unwrap();
        assert_eq!(rig.far_recv_all(fast).len(), 2);
        let rejected = rig.send(["s", "3"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, message(["s", "3"]));
        assert!(!rig.can_send());
        rig.send(["other"]).unwrap();
        // No subscriber got the rejected one.
        assert_eq!(rig.far_recv_all(fast), ["other"]);
        assert_eq!(rig.far_recv_all(slow), ["s/1", "s/2"]);
        assert!(rig.can_send());
        rig.send(["s", "3"]).unwrap();
        assert_eq!(rig.far_recv_all(slow), ["s/3"]);
        rig.far_recv_all(fast);
        // A full subscriber that leaves is not waited for.
        rig.send(["s", "4"]).unwrap();
        rig.send(["s", "5"]).unwrap();
        rig.far_recv_all(fast);
        assert!(rig.send(["s", "6"]).is_err());
        rig.far_close(slow);
        rig.send(["s", "6"]).unwrap();
        rig.settle();
        assert!(rig.can_send());
        assert_eq!(rig.far_recv_all(fast), ["s/6"]);
    }

    #[test]
    fn a_subscriber_that_is_too_slow_is_disconnected_if_requested() {
        let mut rig = Rig::with_hwm(&PUB, 2);
        let slow = subscriber(&mut rig, &[""]);
        let fast = subscriber(&mut rig, &[""]);
        let mut sent = 0;
        let mut send = |rig: &mut Rig| {
            sent += 1;
            rig.send([sent.to_string()]).unwrap();
            rig.far_recv_all(fast)
        };
        for _ in 0..3 {
            assert_eq!(send(&mut rig).len(), 1);
        }
        assert_eq!(rig.doomed(slow), None);
        assert_eq!(rig.dropped(DropReason::HighWater), 1);
        let then = PatternOption::SlowSubscriber(SlowSubscriber::Disconnect);
        rig.set(then).unwrap();
        assert_eq!(send(&mut rig), ["4"]);
        assert_eq!(rig.doomed(slow), Some(DoomReason::TooSlow));
        assert_eq!(rig.dropped(DropReason::TooSlow), 1);
        assert!(rig.can_send());
        assert_eq!(send(&mut rig), ["5"]);
        assert_eq!(
            rig.dropped_in_all(),
            2,
            "the slow one does not count any more"
        );
    }

    #[test]
    fn gathered_messages_show_who_is_too_slow() {
        let mut rig = Rig::with_hwm(&PUB, 4);
        let then = PatternOption::SlowSubscriber(SlowSubscriber::Disconnect);
        rig.set(then).unwrap();
        let ids = busy_subscribers(&mut rig);
        for n in 0..5 {
            rig.send([format!("{n}")]).unwrap();
        }
        for id in ids {
            assert_eq!(rig.doomed(id), Some(DoomReason::TooSlow));
        }
    }

    #[test]
    fn a_dead_subscriber_gets_nothing_and_its_topics_are_forgotten() {
        let mut rig = Rig::new(&PUB);
        let dead = subscriber(&mut rig, &["x"]);
        rig.far_close(dead);
        rig.settle();
        assert!(rig.is_gone(dead));
        rig.send(["x"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
        // Its index is reused by another peer, which inherits nothing.
        let next = subscriber(&mut rig, &["y"]);
        rig.send(["x"]).unwrap();
        rig.send(["y"]).unwrap();
        assert_eq!(rig.far_recv_all(next), ["y"]);
    }

    #[test]
    fn topics_do_not_outlive_their_subscriber() {
        let mut socket = Pub::default();
        let mut pipes = PipeSet::new();
        for _ in 0..3 {
            let config = PipeConfig::default();
            let (near, mut far) = Pipe::pair(config, config);
            let id = pipes.insert(near, "test://", Side::Accepting);
            socket.attach(&mut pipes, id);
            far.write(subscribe("topic")).unwrap();
            far.flush();
            socket.readable(&mut pipes, id);
            assert_eq!(socket.audience.publisher.subscribers.topics(), 1);
            socket.detach(&mut pipes, id);
            pipes.remove(id);
            assert_eq!(socket.audience.publisher.subscribers.topics(), 0);
        }
    }

    #[test]
    fn inverted_matching_sends_to_all_others() {
        let mut rig = Rig::new(&PUB);
        rig.set(PatternOption::InvertMatching(true)).unwrap();
        let a = subscriber(&mut rig, &["a"]);
        let b = subscriber(&mut rig, &["b"]);
        rig.send(["a1"]).unwrap();
        assert!(rig.far_recv_all(a).is_empty());
        assert_eq!(rig.far_recv_all(b), ["a1"]);
        rig.far_send_message(b, subscribe("a"));
        rig.settle();
        rig.send(["a2"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
    }

    #[test]
    fn each_new_subscriber_is_welcomed() {
        let mut rig = Rig::new(&PUB);
        let welcome = |text| PatternOption::XpubWelcomeMsg(Bytes::from_static(text));
        rig.set(welcome(b"hello")).unwrap();
        let a = rig.accept("");
        assert_eq!(rig.far_recv_all(a), ["hello"]);
        rig.set(welcome(b"")).unwrap();
        let b = rig.accept("");
        assert!(rig.far_recv_all(b).is_empty());
    }

    #[test]
    fn messages_from_below_are_not_kept() {
        let mut rig = Rig::new(&PUB);
        let id = rig.accept("");
        rig.far_send(id, ["hello", "there"]);
        rig.settle();
        assert_eq!(rig.dropped(DropReason::Filtered), 1);
        assert_eq!(
            rig.set(PatternOption::XpubManual(true)),
            Err(ErrorKind::Invalid)
        );
        assert_eq!(
            rig.set(PatternOption::Subscribe(Bytes::new())),
            Err(ErrorKind::Invalid)
        );
        rig.set(PatternOption::XpubVerbose(true)).unwrap();
    }

    #[test]
    fn a_publisher_that_connects_continues_for_its_subscriber_after_a_broken_connection() {
        let mut rig = Rig::new(&PUB);
        let id = rig.connect();
        rig.ready(id, "");
        rig.far_send_message(id, subscribe("x"));
        rig.settle();
        rig.disconnected(id);
        rig.send(["x1"]).unwrap();
        rig.ready(id, "");
        rig.send(["x2"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["x1", "x2"]);
    }

    fn large(n: usize) -> Vec<u8> {
        vec![n as u8; 256 << 10]
    }

    #[test]
    fn nodrop_drops_nothing_although_the_pipe_saw_the_room_first() {
        let mut rig = Rig::with_hwm(&PUB, 100);
        rig.set(PatternOption::SlowSubscriber(SlowSubscriber::Wait))
            .unwrap();
        let id = subscriber(&mut rig, &[""]);
        let mut sent = 0;
        while sent < 5 {
            rig.send([large(sent)]).unwrap();
            sent += 1;
        }
        let mut got = 0;
        while got < 3 {
            rig.far_recv(id).unwrap();
            got += 1;
        }
        while rig.send([large(sent)]).is_ok() {
            sent += 1;
        }
        assert!(!rig.can_send());
        // The pattern is notified of room, but there is none yet.
        rig.far_recv(id).unwrap();
        got += 1;
        rig.settle();
        while rig.send([large(sent)]).is_ok() {
            sent += 1;
        }
        for _ in 0..3 {
            rig.far_recv(id).unwrap();
            got += 1;
            rig.settle();
        }
        for _ in 0..4 {
            if rig.send([large(sent)]).is_ok() {
                sent += 1;
            }
        }
        while rig.far_recv(id).is_some() {
            got += 1;
            rig.settle();
        }
        for _ in 0..4 {
            if rig.send(["small"]).is_ok() {
                sent += 1;
            }
        }
        while rig.far_recv(id).is_some() {
            got += 1;
            rig.settle();
        }
        rig.settle();
        assert_eq!((got, rig.dropped_in_all(), rig.can_send()), (sent, 0, true));
    }

    #[test]
    fn checking_for_a_run_does_not_affect_a_full_pipe() {
        let mut rig = Rig::with_hwm(&PUB, 100);
        let ids = busy_subscribers(&mut rig);
        let all = |rig: &mut Rig, ids: &[PipeId]| {
            for id in ids {
                rig.far_loads(*id);
            }
        };
        let slow = ids[0];
        for n in 0..5 {
            rig.send([large(n)]).unwrap();
        }
        for _ in 0..3 {
            rig.far_recv(slow).unwrap();
        }
        for n in 0..101 {
            rig.send([large(n)]).unwrap();
            all(&mut rig, &ids[1..]);
        }
        assert!(rig.dropped(DropReason::HighWater) > 0);
        rig.far_recv(slow).unwrap();
        rig.settle();
        rig.send([large(1)]).unwrap();
        all(&mut rig, &ids[1..]);
        for _ in 0..3 {
            rig.far_recv(slow).unwrap();
            rig.settle();
        }
        // Small messages that are considered for gathering.
        for _ in 0..2 {
            rig.send(["small"]).unwrap();
        }
        rig.can_send();
        for id in &ids {
            while rig.far_loads(*id).1 > 0 {}
        }
        for id in &ids {
            assert!(rig.far_recv(*id).is_none());
            rig.settle();
        }
        // The reader is idle and asleep from here on.
        let mut seen = 0;
        for n in 0..1000 {
            rig.send([format!("{n}")]).unwrap();
            for id in &ids {
                rig.far_asks(*id);
                let got = rig.far_loads(*id).1;
                if *id == slow {
                    seen += got;
                }
                assert!(rig.far_recv(*id).is_none());
                rig.settle();
            }
        }
        assert_eq!(seen, 1000);
    }

    #[test]
    fn nodrop_drops_nothing_before_it_is_notified_of_room() {
        let mut rig = Rig::with_hwm(&PUB, 100);
        rig.set(PatternOption::SlowSubscriber(SlowSubscriber::Wait))
            .unwrap();
        let id = subscriber(&mut rig, &[""]);
        let (mut sent, mut got) = (0, 0);
        for _ in 0..50 {
            rig.send(["x"]).unwrap();
            sent += 1;
        }
        for _ in 0..10 {
            rig.far_recv(id).unwrap();
            got += 1;
        }
        while rig.send(["x"]).is_ok() {
            sent += 1;
        }
        for _ in 0..70 {
            rig.far_recv(id).unwrap();
            got += 1;
            rig.settle();
            if rig.send(["x"]).is_ok() {
                sent += 1;
            }
        }
        while rig.far_recv(id).is_some() {
            got += 1;
            rig.settle();
        }
        assert_eq!((got, rig.dropped_in_all()), (sent, 0));
    }
}
