//! Messages beyond the high-water mark wait on disk, if the socket has a SPILL_DIR.
//!
//! Types that give a message to any peer have one queue on disk, which begins when no peer has room. Types that choose
//! the peer have a queue for each peer without room. Memory holds the older messages, and disk the newer ones. While a
//! queue on disk is not empty, the pipes that it concerns are [blocked](crate::pipe::Pipe::block): they have no room for
//! new messages, so these are appended to the queue, and keep their order. Because a blocked pipe looks like a full one,
//! the path of a message that has room does no work for this.
//!
//! `patterns/draining.rs` returns messages to memory when a reader has made room.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::path::Path;

use zeroxide_proto::message::Message;

use super::PipeSet;
use super::absent::{Absent, Named};
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::drops::{DoomReason, DropReason};
use crate::pipe::PipeId;
use crate::spill::{BLOCK, Contents, Folder, Found, Queue, size_of};

/// The minimum number of bytes that are read from a queue at once.
const AHEAD_MIN: usize = 4096;

/// The maximum number of queues that keep files open between two calls, because a peer that does not read must not cost
/// more descriptors than its connection. Further queues open their files for each call.
const OPEN_MAX: usize = 100;

/// Where the messages of a socket wait that exceed the high-water mark.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Spills {
    /// Nowhere: the sender waits, or the messages are dropped.
    Never,
    /// In one queue on disk, for the next peer that has room: the pattern sends with a
    /// [`LoadBalancer`](crate::patterns::LoadBalancer).
    ForAny,
    /// In a queue on disk for each peer: the pattern sends with a [`Distributor`](crate::patterns::Distributor), or is
    /// ROUTER.
    ForEachPeer,
}

/// The queues on disk of one socket.
pub(crate) struct Overflow {
    folder: Folder,
    /// The maximum size of all messages; 0 = no limit.
    limit: u64,
    style: Spills,
    /// The messages for any peer, if there are any.
    for_any: Option<Queue>,
    /// The messages for each peer that has any. A peer has several queues after it returned with messages.
    pub(super) for_peers: BTreeMap<PipeId, VecDeque<Named>>,
    /// The kept messages for peers that are gone.
    pub(super) absent: Absent,
    bytes: u64,
    /// A message found no room, and none was taken or added since. One that is larger than the limit does not count:
    /// waiting would not help it.
    is_full: bool,
    is_draining: bool,
    /// The reason why messages could not be read back, for the next sender.
    trouble: Option<Error>,
}

/// The messages that a socket leaves on disk when it closes, or gives up.
pub(crate) struct Left {
    /// The pipe to the peer, unless the peer is gone, or any peer could have had the messages.
    pub(crate) id: Option<PipeId>,
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
}

impl Overflow {
    /// Takes a folder with the messages that were found in it.
    ///
    /// # Errors
    /// `Invalid` if they are those of another style.
    pub(crate) fn new(
        folder: Folder,
        contents: Contents,
        style: Spills,
        limit: u64,
    ) -> Result<Overflow> {
        let mut overflow = Overflow {
            folder,
            limit,
            style,
            for_any: None,
            for_peers: BTreeMap::new(),
            absent: Absent::default(),
            bytes: 0,
            is_full: false,
            is_draining: false,
            trouble: None,
        };
        for Found { name, queue } in contents.queues {
            let fits = match style {
                Spills::ForAny => name.is_none() && overflow.for_any.is_none(),
                _ => name.is_some(),
            };
            if !fits {
                let text = format!(
                    "SPILL_DIR {} holds messages of a socket of another type",
                    overflow.folder.path().display()
                );
                return Err(Error::with(ErrorKind::Invalid, text));
            }
            overflow.bytes += queue.bytes();
            match name {
                None => overflow.for_any = Some(queue),
                Some(name) => overflow.absent.restore(name, queue),
            }
        }
        Ok(overflow)
    }

    pub(crate) fn set_limit(&mut self, limit: u64) {
        self.limit = limit;
        self.is_full = false;
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Whether messages for a peer with a name stay when the peer leaves or the socket closes.
    pub(in crate::patterns) fn is_kept(&self) -> bool {
        self.folder.is_kept()
    }

    /// The messages on disk and their size.
    pub(crate) fn size(&self) -> (u64, u64) {
        let peers = self.for_peers.values().flatten().map(|named| &named.queue);
        size_of_all(peers.chain(self.absent.queues()).chain(&self.for_any))
    }

    /// The messages for one peer and their size.
    pub(crate) fn size_for(&self, id: PipeId) -> (u64, u64) {
        size_of_all(self.queues_for(id))
    }

    /// Whether messages for any peer wait.
    pub(in crate::patterns) fn waits_for_any(&self) -> bool {
        self.for_any.is_some()
    }

    /// The number of messages that are lost with the socket.
    pub(crate) fn fleeting(&self) -> u64 {
        let peers = self.for_peers.values().flatten().map(|named| &named.queue);
        let queues = peers.chain(&self.for_any);
        let fleeting = queues.filter(|queue| !queue.is_kept());
        fleeting.map(Queue::messages).sum()
    }

    /// The messages that are lost if this peer leaves, and their size.
    pub(crate) fn fleeting_for(&self, id: PipeId) -> (u64, u64) {
        size_of_all(self.queues_for(id).filter(|queue| !queue.is_kept()))
    }

    fn queues_for(&self, id: PipeId) -> impl Iterator<Item = &Queue> {
        let queues = self.for_peers.get(&id).into_iter().flatten();
        queues.map(|named| &named.queue)
    }

    /// The peers for which messages wait.
    pub(in crate::patterns) fn peers(&self) -> Vec<PipeId> {
        self.for_peers.keys().copied().collect()
    }

    /// Closes the files of the peer's queues if there are many queues. Called after each use of them.
    pub(in crate::patterns) fn rest(&mut self, id: PipeId) {
        if self.for_peers.len() <= OPEN_MAX {
            return;
        }
        for named in self.for_peers.get_mut(&id).into_iter().flatten() {
            named.queue.rest();
        }
    }

    /// Records that nothing waits for the peer any more.
    pub(in crate::patterns) fn forget(&mut self, id: PipeId) {
        self.for_peers.remove(&id);
    }

    /// While messages are taken from disk, none is written there.
    pub(in crate::patterns) fn set_draining(&mut self, is_draining: bool) {
        self.is_draining = is_draining;
    }

    /// Checks that a message of this size may be added.
    fn admit(&mut self, size: u64) -> Result<()> {
        if self.limit != 0 && self.bytes + size > self.limit {
            self.is_full |= size <= self.limit;
            return Err(Error::new(ErrorKind::Again));
        }
        Ok(())
    }

    fn added(&mut self, size: u64) {
        self.bytes += size;
        self.is_full = false;
    }

    fn took(&mut self, message: &Message) {
        self.bytes = self.bytes.saturating_sub(size_of(message));
        self.is_full = false;
    }

    /// Removes a queue whose messages are lost.
    pub(super) fn give_up(&mut self, queue: Queue) {
        self.bytes = self.bytes.saturating_sub(queue.bytes());
        self.is_full = false;
        // The next socket with this folder removes the files that cannot be removed now.
        let _ = queue.remove();
    }

    /// What would be left on disk if the socket closed now.
    pub(crate) fn left(&self) -> Vec<Left> {
        let left = |id, queue: &Queue| Left {
            id,
            messages: queue.messages(),
            bytes: queue.bytes(),
        };
        let peers = self.for_peers.iter().flat_map(|(id, queues)| {
            let queues = queues.iter();
            queues.map(|named| left(Some(*id), &named.queue))
        });
        let absent = self.absent.queues().map(|queue| left(None, queue));
        let any = self.for_any.iter().map(|queue| left(None, queue));
        peers.chain(absent).chain(any).collect()
    }

    /// Makes the queues durable that are kept, removes the others, and gives up the folder.
    pub(crate) fn close(self) {
        let peers = self.for_peers.into_values().flatten();
        let named = peers.map(|named| named.queue);
        for mut queue in named.chain(self.absent.into_queues()).chain(self.for_any) {
            // The messages are in the page cache even if this fails, and what cannot be removed now will be by the next
            // socket.
            let _ = match queue.is_kept() && queue.messages() > 0 {
                true => queue.sync(),
                false => queue.remove(),
            };
        }
    }
}

/// The number of messages and their size.
fn size_of_all<'a>(queues: impl Iterator<Item = &'a Queue>) -> (u64, u64) {
    queues.fold((0, 0), |(messages, bytes), queue| {
        (messages + queue.messages(), bytes + queue.bytes())
    })
}

impl PipeSet {
    /// From now on, messages beyond the high-water mark go to disk.
    pub(crate) fn set_overflow(&mut self, overflow: Overflow) {
        let holds = overflow.for_any.is_some();
        self.overflow = Some(Box::new(overflow));
        if holds {
            self.hold_all();
        }
    }

    pub(crate) fn take_overflow(&mut self) -> Option<Box<Overflow>> {
        self.overflow.take()
    }

    pub(crate) fn overflow(&self) -> Option<&Overflow> {
        self.overflow.as_deref()
    }

    pub(crate) fn overflow_mut(&mut self) -> Option<&mut Overflow> {
        self.overflow.as_deref_mut()
    }

    #[inline]
    pub(crate) fn has_overflow(&self) -> bool {
        self.overflow.is_some()
    }

    /// Whether a message for any peer could be written to disk.
    pub(in crate::patterns) fn has_disk_for_any(&self) -> bool {
        self.has_disk(Spills::ForAny)
    }

    /// Whether a message for a particular peer could be written to disk.
    pub(in crate::patterns) fn has_disk_for_peers(&self) -> bool {
        self.has_disk(Spills::ForEachPeer)
    }

    fn has_disk(&self, style: Spills) -> bool {
        self.overflow
            .as_ref()
            .is_some_and(|some| some.style == style && !some.is_draining && !some.is_full)
    }

    /// Writes a message to disk for which no peer has room.
    ///
    /// # Errors
    /// `Again` if the socket does not do that, or SPILL_BYTES is reached; the disk's error. The message is unchanged.
    #[cold]
    pub(in crate::patterns) fn spill_for_any(&mut self, message: &mut Message) -> Result<()> {
        let again = || Error::new(ErrorKind::Again);
        let overflow = self.overflow.as_deref_mut().ok_or_else(again)?;
        if overflow.style != Spills::ForAny || overflow.is_draining {
            return Err(again());
        }
        if let Some(error) = overflow.trouble.take() {
            return Err(error);
        }
        let size = size_of(message);
        overflow.admit(size)?;
        let limit = overflow.limit;
        let is_first = overflow.for_any.is_none();
        let pushed = match &mut overflow.for_any {
            Some(queue) => queue.push(message),
            None => overflow.folder.create(None, limit).and_then(|queue| {
                let queue = overflow.for_any.insert(queue);
                queue.push(message)
            }),
        };
        if let Err(error) = pushed {
            // An empty queue must not hold the pipes.
            if is_first && let Some(queue) = overflow.for_any.take() {
                let _ = queue.remove();
            }
            return Err(overflow.folder.error(error));
        }
        overflow.added(size);
        if is_first {
            self.hold_all();
        }
        Ok(())
    }

    /// Writes a message to disk for a peer without room. `name` is what the peer called itself.
    ///
    /// # Errors
    /// As [`spill_for_any`](Self::spill_for_any).
    #[cold]
    pub(in crate::patterns) fn spill_for(
        &mut self,
        id: PipeId,
        name: Option<&[u8]>,
        message: &Message,
    ) -> Result<()> {
        let own = self.own_name(id, name);
        let again = || Error::new(ErrorKind::Again);
        let overflow = self.overflow.as_deref_mut().ok_or_else(again)?;
        if overflow.style != Spills::ForEachPeer {
            return Err(again());
        }
        let size = size_of(message);
        overflow.admit(size)?;
        let limit = overflow.limit;
        let queues = overflow.for_peers.entry(id).or_default();
        let pushed = match queues.back_mut() {
            Some(last) => last.queue.push(message),
            None => {
                let folder = &mut overflow.folder;
                let created = match &own {
                    Some(name) => folder.create(Some(name), limit),
                    None => folder.create_unnamed(limit),
                };
                created.and_then(|mut queue| match queue.push(message) {
                    Ok(()) => {
                        queues.push_back(Named { name: own, queue });
                        Ok(())
                    }
                    Err(error) => {
                        let _ = queue.remove();
                        Err(error)
                    }
                })
            }
        };
        if queues.is_empty() {
            overflow.for_peers.remove(&id);
        }
        if let Err(error) = pushed {
            return Err(overflow.folder.error(error));
        }
        overflow.added(size);
        overflow.rest(id);
        if let Some(pipe) = self.get(id) {
            pipe.block();
        }
        Ok(())
    }

    /// Writes a message to disk for a peer without room, or else drops and counts it. A peer for which there is no room
    /// there either may also be disconnected.
    #[cold]
    pub(in crate::patterns) fn spill_or_drop(
        &mut self,
        id: PipeId,
        message: &Message,
        disconnects: bool,
    ) {
        if !self.is_open(id) {
            return self.count_drop(Some(id), DropReason::PeerGone);
        }
        match self.spill_for(id, None, message) {
            Err(error) if disconnects && error.kind() == ErrorKind::Again => {
                self.doom(id, DoomReason::TooSlow);
                self.count_drop(Some(id), DropReason::TooSlow);
            }
            Err(error) => self.count_unspilled(id, &error),
            Ok(()) => {}
        }
    }

    /// Counts a message that is dropped because it could not be written to disk.
    pub(in crate::patterns) fn count_unspilled(&mut self, id: PipeId, error: &Error) {
        let reason = match error.kind() {
            ErrorKind::Again => DropReason::HighWater,
            _ => DropReason::Disk,
        };
        self.count_drop(Some(id), reason);
    }

    pub(in crate::patterns) fn hold_all(&mut self) {
        for id in self.ids() {
            if let Some(pipe) = self.get(id) {
                pipe.block();
            }
        }
    }

    /// Takes the next message from disk: for any peer, or for this one. Messages in a damaged file are dropped and
    /// counted.
    pub(in crate::patterns) fn take_spilled(
        &mut self,
        id: Option<PipeId>,
    ) -> Result<Option<Message>> {
        loop {
            let Some(overflow) = self.overflow.as_deref_mut() else {
                return Ok(None);
            };
            // Every queue that is being read has memory for this.
            let ahead = (BLOCK / overflow.for_peers.len().max(1)).max(AHEAD_MIN);
            let queue = match id {
                None => overflow.for_any.as_mut(),
                Some(id) => {
                    let queues = overflow.for_peers.get_mut(&id);
                    queues.and_then(|queues| queues.front_mut().map(|named| &mut named.queue))
                }
            };
            let Some(queue) = queue else { return Ok(None) };
            match queue.take(ahead) {
                Ok(Some(message)) => {
                    overflow.took(&message);
                    return Ok(Some(message));
                }
                Ok(None) => {
                    let empty = match id {
                        None => overflow.for_any.take(),
                        Some(id) => {
                            let queues = overflow.for_peers.get_mut(&id);
                            let first = queues.and_then(VecDeque::pop_front);
                            first.map(|named| named.queue)
                        }
                    };
                    // As in `give_up`.
                    let _ = empty.map(Queue::remove);
                }
                Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                    let before = queue.bytes();
                    let lost = queue.skip_file();
                    let gone = before - queue.bytes();
                    overflow.bytes = overflow.bytes.saturating_sub(gone);
                    overflow.is_full = false;
                    match id.and_then(|id| self.entry(id)) {
                        Some(entry) => entry.count_drops(DropReason::Disk, lost),
                        None => self.counters.add(DropReason::Disk, lost),
                    }
                }
                Err(error) => {
                    let error = overflow.folder.error(error);
                    overflow.trouble = Some(error.clone());
                    return Err(error);
                }
            }
        }
    }

    /// Returns the message to disk that was just taken for any peer, because none has room any more.
    #[cold]
    pub(in crate::patterns) fn put_back(&mut self, message: &Message) {
        if let Some(overflow) = self.overflow.as_deref_mut()
            && let Some(queue) = &mut overflow.for_any
        {
            queue.put_back(message);
            overflow.bytes += size_of(message);
        }
    }
}
