//! Pipes that take turns.

use crate::patterns::pipe_set::slot_index;
use crate::patterns::priority::{DEFAULT_PRIORITY, PRIORITIES};
use crate::pipe::PipeId;

/// A circle of pipes with a current one: the front.
///
/// Pipes that have another priority are in a circle of their own. The front belongs to the best circle, and the other
/// circles wait until it is empty. A ring without such pipes has one circle, and does no work for the others.
///
/// Every operation takes the same time with ten thousand pipes as with two. The links are in one array, indexed by the
/// position of the pipe in its [`PipeSet`](crate::patterns::PipeSet), so a pipe must be removed before it leaves the
/// set.
#[derive(Default)]
pub(super) struct Ring {
    links: Vec<Link>,
    front: Option<PipeId>,
    /// Number of pipes in all circles.
    len: usize,
    /// Some once a pipe has had another priority than the default.
    levels: Option<Box<Levels>>,
}

struct Levels {
    /// The priority of the circle that has the front.
    current: u8,
    /// The first pipe of each of the other circles.
    waiting: [Option<PipeId>; PRIORITIES],
    /// The priorities of pipes by their position, with the pipe, because another one may take its position.
    known: Vec<Option<(PipeId, u8)>>,
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

    /// Moves the front to the back of its circle.
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
        let waiting = self.levels.iter().flat_map(|levels| levels.waiting);
        for first in std::iter::once(self.front).chain(waiting) {
            let mut next = first;
            while let Some(id) = next {
                visit(id);
                next = self.links[self.links[slot_index(id)].next as usize].id;
                next = next.filter(|next| first != Some(*next));
            }
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

    /// Adds a pipe at the back of its circle, unless it is there.
    pub(super) fn insert(&mut self, id: PipeId) {
        if self.contains(id) {
            return;
        }
        if self.levels.is_some() {
            return self.insert_by_priority(id);
        }
        self.front = self.link(self.front, id);
    }

    /// Adds a pipe at the back of the circle that begins with `front`. Returns the first pipe of the circle.
    #[inline]
    fn link(&mut self, front: Option<PipeId>, id: PipeId) -> Option<PipeId> {
        let index = slot_index(id);
        if index >= self.links.len() {
            self.links.resize(index + 1, UNLINKED);
        }
        let (next, previous) = match front {
            None => (index, index),
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
        front.or(Some(id))
    }

    /// Removes a pipe. If it was the front, the next one becomes the front.
    // Inlined, it would take registers from every message.
    #[inline(never)]
    pub(super) fn remove(&mut self, id: PipeId) -> bool {
        if !self.contains(id) {
            return false;
        }
        let next = self.unlink(id);
        if self.front == Some(id) {
            self.front = next;
        }
        if self.levels.is_some() {
            self.leave_level(id, next);
        }
        true
    }

    /// Returns the pipe that followed, if there is another one in the circle.
    #[inline]
    fn unlink(&mut self, id: PipeId) -> Option<PipeId> {
        let index = slot_index(id);
        let Link { next, previous, .. } = self.links[index];
        self.links[previous as usize].next = next;
        self.links[next as usize].previous = previous;
        let next = self.links[next as usize].id.filter(|next| *next != id);
        self.links[index] = UNLINKED;
        self.len -= 1;
        next
    }

    /// Changes the priority of a pipe, which may be outside of the ring: 1 is the best, 16 the last. In the ring, it
    /// moves to the back of its new circle.
    pub(super) fn set_priority(&mut self, id: PipeId, priority: u8) {
        if self.levels.is_none() && priority == DEFAULT_PRIORITY {
            return;
        }
        let was_in = self.remove(id);
        self.levels
            .get_or_insert_with(Default::default)
            .set(id, priority);
        if was_in {
            self.insert(id);
        }
    }

    #[cold]
    fn insert_by_priority(&mut self, id: PipeId) {
        let Some(levels) = &mut self.levels else {
            return;
        };
        let (priority, current) = (levels.priority(id), levels.current);
        match self.front {
            Some(front) if priority == current => {
                self.link(Some(front), id);
            }
            Some(_) if priority > current => {
                let first = levels.waiting[place(priority)];
                let first = self.link(first, id);
                if let Some(levels) = &mut self.levels {
                    levels.waiting[place(priority)] = first;
                }
            }
            front => {
                levels.waiting[place(current)] = front;
                levels.current = priority;
                self.front = self.link(None, id);
            }
        }
    }

    /// Handles that a pipe has left its circle, where `next` followed it.
    #[cold]
    fn leave_level(&mut self, id: PipeId, next: Option<PipeId>) {
        let Some(levels) = &mut self.levels else {
            return;
        };
        if let Some(first) = levels.waiting.iter_mut().find(|first| **first == Some(id)) {
            *first = next;
        }
        if self.front.is_none()
            && let Some(best) = levels.waiting.iter().position(Option::is_some)
        {
            self.front = levels.waiting[best].take();
            levels.current = best as u8 + 1;
        }
    }
}

impl Default for Levels {
    fn default() -> Levels {
        Levels {
            current: DEFAULT_PRIORITY,
            waiting: [None; PRIORITIES],
            known: Vec::new(),
        }
    }
}

impl Levels {
    fn priority(&self, id: PipeId) -> u8 {
        match self.known.get(slot_index(id)) {
            Some(Some((known, priority))) if *known == id => *priority,
            _ => DEFAULT_PRIORITY,
        }
    }

    fn set(&mut self, id: PipeId, priority: u8) {
        let index = slot_index(id);
        if index >= self.known.len() {
            self.known.resize(index + 1, None);
        }
        self.known[index] = Some((id, priority));
    }
}

/// The position of a priority in an array of all.
fn place(priority: u8) -> usize {
    usize::from(priority).clamp(1, PRIORITIES) - 1
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

    /// The circles as a list per priority, and the best one that is not empty is served.
    #[derive(Default)]
    struct Model {
        circles: [VecDeque<PipeId>; PRIORITIES],
        priorities: std::collections::HashMap<PipeId, u8>,
    }

    impl Model {
        fn circle(&mut self, id: PipeId) -> &mut VecDeque<PipeId> {
            let priority = *self.priorities.get(&id).unwrap_or(&DEFAULT_PRIORITY);
            &mut self.circles[usize::from(priority) - 1]
        }

        fn insert(&mut self, id: PipeId) {
            let circle = self.circle(id);
            if !circle.contains(&id) {
                circle.push_back(id);
            }
        }

        fn remove(&mut self, id: PipeId) -> bool {
            let circle = self.circle(id);
            let known = circle.iter().position(|other| *other == id);
            known.map(|at| circle.remove(at)).is_some()
        }

        fn best(&mut self) -> Option<&mut VecDeque<PipeId>> {
            self.circles.iter_mut().find(|circle| !circle.is_empty())
        }
    }

    #[test]
    fn agrees_with_a_model_of_priorities_after_random_operations() {
        for seed in 0..50u64 {
            let (mut ring, mut model) = (Ring::default(), Model::default());
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
            for step in 0..2000 {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                let id = PipeId((1 + (step / 1000)) << 32 | (state >> 33 & 0xf));
                match state >> 60 {
                    0..5 => {
                        ring.insert(id);
                        model.insert(id);
                    }
                    5..9 => assert_eq!(ring.remove(id), model.remove(id)),
                    // A ring that never has another priority than the default has one circle.
                    9 if seed > 9 => {
                        let priority = 1 + (state >> 40 & 0xf) as u8;
                        ring.set_priority(id, priority);
                        let was_in = model.remove(id);
                        model.priorities.insert(id, priority);
                        if was_in {
                            model.insert(id);
                        }
                    }
                    _ => {
                        ring.rotate();
                        if let Some(circle) = model.best() {
                            circle.rotate_left(1);
                        }
                    }
                }
                if step == 999 {
                    // Later pipes take the positions of these.
                    for n in 0..16 {
                        let id = PipeId(1 << 32 | n);
                        assert_eq!(ring.remove(id), model.remove(id));
                    }
                }
                let front = model.best().and_then(|circle| circle.front().copied());
                assert_eq!(ring.front(), front, "seed {seed}, step {step}");
                assert!(ring.levels.is_none() || !model.priorities.is_empty());
                let mut visited = Vec::new();
                ring.for_each(|id| visited.push(id));
                let all: Vec<_> = model.circles.iter().flatten().copied().collect();
                assert_eq!(visited, all, "seed {seed}, step {step}");
                assert_eq!(ring.len(), all.len());
            }
        }
    }
}
