//! Poly1305 of long data, with every fourth or eighth block in the same lane.
//!
//! Each lane is a separate Poly1305 that multiplies by the fourth or eighth power of `r`. At the end, the lanes are
//! multiplied by the powers that their last blocks lack, and added. The processor multiplies numbers of 32 bits here,
//! so limbs have 26.

use super::limbs::{self, BLOCK, Limbs};
use fearless_simd::{Level, Simd, kernel, prelude::*, u64x4, u64x8};
use std::arch::x86_64::{_mm256_mul_epu32, _mm512_mul_epu32};

/// Below this size in bytes, the powers cost more than the lanes save, as measured.
const FOUR_FROM: usize = 200;
const EIGHT_FROM: usize = 640;

const LIMB: u64 = (1 << 26) - 1;
/// The bit that marks the end of a block, in its last limb.
const WHOLE: u64 = 1 << 24;

/// Processes the part of the data that fits the lanes; returns the rest.
#[inline]
pub(super) fn absorb_long(level: Level, r: Limbs, data: &[u8]) -> (Limbs, &[u8]) {
    if data.len() < FOUR_FROM {
        return ([0; 3], data);
    }
    if let Some(avx512) = level.as_avx512()
        && data.len() >= EIGHT_FROM
    {
        let (whole, rest) = data.split_at(data.len() - data.len() % (8 * BLOCK));
        (in_eight(avx512, r, whole), rest)
    } else if let Some(avx2) = level.as_avx2() {
        let (whole, rest) = data.split_at(data.len() - data.len() % (4 * BLOCK));
        (in_four(avx2, r, whole), rest)
    } else {
        // With narrower vectors 64-bit arithmetic is faster.
        ([0; 3], data)
    }
}

kernel!(
    fn in_eight(avx512: Avx512, r: Limbs, data: &[u8]) -> Limbs {
        let product =
            |a: u64x8<_>, b: u64x8<_>| _mm512_mul_epu32(a.into(), b.into()).simd_into(avx512);
        in_lanes(avx512, r, data, product)
    }
);

kernel!(
    fn in_four(avx2: Avx2, r: Limbs, data: &[u8]) -> Limbs {
        let product =
            |a: u64x4<_>, b: u64x4<_>| _mm256_mul_epu32(a.into(), b.into()).simd_into(avx2);
        in_lanes(avx2, r, data, product)
    }
);

/// `product` multiplies the lower halves of the lanes.
#[inline(always)]
fn in_lanes<S: Simd, V: SimdInt<S> + SimdBase<S, Element = u64>>(
    simd: S,
    r: Limbs,
    data: &[u8],
    product: impl Fn(V, V) -> V + Copy,
) -> Limbs {
    // Each power is the product of two about half as high, so that they can be computed in parallel.
    let mut powers = [r; 9];
    for n in 2..=V::LEN {
        powers[n] = multiply(powers[n / 2], powers[n - n / 2]);
    }
    // The highest power first, for the lane with the earliest block.
    let mut limbs = [[0; 8]; 5];
    for lane in 0..V::LEN {
        for (limbs, limb) in limbs.iter_mut().zip(narrow(powers[V::LEN - lane])) {
            limbs[lane] = limb;
        }
    }
    let mut step = [V::splat(simd, 0); 5];
    let mut last = step;
    for limb in 0..5 {
        step[limb] = V::splat(simd, limbs[limb][0]);
        last[limb] = V::from_slice(simd, &limbs[limb][..V::LEN]);
    }

    let group = V::LEN * BLOCK;
    let (most, end) = data.split_at(data.len() - group);
    let mut h = [V::splat(simd, 0); 5];
    for blocks in most.chunks_exact(group) {
        h = multiply_lanes(add(simd, h, blocks), step, product);
    }
    h = multiply_lanes(add(simd, h, end), last, product);
    let mut sums = [0; 5];
    for (sum, limb) in sums.iter_mut().zip(h) {
        *sum = limb.as_slice().iter().sum();
    }
    widen(sums)
}

/// Adds a block to each lane.
#[inline(always)]
fn add<S: Simd, V: SimdInt<S> + SimdBase<S, Element = u64>>(
    simd: S,
    h: [V; 5],
    blocks: &[u8],
) -> [V; 5] {
    let (first, second) = blocks.split_at(blocks.len() / 2);
    let load = |bytes| V::from_bytes(V::ByteVector::from_slice(simd, bytes));
    let (low, high) = load(first).deinterleave(load(second));
    [
        h[0] + (low & LIMB),
        h[1] + (low >> 26 & LIMB),
        h[2] + ((low >> 52 | high << 12) & LIMB),
        h[3] + (high >> 14 & LIMB),
        h[4] + (high >> 40 | WHOLE),
    ]
}

/// The product modulo 2^130 - 5 in each lane. Limbs come out a little wider than 26 bits.
#[inline(always)]
fn multiply_lanes<S: Simd, V: SimdInt<S> + SimdBase<S, Element = u64>>(
    h: [V; 5],
    r: [V; 5],
    product: impl Fn(V, V) -> V + Copy,
) -> [V; 5] {
    let times = |r: V| r + (r << 2);
    let s = [times(r[1]), times(r[2]), times(r[3]), times(r[4])];
    let sum = |a, b, c, d, e| {
        let first = product(h[0], a) + product(h[1], b);
        let second = product(h[2], c) + product(h[3], d);
        first + second + product(h[4], e)
    };
    let mut d = [
        sum(r[0], s[3], s[2], s[1], s[0]),
        sum(r[1], r[0], s[3], s[2], s[1]),
        sum(r[2], r[1], r[0], s[3], s[2]),
        sum(r[3], r[2], r[1], r[0], s[3]),
        sum(r[4], r[3], r[2], r[1], r[0]),
    ];
    // Two parallel chains of carries; five times the overflow of the top is added at the bottom.
    for (from, to) in [(0, 1), (3, 4), (1, 2), (4, 0), (2, 3), (0, 1), (3, 4)] {
        let carry = d[from] >> 26;
        d[from] &= LIMB;
        d[to] += if from == 4 {
            carry + (carry << 2)
        } else {
            carry
        };
    }
    d
}

/// The product modulo 2^130 - 5.
fn multiply(h: Limbs, r: Limbs) -> Limbs {
    let h = limbs::absorb(h, r, 0, 0);
    [h[0], h[1] & limbs::LIMB, h[2] + (h[1] >> 44)]
}

/// Converts limbs of 44 bits to limbs of 26.
fn narrow([h0, h1, h2]: Limbs) -> [u64; 5] {
    [
        h0 & LIMB,
        (h0 >> 26 | h1 << 18) & LIMB,
        h1 >> 8 & LIMB,
        (h1 >> 34 | h2 << 10) & LIMB,
        h2 >> 16,
    ]
}

/// The inverse. Limbs may have up to 32 bits: bits beyond 44 are carried to the next.
fn widen([h0, h1, h2, h3, h4]: [u64; 5]) -> Limbs {
    let low = h0 + (h1 << 26);
    let middle = (low >> 44) + (h2 << 8) + ((h3 << 34) & limbs::LIMB);
    let high = (middle >> 44) + (h3 >> 10) + (h4 << 16);
    [low & limbs::LIMB, middle & limbs::LIMB, high]
}
