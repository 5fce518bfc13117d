//! The tasks of async programs that wait for a signal, each with its waker.

use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering};
use std::task::Waker;

use zeroxide_queue::waiters::Place;

use crate::sys::sync::thread_local;

/// Returns a place for a new future.
pub(crate) fn own_place() -> Place {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    Place::Own(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Wakes a task. A waker may do anything, such as drop the task, which then removes its place.
pub(super) fn wake(waker: Waker) {
    let _waking = Waking(WAKING.with(|waking| waking.replace(true)));
    waker.wake();
}

/// Restores the earlier value of [`WAKING`] when it is dropped.
struct Waking(bool);

impl Drop for Waking {
    fn drop(&mut self) {
        WAKING.with(|waking| waking.set(self.0));
    }
}

thread_local! {
    static WAKING: Cell<bool> = const { Cell::new(false) };
}

/// Whether this thread is running a task's waker, and so may hold the locks of sockets and sessions.
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
    fn a_task_is_woken_once_and_then_removed() {
        let signal = Signal::new();
        let (count, waker) = task();
        enlist(&signal, own_place(), &waker);
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
    fn a_place_holds_the_newest_waker_until_it_is_delisted() {
        let signal = Signal::new();
        let ((old, before), (new, after)) = (task(), task());
        let (place, other) = (own_place(), own_place());
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
        assert!(!signal.enlist(own_place(), &task().1, ticket));
    }

    /// This happens if an executor drops a task instead of running it.
    #[test]
    fn a_waker_may_delist_its_place() {
        struct Leaves(Arc<Signal>, Place);
        impl Wake for Leaves {
            fn wake(self: Arc<Self>) {
                self.0.delist(self.1);
            }
        }
        let signal = Arc::new(Signal::new());
        let place = own_place();
        let leaves = Arc::new(Leaves(signal.clone(), place));
        enlist(&signal, place, &leaves.into());
        signal.wake();
        assert_eq!(Arc::strong_count(&signal), 1);
    }
}
