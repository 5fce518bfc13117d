//! How often to try what does not always pay off.

use std::sync::atomic::{AtomicU32, Ordering};

/// What was tried in vain is not tried again for so many times at most.
const SKIPPED_MAX: u32 = 1023;

/// Each try in vain doubles how many chances are let pass before the next one.
#[derive(Default)]
pub(super) struct Patience {
    /// Chances that are still to be let pass, and how many it were after the last try in vain.
    skip: AtomicU32,
    penalty: AtomicU32,
}

impl Patience {
    /// To be asked at each chance.
    pub(super) fn is_worth_it(&self) -> bool {
        let skip = self.skip.load(Ordering::Relaxed);
        if skip > 0 {
            self.skip.store(skip - 1, Ordering::Relaxed);
        }
        skip == 0
    }

    /// All is forgiven.
    pub(super) fn paid_off(&self) {
        self.penalty.store(0, Ordering::Relaxed);
    }

    /// Makes up for one chance let pass, so that what fails now and then ends up being tried seldom.
    pub(super) fn went_well(&self) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        if penalty > 0 {
            self.penalty.store(penalty - 1, Ordering::Relaxed);
        }
    }

    pub(super) fn was_in_vain(&self) {
        let penalty = self.penalty.load(Ordering::Relaxed);
        let penalty = (2 * penalty + 1).min(SKIPPED_MAX);
        self.penalty.store(penalty, Ordering::Relaxed);
        self.skip.store(penalty, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Chances let pass until the next try.
    fn passed(patience: &Patience) -> u32 {
        (0..).take_while(|_| !patience.is_worth_it()).count() as u32
    }

    #[test]
    fn tries_in_vain_become_rare() {
        let patience = Patience::default();
        assert_eq!(passed(&patience), 0);
        for expected in [1, 3, 7, 15, 31, 63, 127, 255, 511, 1023, SKIPPED_MAX] {
            patience.was_in_vain();
            assert_eq!(passed(&patience), expected);
        }
        patience.paid_off();
        patience.was_in_vain();
        assert_eq!(passed(&patience), 1);
    }

    #[test]
    fn going_well_makes_up_for_it_bit_by_bit() {
        let patience = Patience::default();
        for _ in 0..4 {
            patience.was_in_vain();
            passed(&patience);
        }
        (0..10).for_each(|_| patience.went_well());
        patience.was_in_vain();
        assert_eq!(passed(&patience), 2 * (15 - 10) + 1);
        (0..20).for_each(|_| patience.went_well());
        patience.was_in_vain();
        assert_eq!(passed(&patience), 1);
    }
}
