//! What a blocked call waits on, and the descriptor that other event loops watch.
//!
//! A waiter takes a [`ticket`](Signal::ticket), looks whether there is something to do, and waits for the ticket to
//! become stale. A futex carries the wait, so that a signal interrupts it at once and a wake-up costs one system call,
//! none when nobody waits. Who waits for several signals at once has them [`watched`](Signal::watch) by one of its own.
//! A task of an async program [`enlists`](Signal::enlist) its waker.
//! The descriptor is made only when somebody asks for it, and is level-true: readable for as long as there is something
//! to do.

use std::cell::RefCell;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering, fence};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::task::Waker;
use std::time::{Duration, Instant};

use zeroxide_queue::lookout::Lookout;

use crate::error::Result;
use crate::sys::poll::{self, Either};
use crate::sys::wake_fd::WakeFd;
use crate::sys::word::{self, Wait};

mod tasks;

pub(crate) use tasks::{Place, is_waking};

/// See the module text.
pub(crate) struct Signal {
    wait: Arc<Waiting>,
    /// How many watchers and tasks there are.
    watched: AtomicUsize,
    watchers: Mutex<Watchers>,
    raised: AtomicBool,
    /// Held while the descriptor and `raised` are brought from one level to the other: of two threads that do this in
    /// opposite directions, the later one must win for both.
    level: Mutex<()>,
    fd: OnceLock<WakeFd>,
    /// Who waits for this alone, but hears an alarm meanwhile.
    alarmed: AtomicU32,
    /// Where somebody waits for a descriptor of its own beside this, and what wakes it.
    lookout: Lookout,
    bell: OnceLock<WakeFd>,
}

/// How a wait beside a descriptor ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Beside {
    /// The descriptor can be read from.
    Ready,
    /// So it can, to the end: its peer has finished, or it broke.
    HungUp,
    Woken(Woken),
    /// Somebody else waits in this way, or there is no descriptor to wait for.
    Impossible,
}

/// What waiters wait on.
struct Waiting {
    generation: AtomicU32,
    waiters: AtomicU32,
}

/// Who is woken besides the waiters.
#[derive(Default)]
struct Watchers {
    signals: Vec<Arc<Signal>>,
    tasks: tasks::List,
}

impl Watchers {
    fn len(&self) -> usize {
        self.signals.len() + self.tasks.len()
    }
}

/// Wake-ups that have still to be given. Dropping it gives them.
#[must_use = "threads wait for these"]
pub struct Wakes {
    waiting: Vec<Arc<Waiting>>,
}

impl Wakes {
    /// Whether nobody has to be woken.
    pub fn is_empty(&self) -> bool {
        self.waiting.is_empty()
    }
}

impl Drop for Wakes {
    fn drop(&mut self) {
        for waiting in &self.waiting {
            word::wake_all(&waiting.generation);
        }
    }
}

thread_local! {
    /// Collects the wake-ups of this thread while it is in `deferring_wakes`.
    static DEFERRED: RefCell<Option<Vec<Arc<Waiting>>>> = const { RefCell::new(None) };
}

/// Does `work`, and hands the wake-ups of other threads of this process that come of it to the caller instead of giving
/// them at once. For callers that hold something, such as an interpreter's lock, which the woken thread would only run
/// into.
pub fn deferring_wakes<T>(work: impl FnOnce() -> T) -> (T, Wakes) {
    let scope = Scope::enter();
    let result = work();
    (result, scope.leave())
}

/// While it lives, this thread's wake-ups are collected. A panic gives them at once.
struct Scope;

impl Scope {
    fn enter() -> Scope {
        DEFERRED.with(|deferred| _ = deferred.borrow_mut().get_or_insert_default());
        Scope
    }

    fn leave(self) -> Wakes {
        let waiting = DEFERRED.with(|deferred| deferred.borrow_mut().take());
        Wakes {
            waiting: waiting.unwrap_or_default(),
        }
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        let waiting = DEFERRED.with(|deferred| deferred.borrow_mut().take());
        drop(Wakes {
            waiting: waiting.unwrap_or_default(),
        });
    }
}

impl Waiting {
    fn wake(self: &Arc<Self>) {
        let defer =
            |deferred: &RefCell<Option<Vec<Arc<Waiting>>>>| match &mut *deferred.borrow_mut() {
                Some(waiting) => {
                    if waiting.last().is_none_or(|last| !Arc::ptr_eq(last, self)) {
                        waiting.push(self.clone());
                    }
                    true
                }
                None => false,
            };
        // A thread that ends may drop its sockets after its own variables.
        let deferred = DEFERRED.try_with(defer).unwrap_or(false);
        if !deferred {
            word::wake_all(&self.generation);
        }
    }
}

/// How long a wait lasts at most that cannot hear the alarm.
const DEAF: Duration = Duration::from_secs(1);

/// Does `work`. Once there is something to read from `fd`, every call in there that waits ends with
/// [`Interrupted`](crate::error::ErrorKind::Interrupted), also one that has not begun yet: for programs whose signal handlers write
/// to a descriptor. It is not read from.
pub fn interrupted_by<T>(fd: BorrowedFd<'_>, work: impl FnOnce() -> T) -> T {
    poll::with_alarm(fd, work)
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Woken {
    /// Something happened since the ticket was taken.
    Notified,
    /// The deadline passed.
    TimedOut,
    /// A signal handler ran in this thread.
    Interrupted,
}

impl Signal {
    pub(crate) fn new() -> Signal {
        Signal {
            wait: Arc::new(Waiting {
                generation: AtomicU32::new(0),
                waiters: AtomicU32::new(0),
            }),
            watched: AtomicUsize::new(0),
            watchers: Mutex::default(),
            raised: AtomicBool::new(false),
            level: Mutex::new(()),
            fd: OnceLock::new(),
            alarmed: AtomicU32::new(0),
            lookout: Lookout::new(),
            bell: OnceLock::new(),
        }
    }

    /// Taken before looking for work; stale once something happened after it.
    #[inline]
    pub(crate) fn ticket(&self) -> u32 {
        self.wait.generation.load(Ordering::SeqCst)
    }

    /// Something happened: wakes every waiter and every watcher. The descriptor is not touched.
    pub(crate) fn wake(&self) {
        // SeqCst pairs with `wait`: either the waiter counts itself before this looks, or it sees the new generation.
        self.wait.generation.fetch_add(1, Ordering::SeqCst);
        if self.wait.waiters.load(Ordering::SeqCst) > 0 {
            self.wait.wake();
        }
        if self.lookout.ring()
            && let Some(bell) = self.bell.get()
        {
            bell.signal();
        }
        // The fence in `ring` pairs with the one in `watch`, too: either the watcher is found, or it finds what happened.
        if self.watched.load(Ordering::Relaxed) > 0 {
            self.wake_watchers();
        }
    }

    #[inline(never)]
    fn wake_watchers(&self) {
        let tasks = {
            let mut watchers = lock(&self.watchers);
            for watcher in &watchers.signals {
                watcher.wake();
                watcher.raise();
            }
            let tasks = watchers.tasks.take();
            self.watched.store(watchers.len(), Ordering::Relaxed);
            tasks
        };
        // A waker may do anything, such as drop the task, which then takes its place back.
        tasks.wake();
    }

    /// `watcher` is woken and raised whenever this is woken, until [`unwatch`](Self::unwatch). Look for work afterwards.
    pub(crate) fn watch(&self, watcher: Arc<Signal>) {
        let mut watchers = lock(&self.watchers);
        watchers.signals.push(watcher);
        self.watched.store(watchers.len(), Ordering::Relaxed);
        fence(Ordering::SeqCst);
    }

    /// Takes one [`watch`](Self::watch) back.
    pub(crate) fn unwatch(&self, watcher: &Arc<Signal>) {
        let mut watchers = lock(&self.watchers);
        if let Some(at) = watchers
            .signals
            .iter()
            .position(|other| Arc::ptr_eq(other, watcher))
        {
            watchers.signals.swap_remove(at);
        }
        self.watched.store(watchers.len(), Ordering::Relaxed);
    }

    /// Wakes a task with the next [`wake`](Self::wake). Returns false if the ticket is stale: look for work again.
    pub(crate) fn enlist(&self, place: Place, waker: &Waker, ticket: u32) -> bool {
        let replaced = {
            let mut watchers = lock(&self.watchers);
            let replaced = watchers.tasks.put(place, waker);
            self.watched.store(watchers.len(), Ordering::Relaxed);
            replaced
        };
        // Its drop may drop a task, which takes its own place back.
        drop(replaced);
        // As in `watch`: either `wake` finds the task, or this finds what happened.
        fence(Ordering::SeqCst);
        self.ticket() == ticket
    }

    /// Takes an [`enlist`](Self::enlist) back.
    pub(crate) fn delist(&self, place: Place) {
        // Nobody else enlists for this place.
        if self.watched.load(Ordering::Relaxed) == 0 {
            return;
        }
        let removed = {
            let mut watchers = lock(&self.watchers);
            let removed = watchers.tasks.remove(place);
            self.watched.store(watchers.len(), Ordering::Relaxed);
            removed
        };
        drop(removed);
    }

    /// Whether anybody else than the thread beside a descriptor is to hear of the next [`wake`](Self::wake).
    pub(crate) fn has_others(&self) -> bool {
        self.wait.waiters.load(Ordering::Relaxed) > 0
            || self.alarmed.load(Ordering::Relaxed) > 0
            || self.watched.load(Ordering::Relaxed) > 0
            || self.has_descriptor()
    }

    /// Waits until the ticket is stale.
    pub(crate) fn wait(&self, ticket: u32, deadline: Option<Instant>) -> Woken {
        let Some(alarm) = poll::alarm() else {
            return self.wait_deaf(ticket, deadline);
        };
        self.alarmed.fetch_add(1, Ordering::SeqCst);
        let beside = self.wait_beside(ticket, alarm, deadline);
        self.alarmed.fetch_sub(1, Ordering::SeqCst);
        match beside {
            Beside::Ready | Beside::HungUp => Woken::Interrupted,
            Beside::Woken(woken) => woken,
            Beside::Impossible => {
                let until = Instant::now() + DEAF;
                let end = deadline.map_or(until, |at| at.min(until));
                match self.wait_deaf(ticket, Some(end)) {
                    Woken::TimedOut if deadline != Some(end) => Woken::Interrupted,
                    woken => woken,
                }
            }
        }
    }

    /// As [`wait`](Self::wait), whatever alarm there is.
    fn wait_deaf(&self, ticket: u32, deadline: Option<Instant>) -> Woken {
        self.wait.waiters.fetch_add(1, Ordering::SeqCst);
        let woken = loop {
            if self.wait.generation.load(Ordering::SeqCst) != ticket {
                break Woken::Notified;
            }
            match word::wait(&self.wait.generation, ticket, deadline) {
                Wait::Woken => {}
                Wait::TimedOut => break Woken::TimedOut,
                Wait::Interrupted => break Woken::Interrupted,
            }
        };
        self.wait.waiters.fetch_sub(1, Ordering::SeqCst);
        woken
    }

    /// Waits until the ticket is stale or there is something to read from `fd`. Hears the alarm.
    pub(crate) fn wait_beside(&self, ticket: u32, fd: RawFd, deadline: Option<Instant>) -> Beside {
        let bell = match self.bell.get() {
            Some(bell) => bell,
            None => match WakeFd::new() {
                Ok(fresh) => self.bell.get_or_init(|| fresh),
                Err(_) => return Beside::Impossible,
            },
        };
        let Some(place) = self.lookout.enter() else {
            return Beside::Impossible;
        };
        let found = if self.ticket() == ticket {
            poll::either(fd, bell.as_fd(), deadline)
        } else {
            Ok(Either::default())
        };
        if found.as_ref().is_ok_and(|found| found.other) {
            bell.drain();
        }
        drop(place);
        match found {
            _ if self.ticket() != ticket => Beside::Woken(Woken::Notified),
            // Rung by somebody who was late: look again.
            Ok(found) if found.hung_up => Beside::HungUp,
            Ok(found) if found.first || found.other => Beside::Ready,
            Ok(_) => Beside::Woken(Woken::TimedOut),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {
                Beside::Woken(Woken::Interrupted)
            }
            Err(_) => Beside::Impossible,
        }
    }

    /// The descriptor, made at the first call. The caller brings it to the right level afterwards.
    pub(crate) fn descriptor(&self) -> Result<BorrowedFd<'_>> {
        if let Some(fd) = self.fd.get() {
            return Ok(fd.as_fd());
        }
        let fresh = WakeFd::new()?;
        let fd = self.fd.get_or_init(|| fresh).as_fd();
        // Whoever leaves something to be found fences, too, before it asks for the descriptor: either that is found, or
        // its maker finds the other.
        fence(Ordering::SeqCst);
        Ok(fd)
    }

    /// Whether anybody asked for the descriptor.
    #[inline]
    pub(crate) fn has_descriptor(&self) -> bool {
        self.fd.get().is_some()
    }

    /// Makes the descriptor readable, if there is one.
    pub(crate) fn raise(&self) {
        let Some(fd) = self.fd.get() else { return };
        // Pairs with the fence in `lower`: either that sees what was done before this call, or this sees that the
        // descriptor was lowered.
        fence(Ordering::SeqCst);
        if self.raised.load(Ordering::Acquire) {
            return;
        }
        let _turn = lock(&self.level);
        if !self.raised.load(Ordering::Relaxed) {
            fd.signal();
            // Only now: whoever finds it raised already takes the descriptor for readable.
            self.raised.store(true, Ordering::Release);
        }
    }

    /// Makes the descriptor unreadable. The caller must look for work once more afterwards, and raise it again if
    /// there is some: a notification that came just before this one would be forgotten otherwise.
    pub(crate) fn lower(&self) {
        let Some(fd) = self.fd.get() else { return };
        if self.raised.load(Ordering::Relaxed) {
            let _turn = lock(&self.level);
            if self.raised.swap(false, Ordering::Relaxed) {
                fd.drain();
            }
        }
        fence(Ordering::SeqCst);
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // Nothing under these locks can panic half-way.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::os::unix::net::UnixStream;
    use std::sync::Arc;
    use std::sync::atomic::AtomicUsize;
    use std::thread;
    use std::time::Duration;

    use super::*;
    use crate::sys::poll::Ready;

    fn is_readable(signal: &Signal) -> bool {
        let fd = std::os::fd::AsRawFd::as_raw_fd(&signal.descriptor().unwrap());
        let readable = Ready {
            readable: true,
            ..Ready::default()
        };
        let found = poll::wait(&[(fd, readable)], Some(Instant::now())).unwrap();
        found[0].readable
    }

    #[test]
    fn the_descriptor_is_where_the_last_call_put_it() {
        let signal = Signal::new();
        signal.raise();
        assert!(!is_readable(&signal));
        signal.raise();
        signal.raise();
        assert!(is_readable(&signal));
        signal.lower();
        signal.lower();
        assert!(!is_readable(&signal));
    }

    #[test]
    fn wake_ups_that_are_put_off_are_given_once() {
        let signal = Arc::new(Signal::new());
        let waiter = {
            let (signal, ticket) = (signal.clone(), signal.ticket());
            thread::spawn(move || signal.wait(ticket, None))
        };
        while signal.wait.waiters.load(Ordering::Relaxed) == 0 {
            thread::yield_now();
        }
        let ((), wakes) = deferring_wakes(|| (0..5).for_each(|_| signal.wake()));
        assert!(wakes.waiting.len() <= 1);
        drop(wakes);
        assert_eq!(waiter.join().unwrap(), Woken::Notified);
    }

    #[test]
    fn a_watcher_is_woken_until_it_leaves() {
        let signal = Signal::new();
        let watcher = Arc::new(Signal::new());
        signal.watch(watcher.clone());
        let ticket = watcher.ticket();
        signal.wake();
        assert_ne!(watcher.ticket(), ticket);
        signal.unwatch(&watcher);
        let ticket = watcher.ticket();
        signal.wake();
        assert_eq!(watcher.ticket(), ticket);
    }

    #[test]
    fn what_is_to_interrupt_does_so_however_a_thread_waits() {
        let (heard, written) = UnixStream::pair().unwrap();
        let signal = Signal::new();
        let other = WakeFd::new().unwrap();
        let other = || std::os::fd::AsRawFd::as_raw_fd(&other.as_fd());
        let ticket = signal.ticket();
        (&written).write_all(b"!").unwrap();
        interrupted_by(heard.as_fd(), || {
            assert_eq!(signal.wait(ticket, None), Woken::Interrupted);
            let beside = signal.wait_beside(ticket, other(), None);
            assert_eq!(beside, Beside::Woken(Woken::Interrupted));
            let polled = poll::wait(&[(other(), Ready::default())], None);
            assert_eq!(polled.unwrap_err().kind(), io::ErrorKind::Interrupted);
            // Where another thread waits beside a descriptor.
            let _place = signal.lookout.enter().unwrap();
            assert_eq!(signal.wait(ticket, None), Woken::Interrupted);
            // What happened counts for more.
            signal.wake();
            assert_eq!(signal.wait(ticket, None), Woken::Notified);
        });
        assert_eq!(
            signal.wait(signal.ticket(), Some(Instant::now())),
            Woken::TimedOut
        );
    }

    /// A poster counts its work and raises; a worker that finds none lowers and looks once more.
    #[test]
    fn raising_against_lowering_forgets_no_work() {
        let signal = Arc::new(Signal::new());
        signal.descriptor().unwrap();
        let work = Arc::new(AtomicUsize::new(0));
        const POSTS: usize = 100_000;
        let poster = {
            let (signal, work) = (signal.clone(), work.clone());
            thread::spawn(move || {
                for _ in 0..POSTS {
                    work.fetch_add(1, Ordering::Relaxed);
                    signal.raise();
                }
            })
        };
        let mut done = 0;
        while done < POSTS {
            let found = work.swap(0, Ordering::Relaxed);
            done += found;
            if found == 0 {
                signal.lower();
                if work.load(Ordering::Relaxed) > 0 {
                    signal.raise();
                    // The poster may be just about to, and then it is left to it.
                    let patience = Instant::now() + Duration::from_secs(20);
                    while !is_readable(&signal) {
                        assert!(Instant::now() < patience, "forgotten");
                        thread::yield_now();
                    }
                }
            }
        }
        poster.join().unwrap();
        signal.lower();
        assert!(!is_readable(&signal));
    }
}
