//! The only file that knows whether we run on real atomics or inside loom.
//!
//! Everything else in this crate imports its atomics, its [`Arc`] and its [`UnsafeCell`] from here.
//! Built with `--cfg zeroxide_loom` they come from loom, which replays a test under every
//! interleaving and every stale read that the memory model allows. The cfg carries our name because
//! the usual `--cfg loom` also switches every dependency in the build that has heard of it.

use std::ops::Deref;

#[cfg(zeroxide_loom)]
pub(crate) use loom::{
    cell::UnsafeCell,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence},
    },
};

#[cfg(not(zeroxide_loom))]
pub(crate) use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicPtr, AtomicU64, Ordering, fence},
};

/// A count that nothing is read on the strength of. Always `std`'s: under loom, each stale value that
/// it could have would be one more order to try, to no purpose.
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

    /// The value, or one that it had before.
    #[inline(always)]
    pub(crate) fn get(&self) -> u64 {
        self.0.load(std::sync::atomic::Ordering::Relaxed)
    }
}

/// `std`'s cell behind loom's interface: access happens inside a closure, so that loom can see
/// where it begins and ends and report two accesses that no ordering separates.
#[cfg(not(zeroxide_loom))]
#[derive(Debug)]
pub(crate) struct UnsafeCell<T>(std::cell::UnsafeCell<T>);

#[cfg(not(zeroxide_loom))]
impl<T> UnsafeCell<T> {
    #[inline(always)]
    pub(crate) const fn new(value: T) -> Self {
        Self(std::cell::UnsafeCell::new(value))
    }

    /// Lends the content for reading; the pointer is only good while nobody writes.
    #[inline(always)]
    pub(crate) fn with<R>(&self, access: impl FnOnce(*const T) -> R) -> R {
        access(self.0.get())
    }

    /// Lends the content for writing; the pointer is only good while nobody else reads or writes.
    #[inline(always)]
    pub(crate) fn with_mut<R>(&self, access: impl FnOnce(*mut T) -> R) -> R {
        access(self.0.get())
    }
}

/// Keeps what one thread writes off the cache lines of what the other writes.
///
/// 128 bytes: x86 cores fetch their lines in pairs, and some ARM cores have lines that long.
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
