//! Threads, locks and atomics: the system's, or with `--cfg zeroxide_shuttle` those of shuttle, whose threads run one at a
//! time, in an order that a seed decides (see `simulated`).

#[cfg(not(zeroxide_shuttle))]
pub(crate) use std::{
    hint::spin_loop,
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic},
    thread, thread_local,
};

#[cfg(zeroxide_shuttle)]
pub(crate) use shuttle::{
    hint::spin_loop,
    sync::{Condvar, Mutex, MutexGuard, RwLock, RwLockReadGuard, atomic},
    thread_local,
};

#[cfg(zeroxide_shuttle)]
pub(crate) use super::simulated::thread;

/// These never block for long, so they need no scheduler.
pub(crate) use std::sync::{Arc, OnceLock, PoisonError, TryLockError, Weak};
