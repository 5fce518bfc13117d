//! RADIO: sends each message to the members of its group, and never waits.
//!
//! The message of a group has two frames: the group, then the body. Groups are topics of a [`Publisher`], followed by a
//! zero byte. No group contains a zero byte, so such a topic is never a prefix of another one.

use zeroxide_proto::datagram;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::{GROUP_MAX, Message};
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::dgram;
use crate::patterns::dish::check_group;
use crate::patterns::drops::DropReason;
use crate::patterns::pipe_set::PipeSet;
use crate::patterns::publisher::{Audience, Publisher};
use crate::patterns::{Pattern, PatternSpec, single_part};
use crate::pipe::PipeId;

struct Radio {
    audience: Audience,
    /// Peers that get datagrams, with the size of the largest one.
    datagrams: Vec<(PipeId, usize)>,
    /// The smallest of these sizes.
    largest: usize,
}

impl Default for Radio {
    fn default() -> Radio {
        Radio {
            audience: Audience::default(),
            datagrams: Vec::new(),
            largest: usize::MAX,
        }
    }
}

/// The topic of a group.
struct Topic {
    bytes: [u8; GROUP_MAX + 1],
    len: usize,
}

impl Topic {
    /// `group` has at most [`GROUP_MAX`] bytes.
    fn of(group: &[u8]) -> Topic {
        let mut bytes = [0; GROUP_MAX + 1];
        let len = group.len().min(GROUP_MAX);
        bytes[..len].copy_from_slice(&group[..len]);
        Topic {
            bytes,
            len: len + 1,
        }
    }

    fn as_slice(&self) -> &[u8] {
        &self.bytes[..self.len]
    }
}

/// Processes the message of a peer: a request to join a group, or to leave one.
fn hear(publisher: &mut Publisher, pipes: &mut PipeSet, id: PipeId, group: &Frame) {
    let topic = Topic::of(group);
    let topic = topic.as_slice();
    match group.kind() {
        FrameKind::Join => {
            if publisher.admits(pipes, id, topic, None) {
                publisher.subscribers.add(topic, id);
            }
        }
        FrameKind::Leave => {
            publisher.subscribers.remove(topic, id);
        }
        _ => pipes.count_drop(Some(id), DropReason::Filtered),
    }
}

impl Radio {
    /// No peer joins groups by datagrams: all groups are sent, and the receivers choose.
    fn admit_to_all(&mut self, id: PipeId, largest: usize) {
        self.audience.publisher.subscribers.add(b"", id);
        self.datagrams.push((id, largest));
        self.find_largest();
    }

    fn find_largest(&mut self) {
        let sizes = self.datagrams.iter().map(|(_, largest)| *largest);
        self.largest = sizes.min().unwrap_or(usize::MAX);
    }
}

impl Pattern for Radio {
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.audience.publisher.attach(id);
        if let Some(largest) = pipes.largest(id) {
            self.admit_to_all(id, largest);
        }
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
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
        self.datagrams.retain(|(other, _)| *other != id);
        self.find_largest();
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        single_part::check(message, SocketType::Radio)?;
        let group = message.group().unwrap_or_default();
        check_group(group)?;
        let size = datagram::HEAD + group.len() + message.head().len();
        if size > self.largest {
            return Err(dgram::too_long(size, self.largest));
        }
        let topic = Topic::of(group);
        let publisher = &mut self.audience.publisher;
        publisher.send_under(pipes, message, topic.as_slice(), Message::group_to_front)
    }

    fn recv(&mut self, _: &mut PipeSet, _: &mut Message) -> Result<Option<PipeId>> {
        Err(Error::new(ErrorKind::NotSupported))
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        self.audience.publisher.can_send()
    }

    fn can_recv(&mut self, _: &mut PipeSet) -> bool {
        false
    }

    fn subscribed(&mut self, _: &mut PipeSet, group: &[u8]) -> Option<Vec<PipeId>> {
        if check_group(group).is_err() {
            return Some(Vec::new());
        }
        Some(
            self.audience
                .publisher
                .subscribed(Topic::of(group).as_slice()),
        )
    }

    fn set(&mut self, _: &mut PipeSet, option: &PatternOption) -> Result<()> {
        self.audience.publisher.set(option)
    }
}

pub(super) static RADIO: PatternSpec = PatternSpec {
    can_recv: false,
    single_part: true,
    eager: true,
    options: &[
        ids::XPUB_NODROP,
        ids::MAX_SUBSCRIPTIONS,
        ids::MAX_SUBSCRIPTION_BYTES,
    ],
    ..PatternSpec::new(SocketType::Radio, || Box::new(Radio::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::options::SlowSubscriber;
    use crate::patterns::rig::Rig;

    fn join(group: &str) -> Message {
        Message::single(Frame::with_kind(FrameKind::Join, group.as_bytes()))
    }

    fn leave(group: &str) -> Message {
        Message::single(Frame::with_kind(FrameKind::Leave, group.as_bytes()))
    }

    fn member(rig: &mut Rig, groups: &[&str]) -> PipeId {
        let id = rig.accept("");
        for group in groups {
            rig.far_send_message(id, join(group));
        }
        rig.settle();
        id
    }

    fn send(rig: &mut Rig, group: &str, body: &str) {
        rig.send_message(Message::from(body).with_group(group))
            .unwrap();
    }

    #[test]
    fn messages_go_to_the_members_of_exactly_their_group() {
        let mut rig = Rig::new(&RADIO);
        let short = member(&mut rig, &["a", ""]);
        let long = member(&mut rig, &["ab"]);
        let both = member(&mut rig, &["a", "ab"]);
        send(&mut rig, "a", "1");
        send(&mut rig, "ab", "2");
        send(&mut rig, "abc", "3");
        rig.send(["4"]).unwrap();
        assert_eq!(rig.far_recv_all(short), ["a/1", "/4"]);
        assert_eq!(rig.far_recv_all(long), ["ab/2"]);
        assert_eq!(rig.far_recv_all(both), ["a/1", "ab/2"]);
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
        assert_eq!(rig.recv().unwrap_err(), ErrorKind::NotSupported);
        let subscribed = rig.pattern.subscribed(&mut rig.pipes, b"a").unwrap();
        assert_eq!(subscribed.len(), 2);
    }

    #[test]
    fn a_member_that_leaves_gets_no_more() {
        let mut rig = Rig::new(&RADIO);
        let id = member(&mut rig, &["g", "g"]);
        send(&mut rig, "g", "1");
        rig.far_send_message(id, leave("never joined"));
        rig.far_send_message(id, leave("g"));
        rig.settle();
        send(&mut rig, "g", "2");
        assert_eq!(rig.far_recv_all(id), ["g/1"]);
    }

    #[test]
    fn invalid_groups_and_several_parts_are_refused() {
        let mut rig = Rig::new(&RADIO);
        member(&mut rig, &["g"]);
        let long = "x".repeat(256);
        for message in [
            Message::from("body").with_group(&long),
            Message::from("body").with_group("a\0b"),
            Message::from_iter(["a", "b"]).with_group("g"),
        ] {
            let rejected = rig.send_message(message.clone()).unwrap_err();
            assert_eq!(rejected.error.kind(), ErrorKind::Invalid);
            assert_eq!(rejected.message, message);
        }
        assert_eq!(rig.dropped_in_all(), 0);
        send(&mut rig, &long[1..], "the longest group");
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
    }

    #[test]
    fn a_full_member_misses_messages_alone() {
        let mut rig = Rig::with_hwm(&RADIO, 2);
        let slow = member(&mut rig, &["g"]);
        let fast = member(&mut rig, &["g"]);
        for n in 0..5 {
            send(&mut rig, "g", &n.to_string());
            assert_eq!(rig.far_recv_all(fast), [format!("g/{n}")]);
        }
        assert_eq!(rig.far_recv_all(slow), ["g/0", "g/1"]);
        assert_eq!(rig.dropped(DropReason::HighWater), 3);
    }

    #[test]
    fn with_nodrop_a_full_member_makes_the_sender_wait() {
        let mut rig = Rig::with_hwm(&RADIO, 1);
        rig.set(PatternOption::SlowSubscriber(SlowSubscriber::Wait))
            .unwrap();
        let id = member(&mut rig, &["g"]);
        send(&mut rig, "g", "1");
        let message = Message::from("2").with_group("g");
        let rejected = rig.send_message(message.clone()).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::Again);
        assert_eq!(rejected.message, message);
        assert!(!rig.can_send());
        assert_eq!(rig.far_recv_all(id), ["g/1"]);
        rig.send_message(message).unwrap();
        assert_eq!(rig.far_recv_all(id), ["g/2"]);
    }

    #[test]
    fn one_group_too_many_is_ignored_and_counted() {
        let mut rig = Rig::new(&RADIO);
        rig.set(PatternOption::MaxSubscriptions(2)).unwrap();
        let id = member(&mut rig, &["a", "b", "c", "a"]);
        send(&mut rig, "c", "1");
        send(&mut rig, "a", "2");
        assert_eq!(rig.far_recv_all(id), ["a/2"]);
        assert_eq!(rig.dropped(DropReason::Excess), 1);
        rig.set(PatternOption::MaxSubscriptionBytes(8)).unwrap();
        member(&mut rig, &["123", "456", "7"]);
        assert_eq!(rig.dropped(DropReason::Excess), 2);
    }

    #[test]
    fn a_peer_that_gets_datagrams_gets_all_groups() {
        let mut rig = Rig::new(&RADIO);
        let dish = member(&mut rig, &["a"]);
        rig.limit_datagrams(8);
        let all = rig.connect();
        rig.ready(all, "");
        send(&mut rig, "a", "1");
        send(&mut rig, "b", "2");
        rig.send(["3"]).unwrap();
        send(&mut rig, "abc", "fits");
        assert_eq!(rig.far_recv_all(dish), ["a/1"]);
        assert_eq!(rig.far_recv_all(all), ["a/1", "b/2", "/3", "abc/fits"]);
        let message = Message::from("a bit").with_group("abc");
        let rejected = rig.send_message(message.clone()).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::MessageSize);
        assert_eq!(rejected.message, message);
        rig.far_close(all);
        rig.settle();
        rig.send_message(message).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
    }

    #[test]
    fn groups_of_a_lost_connection_count_until_the_peer_is_back() {
        let mut rig = Rig::new(&RADIO);
        let id = rig.connect();
        rig.ready(id, "");
        rig.far_send_message(id, join("old"));
        rig.settle();
        rig.far_lapse(id);
        rig.disconnected(id);
        send(&mut rig, "old", "for later");
        rig.far_send_message(id, join("new"));
        rig.ready(id, "");
        send(&mut rig, "old", "no more");
        send(&mut rig, "new", "x");
        assert_eq!(rig.far_recv_all(id), ["old/for later", "new/x"]);
    }

    #[test]
    fn messages_of_a_dish_are_counted_and_a_dish_that_leaves_is_forgotten() {
        let mut rig = Rig::new(&RADIO);
        let id = member(&mut rig, &["g"]);
        rig.far_send(id, ["what?"]);
        rig.settle();
        assert_eq!(rig.dropped(DropReason::Filtered), 1);
        rig.far_close(id);
        rig.settle();
        assert!(rig.is_gone(id));
        send(&mut rig, "g", "x");
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
    }
}
