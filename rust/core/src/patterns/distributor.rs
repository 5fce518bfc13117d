//! Sends one message to many pipes.

use zeroxide_proto::message::Message;

use crate::patterns::pipe_set::{PipeSet, slot_index};
use crate::pipe::PipeId;

/// Marks pipes, then gives each marked one the same message.
///
/// Marking a pipe twice has the effect of marking it once. A full pipe misses the message and all further ones until it
/// has room again, without delaying other pipes; each is counted for the peer.
///
/// Messages for many peers may be gathered for a moment, so that they are encoded once. A pattern that also writes to
/// pipes itself calls [`PipeSet::publish_gathered`] first, which keeps the messages in order.
#[derive(Default)]
pub struct Distributor {
    /// Indexed by the position of the pipe in its set.
    places: Vec<Place>,
    live: Vec<PipeId>,
    marked: Vec<PipeId>,
    round: u64,
    /// The number of pipes in `live` that are known to be full.
    full: usize,
    /// Whether a full pipe is dropped instead of missing messages.
    disconnects: bool,
}

#[derive(Clone, Copy)]
struct Place {
    /// `None` while the pipe at this index does not belong to the distributor.
    id: Option<PipeId>,
    /// Its index in `live`.
    at: usize,
    /// The last round in which it was marked.
    marked_in: u64,
    has_room: bool,
}

const VACANT: Place = Place {
    id: None,
    at: 0,
    marked_in: 0,
    has_room: false,
};

impl Distributor {
    /// Adds a pipe.
    pub fn insert(&mut self, id: PipeId) {
        let index = slot_index(id);
        if index >= self.places.len() {
            self.places.resize(index + 1, VACANT);
        }
        if self.places[index].id == Some(id) {
            return;
        }
        self.places[index] = Place {
            id: Some(id),
            at: self.live.len(),
            // The previous round, so that it is not marked.
            marked_in: self.round.wrapping_sub(1),
            has_room: true,
        };
        self.live.push(id);
    }

    /// Removes a pipe.
    pub fn remove(&mut self, id: PipeId) {
        let Some(place) = self.place(id) else { return };
        let Place { at, has_room, .. } = std::mem::replace(place, VACANT);
        self.full -= usize::from(!has_room);
        self.live.swap_remove(at);
        if let Some(moved) = self.live.get(at).copied() {
            self.places[slot_index(moved)].at = at;
        }
    }

    /// There may be room again: to be called from [`Pattern::writable`](crate::patterns::Pattern::writable).
    pub fn writable(&mut self, id: PipeId) {
        if let Some(place) = self.place(id)
            && !place.has_room
        {
            place.has_room = true;
            self.full -= 1;
        }
    }

    /// Whether a peer whose pipe is full is disconnected from now on.
    pub(super) fn disconnect_full(&mut self, on: bool) {
        self.disconnects = on;
    }

    /// Whether every pipe has room, as far as is known.
    pub(super) fn all_have_room(&self) -> bool {
        self.full == 0
    }

    #[inline]
    fn place(&mut self, id: PipeId) -> Option<&mut Place> {
        let place = self.places.get_mut(slot_index(id))?;
        (place.id == Some(id)).then_some(place)
    }

    /// Marks this pipe for the next message.
    #[inline]
    pub fn mark(&mut self, id: PipeId) {
        let round = self.round;
        if let Some(place) = self.place(id)
            && place.marked_in != round
        {
            place.marked_in = round;
            self.marked.push(id);
        }
    }

    /// Marks every pipe for the next message.
    pub fn mark_all(&mut self) {
        self.unmark();
        self.invert();
    }

    /// Inverts the marks.
    pub(super) fn invert(&mut self) {
        let Distributor {
            places,
            live,
            marked,
            round,
            ..
        } = self;
        marked.clear();
        let unmarked = |id: &&PipeId| places[slot_index(**id)].marked_in != *round;
        marked.extend(live.iter().filter(unmarked));
    }

    /// Removes all marks.
    pub fn unmark(&mut self) {
        self.marked.clear();
        self.round = self.round.wrapping_add(1);
    }

    /// The number of marked pipes.
    #[inline]
    pub fn marked(&self) -> usize {
        self.marked.len()
    }

    /// Whether every marked pipe would get the message. Pipes whose far end is gone do not count.
    pub fn marked_have_room(&mut self, pipes: &mut PipeSet) -> bool {
        for at in 0..self.marked.len() {
            let id = self.marked[at];
            if pipes.check_write(id) {
                // The pipe may have room that was found before a notification, which then does not come.
                self.writable(id);
            } else if pipes.get(id).is_some_and(|pipe| !pipe.is_far_closed()) {
                self.ran_full(id);
                return false;
            }
        }
        true
    }

    /// Sends the message to every marked pipe, and removes the marks.
    #[inline]
    pub fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) {
        self.round = self.round.wrapping_add(1);
        if self.full > 0 && self.is_one_marked_full() {
            // A full pipe is not checked before it reports room, because a check that finds room suppresses the report.
            pipes.publish_gathered();
        } else if pipes.gather(&self.marked, message) {
            return self.marked.clear();
        }
        let Some(last) = self.marked.pop() else {
            return;
        };
        if !self.marked.is_empty() {
            let mut marked = std::mem::take(&mut self.marked);
            for id in marked.drain(..) {
                self.write(id, pipes, message, |pipes, message| {
                    pipes.write_copy(id, message)
                });
            }
            // Its capacity is reused for the next message.
            self.marked = marked;
        }
        self.write(last, pipes, message, |pipes, message| {
            pipes.write(last, message)
        });
    }

    #[inline]
    fn write(
        &mut self,
        id: PipeId,
        pipes: &mut PipeSet,
        message: &mut Message,
        write: impl FnOnce(&mut PipeSet, &mut Message) -> bool,
    ) {
        match self.place(id) {
            // Not checked before the reader has reached the low-water mark.
            Some(place) if !place.has_room => {}
            _ => {
                if write(pipes, message) {
                    return;
                }
                self.ran_full(id);
            }
        }
        pipes.spill_or_drop(id, message, self.disconnects);
    }

    #[inline(never)]
    fn is_one_marked_full(&self) -> bool {
        let place = |id: &PipeId| self.places.get(slot_index(*id));
        let is_full = |id| place(id).is_some_and(|place| place.id == Some(*id) && !place.has_room);
        self.marked.iter().any(is_full)
    }

    fn ran_full(&mut self, id: PipeId) {
        if let Some(place) = self.place(id)
            && place.has_room
        {
            place.has_room = false;
            self.full += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::pipe_set::Side;
    use crate::pipe::{Pipe, PipeConfig};

    fn pipes(n: usize) -> (PipeSet, Vec<PipeId>, Vec<Pipe>, Distributor) {
        let mut set = PipeSet::new();
        let mut distributor = Distributor::default();
        let (ids, far) = (0..n)
            .map(|_| {
                let (near, far) = Pipe::pair(PipeConfig::default(), PipeConfig::default());
                let id = set.insert(near, "test://", Side::Accepting);
                distributor.insert(id);
                (id, far)
            })
            .unzip();
        (set, ids, far, distributor)
    }

    fn received(set: &mut PipeSet, far: &mut [Pipe]) -> Vec<usize> {
        set.flush();
        let count = |pipe: &mut Pipe| std::iter::from_fn(|| pipe.read()).count();
        far.iter_mut().map(count).collect()
    }

    #[test]
    fn marks_count_once_and_hold_for_one_message() {
        let (mut set, ids, mut far, mut distributor) = pipes(3);
        for id in [ids[2], ids[0], ids[2], ids[2]] {
            distributor.mark(id);
        }
        assert_eq!(distributor.marked(), 2);
        distributor.send(&mut set, &mut Message::from("x"));
        distributor.send(&mut set, &mut Message::from("to nobody"));
        assert_eq!(received(&mut set, &mut far), [1, 0, 1]);
        distributor.mark(ids[0]);
        distributor.invert();
        distributor.send(&mut set, &mut Message::from("x"));
        assert_eq!(received(&mut set, &mut far), [0, 1, 1]);
        distributor.mark_all();
        distributor.unmark();
        distributor.mark(ids[1]);
        distributor.send(&mut set, &mut Message::from("x"));
        assert_eq!(received(&mut set, &mut far), [0, 1, 0]);
    }

    #[test]
    fn a_pipe_that_leaves_does_not_affect_others() {
        let (mut set, ids, mut far, mut distributor) = pipes(4);
        distributor.mark(ids[1]);
        distributor.remove(ids[0]);
        distributor.remove(ids[0]);
        distributor.remove(ids[3]);
        distributor.mark(ids[0]);
        distributor.mark(ids[2]);
        distributor.send(&mut set, &mut Message::from("x"));
        assert_eq!(received(&mut set, &mut far), [0, 1, 1, 0]);
        distributor.insert(ids[0]);
        distributor.mark_all();
        distributor.send(&mut set, &mut Message::from("x"));
        assert_eq!(received(&mut set, &mut far), [1, 1, 1, 0]);
    }

    #[test]
    fn a_large_body_is_shared_not_copied() {
        let (mut set, _, mut far, mut distributor) = pipes(2);
        distributor.mark_all();
        distributor.send(&mut set, &mut Message::from(vec![7; 1000]));
        set.flush();
        let bodies: Vec<_> = far.iter_mut().map(|pipe| pipe.read().unwrap()).collect();
        assert_eq!(bodies[0].head().as_ptr(), bodies[1].head().as_ptr());
    }

    #[test]
    fn each_gets_every_part_or_the_newest_if_it_conflates() {
        let (mut set, _, mut far, mut distributor) = pipes(2);
        let config = PipeConfig {
            conflate: true,
            ..PipeConfig::default()
        };
        for _ in 0..2 {
            let (near, end) = Pipe::pair(config, PipeConfig::default());
            distributor.insert(set.insert(near, "test://", Side::Accepting));
            far.push(end);
        }
        let parts = || Message::from_frames(["a".into(), vec![7; 1000].into(), "c".into()]);
        for mut message in [Message::from("older"), parts()] {
            distributor.mark_all();
            distributor.send(&mut set, &mut message);
        }
        set.flush();
        for pipe in &mut far[..2] {
            assert_eq!(pipe.read().unwrap(), Message::from("older"));
            assert_eq!(pipe.read().unwrap(), parts());
            assert!(pipe.read().is_none());
        }
        for pipe in &mut far[2..] {
            assert_eq!(pipe.read().unwrap(), parts());
            assert!(pipe.read().is_none());
        }
    }
}
