//! The contexts of this process, for programs that observe it.

use std::sync::atomic::AtomicU64;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use super::Registry;
use crate::sys::sync::atomic::Ordering;
use crate::sys::sync::thread;
use crate::sys::sync::{Arc, TryLockError, Weak};

/// The lock is held for a few instructions. A forked child may inherit it locked, by a thread that it does not have, so
/// no call waits for it without a limit. A context that is not listed works, and is not observed.
static CONTEXTS: Mutex<Vec<Weak<Registry>>> = Mutex::new(Vec::new());

/// How often a call looks whether the lock is free, and how long it waits in between.
const ATTEMPTS: usize = 1000;
const PAUSE: Duration = Duration::from_micros(100);

/// Returns a number that no other context of this process has.
pub(super) fn next_serial() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

/// Lists a context.
pub(super) fn add(registry: &Arc<Registry>) {
    if let Some(mut contexts) = lock() {
        // Only when the list would grow, so that this takes constant time on average.
        if contexts.len() == contexts.capacity() {
            contexts.retain(|context| context.strong_count() > 0);
        }
        contexts.push(Arc::downgrade(registry));
    }
}

/// Returns the contexts of this process that have not ended.
pub(crate) fn all() -> Vec<Arc<Registry>> {
    let found: Vec<_> = match lock() {
        Some(contexts) => contexts.iter().filter_map(Weak::upgrade).collect(),
        None => Vec::new(),
    };
    let lives = |context: &Arc<Registry>| {
        context.is_own_process() && !context.has_ended() && !context.hidden.load(Ordering::Relaxed)
    };
    found.into_iter().filter(lives).collect()
}

fn lock() -> Option<MutexGuard<'static, Vec<Weak<Registry>>>> {
    for _ in 0..ATTEMPTS {
        match CONTEXTS.try_lock() {
            Ok(contexts) => return Some(contexts),
            Err(TryLockError::Poisoned(poisoned)) => return Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => thread::sleep(PAUSE),
        }
    }
    None
}
