//! A thread that waits: its parker, and the wake-ups that it has yet to give to other threads.

use std::cell::RefCell;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, OnceLock};
use std::{io, mem};

use zeroxide_queue::parker::{On, Parker, System};

use crate::sys::sync::atomic::AtomicU32;
use crate::sys::sync::thread_local;
use crate::sys::wake_fd::WakeFd;
use crate::sys::{fork, word};

/// A thread that can wait for sockets.
pub(super) type ThreadParker = Parker<Sleep>;

/// How a thread sleeps.
pub(super) struct Sleep {
    /// Created when the thread first waits for descriptors.
    bell: OnceLock<WakeFd>,
    /// The process to which the bell belongs.
    generation: u32,
}

impl System for Sleep {
    fn wake_word(&self, word: &AtomicU32) {
        word::wake_all(word);
    }

    fn sound_bell(&self) {
        if let Some(bell) = self.bell.get() {
            bell.signal();
        }
    }
}

impl Sleep {
    /// Returns the descriptor that wakes the thread.
    ///
    /// # Errors
    /// The system's error if no descriptor is left.
    pub(super) fn bell(&self) -> io::Result<BorrowedFd<'_>> {
        if let Some(bell) = self.bell.get() {
            return Ok(bell.as_fd());
        }
        let fresh = WakeFd::new()?;
        Ok(self.bell.get_or_init(|| fresh).as_fd())
    }

    /// Drains the bell after a wait in which it sounded.
    pub(super) fn silence_bell(&self) {
        if let Some(bell) = self.bell.get() {
            bell.drain();
        }
    }
}

thread_local! {
    static OWN: RefCell<Option<Arc<ThreadParker>>> = const { RefCell::new(None) };

    /// Collects this thread's wake-ups while it runs `deferring_wakes`.
    static DEFERRED: RefCell<Option<Vec<Wake>>> = const { RefCell::new(None) };
}

/// Returns the calling thread's parker, which is created when the thread first waits.
pub(super) fn own() -> Arc<ThreadParker> {
    let generation = fork::generation();
    let fresh = || {
        Arc::new(Parker::new(Sleep {
            bell: OnceLock::new(),
            generation,
        }))
    };
    let own = OWN.try_with(|own| {
        let mut own = own.borrow_mut();
        match &*own {
            // A forked child must not silence its parent's bell.
            Some(thread) if thread.system().generation == generation => thread.clone(),
            _ => own.insert(fresh()).clone(),
        }
    });
    // A thread that ends may close its sockets after its thread-local variables are gone.
    own.unwrap_or_else(|_| fresh())
}

/// A thread that was notified and may be asleep.
struct Wake {
    thread: Arc<ThreadParker>,
    on: On,
}

impl Drop for Wake {
    fn drop(&mut self) {
        self.thread.rouse(self.on);
    }
}

/// Wakes a thread that was taken off a list, or leaves the wake-up to the caller of [`deferring_wakes`].
pub(super) fn wake(thread: Arc<ThreadParker>) {
    let Some(on) = thread.notify() else { return };
    let wake = Wake { thread, on };
    // A thread that ends may drop its sockets after its thread-local variables are gone. The closure is then dropped,
    // which gives the wake-up.
    _ = DEFERRED.try_with(move |deferred| {
        if let Some(deferred) = &mut *deferred.borrow_mut() {
            deferred.push(wake);
        }
    });
}

/// Wake-ups that are still pending. Dropping this gives them.
#[must_use = "threads wait for these"]
pub struct Wakes {
    wakes: Vec<Wake>,
}

impl Wakes {
    /// Whether no thread has to be woken.
    pub fn is_empty(&self) -> bool {
        self.wakes.is_empty()
    }
}

/// Runs `work` and returns its result with the wake-ups of other threads of this process that `work` causes, instead of
/// giving them at once. This is for callers that hold something that the woken thread would wait for, such as an
/// interpreter's lock.
pub fn deferring_wakes<T>(work: impl FnOnce() -> T) -> (T, Wakes) {
    let scope = Scope::enter();
    let result = work();
    (result, scope.leave())
}

/// While it exists, this thread's wake-ups are collected. A panic gives them at once.
struct Scope;

impl Scope {
    fn enter() -> Scope {
        DEFERRED.with(|deferred| _ = deferred.borrow_mut().get_or_insert_default());
        Scope
    }

    fn leave(self) -> Wakes {
        let wakes = take();
        // Nothing is collected any more, so another look at the thread's variable would find nothing.
        mem::forget(self);
        wakes
    }
}

impl Drop for Scope {
    fn drop(&mut self) {
        drop(take());
    }
}

fn take() -> Wakes {
    let wakes = DEFERRED.with(|deferred| deferred.borrow_mut().take());
    Wakes {
        wakes: wakes.unwrap_or_default(),
    }
}
