//! XPUB: a publisher whose application receives the subscriptions.

use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::subscription::{Added, Dropped, SubscriberTable};

use crate::error::{Error, ErrorKind, Result};
use crate::options::{PatternOption, ids};
use crate::patterns::blocks::Blocks;
use crate::patterns::drops::DropReason;
use crate::patterns::fair_queue::FairQueue;
use crate::patterns::headroom::Headroom;
use crate::patterns::pipe_set::{PipeSet, effort};
use crate::patterns::publisher::Publisher;
use crate::patterns::{Pattern, PatternSpec, Spills};
use crate::pipe::{PipeId, is_lapse};

/// While this many bytes wait for an application that does not receive, nothing more is read from the peers, so that
/// their own flow control makes them wait. Many applications never receive, but still serve their subscribers: before
/// its first receive, an application only misses the notifications beyond this limit. It has room for a quarter of a
/// million short topics.
const PENDING_MAX: usize = 32 << 20;

/// The overhead of an item in addition to its bytes.
const PENDING_ITEM: usize = 128;

#[derive(Default)]
struct Xpub {
    publisher: Publisher,
    inbound: FairQueue,
    /// The notifications and messages to receive next.
    pending: Blocks<Pending>,
    pending_bytes: usize,
    headroom: Headroom,
    /// Whether the application has ever received, and so needs every notification.
    receives: bool,
    verbose: Verbose,
    /// Whether the application decides about subscriptions (XPUB_MANUAL).
    manual: bool,
    /// Whether its next message is only for the subscriber about which it decided (XPUB_MANUAL_LAST_VALUE).
    last_value: bool,
    /// The requests of the peers in that mode.
    requested: SubscriberTable<PipeId>,
    /// The peer whose message the application received last.
    last: Option<PipeId>,
}

struct Pending {
    message: Message,
    from: Option<PipeId>,
}

impl Pending {
    fn cost(&self) -> usize {
        PENDING_ITEM + self.message.size()
    }
}

/// Which subscriptions the application receives.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Verbose {
    /// The first subscription to a topic, and the end of its last.
    #[default]
    Off,
    /// Also every further subscription.
    Subscriptions,
    /// Also the end of every subscription.
    All,
}

impl Xpub {
    /// Processes the subscriptions of the peers, as long as the application keeps up.
    fn listen(&mut self, pipes: &mut PipeSet) {
        while self.has_room() && !pipes.is_spent() {
            let Some((message, id)) = self.inbound.recv(pipes) else {
                return;
            };
            pipes.spend(effort(&message));
            self.handle(pipes, message, id);
        }
    }

    /// Processes everything that a peer has sent by now.
    fn listen_now(&mut self, pipes: &mut PipeSet, id: PipeId) {
        for _ in 0..pipes.queued_in(id) {
            if self.has_room()
                && let Some(message) = pipes.read(id)
            {
                self.handle(pipes, message, id);
            }
        }
    }

    /// Whether the application can be notified of more.
    fn has_room(&self) -> bool {
        self.pending_bytes < PENDING_MAX || !(self.receives || self.manual)
    }

    fn handle(&mut self, pipes: &mut PipeSet, message: Message, from: PipeId) {
        if is_lapse(&message) {
            self.cancel_all(pipes, from);
        } else {
            self.hear(pipes, message, from);
        }
        self.note_topics(pipes);
    }

    /// Reports what the topics take, after a change.
    fn note_topics(&self, pipes: &mut PipeSet) {
        pipes.note_topics(self.publisher.subscribers.size() + self.requested.size());
    }

    fn hear(&mut self, pipes: &mut PipeSet, message: Message, from: PipeId) {
        let topic = message.head();
        match topic.kind() {
            FrameKind::Subscribe if !self.admits(pipes, from, topic) => {}
            FrameKind::Subscribe if self.subscribe(topic, from) => {
                self.notify(pipes, 1, topic, Some(from));
            }
            FrameKind::Cancel if self.cancel(topic, from) => {
                self.notify(pipes, 0, topic, Some(from));
            }
            FrameKind::Subscribe | FrameKind::Cancel => {}
            _ => self.push(pipes, message, Some(from)),
        }
    }

    fn admits(&mut self, pipes: &mut PipeSet, from: PipeId, topic: &[u8]) -> bool {
        let requested = self.manual.then_some(&self.requested);
        self.publisher.admits(pipes, from, topic, requested)
    }

    /// Whether the application must be notified of it.
    fn subscribe(&mut self, topic: &[u8], from: PipeId) -> bool {
        if self.manual {
            self.requested.add(topic, from);
            return true;
        }
        let added = self.publisher.subscribers.add(topic, from);
        added == Added::FirstOfTopic || self.verbose != Verbose::Off
    }

    fn cancel(&mut self, topic: &[u8], from: PipeId) -> bool {
        if self.manual {
            self.requested.remove(topic, from);
            return true;
        }
        let dropped = self.publisher.subscribers.remove(topic, from);
        dropped == Dropped::LastOfTopic || self.verbose == Verbose::All
    }

    /// Queues a notification for the application: 1 or 0, then the topic.
    fn notify(&mut self, pipes: &mut PipeSet, byte: u8, topic: &[u8], from: Option<PipeId>) {
        let body = [&[byte], topic].concat();
        self.push(pipes, Message::single(Frame::from(body)), from);
    }

    fn push(&mut self, pipes: &mut PipeSet, message: Message, from: Option<PipeId>) {
        if self.pending_bytes >= PENDING_MAX && !(self.receives || self.manual) {
            return pipes.count_drop(from, DropReason::HighWater);
        }
        let pending = Pending { message, from };
        let waiting = self.pending_bytes;
        if !self.headroom.allows(pending.cost(), || waiting) {
            return pipes.count_drop(from, DropReason::NoMemory);
        }
        self.pending_bytes += pending.cost();
        self.pending.push_back(pending);
    }

    /// Cancels all subscriptions of a peer that leaves, or that will return on a new connection.
    fn cancel_all(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let tables = [&self.publisher.subscribers, &self.requested];
        let most = tables.map(|table| {
            let (topics, bytes) = table.usage_of(id);
            bytes + PENDING_ITEM * topics
        });
        let waiting = self.pending_bytes;
        if !self.headroom.allows(most[0].max(most[1]), || waiting) {
            // The application is not notified of the cancelled topics.
            self.publisher.forget(id, |_| {});
            self.requested.remove_peer(id, |_| {});
            return pipes.count_drop(Some(id), DropReason::NoMemory);
        }
        let mut unwanted: Vec<Vec<u8>> = Vec::new();
        let mut note = |topic: &[u8]| unwanted.push(topic.to_vec());
        if self.manual {
            self.requested.for_each_topic_of(id, &mut note);
            self.publisher.forget(id, |_| {});
        } else if self.verbose == Verbose::All {
            self.publisher.subscribers.for_each_topic_of(id, &mut note);
            self.publisher.forget(id, |_| {});
        } else {
            self.publisher.forget(id, &mut note);
        }
        self.requested.remove_peer(id, |_| {});
        for topic in unwanted {
            self.notify(pipes, 0, &topic, None);
        }
    }

    /// The subscriber about which the application decides.
    fn decide(&mut self, pipes: &mut PipeSet) -> Result<Option<PipeId>> {
        if !self.manual {
            let text = "SUBSCRIBE and UNSUBSCRIBE need XPUB_MANUAL on an XPUB socket";
            return Err(Error::with(ErrorKind::Invalid, text));
        }
        Ok(self.last.filter(|id| pipes.get(*id).is_some()))
    }
}

impl Pattern for Xpub {
    fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
        self.publisher.attach(id);
        self.inbound.insert(id);
    }

    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.publisher.ready(pipes, id);
        self.listen_now(pipes, id);
        self.listen(pipes);
    }

    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.inbound.insert(id);
        if pipes.is_local(id) {
            // What another socket of the program has sent must be in effect for the next message.
            self.listen_now(pipes, id);
        }
        self.listen(pipes);
    }

    fn writable(&mut self, _: &mut PipeSet, id: PipeId) {
        self.publisher.writable(id);
    }

    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.publisher.remove(id);
        self.inbound.far_closed(pipes, id);
        self.listen(pipes);
    }

    fn go_on(&mut self, pipes: &mut PipeSet) {
        self.listen(pipes);
    }

    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.publisher.remove(id);
        self.inbound.remove(id);
        self.cancel_all(pipes, id);
        self.note_topics(pipes);
    }

    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        if self.last_value
            && self.manual
            && let Some(id) = self.last
        {
            self.publisher.send_to(pipes, message, id)?;
            self.last = None;
            return Ok(());
        }
        self.publisher.send(pipes, message)
    }

    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
        self.listen(pipes);
        self.receives = true;
        let Some(pending) = self.pending.pop_front() else {
            return Err(Error::new(ErrorKind::Again));
        };
        self.pending_bytes -= pending.cost();
        // Held-back subscriptions become pending at once, because peers must not wait for the application's next call.
        self.listen(pipes);
        self.last = pending.from;
        *message = pending.message;
        Ok(pending.from)
    }

    fn topics(&self) -> Option<usize> {
        Some(self.publisher.subscribers.topics())
    }

    fn can_send(&mut self, _: &mut PipeSet) -> bool {
        self.publisher.can_send()
    }

    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
        self.listen(pipes);
        !self.pending.is_empty()
    }

    fn subscribed(&mut self, pipes: &mut PipeSet, topic: &[u8]) -> Option<Vec<PipeId>> {
        self.listen(pipes);
        Some(self.publisher.subscribed(topic))
    }

    fn set(&mut self, pipes: &mut PipeSet, option: &PatternOption) -> Result<()> {
        match option {
            // As in libzmq, each of the two sets both.
            PatternOption::XpubVerbose(true) => self.verbose = Verbose::Subscriptions,
            PatternOption::XpubVerboser(true) => self.verbose = Verbose::All,
            PatternOption::XpubVerbose(false) | PatternOption::XpubVerboser(false) => {
                self.verbose = Verbose::Off;
            }
            PatternOption::XpubManual(on) => self.manual = *on,
            PatternOption::XpubManualLastValue(on) => {
                if self.last_value {
                    // There is no last value for the latest subscriber.
                    self.last = None;
                }
                self.manual = *on;
                self.last_value = *on;
            }
            PatternOption::Subscribe(topic) => {
                if let Some(id) = self.decide(pipes)? {
                    self.publisher.subscribers.add(topic, id);
                    self.note_topics(pipes);
                }
            }
            PatternOption::Unsubscribe(topic) => {
                if let Some(id) = self.decide(pipes)? {
                    self.publisher.subscribers.remove(topic, id);
                    self.note_topics(pipes);
                }
            }
            option => self.publisher.set(option)?,
        }
        Ok(())
    }
}

pub(super) static XPUB: PatternSpec = PatternSpec {
    eager: true,
    spills: Spills::ForEachPeer,
    options: &[
        ids::SUBSCRIBE,
        ids::UNSUBSCRIBE,
        ids::XPUB_VERBOSE,
        ids::XPUB_NODROP,
        ids::XPUB_MANUAL,
        ids::XPUB_WELCOME_MSG,
        ids::INVERT_MATCHING,
        ids::XPUB_VERBOSER,
        ids::XPUB_MANUAL_LAST_VALUE,
        ids::ONLY_FIRST_SUBSCRIBE,
        ids::TOPICS_COUNT,
        ids::MAX_SUBSCRIPTIONS,
        ids::MAX_SUBSCRIPTION_BYTES,
        ids::SLOW_SUBSCRIBER,
        ids::SPILL_DIR,
        ids::SPILL_BYTES,
        ids::SPILL_KEEP,
    ],
    ..PatternSpec::new(SocketType::Xpub, || Box::new(Xpub::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::drops::DropReason;
    use crate::patterns::rig::{Rig, cancel, subscribe};
    use bytes::Bytes;

    fn tell(rig: &mut Rig, id: PipeId, message: Message) {
        rig.far_send_message(id, message);
        rig.settle();
    }

    #[test]
    fn the_application_sees_the_first_and_the_end_of_the_last() {
        let mut rig = Rig::new(&XPUB);
        let a = rig.accept("");
        let b = rig.accept("");
        tell(&mut rig, a, subscribe("t"));
        assert!(rig.can_recv());
        assert_eq!(rig.recv_from().unwrap(), (vec!["\\x01t".into()], Some(a)));
        tell(&mut rig, a, subscribe("t"));
        tell(&mut rig, b, subscribe("t"));
        tell(&mut rig, a, cancel("t"));
        tell(&mut rig, a, cancel("t"));
        tell(&mut rig, a, cancel("unknown"));
        assert_eq!(rig.recv(), Err(ErrorKind::Again));
        rig.send(["t1"]).unwrap();
        assert!(rig.far_recv_all(a).is_empty());
        assert_eq!(rig.far_recv_all(b), ["t1"]);
        tell(&mut rig, b, cancel("t"));
        assert_eq!(rig.recv().unwrap(), ["\\x00t"]);
        rig.send(["t2"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
    }

    #[test]
    fn verbose_shows_every_subscription_verboser_every_end_as_well() {
        let mut rig = Rig::new(&XPUB);
        let a = rig.accept("");
        let b = rig.accept("");
        rig.set(PatternOption::XpubVerboser(true)).unwrap();
        for id in [a, b] {
            tell(&mut rig, id, subscribe("t"));
        }
        for id in [a, b] {
            tell(&mut rig, id, cancel("t"));
        }
        assert_eq!(rig.recv_all(), ["\\x01t", "\\x01t", "\\x00t", "\\x00t"]);
        rig.set(PatternOption::XpubVerbose(true)).unwrap();
        for id in [a, b] {
            tell(&mut rig, id, subscribe("t"));
        }
        for id in [a, b] {
            tell(&mut rig, id, cancel("t"));
        }
        assert_eq!(rig.recv_all(), ["\\x01t", "\\x01t", "\\x00t"]);
    }

    #[test]
    fn a_peer_that_leaves_cancels_topics_that_no_other_has() {
        let mut rig = Rig::new(&XPUB);
        let a = rig.accept("");
        let b = rig.accept("");
        for topic in ["x", "y"] {
            tell(&mut rig, a, subscribe(topic));
        }
        tell(&mut rig, b, subscribe("y"));
        rig.recv_all();
        rig.far_close(a);
        rig.settle();
        assert_eq!(rig.recv_all(), ["\\x00x"]);
        rig.set(PatternOption::XpubVerboser(true)).unwrap();
        let c = rig.accept("");
        tell(&mut rig, c, subscribe("y"));
        rig.recv_all();
        rig.far_close(c);
        rig.settle();
        assert_eq!(rig.recv_all(), ["\\x00y"]);
        rig.far_close(b);
        rig.settle();
        assert_eq!(rig.recv_all(), ["\\x00y"]);
        assert!(rig.is_empty());
    }

    #[test]
    fn in_manual_mode_the_application_decides() {
        let mut rig = Rig::new(&XPUB);
        let topic = |text: &'static str| Bytes::from_static(text.as_bytes());
        assert_eq!(
            rig.set(PatternOption::Subscribe(topic("x"))),
            Err(ErrorKind::Invalid)
        );
        rig.set(PatternOption::XpubManual(true)).unwrap();
        // No peer to decide about: no error, no effect.
        rig.set(PatternOption::Subscribe(topic("x"))).unwrap();
        let a = rig.accept("");
        let b = rig.accept("");
        tell(&mut rig, a, subscribe("A"));
        tell(&mut rig, b, subscribe("B"));
        tell(&mut rig, b, subscribe("B"));
        rig.send(["A"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);

        assert_eq!(rig.recv().unwrap(), ["\\x01A"]);
        rig.set(PatternOption::Subscribe(topic("XA"))).unwrap();
        assert_eq!(rig.recv_all(), ["\\x01B", "\\x01B"]);
        rig.set(PatternOption::Subscribe(topic("XB"))).unwrap();
        rig.send(["XA"]).unwrap();
        rig.send(["XB"]).unwrap();
        assert_eq!(rig.far_recv_all(a), ["XA"]);
        assert_eq!(rig.far_recv_all(b), ["XB"]);

        tell(&mut rig, a, cancel("A"));
        assert_eq!(rig.recv().unwrap(), ["\\x00A"]);
        rig.set(PatternOption::Unsubscribe(topic("XA"))).unwrap();
        rig.send(["XA"]).unwrap();
        assert!(rig.far_recv_all(a).is_empty());

        rig.far_close(b);
        rig.settle();
        assert_eq!(rig.recv_all(), ["\\x00B"]);
        rig.set(PatternOption::Subscribe(topic("late"))).unwrap();
        rig.send(["XB"]).unwrap();
        rig.send(["late"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 4);
    }

    #[test]
    fn a_last_value_is_sent_only_to_the_latest_subscriber() {
        let mut rig = Rig::new(&XPUB);
        let topic = Bytes::from_static(b"A");
        rig.set(PatternOption::XpubManualLastValue(true)).unwrap();
        let peers = [rig.accept(""), rig.accept("")];
        for (n, id) in peers.into_iter().enumerate() {
            tell(&mut rig, id, subscribe("A"));
            rig.recv().unwrap();
            rig.set(PatternOption::Subscribe(topic.clone())).unwrap();
            rig.send([format!("A{n}")]).unwrap();
        }
        rig.send(["A2"]).unwrap();
        assert_eq!(rig.far_recv_all(peers[0]), ["A0", "A2"]);
        assert_eq!(rig.far_recv_all(peers[1]), ["A1", "A2"]);
        // The latest subscriber has not subscribed to this topic, so no peer gets the message.
        tell(&mut rig, peers[0], subscribe("B"));
        rig.recv().unwrap();
        rig.send(["B"]).unwrap();
        assert_eq!(rig.dropped(DropReason::NoSubscriber), 1);
        rig.send(["A3"]).unwrap();
        assert_eq!(rig.far_recv_all(peers[1]), ["A3"]);
        // If there is no message for the latest subscriber, the option is set again.
        tell(&mut rig, peers[1], subscribe("C"));
        rig.recv().unwrap();
        rig.set(PatternOption::XpubManualLastValue(true)).unwrap();
        rig.send(["A4"]).unwrap();
        assert_eq!(rig.far_recv_all(peers[0]), ["A3", "A4"]);
        assert_eq!(rig.far_recv_all(peers[1]), ["A4"]);
        rig.set(PatternOption::XpubManualLastValue(false)).unwrap();
        assert_eq!(
            rig.set(PatternOption::Subscribe(topic)),
            Err(ErrorKind::Invalid)
        );
    }

    #[test]
    fn subscriptions_of_a_lost_connection_end_with_it() {
        let mut rig = Rig::new(&XPUB);
        let id = rig.connect();
        rig.ready(id, "");
        for topic in ["x", "y"] {
            tell(&mut rig, id, subscribe(topic));
        }
        assert_eq!(rig.recv_all(), ["\\x01x", "\\x01y"]);
        // The notifications are correct however late the application receives.
        rig.far_lapse(id);
        rig.disconnected(id);
        rig.ready(id, "");
        tell(&mut rig, id, subscribe("y"));
        assert_eq!(rig.recv_all(), ["\\x00x", "\\x00y", "\\x01y"]);
        rig.send(["x1"]).unwrap();
        rig.send(["y1"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["y1"]);
    }

    #[test]
    fn messages_from_below_are_received_as_they_are() {
        let mut rig = Rig::new(&XPUB);
        let id = rig.accept("");
        rig.far_send(id, ["hello", "there"]);
        rig.settle();
        assert_eq!(
            rig.recv_from().unwrap(),
            (vec!["hello".into(), "there".into()], Some(id))
        );
    }

    #[test]
    fn each_new_subscriber_is_welcomed_again_after_a_reconnect_too() {
        let mut rig = Rig::new(&XPUB);
        let welcome = PatternOption::XpubWelcomeMsg(Bytes::from_static(b"hello"));
        rig.set(welcome).unwrap();
        let id = rig.connect();
        assert!(rig.far_recv_all(id).is_empty());
        rig.ready(id, "");
        rig.disconnected(id);
        rig.ready(id, "");
        assert_eq!(rig.far_recv_all(id), ["hello", "hello"]);
    }

    #[test]
    fn an_application_that_does_not_receive_makes_the_peers_wait() {
        let mut rig = Rig::with_hwm(&XPUB, 10);
        let a = rig.accept("");
        let b = rig.accept("");
        tell(&mut rig, a, subscribe("the application looks at this"));
        rig.recv().unwrap();
        let topic = "t".repeat(1 << 20);
        let mut sent = 0;
        while rig.far_try_send(a, subscribe(&format!("{topic}{sent}"))) {
            sent += 1;
            rig.settle();
            assert!(sent < 100, "the peer never has to wait");
        }
        // All peers wait, not only the one that caused it.
        tell(&mut rig, b, subscribe("b"));
        rig.send(["b1"]).unwrap();
        assert!(rig.far_recv_all(b).is_empty());

        // Room for one of the first, then for one of each: no peer waits for another receive.
        for _ in 0..2 {
            rig.recv().unwrap();
        }
        rig.send(["b1"]).unwrap();
        assert_eq!(rig.far_recv_all(b), ["b1"]);
        let mut seen = 2;
        while rig.recv().is_ok() {
            seen += 1;
        }
        assert_eq!(seen, sent + 1);
        rig.send(["b2"]).unwrap();
        assert_eq!(rig.far_recv_all(b), ["b2"]);
        assert!(rig.far_try_send(a, subscribe("more")));
    }

    #[test]
    fn an_application_that_never_receives_still_publishes() {
        let mut rig = Rig::new(&XPUB);
        let id = rig.accept("");
        for n in 0..100_000 {
            rig.far_send_message(id, subscribe(&format!("{n}.")));
        }
        rig.settle();
        rig.send(["99999.x"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["99999.x"]);
        // The size of unread notifications does not matter either.
        let topic = "t".repeat(1 << 20);
        for n in 0..40 {
            rig.far_send_message(id, subscribe(&format!("{topic}{n}")));
        }
        rig.far_send_message(id, subscribe("last"));
        rig.settle();
        rig.send(["last"]).unwrap();
        assert_eq!(rig.far_recv_all(id), ["last"]);
        assert!(rig.dropped(DropReason::HighWater) > 1);
    }
}
