//! NaCl's boxes, XSalsa20-Poly1305: encrypted, and they cannot be altered unnoticed without the key.
//!
//! A box is a tag of 16 bytes, followed by as many bytes as the content. The nonce has 24 bytes, of which the first 16
//! turn the key into another one. All messages of a connection in one direction share these 16 bytes, and the other
//! eight are a counter: a [`BoxSeries`].

use super::poly1305::{self, TAG};
use super::salsa20::{self, SHORT_START, STARTS, Salsa20, xor};
use fearless_simd::Level;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

/// The difference in length between a box and its content.
pub(super) const OVERHEAD: usize = TAG;

/// Seals and opens boxes whose nonces share their first sixteen bytes.
pub(super) struct BoxKey {
    level: Level,
    salsa: Salsa20,
}

impl BoxKey {
    pub(super) fn new(shared: &[u8; 32], prefix: &[u8; 16]) -> BoxKey {
        BoxKey::with_level(Level::new(), shared, prefix)
    }

    /// Uses a lower level than the processor supports, to test that the result is the same.
    pub(super) fn with_level(level: Level, shared: &[u8; 32], prefix: &[u8; 16]) -> BoxKey {
        let key = Zeroizing::new(salsa20::hsalsa20(shared, prefix));
        BoxKey {
            level,
            salsa: Salsa20::new(level, &key),
        }
    }

    /// Encrypts in place; returns the tag.
    pub(super) fn seal(&self, number: [u8; 8], data: &mut [u8]) -> [u8; TAG] {
        let start = Zeroizing::new(self.salsa.start(number));
        self.seal_with(&start[..], number, data)
    }

    /// Decrypts in place if the tag is correct; otherwise changes nothing.
    pub(super) fn open(&self, number: [u8; 8], tag: &[u8; TAG], data: &mut [u8]) -> bool {
        let start = Zeroizing::new(self.salsa.start(number));
        self.open_with(&start[..], number, tag, data)
    }

    /// `start` is the start of the stream with this nonce.
    #[inline]
    fn seal_with(&self, start: &[u8], number: [u8; 8], data: &mut [u8]) -> [u8; TAG] {
        self.add(start, number, data);
        self.tag(start, data)
    }

    #[inline]
    fn open_with(&self, start: &[u8], number: [u8; 8], tag: &[u8; TAG], data: &mut [u8]) -> bool {
        let right = bool::from(self.tag(start, data).ct_eq(tag));
        if right {
            self.add(start, number, data);
        }
        right
    }

    /// The stream's first bytes are the key of the tag.
    #[inline]
    fn tag(&self, start: &[u8], data: &[u8]) -> [u8; TAG] {
        poly1305::tag(self.level, &start.as_chunks().0[0], data)
    }

    /// The other bytes are added to the data.
    #[inline]
    fn add(&self, start: &[u8], number: [u8; 8], data: &mut [u8]) {
        let stream = &start[poly1305::KEY..];
        let (head, rest) = data.split_at_mut(data.len().min(stream.len()));
        xor(head, stream);
        self.salsa.add_after(start.len(), number, rest);
    }
}

/// Seals or opens consecutively numbered boxes. The starts of several streams are computed ahead together, which takes
/// little longer than one.
pub(super) struct BoxSeries {
    key: BoxKey,
    /// The number of the first precomputed stream, if there are any.
    first: Option<u64>,
    starts: Zeroizing<[[u8; SHORT_START]; STARTS]>,
}

impl BoxSeries {
    pub(super) fn new(key: BoxKey) -> BoxSeries {
        BoxSeries {
            key,
            first: None,
            starts: Zeroizing::new([[0; SHORT_START]; STARTS]),
        }
    }

    /// Encrypts in place; returns the tag.
    #[inline]
    pub(super) fn seal(&mut self, number: u64, data: &mut [u8]) -> [u8; TAG] {
        let at = self.start(number);
        let start = &self.starts[at];
        self.key.seal_with(start, number.to_be_bytes(), data)
    }

    /// Decrypts in place if the tag is correct; otherwise changes nothing.
    #[inline]
    pub(super) fn open(&mut self, number: u64, tag: &[u8; TAG], data: &mut [u8]) -> bool {
        let at = self.start(number);
        let start = &self.starts[at];
        self.key.open_with(start, number.to_be_bytes(), tag, data)
    }

    /// The index of a precomputed stream.
    #[inline]
    fn start(&mut self, number: u64) -> usize {
        if let Some(first) = self.first {
            let at = number.wrapping_sub(first);
            if at < STARTS as u64 {
                return at as usize;
            }
        }
        self.first = Some(number);
        self.key.salsa.starts(number, &mut self.starts);
        0
    }
}

/// The nonce of a box, which must never be used twice with the same key.
pub(super) struct Nonce {
    prefix: [u8; 16],
    number: [u8; 8],
}

impl Nonce {
    /// For numbered boxes; the prefix separates series.
    pub(super) fn short(prefix: &[u8; 16], number: u64) -> Nonce {
        Nonce {
            prefix: *prefix,
            number: number.to_be_bytes(),
        }
    }

    /// For boxes without a number: random bytes follow the prefix.
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

/// Seals the concatenation of `parts`.
pub(super) fn seal(shared: &[u8; 32], nonce: &Nonce, parts: &[&[u8]]) -> Vec<u8> {
    let mut sealed = vec![0; OVERHEAD];
    parts.iter().for_each(|part| sealed.extend_from_slice(part));
    let tag = BoxKey::new(shared, &nonce.prefix).seal(nonce.number, &mut sealed[OVERHEAD..]);
    sealed[..OVERHEAD].copy_from_slice(&tag);
    sealed
}

/// Opens a box, if it was sealed with this key and nonce.
pub(super) fn open(shared: &[u8; 32], nonce: &Nonce, sealed: &[u8]) -> Option<Zeroizing<Vec<u8>>> {
    let (tag, data) = sealed.split_first_chunk()?;
    let mut data = Zeroizing::new(data.to_vec());
    BoxKey::new(shared, &nonce.prefix)
        .open(nonce.number, tag, &mut data)
        .then_some(data)
}
