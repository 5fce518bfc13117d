//! The relation of the two ends of a pipe: whether each is there, what each may know of the other, and how one closes.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::message::Message;

use super::far::{Far, Parting};
use super::presence::Presence;
use super::{Limit, Pipe, PipeEvent, Room, limit, lock};
use crate::sys::sync::atomic::{Ordering, fence};

impl Pipe {
    /// Returns true after the far end has closed. The messages that it flushed before can still be read.
    #[inline]
    pub fn is_far_closed(&self) -> bool {
        self.own().far.is_gone()
    }

    /// Returns true if the far end has closed and everything it sent was read, and taken.
    pub fn is_finished(&mut self) -> bool {
        if !self.is_far_closed() || self.is_holding() || self.is_reading_newest() {
            return false;
        }
        match &self.far().slot {
            Some(slot) => lock(&slot.newest).is_none(),
            None => self.rx.peek().is_none(),
        }
    }

    /// Closes this end for what it writes, as dropping it does, and takes the far end for closed. The messages that the far
    /// end has flushed by then can still be read, and those that it flushes before it knows, as long as this end is there.
    pub fn half_close(&mut self) {
        self.end_writing();
        self.half_closed = true;
        self.own().far.part(Parting::Close);
        self.tell_closed();
    }

    /// Whether this end has [closed for what it writes](Self::half_close).
    pub fn is_half_closed(&self) -> bool {
        self.half_closed
    }

    /// Publishes what was written, and counts from now on nothing more that is lost of it.
    pub(super) fn end_writing(&mut self) {
        self.tear();
        self.say_last_words();
        // The caller notifies the far end, asleep or not. Everything is published before it can see the end, because
        // otherwise it would take the pipe for drained.
        let _ = self.tx.close();
        self.own().losses.settle();
    }

    /// Notifies the far end that this one has closed.
    pub(super) fn tell_closed(&self) {
        self.far().far.part(self.parting);
        // Pairs with the fence in `set_owner`.
        fence(Ordering::SeqCst);
        self.far().notify(PipeEvent::Closed);
    }

    /// Closes this end, but only for the connection behind it. A connecting session makes a new connection, with a new
    /// pipe, after its usual delay.
    pub fn give_up(mut self) {
        self.parting = Parting::GiveUp;
    }

    /// Closes this end and takes back everything that the far end has not read yet.
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

    /// How long the far end's messages are delivered after it has closed; `None` means without a limit.
    pub fn far_linger(&self) -> Option<Duration> {
        u64::try_from(self.far().linger.load(Ordering::Acquire))
            .ok()
            .map(Duration::from_millis)
    }

    /// Sets how long the far end delivers what this end wrote, after this end is dropped; `None` means without a limit.
    pub fn set_linger(&self, linger: Option<Duration>) {
        let millis = linger.map_or(-1, |l| i64::try_from(l.as_millis()).unwrap_or(i64::MAX));
        self.own().linger.store(millis, Ordering::Release);
    }

    /// Sets the message that is read here last, after the far end has closed.
    pub fn expect_last_words(&self, message: Option<Message>) {
        *lock(&self.far().last_words) = message.map(Box::new);
    }

    /// Writes the message that the far end's owner expects to read last.
    pub(super) fn say_last_words(&mut self) {
        let last = lock(&self.own().last_words).take();
        if let Some(mut last) = last
            && !self.is_far_closed()
        {
            self.write_unchecked(&mut last);
        }
    }

    /// The peer behind the far end, if it is known.
    pub fn peer(&self) -> Option<Arc<PeerInfo>> {
        lock(&self.own().peer).clone()
    }

    /// The peer that this end's owner serves, as it last announced it to the far end.
    pub fn far_peer(&self) -> Option<Arc<PeerInfo>> {
        lock(&self.far().peer).clone()
    }

    /// Sets the name by which the owner of this end calls the peer, whichever peer it is.
    pub fn set_peer_name(&mut self, name: Option<Bytes>) {
        self.peer_name = name;
    }

    /// The name by which the owner of this end must call the peer, if the application has set one.
    pub fn peer_name(&self) -> Option<Bytes> {
        self.peer_name.clone()
    }

    /// Records that the far end sends messages as datagrams of up to this size.
    pub fn set_largest(&mut self, size: usize) {
        self.largest = Some(size);
    }

    /// The size of the largest datagram, if messages are sent as datagrams.
    pub fn largest(&self) -> Option<usize> {
        self.largest
    }

    /// Returns true if the peer is known and has not been met since the last
    /// [`parts_from_peer`](Self::parts_from_peer). An owner that takes its end while the peer is being announced may
    /// find the peer here and also receive the event.
    pub fn meets_peer(&mut self) -> bool {
        let known = lock(&self.own().peer).is_some();
        let meets = known && !mem::replace(&mut self.met, true);
        self.meetings += u64::from(meets);
        meets
    }

    /// Whether the owner of this end has met the peer, and the far end is open.
    pub fn is_connected(&self) -> bool {
        self.met && !self.is_far_closed()
    }

    /// How often the owner of this end has met a peer: once for each connection behind the pipe.
    pub fn meetings(&self) -> u64 {
        self.meetings
    }

    /// Records that the connection was lost. With the next connection, the peer is met again.
    pub fn parts_from_peer(&mut self) {
        self.met = false;
    }

    /// Makes the peer known to the far end and notifies it that the connection is ready.
    pub fn announce_ready(&self, peer: Arc<PeerInfo>) {
        *lock(&self.far().peer) = Some(peer);
        self.far().presence.set(Presence::There);
        self.far().notify(PipeEvent::Ready);
    }

    /// Makes the peer known to the far end without an event, before that end is attached.
    pub fn set_far_peer(&self, peer: Arc<PeerInfo>) {
        *lock(&self.far().peer) = Some(peer);
    }

    /// Notifies the far end that the connection is lost for now.
    pub fn announce_disconnected(&self) {
        self.far().notify(PipeEvent::Disconnected);
    }

    /// Notifies the far end, once per connection, that the peer has hung up before everything that it sent is in the
    /// pipe. It `returns` if the next connection uses this pipe.
    pub fn announce_hang_up(&self, returns: bool) {
        let presence = if returns {
            Presence::Away
        } else {
            Presence::Gone
        };
        if self.far().presence.set(presence) == Presence::There {
            self.far().notify(PipeEvent::HungUp);
        }
    }

    /// Whether the peer behind the far end has hung up, as far as [`announce_hang_up`](Self::announce_hang_up) told.
    pub fn peer_hung_up(&self) -> bool {
        self.own().presence.get() != Presence::There
    }

    /// Whether nothing can be sent to the far end any more: it closed, or its peer has hung up and does not return.
    pub fn is_far_gone(&self) -> bool {
        self.is_far_closed() || self.own().presence.get() == Presence::Gone
    }

    /// Changes the limit that this end sets for what it writes.
    pub fn set_limit_out(&mut self, limit: Limit) {
        if !self.is_blocked() {
            self.room = Room::Left;
        }
        self.own().limit.set(limit::End::Writer, limit);
    }

    /// Makes the pipe full until [`unblock`](Self::unblock), because messages that come before the next one wait
    /// elsewhere.
    pub fn block(&mut self) {
        let bytes_read = self.note_full();
        self.room = Room::Blocked { bytes_read };
    }

    /// Ends [`block`](Self::block). The pipe has room again once the reader has reached the low-water mark.
    pub fn unblock(&mut self) {
        if let Room::Blocked { bytes_read } = self.room {
            self.room = Room::Full { bytes_read };
        }
    }

    /// Whether the pipe is blocked.
    #[inline]
    pub fn is_blocked(&self) -> bool {
        matches!(self.room, Room::Blocked { .. })
    }

    /// Changes the limit that this end sets for what it reads. A waiting writer is notified, so that it checks again.
    pub fn set_limit_in(&self, limit: Limit) {
        self.far().limit.set(limit::End::Reader, limit);
        if self.far().wants_room.ring() {
            self.far().notify(PipeEvent::Writable);
        }
    }
}
