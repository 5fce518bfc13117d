//! The only file that distinguishes between real atomics, loom's and shuttle's.
//!
//! All other files of this crate import their atomics, locks, [`Arc`] and [`UnsafeCell`] from here. With `--cfg zeroxide_loom`
//! they come from loom, which replays a test under every interleaving and every stale read that the memory model
//! allows. With `--cfg zeroxide_shuttle` they come from shuttle, which runs the threads of whole contexts one at a time
//! (`tests/schedules.rs`). The cfgs have names of their own, because the usual `--cfg loom` also affects every dependency that
//! uses it.

use std::ops::Deref;

#[cfg(zeroxide_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc, Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
    },
};

#[cfg(zeroxide_shuttle)]
pub(crate) use shuttle::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

#[cfg(not(any(zeroxide_loom, zeroxide_shuttle)))]
pub(crate) use std::sync::{
    Arc, Mutex, MutexGuard,
    atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, AtomicUsize, Ordering, fence},
};

pub(crate) use std::sync::{PoisonError, TryLockError};

/// A count on which no other access depends. It is always `std`'s, because under loom every possible stale value would
/// be one more order to try, without a benefit.
#[derive(Debug)]
pub(crate) struct Hint(std::sync::atomic::AtomicU64);

impl Hint {
    pub(crate) const fn new(value: u64) -> Self {
        Self(std::sync::atomic::AtomicU64::new(value))
    }

    #[inline(always)]
    pub(crate) fn set(&self, value: u64) {
        self.0.store(value, std::sync::atomic::Ordering::Relaxed);
    }

    /// The value, or an earlier one.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// `std`'s cell with loom's interface: access happens inside a closure, so that loom sees where it begins and ends, and
/// can report two accesses that are not ordered.
#[cfg(not(zeroxide_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(zeroxide_loom))]
impl<T> UnsafeCell<T> {
    #[inline(always)]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Lends the content for reading. The pointer is valid as long as no thread writes.
    #[inline(always)]
    pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get())
    }

    /// Lends the content for writing. The pointer is valid as long as no other thread reads or writes.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

/// Keeps the data of one writing thread off the cache lines of another's.
///
/// 128 bytes, because x86 cores fetch lines in pairs, and some ARM cores have lines of that length.
#[derive(Debug)]
#[repr(align(128))]
pub(crate) struct OwnLine<T>(pub(crate) T);

impl<T> Deref for OwnLine<T> {
    type Target = T;

    #[inline(always)]
    fn deref(&self) -> &T {
        &self.0
    }
}
