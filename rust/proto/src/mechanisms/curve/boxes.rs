//! NaCl's boxes, XSalsa20-Poly1305: encrypted, and nobody without the key can alter them unnoticed.
//!
//! A box is a tag of 16 bytes, then as many bytes as went in. The nonce is 24 bytes long; its first 16 turn the
//! key into another one. All messages of a connection in one direction have these in common, so that a
//! [`BoxKey`] is made once for them.

use super::poly1305::{self, TAG};
use super::salsa20::{self, START, Salsa20, xor};
use fearless_simd::Level;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// By how much a box is longer than what is in it.
pub(super) const OVERHEAD: usize = TAG;

/// Seals and opens the boxes whose nonces have their first sixteen bytes in common.
pub(super) struct BoxKey {
    level: Level,
    salsa: Salsa20,
}

impl BoxKey {
    pub(super) fn new(shared: &[u8; 32], prefix: &[u8; 16]) -> BoxKey {
        BoxKey::with_level(Level::new(), shared, prefix)
    }

    /// One that makes do with less than the processor has, to see whether it comes to the same.
    pub(super) fn with_level(level: Level, shared: &[u8; 32], prefix: &[u8; 16]) -> BoxKey {
        let key = Zeroizing::new(salsa20::hsalsa20(shared, prefix));
        BoxKey {
            level,
            salsa: Salsa20::new(level, &key),
        }
    }

    /// Encrypts in place; returns the tag.
    #[inline]
    pub(super) fn seal(&self, number: [u8; 8], data: &mut [u8]) -> [u8; TAG] {
        let stream = Stream(self.salsa.start(number));
        self.add(&stream, number, data);
        poly1305::tag(self.level, stream.tag_key(), data)
    }

    /// Decrypts in place if the tag is right; leaves everything as it is if not.
    #[inline]
    pub(super) fn open(&self, number: [u8; 8], tag: &[u8; TAG], data: &mut [u8]) -> bool {
        let stream = Stream(self.salsa.start(number));
        let expected = poly1305::tag(self.level, stream.tag_key(), data);
        let right = bool::from(expected.ct_eq(tag));
        if right {
            self.add(&stream, number, data);
        }
        right
    }

    #[inline]
    fn add(&self, stream: &Stream, number: [u8; 8], data: &mut [u8]) {
        let start = &stream.0[poly1305::KEY..];
        let (head, rest) = data.split_at_mut(data.len().min(start.len()));
        xor(head, start);
        self.salsa.add_rest(number, rest);
    }
}

/// The start of a stream: the key of the tag, then what is added to the data.
struct Stream([u8; START]);

impl Stream {
    #[inline]
    fn tag_key(&self) -> &[u8; poly1305::KEY] {
        &self.0.as_chunks().0[0]
    }
}

/// With the key of the tag others could be forged.
impl Drop for Stream {
    fn drop(&mut self) {
        self.0[..poly1305::KEY].zeroize();
    }
}

/// What makes every box different: never twice with the same key.
pub(super) struct Nonce {
    prefix: [u8; 16],
    number: [u8; 8],
}

impl Nonce {
    /// For boxes that are counted; the prefix tells which are counted together.
    pub(super) fn short(prefix: &[u8; 16], number: u64) -> Nonce {
        Nonce {
            prefix: *prefix,
            number: number.to_be_bytes(),
        }
    }

    /// For boxes that are not: behind the prefix come random bytes.
    pub(super) fn long(prefix: &[u8; 8], random: &[u8; 16]) -> Nonce {
        let random = random.as_chunks().0;
        let mut start = [0; 16];
        start[..8].copy_from_slice(prefix);
        start[8..].copy_from_slice(&random[0]);
        Nonce {
            prefix: start,
            number: random[1],
        }
    }
}

/// A box of what is in `parts`, one behind the other.
pub(super) fn seal(shared: &[u8; 32], nonce: &Nonce, parts: &[&[u8]]) -> Vec<u8> {
    let mut sealed = vec![0; OVERHEAD];
    parts.iter().for_each(|part| sealed.extend_from_slice(part));
    let tag = BoxKey::new(shared, &nonce.prefix).seal(nonce.number, &mut sealed[OVERHEAD..]);
    sealed[..OVERHEAD].copy_from_slice(&tag);
    sealed
}

/// What is in a box, if it was sealed with this key and nonce.
pub(super) fn open(shared: &[u8; 32], nonce: &Nonce, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (tag, data) = sealed.split_first_chunk()?;
    let mut data = Zeroizing::new(data.to_vec());
    BoxKey::new(shared, &nonce.prefix)
        .open(nonce.number, tag, &mut data)
        .then_some(data)
}
