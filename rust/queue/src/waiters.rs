//! Everything that waits for events of one object: threads, tasks of async programs, and watchers.
//!
//! The order of steps is the same for all of them:
//!
//! ```text
//!   waiter                                         notifier
//!   W1  take a ticket                              N1  change the object
//!   W2  look at the object: nothing to do          N2  generation += 1          (advance)
//!   W3  enter the list: count += 1                 N3  fence(SeqCst)            (advance)
//!   W4  fence(SeqCst)                              N4  count > 0? wake them     (take)
//!   W5  is the ticket current? sleep
//! ```
//!
//! The next event removes a thread or task from the list; one that continues to wait enters again. So a waiter that has
//! given up leaves nothing behind, and the events that follow find an empty list. A watcher stays until it is removed.
//! A thread that waits for several objects has one [`Parker`], and enters the list of each.
//!
//! # Why no wake-up is lost
//!
//! This is the scheme of [`doorbell`](crate::doorbell). If W4 comes before N3, N4 cannot miss W3: the notifier finds the
//! waiter, or another notifier has removed it, and wakes it. If N3 comes first, W5 cannot miss N2: the ticket is
//! stale. A waiter that looks at the object after W4 needs no ticket.
//!
//! A notifier may be late. Between N3 and N4, a thread may take a new ticket and enter again: N4 then removes it for an event
//! that it has seen. After N4, it may begin another wait, for another object, before it is notified. In both cases it
//! wakes up although nothing has happened, and enters again before it goes back to sleep.
//!
//! Every event wakes all waiters, because only a look at the object, under its lock, shows whether a waiter can continue.

use std::fmt;
use std::mem;
use std::ops::ControlFlow;
use std::task::Waker;

use crate::parker::{On, Parker, System};
use crate::primitive::{
    Arc, AtomicU32, AtomicUsize, Mutex, MutexGuard, Ordering, PoisonError, fence,
};

/// The capacity of the list that is kept while it is empty, so that waiting does not allocate.
const ROOM: usize = 16;

/// Where a task is in the list.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Place {
    /// The place of one future, which leaves it when it is dropped. No other future has the same number.
    Own(u64),
    /// A task that polls without a future: whatever it waits for, it is in the list once, until the next event.
    Task,
}

/// A waiter that was removed from the list.
pub enum Waiter<S> {
    /// A thread.
    Thread(Arc<Parker<S>>),
    /// A task of an async program.
    Task(Place, Waker),
}

/// The list, and the number of events. `V` is a watcher. See the module text.
pub struct Waiters<S, V> {
    generation: AtomicU32,
    /// How many waiters and watchers are in the list.
    count: AtomicUsize,
    list: Mutex<List<S, V>>,
}

struct List<S, V> {
    /// They stay until the next event.
    once: Vec<Waiter<S>>,
    /// They stay until they are removed.
    watchers: Vec<Arc<V>>,
    /// Empty; its memory is used again.
    spare: Vec<Waiter<S>>,
}

impl<S, V> List<S, V> {
    fn len(&self) -> usize {
        self.once.len() + self.watchers.len()
    }
}

impl<S: System, V> Default for Waiters<S, V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<S: System, V> Waiters<S, V> {
    /// An empty list.
    pub fn new() -> Self {
        Self {
            generation: AtomicU32::new(0),
            count: AtomicUsize::new(0),
            list: Mutex::new(List {
                once: Vec::new(),
                watchers: Vec::new(),
                spare: Vec::new(),
            }),
        }
    }

    /// Returns a ticket, to be taken before a look at the object. The next event makes it stale.
    #[inline]
    pub fn ticket(&self) -> u32 {
        // Acquire pairs with `advance`: a thread that gets a ticket after an event also sees what has changed.
        self.generation.load(Ordering::Acquire)
    }

    /// Records an event. Returns true if there are waiters; the caller must then [`take`](Self::take) them.
    #[inline]
    pub fn advance(&self) -> bool {
        self.generation.fetch_add(1, Ordering::Release);
        fence(Ordering::SeqCst);
        // The fence orders this load.
        self.count.load(Ordering::Relaxed) > 0
    }

    /// Whether there are waiters or watchers, as a hint.
    #[inline]
    pub fn has_any(&self) -> bool {
        self.count.load(Ordering::Relaxed) > 0
    }

    /// After an event: passes every watcher to `raise`, under the list's lock, and every waiter, without the lock, to `wake`.
    pub fn take(&self, raise: impl Fn(&V), wake: impl FnMut(Waiter<S>)) {
        let mut due = {
            let mut list = self.lock();
            list.watchers.iter().for_each(|watcher| raise(watcher));
            if list.once.is_empty() {
                return;
            }
            let spare = mem::take(&mut list.spare);
            let due = mem::replace(&mut list.once, spare);
            self.count.store(list.len(), Ordering::Relaxed);
            due
        };
        due.drain(..).for_each(wake);
        if due.capacity() <= ROOM {
            self.lock().spare = due;
        }
    }

    /// The thread of `parker` waits until the ticket is stale, which is `None`, or until a sleep returns a reason to stop.
    /// `sleep` is called as in [`Parker::sleep`].
    pub fn wait<R>(
        &self,
        parker: &Arc<Parker<S>>,
        ticket: u32,
        on: On,
        mut sleep: impl FnMut(&AtomicU32, u32) -> ControlFlow<R>,
    ) -> Option<R> {
        let reason = loop {
            // Again after each sleep: see the module text.
            self.enter(parker);
            if self.ticket() != ticket {
                break None;
            }
            if let Some(ControlFlow::Break(found)) = parker.sleep(on, &mut sleep) {
                // An event takes precedence over the reason.
                break (self.ticket() == ticket).then_some(found);
            }
        };
        self.leave(parker);
        reason
    }

    /// Adds the thread of `parker` to the list, unless it is there. The next event notifies it. Look at the object afterwards.
    pub fn enter(&self, parker: &Arc<Parker<S>>) {
        {
            let mut list = self.lock();
            if !list.once.iter().any(|waiter| waiter.is_thread(parker)) {
                list.once.push(Waiter::Thread(parker.clone()));
            }
            self.count.store(list.len(), Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Removes the thread from the list, if it is there.
    pub fn leave(&self, parker: &Arc<Parker<S>>) {
        // The thread reads its own count, or that of a notifier that has removed it.
        if self.has_any() {
            drop(self.remove(|waiter| waiter.is_thread(parker)));
        }
    }

    /// Adds the task to the list; the next event wakes it. Returns false if the ticket is stale: look at the object again.
    pub fn enlist(&self, place: Place, waker: &Waker, ticket: u32) -> bool {
        let replaced = {
            let mut list = self.lock();
            let replaced = list.put(place, waker);
            self.count.store(list.len(), Ordering::Relaxed);
            replaced
        };
        // Dropping it may drop a task, which then gives up its own place.
        drop(replaced);
        fence(Ordering::SeqCst);
        self.ticket() == ticket
    }

    /// Removes the task from the list, if it is there.
    pub fn delist(&self, place: Place) {
        // No other task enlists for this place.
        if self.has_any() {
            let same = |waiter: &Waiter<S>| matches!(waiter, Waiter::Task(at, _) if *at == place);
            drop(self.remove(same));
        }
    }

    /// Adds a watcher, which every event raises until [`unwatch`](Self::unwatch). Look at the object afterwards.
    pub fn watch(&self, watcher: Arc<V>) {
        {
            let mut list = self.lock();
            list.watchers.push(watcher);
            self.count.store(list.len(), Ordering::Relaxed);
        }
        fence(Ordering::SeqCst);
    }

    /// Removes a watcher. It is not raised any more.
    pub fn unwatch(&self, watcher: &Arc<V>) {
        let mut list = self.lock();
        let at = list
            .watchers
            .iter()
            .position(|other| Arc::ptr_eq(other, watcher));
        if let Some(at) = at {
            list.watchers.swap_remove(at);
        }
        self.count.store(list.len(), Ordering::Relaxed);
    }

    /// Returns what has to be dropped without the list's lock.
    fn remove(&self, same: impl Fn(&Waiter<S>) -> bool) -> Option<Waiter<S>> {
        let mut list = self.lock();
        let at = list.once.iter().position(same)?;
        let removed = list.once.remove(at);
        self.count.store(list.len(), Ordering::Relaxed);
        Some(removed)
    }

    fn lock(&self) -> MutexGuard<'_, List<S, V>> {
        // Nothing under this lock leaves the list half-changed.
        self.list.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<S, V> List<S, V> {
    /// Puts a task in a place. Returns what has to be dropped without the list's lock.
    fn put(&mut self, place: Place, waker: &Waker) -> Option<Waker> {
        for waiter in &mut self.once {
            let Waiter::Task(at, other) = waiter else {
                continue;
            };
            if *at != place {
                continue;
            }
            if other.will_wake(waker) {
                return None;
            }
            if place != Place::Task {
                return Some(mem::replace(other, waker.clone()));
            }
        }
        self.once.push(Waiter::Task(place, waker.clone()));
        None
    }
}

impl<S> Waiter<S> {
    fn is_thread(&self, parker: &Arc<Parker<S>>) -> bool {
        matches!(self, Waiter::Thread(other) if Arc::ptr_eq(other, parker))
    }
}

impl<S, V> fmt::Debug for Waiters<S, V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Waiters")
            .field("count", &self.count.load(Ordering::Relaxed))
            .finish_non_exhaustive()
    }
}

impl<S> fmt::Debug for Waiter<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Waiter::Thread(_) => f.write_str("Thread"),
            Waiter::Task(place, _) => f.debug_tuple("Task").field(place).finish(),
        }
    }
}
