//! Counts the forks between the process that loaded the module and this one.

use std::sync::atomic::{AtomicU32, Ordering};

/// The number of forks between the first process and this one. Sockets created before the last fork are unusable.
static GENERATION: AtomicU32 = AtomicU32::new(0);

/// See [`GENERATION`].
#[inline]
pub(crate) fn generation() -> u32 {
    GENERATION.load(Ordering::Relaxed)
}

/// Counts a fork. To be called in the child.
pub(crate) fn note_fork() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
}
