//! Arithmetic modulo 2^130 - 5, for Poly1305.

/// Bytes in a block.
pub(super) const BLOCK: usize = 16;

/// A number in limbs of 44, 44 and 42 bits; limbs may temporarily be some bits wider.
pub(super) type Limbs = [u64; 3];

/// Masks of the first two limbs, and of the last one.
pub(super) const LIMB: u64 = (1 << 44) - 1;
pub(super) const LAST: u64 = (1 << 42) - 1;

/// Adds a block, then multiplies by `r`, modulo 2^130 - 5.
#[inline(always)]
pub(super) fn absorb([h0, h1, h2]: Limbs, [r0, r1, r2]: Limbs, block: u128, end: u64) -> Limbs {
    let h0 = h0 + (block as u64 & LIMB);
    let h1 = h1 + ((block >> 44) as u64 & LIMB);
    let h2 = h2 + ((block >> 88) as u64 | end);
    // The overflow of the top is added at the bottom, times five; times four as well, because the last limb has two
    // bits less.
    let (s1, s2) = (r1 * 20, r2 * 20);
    let product = |a, b| u128::from(a) * u128::from(b);
    let d0 = product(h0, r0) + product(h1, s2) + product(h2, s1);
    let d1 = product(h0, r1) + product(h1, r0) + product(h2, s2) + (d0 >> 44);
    let d2 = product(h0, r2) + product(h1, r1) + product(h2, r0) + (d1 >> 44);
    let h0 = (d0 as u64 & LIMB) + (d2 >> 42) as u64 * 5;
    let h1 = (d1 as u64 & LIMB) + (h0 >> 44);
    [h0 & LIMB, h1, d2 as u64 & LAST]
}
