//! Whether there is memory for what peers make a pattern remember.

use crate::sys::memory;

/// By how much it grows until there is another look.
const STEP: usize = 64 << 10;
/// What must be there beside that: the many small things whose want would end the process.
const RESERVE: usize = 8 << 20;

/// Looks for memory now and then.
#[derive(Default)]
pub(super) struct Headroom {
    since: usize,
}

impl Headroom {
    /// Whether `growth` bytes may be added to what takes `size` bytes already, and may have to move into twice the room.
    pub(super) fn allows(&mut self, growth: usize, size: impl FnOnce() -> usize) -> bool {
        let since = self.since.saturating_add(growth);
        if since < STEP {
            self.since = since;
            return true;
        }
        // What grows is copied on its way: into the table, and for the application.
        let needed = size().saturating_add(growth.saturating_mul(2));
        let there = memory::is_there(RESERVE.saturating_add(needed.saturating_mul(2)));
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
    fn what_is_too_much_is_refused_and_a_little_is_not() {
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
