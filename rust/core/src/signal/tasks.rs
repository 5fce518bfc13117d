//! The tasks of async programs that wait for a signal, each with its waker.
//!
//! A wake-up takes every task off the list: a task that goes on waiting polls again, and puts itself back. So nothing is
//! left of a task that does not.

use std::cell::Cell;
use std::mem;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

/// Where a task is in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    /// The place of one future, which leaves it when it is dropped.
    Own(u64),
    /// A task that polls without a future: whatever it waits for, it is in the list once, until the next wake-up.
    Task,
}

impl Place {
    /// The place of a new future.
    pub(crate) fn new() -> Place {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Place::Own(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// See the module text.
#[derive(Default)]
pub(super) struct List {
    tasks: Vec<(Place, Waker)>,
}

impl List {
    pub(super) fn len(&self) -> usize {
        self.tasks.len()
    }

    /// Puts a task in a place. Returns what has to be dropped without the list's lock.
    pub(super) fn put(&mut self, place: Place, waker: &Waker) -> Option<Waker> {
        let same = |(at, other): &&mut (Place, Waker)| {
            *at == place && (place != Place::Task || other.will_wake(waker))
        };
        match self.tasks.iter_mut().find(same) {
            Some((_, other)) if other.will_wake(waker) => None,
            Some((_, other)) => Some(mem::replace(other, waker.clone())),
            None => {
                self.tasks.push((place, waker.clone()));
                None
            }
        }
    }

    /// Empties a future's place. Returns what has to be dropped without the list's lock.
    pub(super) fn remove(&mut self, place: Place) -> Option<Waker> {
        let at = self.tasks.iter().position(|(at, _)| *at == place)?;
        Some(self.tasks.swap_remove(at).1)
    }

    /// Takes all tasks.
    pub(super) fn take(&mut self) -> List {
        mem::take(self)
    }

    /// Wakes the tasks. Not while the list is locked.
    pub(super) fn wake(self) {
        if self.tasks.is_empty() {
            return;
        }
        let _waking = Waking(WAKING.replace(true));
        self.tasks.into_iter().for_each(|(_, waker)| waker.wake());
    }
}

/// Restores what [`WAKING`] was before.
struct Waking(bool);

impl Drop for Waking {
    fn drop(&mut self) {
        WAKING.set(self.0);
    }
}

thread_local! {
    static WAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is in a task's waker, and may hold the locks of sockets and sessions.
pub(crate) fn is_waking() -> bool {
    WAKING.try_with(Cell::get).unwrap_or(false)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::task::Wake;

    use super::super::Signal;
    use super::*;

    #[derive(Default)]
    struct Count(AtomicUsize);

    impl Wake for Count {
        fn wake(self: Arc<Self>) {
            assert!(is_waking());
            self.0.fetch_add(1, Ordering::Relaxed);
        }
    }

    fn task() -> (Arc<Count>, Waker) {
        let count = Arc::new(Count::default());
        (count.clone(), count.into())
    }

    fn enlist(signal: &Signal, place: Place, waker: &Waker) {
        assert!(signal.enlist(place, waker, signal.ticket()));
    }

    #[test]
    fn a_task_is_woken_once_and_nothing_is_left_of_it() {
        let signal = Signal::new();
        let (count, waker) = task();
        enlist(&signal, Place::new(), &waker);
        enlist(&signal, Place::Task, &waker);
        enlist(&signal, Place::Task, &waker);
        drop(waker);
        signal.wake();
        signal.wake();
        assert_eq!(count.0.load(Ordering::Relaxed), 2);
        assert_eq!(Arc::strong_count(&count), 1);
        assert!(!signal.has_others() && !is_waking());
    }

    #[test]
    fn a_place_holds_the_newest_waker_until_it_is_left() {
        let signal = Signal::new();
        let ((old, before), (new, after)) = (task(), task());
        let (place, other) = (Place::new(), Place::new());
        enlist(&signal, place, &before);
        enlist(&signal, other, &before);
        enlist(&signal, place, &after);
        signal.delist(other);
        assert_eq!(Arc::strong_count(&old), 2);
        signal.wake();
        let woken = [&old, &new].map(|task| task.0.load(Ordering::Relaxed));
        assert_eq!(woken, [0, 1]);
        enlist(&signal, place, &after);
        signal.delist(place);
        assert!(!signal.has_others());
    }

    #[test]
    fn every_task_that_polls_is_woken() {
        let signal = Signal::new();
        let tasks = [task(), task()];
        for (_, waker) in &tasks {
            enlist(&signal, Place::Task, waker);
        }
        signal.wake();
        for (count, _) in &tasks {
            assert_eq!(count.0.load(Ordering::Relaxed), 1);
        }
    }

    #[test]
    fn a_task_learns_what_happened_before_it_enlisted() {
        let signal = Signal::new();
        let ticket = signal.ticket();
        signal.wake();
        assert!(!signal.enlist(Place::new(), &task().1, ticket));
    }

    /// As with a task that its executor drops instead of running it.
    #[test]
    fn a_waker_may_leave_its_place() {
        struct Leaves(Arc<Signal>, Place);
        impl Wake for Leaves {
            fn wake(self: Arc<Self>) {
                self.0.delist(self.1);
            }
        }
        let signal = Arc::new(Signal::new());
        let place = Place::new();
        let leaves = Arc::new(Leaves(signal.clone(), place));
        enlist(&signal, place, &leaves.into());
        signal.wake();
        assert_eq!(Arc::strong_count(&signal), 1);
    }
}
