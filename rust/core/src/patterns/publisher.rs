//! The common part of PUB, XPUB and RADIO: subscriptions, and sending to subscribers.

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::subscription::{SubscriberTable, TOPIC};

use crate::error::{Error, ErrorKind, Result};
use crate::options::{MAX_SUBSCRIPTION_BYTES, MAX_SUBSCRIPTIONS, PatternOption, SlowSubscriber};
use crate::patterns::distributor::Distributor;
use crate::patterns::drops::DropReason;
use crate::patterns::headroom::Headroom;
use crate::patterns::pipe_set::{PipeSet, effort};
use crate::patterns::ring::Ring;
use crate::pipe::{PipeId, is_lapse};
use crate::sys::memory;

/// The number of a peer's topics from which on their memory is returned to the system when it leaves.
const MANY_TOPICS: usize = 50_000;

/// Sends each message to the peers that subscribed to a prefix of its first frame. A full peer misses it.
pub(super) struct Publisher {
    pub(super) subscribers: SubscriberTable<PipeId>,
    /// The maximum number of a peer's topics; 0 = no limit.
    max_subscriptions: usize,
    /// The maximum total size of these topics; 0 = no limit.
    max_subscription_bytes: usize,
    headroom: Headroom,
    outbound: Distributor,
    /// Whether to wait instead of letting a full peer miss a message.
    waits: bool,
    /// Whether to send to the peers that did not subscribe.
    invert: bool,
    welcome: Option<Message>,
}

/// A publisher and its peers, for PUB and RADIO, whose applications are not notified of subscriptions.
#[derive(Default)]
pub(super) struct Audience {
    pub(super) publisher: Publisher,
    /// Peers whose connection was lost. Their subscriptions are kept until they reconnect and send them again.
    away: Ring,
    /// Peers whose messages were not all read, because a call must end.
    unheard: Ring,
}

impl Audience {
    /// Passes what a peer has sent to `hear`.
    pub(super) fn listen(
        &mut self,
        pipes: &mut PipeSet,
        id: PipeId,
        hear: impl Fn(&mut Publisher, &mut PipeSet, PipeId, &Frame),
    ) {
        if pipes.is_local(id) {
            self.listen_now(pipes, id, &hear);
        }
        while pipes.check_read(id) {
            if pipes.is_spent() {
                self.unheard.insert(id);
                return;
            }
            self.read(pipes, id, &hear);
        }
    }

    /// Continues with the peers whose messages were not all read.
    pub(super) fn go_on(
        &mut self,
        pipes: &mut PipeSet,
        hear: impl Fn(&mut Publisher, &mut PipeSet, PipeId, &Frame),
    ) {
        while !pipes.is_spent()
            && let Some(id) = self.unheard.front()
        {
            self.unheard.remove(id);
            self.listen(pipes, id, &hear);
        }
    }

    /// Like [`listen`](Self::listen), for a connection that has become ready. The end of the one before is among what is
    /// there now, so all of that is read.
    pub(super) fn ready(
        &mut self,
        pipes: &mut PipeSet,
        id: PipeId,
        hear: impl Fn(&mut Publisher, &mut PipeSet, PipeId, &Frame),
    ) {
        self.listen_now(pipes, id, &hear);
        self.listen(pipes, id, hear);
        self.forget_lapsed(pipes, id);
    }

    /// Reads everything that is there now. What another socket of the program has sent must be in effect for the next
    /// message.
    fn listen_now(
        &mut self,
        pipes: &mut PipeSet,
        id: PipeId,
        hear: impl Fn(&mut Publisher, &mut PipeSet, PipeId, &Frame),
    ) {
        for _ in 0..pipes.queued_in(id) {
            self.read(pipes, id, &hear);
        }
    }

    fn read(
        &mut self,
        pipes: &mut PipeSet,
        id: PipeId,
        hear: impl Fn(&mut Publisher, &mut PipeSet, PipeId, &Frame),
    ) {
        let Some(message) = pipes.read(id) else {
            return;
        };
        pipes.spend(effort(&message));
        if is_lapse(&message) {
            self.away.insert(id);
            return;
        }
        self.forget_lapsed(pipes, id);
        hear(&mut self.publisher, pipes, id, message.head());
        self.publisher.note_topics(pipes);
    }

    pub(super) fn detach(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.away.remove(id);
        self.unheard.remove(id);
        self.publisher.remove(id);
        self.publisher.forget(id, |_| {});
        self.publisher.note_topics(pipes);
    }

    /// The peer has reconnected, so the subscriptions of its earlier connection do not count any more.
    fn forget_lapsed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        if self.away.remove(id) {
            self.publisher.forget(id, |_| {});
            self.publisher.note_topics(pipes);
        }
    }
}

impl Default for Publisher {
    fn default() -> Publisher {
        Publisher {
            subscribers: SubscriberTable::new(),
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_subscription_bytes: MAX_SUBSCRIPTION_BYTES,
            headroom: Headroom::default(),
            outbound: Distributor::default(),
            waits: false,
            invert: false,
            welcome: None,
        }
    }
}

impl Publisher {
    /// Whether a peer may add this topic to those in `table`. Counts the topic as ignored if not.
    pub(super) fn admits(
        &mut self,
        pipes: &mut PipeSet,
        id: PipeId,
        topic: &[u8],
        table: Option<&SubscriberTable<PipeId>>,
    ) -> bool {
        let table = table.unwrap_or(&self.subscribers);
        let within = |count: usize, most: usize| most == 0 || count <= most;
        let (topics, bytes) = table.usage_of(id);
        let admits = within(topics.saturating_add(1), self.max_subscriptions)
            && within(
                bytes.saturating_add(topic.len()),
                self.max_subscription_bytes,
            )
            && pipes.admits_topic(id, bytes + TOPIC * topics, topic.len() + TOPIC);
        // A topic that the peer already has costs nothing.
        let admits = admits || table.contains(topic, id);
        if !admits {
            pipes.count_drop(Some(id), DropReason::Excess);
            return false;
        }
        let there = self.headroom.allows(topic.len() + TOPIC, || table.size());
        if !there {
            pipes.count_drop(Some(id), DropReason::NoMemory);
        }
        there
    }

    /// Reports what the topics take, after a change.
    #[inline]
    pub(super) fn note_topics(&self, pipes: &mut PipeSet) {
        pipes.note_topics(self.subscribers.size());
    }

    pub(super) fn attach(&mut self, id: PipeId) {
        self.outbound.insert(id);
    }

    pub(super) fn ready(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let Some(welcome) = &self.welcome else { return };
        if pipes.write(id, &mut welcome.clone()) {
            self.outbound.writable(id);
        } else {
            pipes.count_drop(Some(id), DropReason::HighWater);
        }
    }

    pub(super) fn writable(&mut self, id: PipeId) {
        self.outbound.writable(id);
    }

    /// Sends nothing more to the peer. Its subscriptions are kept until its pipe is removed.
    pub(super) fn remove(&mut self, id: PipeId) {
        self.outbound.remove(id);
    }

    /// Discards the subscriptions of the peer; calls `unwanted` with the topics that no other peer has.
    pub(super) fn forget(&mut self, id: PipeId, mut unwanted: impl FnMut(&[u8])) {
        let mut count = 0;
        self.subscribers.remove_peer(id, |topic| {
            count += 1;
            unwanted(topic);
        });
        if count >= MANY_TOPICS {
            memory::give_back();
        }
    }

    #[inline]
    pub(super) fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
        let Publisher {
            subscribers,
            outbound,
            ..
        } = self;
        subscribers.for_each_match(message.head(), |id| outbound.mark(id));
        if self.invert {
            self.outbound.invert();
        }
        self.send_marked(pipes, message, |_| {})
    }

    /// Sends to the peers that have subscribed to a prefix of this topic, or to all of it. `wrap` turns the message
    /// into what they get. It is only called if there are such peers and none of them has to be waited for.
    pub(super) fn send_under(
        &mut self,
        pipes: &mut PipeSet,
        message: &mut Message,
        topic: &[u8],
        wrap: impl FnOnce(&mut Message),
    ) -> Result<()> {
        let Publisher {
            subscribers,
            outbound,
            ..
        } = self;
        subscribers.for_each_match(topic, |id| outbound.mark(id));
        self.send_marked(pipes, message, wrap)
    }

    /// Sends to this peer alone, if it has subscribed.
    pub(super) fn send_to(
        &mut self,
        pipes: &mut PipeSet,
        message: &mut Message,
        only: PipeId,
    ) -> Result<()> {
        let mut wanted = false;
        self.subscribers
            .for_each_match(message.head(), |id| wanted |= id == only);
        if wanted {
            self.outbound.mark(only);
        }
        self.send_marked(pipes, message, |_| {})
    }

    #[inline]
    fn send_marked(
        &mut self,
        pipes: &mut PipeSet,
        message: &mut Message,
        wrap: impl FnOnce(&mut Message),
    ) -> Result<()> {
        if self.outbound.marked() == 0 {
            self.outbound.unmark();
            pipes.count_drop(None, DropReason::NoSubscriber);
            return Ok(());
        }
        if self.waits {
            // Gathered messages that are not in the pipes yet take room, too.
            pipes.publish_gathered();
            if !self.outbound.marked_have_room(pipes) {
                self.outbound.unmark();
                return Err(Error::new(ErrorKind::Again));
            }
        }
        wrap(message);
        self.outbound.send(pipes, message);
        Ok(())
    }

    /// The pipes with matching subscriptions; an id may occur several times.
    pub(super) fn subscribed(&self, topic: &[u8]) -> Vec<PipeId> {
        let mut ids = Vec::new();
        self.subscribers.for_each_match(topic, |id| ids.push(id));
        ids
    }

    /// Without SLOW_SUBSCRIBER, nothing ever waits. If it says to wait, the topic of the next message is unknown, so a
    /// single full peer is sufficient to return false. Otherwise a sender that waits until it may send would spin.
    pub(super) fn can_send(&self) -> bool {
        !self.waits || self.outbound.all_have_room()
    }

    pub(super) fn set(&mut self, option: &PatternOption) -> Result<()> {
        match option {
            PatternOption::SlowSubscriber(then) => {
                self.waits = *then == SlowSubscriber::Wait;
                self.outbound
                    .disconnect_full(*then == SlowSubscriber::Disconnect);
            }
            PatternOption::MaxSubscriptions(most) => self.max_subscriptions = *most,
            PatternOption::MaxSubscriptionBytes(most) => self.max_subscription_bytes = *most,
            PatternOption::InvertMatching(on) => self.invert = *on,
            PatternOption::XpubWelcomeMsg(body) => {
                let message = Message::single(body.clone().into());
                self.welcome = (!body.is_empty()).then_some(message);
            }
            _ => return Err(Error::new(ErrorKind::Invalid)),
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::frame::FrameKind;

    use super::*;
    use crate::budget::Budget;
    use crate::patterns::publish::PUB;
    use crate::patterns::radio::RADIO;
    use crate::patterns::rig::Rig;
    use crate::patterns::xpub::XPUB;

    const MIB: u64 = 1 << 20;

    fn says(rig: &mut Rig, id: PipeId, kind: FrameKind, topic: &str) {
        let message = Message::single(Frame::with_kind(kind, topic.as_bytes()));
        rig.far_send_message(id, message);
    }

    #[test]
    fn topics_of_many_peers_have_a_budget_and_leave_it_with_their_peers() {
        use FrameKind::{Cancel, Join, Leave, Subscribe};
        const TOPICS: usize = 5_000;
        let cases = [
            (&PUB, Subscribe, Cancel, false),
            (&XPUB, Subscribe, Cancel, false),
            (&XPUB, Subscribe, Cancel, true),
            (&RADIO, Join, Leave, false),
        ];
        for (spec, add, cancel, manual) in cases {
            let budget = Budget::new();
            budget.set_limit(4 * MIB);
            let mut rig = Rig::new(spec);
            rig.pipes = PipeSet::of(&budget);
            if manual {
                rig.set(PatternOption::XpubManual(true)).unwrap();
            }
            let shares: Vec<_> = (0..8).map(|_| budget.join()).collect();
            let before = budget.usage().0;
            let ids: Vec<PipeId> = shares.iter().map(|_| rig.accept("")).collect();
            for (peer, id) in ids.iter().enumerate() {
                for n in 0..TOPICS {
                    says(&mut rig, *id, add, &format!("{peer} {n:06}"));
                }
                rig.settle();
            }
            // Two peers use a quarter of the budget, and each of the others has an equal share of another quarter.
            let held = budget.usage().0 - before;
            let expected = MIB + 6 * MIB / 8;
            assert!(held.abs_diff(expected) < 64 << 10, "{held}");
            let refused = rig.dropped(DropReason::Excess);
            let wanted = (ids.len() * TOPICS) as u64;
            assert!(held / 108 + refused >= wanted - 100, "{held} {refused}");
            // Repeated topics cost nothing, and peers that cancel make room for others.
            says(&mut rig, ids[1], add, "1 000000");
            rig.settle();
            for peer in [0, 1] {
                for n in 0..TOPICS {
                    says(&mut rig, ids[peer], cancel, &format!("{peer} {n:06}"));
                }
            }
            rig.settle();
            says(&mut rig, ids[7], add, "7 new");
            rig.settle();
            assert_eq!(rig.dropped(DropReason::Excess), refused);
            for id in ids {
                rig.far_close(id);
            }
            rig.settle();
            assert_eq!(budget.usage().0, before);
        }
    }

    #[test]
    fn sockets_of_the_program_may_subscribe_beyond_the_budget() {
        let budget = Budget::new();
        budget.set_limit(MIB);
        let mut rig = Rig::new(&PUB);
        rig.pipes = PipeSet::of(&budget);
        let id = rig.accept("");
        rig.pipes.note_local(id);
        for n in 0..20_000 {
            says(&mut rig, id, FrameKind::Subscribe, &format!("{n:06}"));
        }
        rig.settle();
        assert_eq!(rig.dropped(DropReason::Excess), 0);
        assert!(budget.usage().0 > 2 * MIB);
    }
}
