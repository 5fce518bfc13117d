//! Pipes that take turns.

use crate::patterns::pipe_set::slot_index;
use crate::pipe::PipeId;

/// A circle of pipes with a current one: the front.
///
/// Every operation takes the same time with ten thousand pipes as with two. The links are in one array, indexed by the
/// position of the pipe in its [`PipeSet`](crate::patterns::PipeSet), so a pipe must be removed before it leaves the
/// set.
#[derive(Default)]
pub(super) struct Ring {
    links: Vec<Link>,
    front: Option<PipeId>,
    len: usize,
}

#[derive(Clone, Copy)]
struct Link {
    /// `None` while the pipe at this index is not in the circle.
    id: Option<PipeId>,
    next: u32,
    previous: u32,
}

const UNLINKED: Link = Link {
    id: None,
    next: 0,
    previous: 0,
};

impl Ring {
    /// The pipe whose turn it is.
    #[inline]
    pub(super) fn front(&self) -> Option<PipeId> {
        self.front
    }

    /// Moves the front to the back.
    #[inline]
    pub(super) fn rotate(&mut self) {
        if self.len > 1
            && let Some(front) = self.front
        {
            self.front = self.links[self.links[slot_index(front)].next as usize].id;
        }
    }

    /// Visits every pipe, beginning with the front.
    pub(super) fn for_each(&self, mut visit: impl FnMut(PipeId)) {
        let mut next = self.front;
        while let Some(id) = next {
            visit(id);
            next = self.links[self.links[slot_index(id)].next as usize].id;
            next = next.filter(|next| self.front != Some(*next));
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn contains(&self, id: PipeId) -> bool {
        self.links
            .get(slot_index(id))
            .is_some_and(|link| link.id == Some(id))
    }

    /// Adds a pipe at the back, unless it is in the circle.
    pub(super) fn insert(&mut self, id: PipeId) {
        if self.contains(id) {
            return;
        }
        let index = slot_index(id);
        if index >= self.links.len() {
            self.links.resize(index + 1, UNLINKED);
        }
        let (next, previous) = match self.front {
            None => {
                self.front = Some(id);
                (index, index)
            }
            Some(front) => {
                let front = slot_index(front);
                let back = self.links[front].previous as usize;
                self.links[back].next = index as u32;
                self.links[front].previous = index as u32;
                (front, back)
            }
        };
        self.links[index] = Link {
            id: Some(id),
            next: next as u32,
            previous: previous as u32,
        };
        self.len += 1;
    }

    /// Removes a pipe. If it was the front, the next one becomes the front.
    pub(super) fn remove(&mut self, id: PipeId) -> bool {
        if !self.contains(id) {
            return false;
        }
        let index = slot_index(id);
        let Link { next, previous, .. } = self.links[index];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        if self.front == Some(id) {
            self.front = self.links[next as usize].id.filter(|next| *next != id);
        }
        self.links[index] = UNLINKED;
        self.len -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    fn id(n: u64) -> PipeId {
        PipeId(1 << 32 | n)
    }

    fn round(ring: &mut Ring) -> Vec<u64> {
        let mut seen = Vec::new();
        for _ in 0..ring.len() {
            seen.push(ring.front().unwrap().0 & 0xffff_ffff);
            ring.rotate();
        }
        seen
    }

    #[test]
    fn pipes_come_in_turn() {
        let mut ring = Ring::default();
        assert!(ring.front().is_none());
        ring.rotate();
        for n in [3, 0, 7] {
            ring.insert(id(n));
            ring.insert(id(n));
        }
        assert_eq!(round(&mut ring), [3, 0, 7]);
        ring.rotate();
        ring.insert(id(5));
        assert_eq!(round(&mut ring), [0, 7, 3, 5]);
    }

    #[test]
    fn visiting_does_not_move_the_front() {
        let mut ring = Ring::default();
        let visited = |ring: &Ring| {
            let mut seen = Vec::new();
            ring.for_each(|id| seen.push(id.0 & 0xffff_ffff));
            seen
        };
        assert!(visited(&ring).is_empty());
        ring.insert(id(4));
        assert_eq!(visited(&ring), [4]);
        ring.insert(id(2));
        ring.insert(id(6));
        ring.rotate();
        assert_eq!(visited(&ring), [2, 6, 4]);
        assert_eq!(ring.front(), Some(id(2)));
    }

    #[test]
    fn leaving_keeps_the_order_of_the_others() {
        let mut ring = Ring::default();
        for n in 0..5 {
            ring.insert(id(n));
        }
        assert!(ring.remove(id(0)));
        assert!(!ring.remove(id(0)));
        assert_eq!(round(&mut ring), [1, 2, 3, 4]);
        ring.remove(id(3));
        ring.remove(id(4));
        assert_eq!(round(&mut ring), [1, 2]);
        ring.remove(id(2));
        assert_eq!(round(&mut ring), [1]);
        ring.remove(id(1));
        assert!(ring.front().is_none());
        ring.insert(id(9));
        assert_eq!(round(&mut ring), [9]);
    }

    #[test]
    fn a_pipe_that_reuses_an_index_is_another_pipe() {
        let mut ring = Ring::default();
        ring.insert(id(1));
        let later = PipeId(2 << 32 | 1);
        assert!(!ring.contains(later));
        assert!(!ring.remove(later));
        ring.remove(id(1));
        ring.insert(later);
        assert_eq!(ring.front(), Some(later));
    }

    #[test]
    fn agrees_with_a_deque_after_random_operations() {
        let mut ring = Ring::default();
        let mut model = VecDeque::new();
        let mut state = 1u64;
        for _ in 0..20_000 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let id = id(state >> 33 & 0xf);
            match state >> 61 {
                0..3 => {
                    ring.insert(id);
                    if !model.contains(&id) {
                        model.push_back(id);
                    }
                }
                3..5 => {
                    let known = model.iter().position(|other| *other == id);
                    assert_eq!(ring.remove(id), known.is_some());
                    known.map(|at| model.remove(at));
                }
                _ => {
                    ring.rotate();
                    if !model.is_empty() {
                        model.rotate_left(1);
                    }
                }
            }
            assert_eq!(ring.front(), model.front().copied());
            assert_eq!(ring.len(), model.len());
            let mut visited = Vec::new();
            ring.for_each(|id| visited.push(id));
            assert!(visited.iter().eq(&model));
        }
    }
}
