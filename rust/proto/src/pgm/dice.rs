//! Random numbers from a seed, for delays.

use std::time::Duration;

/// The generator "splitmix64".
pub(super) struct Dice(u64);

impl Dice {
    pub(super) fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    /// A time below `most`.
    pub(super) fn below(&mut self, most: Duration) -> Duration {
        let micros = most.as_micros() as u64;
        Duration::from_micros(self.next() % micros.max(1))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
}
