//! The two ends of a pipe as each other's: who is there, what they may know of each other, and how one goes.

use std::mem;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;

use super::far::{Far, Parting};
use super::{Limit, Pipe, PipeEvent, Room, limit, lock};

impl Pipe {
    /// True once the far end closed; what it flushed before can still be read.
    #[inline]
    pub fn is_far_closed(&self) -> bool {
        self.own().far.is_gone()
    }

    /// True once the far end closed and everything it sent was read.
    pub fn is_finished(&mut self) -> bool {
        if !self.is_far_closed() {
            return false;
        }
        match &self.far().slot {
            Some(slot) => lock(&slot.newest).is_none(),
            None => self.rx.peek().is_none(),
        }
    }

    /// Closes this end, but only for the connection behind it: a connecting session makes another one, with another
    /// pipe, after its usual delay.
    pub fn give_up(mut self) {
        self.parting = Parting::GiveUp;
    }

    /// Closes this end and takes back what the far end has not read yet.
    pub fn withdraw(mut self) {
        self.parting = Parting::Withdraw;
    }

    /// Whether the far end closed by [`withdraw`](Self::withdraw).
    pub fn far_withdrew(&self) -> bool {
        self.own().far.get() == Far::Withdrew
    }

    /// Whether the far end closed by [`give_up`](Self::give_up).
    pub fn far_gave_up(&self) -> bool {
        self.own().far.get() == Far::GaveUp
    }

    /// How long the far end wished its messages to be delivered after it closed; `None` = for ever.
    pub fn far_linger(&self) -> Option<Duration> {
        u64::try_from(self.far().linger.load(Ordering::Acquire))
            .ok()
            .map(Duration::from_millis)
    }

    /// Sets for how long the far end shall deliver what this end wrote, once this end is dropped; `None` = for ever.
    pub fn set_linger(&self, linger: Option<Duration>) {
        let millis = linger.map_or(-1, |l| i64::try_from(l.as_millis()).unwrap_or(i64::MAX));
        self.own().linger.store(millis, Ordering::Release);
    }

    /// The peer behind the far end, once known.
    pub fn peer(&self) -> Option<Arc<PeerInfo>> {
        lock(&self.own().peer).clone()
    }

    /// The peer in front of this end's owner, as it was last made known to the far end.
    pub fn far_peer(&self) -> Option<Arc<PeerInfo>> {
        lock(&self.far().peer).clone()
    }

    /// The owner of this end shall call whoever the peer is by this name.
    pub fn set_peer_name(&mut self, name: Option<Bytes>) {
        self.peer_name = name;
    }

    /// What the owner of this end is to call the peer, if the application has said so.
    pub fn peer_name(&self) -> Option<Bytes> {
        self.peer_name.clone()
    }

    /// True when the peer is known and has not been met since the last [`parts_from_peer`](Self::parts_from_peer): an
    /// owner that takes its end while the peer is being announced may see it there and be told of it as well.
    pub fn meets_peer(&mut self) -> bool {
        let known = lock(&self.own().peer).is_some();
        known && !mem::replace(&mut self.met, true)
    }

    /// Whether the owner of this end has met the peer, and the connection stands.
    pub fn is_connected(&self) -> bool {
        self.met && !self.is_far_closed()
    }

    /// The connection is lost, and with the next one the peer is met again.
    pub fn parts_from_peer(&mut self) {
        self.met = false;
    }

    /// Makes the peer known to the far end and tells it that the connection is ready.
    pub fn announce_ready(&self, peer: Arc<PeerInfo>) {
        *lock(&self.far().peer) = Some(peer);
        self.far().notify(PipeEvent::Ready);
    }

    /// Makes the peer known to the far end without an event, before that end is attached.
    pub fn set_far_peer(&self, peer: Arc<PeerInfo>) {
        *lock(&self.far().peer) = Some(peer);
    }

    /// Tells the far end that the connection is down for now.
    pub fn announce_disconnected(&self) {
        self.far().notify(PipeEvent::Disconnected);
    }

    /// Changes what this end wants to be the limit of what it writes.
    pub fn set_limit_out(&mut self, limit: Limit) {
        self.room = Room::Left;
        self.own().limit.set(limit::End::Writer, limit);
    }

    /// Changes what this end wants to be the limit of what it reads. A writer that waits is told to look again.
    pub fn set_limit_in(&self, limit: Limit) {
        self.far().limit.set(limit::End::Reader, limit);
        if self.far().wants_room.ring() {
            self.far().notify(PipeEvent::Writable);
        }
    }
}
