//! NaCl's boxes, XSalsa20-Poly1305: encrypted, and nobody without the key can alter them unnoticed.
//!
//! A box is a tag of 16 bytes, then as many bytes as went in. The nonce is 24 bytes long; its first 16 turn the
//! key into another one. All messages of a connection in one direction have these in common, so that a
//! [`BoxKey`] is made once for them.

use super::poly1305::{self, TAG};
use super::salsa20::{self, GROUP_BYTES, Salsa20, xor};
use fearless_simd::Level;
use subtle::ConstantTimeEq;
use zeroize::{Zeroize, Zeroizing};

/// By how much a box is longer than what is in it.
pub(super) const OVERHEAD: usize = TAG;

/// Seals and opens the boxes whose nonces have their first sixteen bytes in common.
pub(super) struct BoxKey {
    key: Zeroizing<[u8; 32]>,
    level: Level,
}

impl BoxKey {
    pub(super) fn new(shared: &[u8; 32], prefix: &[u8; 16]) -> BoxKey {
        BoxKey {
            key: Zeroizing::new(salsa20::hsalsa20(shared, prefix)),
            level: Level::new(),
        }
    }

    /// Encrypts in place; returns the tag.
    #[inline]
    pub(super) fn seal(&self, number: [u8; 8], data: &mut [u8]) -> [u8; TAG] {
        let stream = Stream::new(self, number);
        stream.apply(data);
        stream.tag(data)
    }

    /// Decrypts in place if the tag is right; leaves everything as it is if not.
    #[inline]
    pub(super) fn open(&self, number: [u8; 8], tag: &[u8; TAG], data: &mut [u8]) -> bool {
        let stream = Stream::new(self, number);
        let right = bool::from(stream.tag(data).ct_eq(tag));
        if right {
            stream.apply(data);
        }
        right
    }
}

/// The stream for one box.
struct Stream {
    salsa: Salsa20,
    level: Level,
    /// Its first bytes: the key of the tag, then what is added to the data.
    first: [u8; GROUP_BYTES],
}

impl Stream {
    #[inline]
    fn new(key: &BoxKey, number: [u8; 8]) -> Stream {
        let salsa = Salsa20::new(&key.key, number);
        Stream {
            first: salsa.group(key.level, 0),
            level: key.level,
            salsa,
        }
    }

    #[inline]
    fn tag(&self, data: &[u8]) -> [u8; TAG] {
        poly1305::tag(&self.first.as_chunks().0[0], data)
    }

    #[inline]
    fn apply(&self, data: &mut [u8]) {
        let stream = &self.first[poly1305::KEY..];
        let (head, rest) = data.split_at_mut(data.len().min(stream.len()));
        xor(head, stream);
        self.salsa.apply(self.level, 1, rest);
    }
}

/// With the key of the tag others could be forged.
impl Drop for Stream {
    fn drop(&mut self) {
        self.first[..poly1305::KEY].zeroize();
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
