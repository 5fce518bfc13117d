//! Salsa20, four blocks in parallel.
//!
//! The stream dominates the cost of a message: crates that compute one block after the other reach a quarter of this
//! speed. The arithmetic is written once, for vectors of any width.
//!
//! A block is a square of sixteen words. There are two ways to arrange blocks in vectors:
//! * A few blocks: each vector has one diagonal of a square, so that a quarter-round works on all columns at once;
//!   rotating three of the vectors by one, two and three words aligns the rows. Four blocks are processed in parallel.
//!   The stream begins in this way, which is sufficient for most messages.
//! * Many blocks: one vector for each of the sixteen words, one lane for each block. No rotations are needed, but the
//!   words of each block must be collected at the end. The blocks may belong to one stream, or be the first blocks of
//!   several, because messages are numbered and the next streams are known.

use fearless_simd::{Level, Simd, dispatch, mask32x16, prelude::*, u32x4, u32x16};
use zeroize::{Zeroize, Zeroizing};

/// Bytes in a block.
const BLOCK: usize = 64;
/// A few blocks.
const FEW: usize = 4;
/// Bytes with which the stream starts: a few blocks.
pub(super) const START: usize = FEW * BLOCK;
/// The number of streams that are started ahead, and the bytes of each.
pub(super) const STARTS: usize = 8;
pub(super) const SHORT_START: usize = 2 * BLOCK;
/// Many blocks, in bytes: one for each lane of the widest vectors.
const LONG: usize = 16 * BLOCK;

/// The constants on the diagonal: "expand 32-byte k".
const SIGMA: [u32; 4] = [0x6170_7865, 0x3320_646e, 0x7962_2d32, 0x6b20_6574];

/// The words of each quarter-round: the columns of the square, then its rows.
const QUARTERS: [[usize; 4]; 8] = [
    [0, 4, 8, 12],
    [5, 9, 13, 1],
    [10, 14, 2, 6],
    [15, 3, 7, 11],
    [0, 1, 2, 3],
    [5, 6, 7, 4],
    [10, 11, 8, 9],
    [15, 12, 13, 14],
];

/// A key, set up.
pub(super) struct Salsa20 {
    level: Level,
    square: [u32; 16],
}

impl Salsa20 {
    pub(super) fn new(level: Level, key: &[u8; 32]) -> Salsa20 {
        let square = square(key, [0; 4]);
        Salsa20 { level, square }
    }

    /// The first blocks of the stream with this nonce.
    #[inline]
    pub(super) fn start(&self, nonce: [u8; 8]) -> [u8; START] {
        self.few(&self.numbered(nonce, 0))
    }

    /// The first blocks of the streams with this nonce and those after it.
    pub(super) fn starts(&self, nonce: u64, starts: &mut [[u8; SHORT_START]; STARTS]) {
        if cfg!(target_endian = "little") {
            let square = &self.square;
            dispatch!(self.level, simd => starts_of_streams(simd, square, nonce, starts));
        } else {
            for (nonce, start) in (nonce..).zip(starts) {
                start.copy_from_slice(&self.start(nonce.to_be_bytes())[..SHORT_START]);
            }
        }
    }

    /// Adds the stream after this many bytes of its start.
    #[inline]
    pub(super) fn add_after(&self, start: usize, nonce: [u8; 8], data: &mut [u8]) {
        if !data.is_empty() {
            self.add((start / BLOCK) as u64, nonce, data);
        }
    }

    /// Adds the stream from this block on.
    fn add(&self, mut block: u64, nonce: [u8; 8], mut data: &mut [u8]) {
        while data.len() > 2 * START && cfg!(target_endian = "little") {
            let (chunk, rest) = data.split_at_mut(data.len() - data.len() % LONG);
            let square = self.numbered(nonce, block);
            if chunk.is_empty() {
                let mut padded = [0; LONG];
                padded[..rest.len()].copy_from_slice(rest);
                dispatch!(self.level, simd => many_blocks(simd, &square, &mut padded));
                return rest.copy_from_slice(&padded[..rest.len()]);
            }
            dispatch!(self.level, simd => many_blocks(simd, &square, chunk));
            block += (chunk.len() / BLOCK) as u64;
            data = rest;
        }
        for chunk in data.chunks_mut(START) {
            xor(chunk, &self.few(&self.numbered(nonce, block)));
            block += FEW as u64;
        }
    }

    #[inline]
    fn few(&self, square: &[u32; 16]) -> [u8; START] {
        dispatch!(self.level, simd => few_blocks(simd, square))
    }

    #[inline]
    fn numbered(&self, nonce: [u8; 8], block: u64) -> [u32; 16] {
        let mut square = self.square;
        [square[6], square[7]] = words(&nonce);
        (square[8], square[9]) = (block as u32, (block >> 32) as u32);
        square
    }
}

impl Drop for Salsa20 {
    fn drop(&mut self) {
        self.square.zeroize();
    }
}

/// Adds the stream to all data.
#[inline]
pub(super) fn xor(data: &mut [u8], stream: &[u8]) {
    for (byte, key) in data.iter_mut().zip(stream) {
        *byte ^= key;
    }
}

/// Derives a key from a key and the first part of a long nonce.
pub(super) fn hsalsa20(key: &[u8; 32], input: &[u8; 16]) -> [u8; 32] {
    let mut x = Zeroizing::new(square(key, words(input)));
    for _ in 0..10 {
        for [a, b, c, d] in QUARTERS {
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

/// Some blocks of the stream; the square has the number of the first. Its lower word must not overflow within them,
/// which would take a longer message than possible.
#[inline(always)]
fn few_blocks<S: Simd>(simd: S, x: &[u32; 16]) -> [u8; START] {
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
    let mut stream = [0; START];
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

/// The same quarter-round on all columns.
#[inline(always)]
fn quarters<S: Simd>(a: &mut u32x16<S>, b: &mut u32x16<S>, c: &mut u32x16<S>, d: &mut u32x16<S>) {
    *b ^= rotate(*a + *d, 7);
    *c ^= rotate(*b + *a, 9);
    *d ^= rotate(*c + *b, 13);
    *a ^= rotate(*d + *c, 18);
}

#[inline(always)]
fn rotate<S: Simd, V: SimdInt<S>>(x: V, bits: u32) -> V {
    (x << bits) | (x >> (32 - bits))
}

/// Rotates each block so that the word at this index comes first.
#[inline(always)]
fn turn<S: Simd, const FIRST: usize>(x: u32x16<S>) -> u32x16<S> {
    x.slide_within_blocks::<FIRST>(x)
}

/// A mask for each block, from its four words.
#[inline(always)]
fn mask<S: Simd>(simd: S, words: [u32; 4]) -> mask32x16<S> {
    u32x16::block_splat(u32x4::from_slice(simd, &words)).simd_eq(1)
}

/// Adds the stream to a multiple of [`LONG`] bytes; the square has the number of the first block.
#[inline(always)]
fn many_blocks<S: Simd>(simd: S, square: &[u32; 16], data: &mut [u8]) {
    let lanes = S::u32s::LEN;
    let mut block = u64::from(square[8]) | u64::from(square[9]) << 32;
    let mut start = splat_all(simd, square);
    for blocks in data.chunks_exact_mut(lanes * BLOCK) {
        let (mut low, mut high) = ([0; 16], [0; 16]);
        for lane in 0..lanes {
            let number = block + lane as u64;
            (low[lane], high[lane]) = (number as u32, (number >> 32) as u32);
        }
        start[8] = S::u32s::from_slice(simd, &low[..lanes]);
        start[9] = S::u32s::from_slice(simd, &high[..lanes]);
        let x = a_block_per_lane(start);
        for (part, words) in x.chunks_exact(lanes).enumerate() {
            for (lane, words) in words.iter().enumerate() {
                let at = lane * BLOCK + part * lanes * 4;
                let bytes = &mut blocks[at..at + lanes * 4];
                let stream: S::u8s = words.to_bytes();
                (S::u8s::from_slice(simd, bytes) ^ stream).store_slice(bytes);
            }
        }
        block += lanes as u64;
    }
}

/// Two blocks of each of several streams with consecutive nonces.
#[inline(always)]
fn starts_of_streams<S: Simd>(
    simd: S,
    square: &[u32; 16],
    first: u64,
    starts: &mut [[u8; SHORT_START]; STARTS],
) {
    let lanes = S::u32s::LEN;
    let mut start = splat_all(simd, square);
    let mut nonce = first;
    for starts in starts.chunks_exact_mut(lanes / 2) {
        let (mut n0, mut n1, mut block) = ([0; 16], [0; 16], [0; 16]);
        for lane in 0..lanes {
            // The nonce is big-endian, but the words of the square are not.
            let number = nonce.wrapping_add(lane as u64 / 2);
            n0[lane] = ((number >> 32) as u32).swap_bytes();
            n1[lane] = (number as u32).swap_bytes();
            block[lane] = lane as u32 % 2;
        }
        start[6] = S::u32s::from_slice(simd, &n0[..lanes]);
        start[7] = S::u32s::from_slice(simd, &n1[..lanes]);
        start[8] = S::u32s::from_slice(simd, &block[..lanes]);
        let x = a_block_per_lane(start);
        for (part, words) in x.chunks_exact(lanes).enumerate() {
            for (lane, words) in words.iter().enumerate() {
                let at = lane % 2 * BLOCK + part * lanes * 4;
                let bytes: S::u8s = words.to_bytes();
                bytes.store_slice(&mut starts[lane / 2][at..at + lanes * 4]);
            }
        }
        nonce = nonce.wrapping_add(lanes as u64 / 2);
    }
}

#[inline(always)]
fn splat_all<S: Simd>(simd: S, square: &[u32; 16]) -> [S::u32s; 16] {
    let mut vectors = [S::u32s::splat(simd, 0); 16];
    for (vector, word) in vectors.iter_mut().zip(square) {
        *vector = S::u32s::splat(simd, *word);
    }
    vectors
}

/// From squares in lanes to their blocks: as many words of the first block as there are lanes, then of the second, and
/// so on; then the next words of each.
#[inline(always)]
fn a_block_per_lane<S: Simd, V: SimdInt<S>>(start: [V; 16]) -> [V; 16] {
    let mut x = start;
    for _ in 0..10 {
        double_round(&mut x);
    }
    for (word, start) in x.iter_mut().zip(start) {
        *word += start;
    }
    for words in x.chunks_exact_mut(V::LEN) {
        transpose(words);
    }
    x
}

/// Written out so that every index is a compile-time constant.
#[inline(always)]
fn double_round<S: Simd, V: SimdInt<S>>(x: &mut [V; 16]) {
    let [q0, q1, q2, q3, q4, q5, q6, q7] = QUARTERS;
    quarter_round(x, q0);
    quarter_round(x, q1);
    quarter_round(x, q2);
    quarter_round(x, q3);
    quarter_round(x, q4);
    quarter_round(x, q5);
    quarter_round(x, q6);
    quarter_round(x, q7);
}

#[inline(always)]
fn quarter_round<S: Simd, V: SimdInt<S>>(x: &mut [V; 16], [a, b, c, d]: [usize; 4]) {
    x[b] ^= rotate(x[a] + x[d], 7);
    x[c] ^= rotate(x[b] + x[a], 9);
    x[d] ^= rotate(x[c] + x[b], 13);
    x[a] ^= rotate(x[d] + x[c], 18);
}

/// Transposes as many vectors as they have lanes: the first lanes of all become the first vector.
#[inline(always)]
fn transpose<S: Simd, V: SimdInt<S>>(rows: &mut [V]) {
    let half = rows.len() / 2;
    for _ in 0..rows.len().ilog2() {
        let mut shuffled = [rows[0]; 16];
        for at in 0..half {
            (shuffled[2 * at], shuffled[2 * at + 1]) = rows[at].interleave(rows[at + half]);
        }
        rows.copy_from_slice(&shuffled[..rows.len()]);
    }
}
