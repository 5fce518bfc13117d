//! Poly1305: a tag of sixteen bytes that can only be computed with the key.
//!
//! A tag is a polynomial of the blocks, modulo 2^130 - 5. The accumulator is kept in limbs of 44, 44 and 42 bits, so
//! that sums of products fit 128 bits. Long data are spread over vectors if the processor has wide ones.

use super::limbs::{BLOCK, LAST, LIMB, Limbs, absorb};
#[cfg(target_arch = "x86_64")]
use super::wide_poly1305::absorb_long;
use fearless_simd::Level;
use zeroize::Zeroize;

/// Bytes in a tag, and in a block.
pub(super) const TAG: usize = BLOCK;
/// Bytes in a key.
pub(super) const KEY: usize = 32;

/// The bit that marks the end of a block, in the last limb of a complete block.
const WHOLE: u64 = 1 << 40;

/// The tag of `data`. A key must never be used twice.
#[inline]
pub(super) fn tag(level: Level, key: &[u8; KEY], data: &[u8]) -> [u8; TAG] {
    let halves = key.as_chunks().0;
    let (low, high) = (
        u128::from_le_bytes(halves[0]),
        u128::from_le_bytes(halves[1]),
    );
    let mut r = [
        low as u64 & 0xffc_0fff_ffff,
        (low >> 44) as u64 & 0xfff_ffc0_ffff,
        (low >> 88) as u64 & 0x00f_ffff_fc0f,
    ];
    let (mut h, data) = absorb_long(level, r, data);
    let (blocks, rest) = data.as_chunks::<TAG>();
    for block in blocks {
        h = absorb(h, r, u128::from_le_bytes(*block), WHOLE);
    }
    if !rest.is_empty() {
        let bits = 8 * rest.len() as u32;
        let block = match data.last_chunk() {
            // Cheaper than copying only these bytes.
            Some(last) => u128::from_le_bytes(*last) >> (128 - bits),
            None => rest
                .iter()
                .rev()
                .fold(0, |block, byte| block << 8 | u128::from(*byte)),
        };
        h = absorb(h, r, block | 1 << bits, 0);
    }
    r.zeroize();
    reduce(h).wrapping_add(high).to_le_bytes()
}

/// Processes the part of the data that fits vectors: nothing if they are not wide enough.
#[cfg(not(target_arch = "x86_64"))]
fn absorb_long(_: Level, _: Limbs, data: &[u8]) -> (Limbs, &[u8]) {
    ([0; 3], data)
}

/// The value of the limbs modulo 2^130 - 5, of which the lower 128 bits are returned.
fn reduce([mut h0, mut h1, mut h2]: Limbs) -> u128 {
    // Twice, because the first carry out of the top may cause another.
    for _ in 0..2 {
        h1 += h0 >> 44;
        h0 &= LIMB;
        h2 += h1 >> 44;
        h1 &= LIMB;
        h0 += (h2 >> 42) * 5;
        h2 &= LAST;
    }
    h1 += h0 >> 44;
    h0 &= LIMB;
    // The same minus the modulus: correct if it is not negative. Selected without a branch.
    let g0 = h0 + 5;
    let g1 = h1 + (g0 >> 44);
    let g2 = h2.wrapping_add(g1 >> 44).wrapping_sub(1 << 42);
    let below = (g2 >> 63).wrapping_neg();
    let pick = |h: u64, g: u64, limb: u64| u128::from((h & below) | (g & !below & limb));
    pick(h0, g0, LIMB) | pick(h1, g1, LIMB) << 44 | pick(h2, g2, LAST) << 88
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hex(text: &str) -> Vec<u8> {
        let digits: Vec<u8> = text
            .bytes()
            .filter_map(|digit| char::from(digit).to_digit(16))
            .map(|digit| digit as u8)
            .collect();
        digits
            .chunks(2)
            .map(|pair| pair[0] << 4 | pair[1])
            .collect()
    }

    fn key(text: &str) -> [u8; 32] {
        let mut key = [0; 32];
        let bytes = hex(text);
        key[..bytes.len()].copy_from_slice(&bytes);
        key
    }

    /// RFC 8439, section 2.5.2 and appendix A.3: the ordinary case, and cases with long carry chains.
    #[test]
    fn tags_are_those_of_rfc_8439() {
        let ones = "ff".repeat(16);
        let cases = [
            (
                "85d6be7857556d337f4452fe42d506a8 0103808afb0db2fd4abff6af4149f51b",
                "43727970746f6772617068696320466f72756d2052657365617263682047726f7570",
                "a8061dc1305136c6c22b8baf0c0127a9",
            ),
            ("02", &ones, "03000000000000000000000000000000"),
            (
                &["02", &"00".repeat(15), &ones].concat(),
                &["02", &"00".repeat(15)].concat(),
                "03000000000000000000000000000000",
            ),
            (
                "01",
                &[&ones, "f0", &"ff".repeat(15), "11", &"00".repeat(15)].concat(),
                "05000000000000000000000000000000",
            ),
            (
                "01",
                &[&ones, "fb", &"fe".repeat(15), &"01".repeat(16)].concat(),
                "00000000000000000000000000000000",
            ),
            (
                "02",
                &["fd", &"ff".repeat(15)].concat(),
                "faffffffffffffffffffffffffffffff",
            ),
            (
                "0100000000000000 04",
                "e33594d7505e43b90000000000000000 3394d7505e4379cd0100000000000000
                 00000000000000000000000000000000 01000000000000000000000000000000",
                "14000000000000005500000000000000",
            ),
            (
                "0100000000000000 04",
                "e33594d7505e43b90000000000000000 3394d7505e4379cd0100000000000000
                 00000000000000000000000000000000",
                "13000000000000000000000000000000",
            ),
        ];
        for (secret, data, expected) in cases {
            assert_eq!(
                tag(Level::new(), &key(secret), &hex(data)),
                hex(expected)[..],
                "{data}"
            );
        }
    }
}
