//! The messages on disk for a peer follow its name when it leaves, returns, or gives up the name.

use super::absent::Named;
use super::{PipeSet, Side};
use crate::patterns::drops::{DoomReason, DropReason};
use crate::pipe::PipeId;

impl PipeSet {
    /// By what a peer is recognised when it returns: what it called itself, or the endpoint that this socket connects to.
    pub(super) fn own_name(&self, id: PipeId, name: Option<&[u8]>) -> Option<Vec<u8>> {
        if !self.overflow.as_ref()?.is_kept() {
            return None;
        }
        match name {
            Some(name) => Some(called(name)),
            None => self.endpoint_name(id),
        }
    }

    fn endpoint_name(&self, id: PipeId) -> Option<Vec<u8>> {
        let entry = self.slots.get(super::slot_index(id))?.entry.as_ref()?;
        let connects = entry.side == Side::Connecting;
        connects.then(|| [b"endpoint ", entry.endpoint.as_bytes()].concat())
    }

    /// Gives a peer that has come, or has got a name, the kept messages for it. `name` is what it calls itself.
    pub(crate) fn adopt(&mut self, id: PipeId, name: Option<&[u8]>) {
        let names = [self.endpoint_name(id), name.map(called)];
        let Some(overflow) = self.overflow.as_deref_mut() else {
            return;
        };
        if overflow.waits_for_any() {
            if let Some(pipe) = self.get(id) {
                pipe.block();
            }
            return;
        }
        let absent = &mut overflow.absent;
        let names = names.into_iter().flatten();
        let mut own: Vec<Named> = names.flat_map(|name| absent.take(name)).collect();
        if own.is_empty() {
            return;
        }
        // Those from before are usually older than what was sent to the peer since it came.
        own.extend(overflow.for_peers.remove(&id).unwrap_or_default());
        own.sort_by_key(|named| named.queue.number());
        overflow.for_peers.insert(id, own.into());
        if let Some(pipe) = self.get(id) {
            pipe.block();
        }
    }

    /// Keeps the messages on disk for a peer that no longer has the name `name`, until a peer has it again.
    pub(in crate::patterns) fn part_from_name(&mut self, id: PipeId, name: &[u8]) {
        let Some(overflow) = self.overflow.as_deref_mut() else {
            return;
        };
        let Some(queues) = overflow.for_peers.remove(&id) else {
            return;
        };
        let name = Some(called(name));
        let is_leaving = |named: &Named| named.queue.is_kept() && named.name == name;
        let (leaving, staying): (Vec<_>, Vec<_>) = queues.into_iter().partition(is_leaving);
        match staying.is_empty() {
            true => {
                if let Some(pipe) = self.get(id) {
                    pipe.unblock();
                }
            }
            false => drop(overflow.for_peers.insert(id, staying.into())),
        }
        self.set_aside(leaving, DropReason::PeerGone);
    }

    /// Keeps or gives up the messages on disk for a peer that leaves.
    #[cold]
    pub(super) fn leave_overflow(&mut self, id: PipeId) {
        let doomed = self.entry(id).and_then(|entry| entry.doomed);
        let reason = match doomed {
            Some(DoomReason::TooSlow) => DropReason::TooSlow,
            _ => DropReason::PeerGone,
        };
        self.give_up_overflow(id, reason);
    }

    /// The same for this reason.
    #[cold]
    pub(crate) fn give_up_overflow(&mut self, id: PipeId, reason: DropReason) {
        let overflow = self.overflow.as_deref_mut();
        let queues = overflow.and_then(|overflow| overflow.for_peers.remove(&id));
        self.set_aside(queues.unwrap_or_default(), reason);
    }

    /// Keeps the messages of these queues for a peer that returns, or drops and counts them.
    fn set_aside(&mut self, queues: impl IntoIterator<Item = Named>, reason: DropReason) {
        let Some(overflow) = self.overflow.as_deref_mut() else {
            return;
        };
        let mut lost = 0;
        for named in queues {
            if let Some(queue) = overflow.absent.add(named) {
                lost += queue.messages();
                overflow.give_up(queue);
            }
        }
        self.counters.add(reason, lost);
    }
}

/// By what a peer is recognised that calls itself `name`.
fn called(name: &[u8]) -> Vec<u8> {
    [b"name ", name].concat()
}
