//! Salsa20, four blocks side by side.
//!
//! The stream is what a message costs: crates that make one block after the other reach a quarter of this. The
//! arithmetic is written once, for vectors of whatever width the processor turns out to have.
//!
//! A block is a square of sixteen words. Its four diagonals are kept in a vector each, so that a quarter-round
//! works on all columns at once; turning three of the vectors by one, two and three words brings the rows under
//! each other instead. Four blocks lie side by side in the vectors.

use fearless_simd::{Level, Simd, dispatch, mask32x16, prelude::*, u32x4, u32x16};

/// Bytes in a block.
const BLOCK: usize = 64;
/// Blocks made at a time.
const GROUP: usize = 4;
/// Bytes in a group of blocks.
pub(super) const GROUP_BYTES: usize = GROUP * BLOCK;

/// The corners of every square: "expand 32-byte k".
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// A key and a nonce, set up.
pub(super) struct Salsa20 {
    square: [u32; 16],
}

impl Salsa20 {
    #[inline]
    pub(super) fn new(key: &[u8; 32], nonce: [u8; 8]) -> Salsa20 {
        let [n0, n1] = words(&nonce);
        Salsa20 {
            square: square(key, [n0, n1, 0, 0]),
        }
    }

    /// A group of blocks of the stream; the first is the group's number times [`GROUP`].
    #[inline]
    pub(super) fn group(&self, level: Level, number: u64) -> [u8; GROUP_BYTES] {
        let block = number * GROUP as u64;
        let mut square = self.square;
        square[8] = block as u32;
        square[9] = (block >> 32) as u32;
        dispatch!(level, simd => group(simd, &square))
    }

    /// Adds the stream from this group on.
    pub(super) fn apply(&self, level: Level, first: u64, data: &mut [u8]) {
        for (number, chunk) in (first..).zip(data.chunks_mut(GROUP_BYTES)) {
            xor(chunk, &self.group(level, number));
        }
    }
}

impl Drop for Salsa20 {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.square);
    }
}

/// Adds as much of a stream as there are data.
#[inline]
pub(super) fn xor(data: &mut [u8], stream: &[u8]) {
    for (byte, key) in data.iter_mut().zip(stream) {
        *byte ^= key;
    }
}

/// Derives a key from a key and the first part of a long nonce.
pub(super) fn hsalsa20(key: &[u8; 32], input: &[u8; 16]) -> [u8; 32] {
    let mut x = square(key, words(input));
    for _ in 0..10 {
        for [a, b, c, d] in [
            [0, 4, 8, 12],
            [5, 9, 13, 1],
            [10, 14, 2, 6],
            [15, 3, 7, 11],
            [0, 1, 2, 3],
            [5, 6, 7, 4],
            [10, 11, 8, 9],
            [15, 12, 13, 14],
        ] {
            x[b] ^= x[a].wrapping_add(x[d]).rotate_left(7);
            x[c] ^= x[b].wrapping_add(x[a]).rotate_left(9);
            x[d] ^= x[c].wrapping_add(x[b]).rotate_left(13);
            x[a] ^= x[d].wrapping_add(x[c]).rotate_left(18);
        }
    }
    let mut derived = [0; 32];
    let picked = [0, 5, 10, 15, 6, 7, 8, 9].map(|at| x[at]);
    for (bytes, word) in derived.as_chunks_mut().0.iter_mut().zip(picked) {
        *bytes = word.to_le_bytes();
    }
    derived
}

fn square(key: &[u8; 32], input: [u32; 4]) -> [u32; 16] {
    let [s0, s1, s2, s3] = SIGMA;
    let [k0, k1, k2, k3, k4, k5, k6, k7] = words(key);
    let [i0, i1, i2, i3] = input;
    [
        s0, k0, k1, k2, //
        k3, s1, i0, i1, //
        i2, i3, s2, k4, //
        k5, k6, k7, s3,
    ]
}

fn words<const BYTES: usize, const WORDS: usize>(bytes: &[u8; BYTES]) -> [u32; WORDS] {
    const { assert!(BYTES == 4 * WORDS) };
    let chunks = bytes.as_chunks().0;
    std::array::from_fn(|at| u32::from_le_bytes(chunks[at]))
}

#[inline(always)]
fn group<S: Simd>(simd: S, x: &[u32; 16]) -> [u8; GROUP_BYTES] {
    let splat = |at: [usize; 4]| {
        let diagonal = u32x4::from_slice(simd, &at.map(|at| x[at]));
        u32x16::block_splat(diagonal)
    };
    let numbers = [0, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0];
    let start = [
        splat([0, 5, 10, 15]),
        splat([4, 9, 14, 3]),
        splat([8, 13, 2, 7]) + u32x16::from_slice(simd, &numbers),
        splat([12, 1, 6, 11]),
    ];
    let [mut a, mut b, mut c, mut d] = start;
    for _ in 0..10 {
        quarters(&mut a, &mut b, &mut c, &mut d);
        b = turn::<S, 3>(b);
        c = turn::<S, 2>(c);
        d = turn::<S, 1>(d);
        quarters(&mut a, &mut d, &mut c, &mut b);
        b = turn::<S, 1>(b);
        c = turn::<S, 2>(c);
        d = turn::<S, 3>(d);
    }
    let a = a + start[0];
    let b = b + start[1];
    let c = c + start[2];
    let d = d + start[3];
    // Back from diagonals to rows.
    let even = mask(simd, [1, 0, 1, 0]);
    let left = mask(simd, [1, 1, 0, 0]);
    let ad = even.select(a, d);
    let cb = even.select(c, b);
    let ba = even.select(b, a);
    let dc = even.select(d, c);
    let rows = [
        left.select(ad, cb),
        left.select(ba, dc),
        left.select(cb, ad),
        left.select(dc, ba),
    ];
    let mut stream = [0; GROUP_BYTES];
    for (at, row) in rows.iter().enumerate() {
        for (block, words) in row.as_slice().chunks_exact(4).enumerate() {
            let bytes = &mut stream[block * BLOCK + at * 16..][..16];
            for (bytes, word) in bytes.chunks_exact_mut(4).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
    }
    stream
}

#[inline(always)]
fn quarters<S: Simd>(a: &mut u32x16<S>, b: &mut u32x16<S>, c: &mut u32x16<S>, d: &mut u32x16<S>) {
    *b ^= rotate::<S, 7>(*a + *d);
    *c ^= rotate::<S, 9>(*b + *a);
    *d ^= rotate::<S, 13>(*c + *b);
    *a ^= rotate::<S, 18>(*d + *c);
}

#[inline(always)]
fn rotate<S: Simd, const BITS: u32>(x: u32x16<S>) -> u32x16<S> {
    (x << BITS) | (x >> (32 - BITS))
}

/// Within each block, the word at this place comes first.
#[inline(always)]
fn turn<S: Simd, const FIRST: usize>(x: u32x16<S>) -> u32x16<S> {
    x.slide_within_blocks::<FIRST>(x)
}

/// A mask for each block, from its four words.
#[inline(always)]
fn mask<S: Simd>(simd: S, words: [u32; 4]) -> mask32x16<S> {
    u32x16::block_splat(u32x4::from_slice(simd, &words)).simd_eq(1)
}
