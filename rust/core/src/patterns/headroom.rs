//! Checks whether there is memory for state that peers make a pattern keep.

use crate::sys::memory;

/// The growth after which memory is checked again.
const STEP: usize = 64 << 10;

/// Checks for memory at intervals.
#[derive(Default)]
pub(super) struct Headroom {
    since: usize,
}

impl Headroom {
    /// Whether `growth` bytes may be added to a structure of `size` bytes, which may have to be copied to one of twice
    /// the size.
    pub(super) fn allows(&mut self, growth: usize, size: impl FnOnce() -> usize) -> bool {
        let since = self.since.saturating_add(growth);
        if since < STEP {
            self.since = since;
            return true;
        }
        // Added data is copied twice: into the table, and for the application.
        let needed = size().saturating_add(growth.saturating_mul(2));
        let there = memory::leaves_reserve(needed.saturating_mul(2));
        if there {
            self.since = 0;
        }
        there
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_growth_is_refused_and_small_growth_is_not() {
        let mut headroom = Headroom::default();
        let nobody_looks = || unreachable!("it is too little for a look");
        assert!(headroom.allows(100, nobody_looks));
        assert!(headroom.allows(STEP, || 1 << 20));
        assert!(headroom.allows(100, nobody_looks));
        assert!(!headroom.allows(1 << 60, || 0));
        assert!(!headroom.allows(STEP, || 1 << 60));
        assert!(headroom.allows(STEP, || 0));
    }
}
