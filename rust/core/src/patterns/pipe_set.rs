//! The pipes of one socket, with counters for the fate of each message.

mod absent;
mod effort;
mod gathering;
mod overflow;
mod returning;
mod topics;

use std::mem;
use std::ops::ControlFlow;
use std::sync::Arc;

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::{Frame, FrameKind};
use zeroxide_proto::message::Message;

use self::effort::Effort;
pub use self::effort::effort;
use self::gathering::Gathering;
pub(crate) use self::overflow::Overflow;
pub use self::overflow::Spills;
use crate::budget::Topics;
use crate::pace::AUDIENCE_MIN;
use crate::patterns::drops::{Counters, DoomReason, DropReason};
use crate::pipe::{Pipe, PipeId};

/// Which side of a connection this socket is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Side {
    /// It called `connect`.
    Connecting,
    /// The peer connected to an endpoint that it had bound.
    Accepting,
}

struct Slot {
    generation: u32,
    entry: Option<Entry>,
}

struct Entry {
    pipe: Pipe,
    endpoint: Box<str>,
    side: Side,
    /// Whether the far end is another socket of the context.
    local: bool,
    /// Made with the first drop, because they take 168 bytes and most peers lose nothing.
    counters: Option<Box<Counters>>,
    dirty: bool,
    /// The reason why the pattern drops this pipe, if it does.
    doomed: Option<DoomReason>,
}

impl Entry {
    /// What this pipe lost.
    fn drops(&self) -> &Counters {
        static NONE: Counters = Counters::NONE;
        self.counters.as_deref().unwrap_or(&NONE)
    }

    fn count_drops(&mut self, reason: DropReason, n: u64) {
        self.counters.get_or_insert_default().add(reason, n);
    }
}

/// A pipe that left the set, with its description.
pub(crate) struct Removed {
    /// The end that the socket held.
    pub(crate) pipe: Pipe,
    /// The endpoint it was bound to or connected with.
    pub(crate) endpoint: Box<str>,
    /// The reason why the pattern dropped it, if it did.
    pub(crate) doomed: Option<DoomReason>,
}

/// The pipes of one socket.
///
/// Writes through the set record which pipes need a flush, so that a batch of messages is published once.
#[derive(Default)]
pub struct PipeSet {
    slots: Vec<Slot>,
    free: Vec<u32>,
    /// The exclusive or of the indices of all occupied slots: for a single pipe, its index.
    occupied: u32,
    dirty: Vec<PipeId>,
    doomed: Vec<PipeId>,
    finished: Vec<PipeId>,
    counters: Counters,
    /// Whether most of the pipes of the last write still had unread messages.
    behind: bool,
    /// The number of messages that are not to be gathered even so.
    pause: u8,
    gathering: Option<Box<Gathering>>,
    /// Some if messages beyond the high-water mark go to disk.
    overflow: Option<Box<Overflow>>,
    effort: Effort,
    /// Charges the peers' topics to the context's budget; `None` in tests of patterns.
    topics: Option<Topics>,
}

impl PipeSet {
    /// An empty set.
    pub(crate) fn new() -> PipeSet {
        PipeSet::default()
    }

    /// Adds a pipe. Its id is used again after 2^32 pipes in the same slot, long after the last event about it.
    pub(crate) fn insert(&mut self, pipe: Pipe, endpoint: &str, side: Side) -> PipeId {
        let entry = Entry {
            pipe,
            endpoint: endpoint.into(),
            side,
            local: false,
            counters: None,
            dirty: false,
            doomed: None,
        };
        let index = match self.free.pop() {
            Some(index) => index as usize,
            None => {
                if self.slots.is_empty() {
                    // Many sockets have one pipe only, and a slot takes almost half a kilobyte.
                    self.slots.reserve_exact(1);
                }
                self.slots.push(Slot {
                    generation: 0,
                    entry: None,
                });
                self.slots.len() - 1
            }
        };
        self.occupied ^= index as u32;
        let slot = &mut self.slots[index];
        slot.generation = slot.generation.wrapping_add(1);
        slot.entry = Some(entry);
        PipeId(u64::from(slot.generation) << 32 | index as u64)
    }

    /// Removes a pipe. Messages that a dropped pipe still had for the application are lost and counted.
    pub(crate) fn remove(&mut self, id: PipeId) -> Option<Removed> {
        if let Some(reason) = self.entry(id)?.doomed {
            self.discard(id, reason.fate_of_unread());
        }
        if self.overflow.is_some() {
            self.leave_overflow(id);
        }
        let index = slot_index(id);
        let entry = self.slots[index].entry.take()?;
        self.free.push(index as u32);
        self.occupied ^= index as u32;
        self.counters.merge(entry.drops());
        Some(Removed {
            pipe: entry.pipe,
            endpoint: entry.endpoint,
            doomed: entry.doomed,
        })
    }

    #[inline]
    fn entry(&mut self, id: PipeId) -> Option<&mut Entry> {
        let slot = self.slots.get_mut(slot_index(id))?;
        if slot.generation != (id.0 >> 32) as u32 {
            None
        } else {
            slot.entry.as_mut()
        }
    }

    /// The pipe with this `id`, unless it is gone.
    #[inline]
    pub(crate) fn get(&mut self, id: PipeId) -> Option<&mut Pipe> {
        self.entry(id).map(|entry| &mut entry.pipe)
    }

    /// The same, with its endpoint.
    pub(crate) fn get_named(&mut self, id: PipeId) -> Option<(&mut Pipe, &str)> {
        self.entry(id)
            .map(|entry| (&mut entry.pipe, &*entry.endpoint))
    }

    /// The pipe and its id, if there is exactly one.
    pub(crate) fn only(&self) -> Option<(PipeId, &Pipe)> {
        if self.slots.len() - self.free.len() != 1 {
            return None;
        }
        let slot = self.slots.get(self.occupied as usize)?;
        let id = PipeId(u64::from(slot.generation) << 32 | u64::from(self.occupied));
        slot.entry.as_ref().map(|entry| (id, &entry.pipe))
    }

    /// The peer of `id`, once its handshake is complete.
    pub fn peer(&mut self, id: PipeId) -> Option<Arc<PeerInfo>> {
        self.get(id)?.peer()
    }

    /// Whether the far end of `id` is still there to be sent to.
    pub fn is_open(&mut self, id: PipeId) -> bool {
        self.get(id).is_some_and(|pipe| !pipe.is_far_closed())
    }

    /// Whether nothing can be sent to the peer of `id` any more. A peer to which the socket connects may return, unless
    /// each connection has a pipe of its own (IMMEDIATE).
    pub fn is_gone(&mut self, id: PipeId) -> bool {
        self.get(id).is_none_or(|pipe| pipe.is_far_gone())
    }

    /// The size of the largest datagram, if the messages of `id` are sent as datagrams. Nothing but the application's
    /// messages is exchanged then: the peer can neither join groups nor subscribe.
    pub fn largest(&mut self, id: PipeId) -> Option<usize> {
        self.get(id)?.largest()
    }

    /// Which side of the connection this socket is.
    pub fn side(&mut self, id: PipeId) -> Option<Side> {
        self.entry(id).map(|entry| entry.side)
    }

    /// Records that the far end is another socket of the context.
    pub(crate) fn note_local(&mut self, id: PipeId) {
        if let Some(entry) = self.entry(id) {
            entry.local = true;
        }
    }

    /// Whether the far end is another socket of the context, so that no connection can be made anew.
    pub(crate) fn is_local(&mut self, id: PipeId) -> bool {
        self.entry(id).is_some_and(|entry| entry.local)
    }

    /// The number of messages that were read from `id`, and the number that had arrived there. `None` if only the newest
    /// message is kept.
    pub(crate) fn progress(&mut self, id: PipeId) -> Option<(u64, u64)> {
        let pipe = self.get(id).filter(|pipe| !pipe.keeps_newest())?;
        let (read, _) = pipe.read_so_far();
        Some((read, read + pipe.queued_in()))
    }

    /// The number of messages that wait to be read from `id`.
    pub(crate) fn queued_in(&mut self, id: PipeId) -> u64 {
        self.get(id).map_or(0, |pipe| pipe.queued_in())
    }

    /// The ids of all pipes.
    pub fn ids(&self) -> Vec<PipeId> {
        let id = |(index, slot): (usize, &Slot)| {
            slot.entry
                .as_ref()
                .map(|_| PipeId(u64::from(slot.generation) << 32 | index as u64))
        };
        self.slots.iter().enumerate().filter_map(id).collect()
    }

    /// Whether a message could be written to `id` now. If not, [`Pattern::writable`](super::Pattern::writable)
    /// follows.
    #[inline]
    pub fn check_write(&mut self, id: PipeId) -> bool {
        self.get(id).is_some_and(Pipe::check_write)
    }

    /// Whether a message can be read from `id` now. If not, [`Pattern::readable`](super::Pattern::readable) follows. A
    /// pipe that is drained and whose far end closed is marked as finished; the socket detaches it after the call.
    #[inline]
    pub fn check_read(&mut self, id: PipeId) -> bool {
        let Some(entry) = self.entry(id) else {
            return false;
        };
        if entry.pipe.check_read() {
            return true;
        }
        if entry.pipe.is_finished() {
            self.finished.push(id);
        }
        false
    }

    /// Marks drained pipes with a closed far end as finished, because the last read of a pipe does not detect that it
    /// was the last.
    pub(crate) fn find_finished(&mut self) {
        for id in self.ids() {
            if self.get(id).is_some_and(|pipe| pipe.is_far_closed()) {
                self.check_read(id);
            }
        }
    }

    /// Writes a complete message to `id`, and leaves any remains to be dropped. It is flushed when the socket's call
    /// ends. Returns false if the pipe is full or gone; the message is then unchanged.
    #[inline]
    pub fn write(&mut self, id: PipeId, message: &mut Message) -> bool {
        let fits = self.check_write(id);
        if fits {
            self.write_checked(id, message);
        }
        fits
    }

    /// Like [`write`](Self::write), after [`check_write`](Self::check_write) has reported room.
    #[inline]
    pub(crate) fn write_checked(&mut self, id: PipeId, message: &mut Message) {
        let Some(entry) = self.entry(id) else { return };
        entry.pipe.write_unchecked(message);
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(id);
        }
    }

    /// Writes a copy of a complete message to `id`, like [`write`](Self::write). Returns false if the pipe is full or
    /// gone.
    #[inline]
    pub fn write_copy(&mut self, id: PipeId, message: &Message) -> bool {
        let Some(entry) = self.entry(id) else {
            return false;
        };
        if !entry.pipe.check_write() {
            return false;
        }
        entry.pipe.write_copy(message);
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(id);
        }
        true
    }

    /// Writes `envelope` and then `message` as one message, without building it first, like [`write`](Self::write). For
    /// pipes that do not conflate.
    #[inline]
    pub fn write_behind(
        &mut self,
        id: PipeId,
        envelope: impl IntoIterator<Item = Frame>,
        message: &mut Message,
    ) -> bool {
        let Some(entry) = self.entry(id) else {
            return false;
        };
        if !entry.pipe.check_write() {
            return false;
        }
        for mut frame in envelope {
            frame.set_more(true);
            entry.pipe.write_frame(frame);
        }
        message.take_frames(|frame| entry.pipe.write_frame(mem::take(frame)));
        if !entry.dirty {
            entry.dirty = true;
            self.dirty.push(id);
        }
        true
    }

    /// Writes a message that is exempt from the high-water mark, as subscriptions are.
    pub(crate) fn write_exempt(&mut self, id: PipeId, mut message: Message) {
        self.publish_gathered();
        if self.get(id).is_some_and(|pipe| !pipe.is_far_closed()) {
            self.write_checked(id, &mut message);
        }
    }

    /// Reads the next complete message from `id`; `None` if there is none now. See [`check_read`](Self::check_read).
    pub fn read(&mut self, id: PipeId) -> Option<Message> {
        self.get(id)?.read()
    }

    /// Like [`read`](Self::read), but fills an empty message in place. Returns false if there is none.
    #[inline]
    pub fn read_to(&mut self, id: PipeId, message: &mut Message) -> bool {
        self.get(id).is_some_and(|pipe| pipe.read_to(message))
    }

    /// Keeps a message of one part that was just read from `id`, until [`release`](Self::release). It still counts as
    /// unread. Returns false if the pattern keeps so many that the peer could not send others, unless the application can
    /// receive this one now (`is_next`).
    pub(crate) fn hold(&mut self, id: PipeId, message: &Message, is_next: bool) -> bool {
        self.get(id).is_some_and(|pipe| pipe.hold(message, is_next))
    }

    /// A message that was kept is received or dropped.
    pub(crate) fn release(&mut self, id: PipeId, message: &Message) {
        if let Some(entry) = self.entry(id) {
            entry.pipe.release(message);
            if entry.pipe.is_finished() {
                self.finished.push(id);
            }
        }
    }

    /// Reads and drops everything written to `id` so far, and counts the application's messages in it. Messages that a
    /// peer adds meanwhile stay, so that no peer can prolong this.
    pub fn discard(&mut self, id: PipeId, reason: DropReason) {
        let queued = self.queued_in(id);
        for _ in 0..queued {
            let Some(message) = self.read(id) else { return };
            if message.head().kind() == FrameKind::Data {
                self.count_drop(Some(id), reason);
            }
        }
    }

    /// Drops what a peer that has hung up has sent, if the pattern does not read it: the connection would otherwise stay
    /// until the messages have room.
    pub fn discard_departed(&mut self, id: PipeId, reason: DropReason) {
        if !self.get(id).is_some_and(|pipe| pipe.peer_hung_up()) {
            return;
        }
        while self.check_read(id) && self.queued_in(id) > 0 {
            self.discard(id, reason);
        }
    }

    /// Publishes everything written since the last flush, at the end of a call. Gathered messages may stay until the
    /// end of the next call, or until a reader asks for them.
    #[inline]
    pub(crate) fn flush(&mut self) {
        if !self.dirty.is_empty() {
            self.flush_dirty();
        }
        if self.gathering.is_some() {
            self.tend_gathering();
        }
    }

    fn flush_dirty(&mut self) {
        let (flushed, mut asleep) = (self.dirty.len(), 0);
        while let Some(id) = self.dirty.pop() {
            if let Some(entry) = self.entry(id) {
                entry.dirty = false;
                asleep += usize::from(entry.pipe.flush());
            }
        }
        self.behind = flushed >= AUDIENCE_MIN && asleep * 2 < flushed;
    }

    /// Asks the socket to drop this pipe and close its connection. Nothing more is read from it.
    pub(crate) fn doom(&mut self, id: PipeId, reason: DoomReason) {
        if let Some(entry) = self.entry(id)
            && entry.doomed.is_none()
        {
            entry.doomed = Some(reason);
            self.doomed.push(id);
        }
    }

    /// Closes the connection of `id`, whose peer is not to be served. Monitors report the reason.
    pub fn refuse(&mut self, id: PipeId, reason: &'static str) {
        self.doom(id, DoomReason::Refused(reason));
    }

    /// Counts a dropped message, on its pipe if it had one.
    pub fn count_drop(&mut self, id: Option<PipeId>, reason: DropReason) {
        match id.and_then(|id| self.entry(id)) {
            Some(entry) => entry.count_drops(reason, 1),
            None => self.counters.add(reason, 1),
        }
    }

    /// The pipes that were found drained and closed, and are still in the set.
    pub(super) fn finished(&self) -> &[PipeId] {
        &self.finished
    }

    /// The next pipe that has to be detached, either finished or doomed.
    pub(crate) fn next_leaving(&mut self) -> Option<PipeId> {
        while let Some(id) = self.doomed.pop().or_else(|| self.finished.pop()) {
            // A pipe leaves once, even if it was found finished several times, or was also dropped.
            if self.entry(id).is_some() {
                return Some(id);
            }
        }
        None
    }

    /// Whether [`next_leaving`](Self::next_leaving) would return a pipe.
    #[inline]
    pub(crate) fn has_leaving(&self) -> bool {
        !self.doomed.is_empty() || !self.finished.is_empty()
    }

    /// Drop counters of the whole socket, including removed pipes.
    pub(crate) fn counters(&self) -> Counters {
        let mut all = self.counters;
        for entry in self.slots.iter().filter_map(|slot| slot.entry.as_ref()) {
            all.merge(entry.drops());
        }
        all
    }

    /// Visits each pipe with its endpoint and counters.
    pub(crate) fn for_each(
        &self,
        mut visit: impl FnMut(PipeId, &Pipe, &str, &Counters) -> ControlFlow<()>,
    ) {
        for (index, slot) in self.slots.iter().enumerate() {
            if let Some(entry) = &slot.entry {
                let id = PipeId(u64::from(slot.generation) << 32 | index as u64);
                if visit(id, &entry.pipe, &entry.endpoint, entry.drops()).is_break() {
                    return;
                }
            }
        }
    }
}

/// The index of a pipe: less than the maximum number of simultaneous pipes, and reused after the pipe left.
#[inline]
pub(super) fn slot_index(id: PipeId) -> usize {
    (id.0 & u64::from(u32::MAX)) as usize
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::pipe::PipeConfig;

    fn insert(pipes: &mut PipeSet, endpoint: &str) -> PipeId {
        let config = PipeConfig::default();
        pipes.insert(Pipe::pair(config, config).0, endpoint, Side::Accepting)
    }

    #[test]
    fn the_only_pipe_is_found_without_a_search() {
        let mut pipes = PipeSet::new();
        assert!(pipes.only().is_none());
        let first = insert(&mut pipes, "first");
        assert!(pipes.only().is_some());
        let crowd: Vec<_> = (0..1000).map(|_| insert(&mut pipes, "crowd")).collect();
        let last = insert(&mut pipes, "last");
        assert!(pipes.only().is_none());
        for id in crowd.into_iter().rev() {
            pipes.remove(id);
        }
        assert!(pipes.only().is_none());
        pipes.remove(first);
        let only = pipes.only().map(|(id, pipe)| (id, ptr::from_ref(pipe)));
        assert_eq!(
            only,
            pipes.get(last).map(|pipe| (last, ptr::from_ref(pipe)))
        );
        // The index is known, however many slots there are.
        assert_eq!(pipes.occupied as usize, slot_index(last));
        let again = insert(&mut pipes, "again");
        assert!(pipes.only().is_none());
        pipes.remove(last);
        let only = pipes.only().map(|(id, pipe)| (id, ptr::from_ref(pipe)));
        assert_eq!(
            only,
            pipes.get(again).map(|pipe| (again, ptr::from_ref(pipe)))
        );
        pipes.remove(again);
        assert!(pipes.only().is_none());
    }

    #[test]
    fn a_pattern_learns_who_the_peer_is_and_may_refuse_it() {
        let mut pipes = PipeSet::new();
        let config = PipeConfig::default();
        let (near, far) = Pipe::pair(config, config);
        let id = pipes.insert(near, "here", Side::Accepting);
        assert!(pipes.peer(id).is_none() && pipes.is_open(id));
        far.set_far_peer(Arc::new(PeerInfo {
            version: (3, 1),
            ..PeerInfo::default()
        }));
        assert_eq!(pipes.peer(id).unwrap().version, (3, 1));
        assert_eq!(pipes.side(id), Some(Side::Accepting));
        pipes.refuse(id, "one peer is enough");
        assert_eq!(pipes.next_leaving(), Some(id));
        let removed = pipes.remove(id).unwrap();
        let reason = removed.doomed.unwrap().to_string();
        assert_eq!(reason, "one peer is enough");
        assert!(!pipes.is_open(id) && pipes.peer(id).is_none());
    }
}
