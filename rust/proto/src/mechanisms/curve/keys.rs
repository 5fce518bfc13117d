//! Keys: creating them, deriving the public half, and agreeing on a shared key.

use super::salsa20;
use crate::mechanisms::Random;
use std::fmt;
use x25519_dalek::{PublicKey, StaticSecret};
use zeroize::Zeroizing;

/// Bytes in a key of either kind.
pub const KEY: usize = 32;

/// A public key and its secret key.
#[derive(Clone)]
pub struct KeyPair {
    /// The public half.
    pub public: [u8; KEY],
    /// The secret half. Overwritten when it is dropped.
    pub secret: Zeroizing<[u8; KEY]>,
}

impl KeyPair {
    /// The pair of a secret key.
    pub fn from_secret(secret: [u8; KEY]) -> KeyPair {
        KeyPair {
            public: public_key(&secret),
            secret: Zeroizing::new(secret),
        }
    }
}

/// Shows the public half only.
impl fmt::Debug for KeyPair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KeyPair")
            .field("public", &self.public)
            .finish_non_exhaustive()
    }
}

/// Creates a pair of keys; `None` if the system provides no random bytes.
///
/// ```
/// use zeroxide_proto::mechanisms::{curve, system_random};
/// use zeroxide_proto::z85;
///
/// let keys = curve::keypair(system_random).expect("random bytes");
/// assert_eq!(z85::encode(&keys.public)?.len(), 40);
/// assert_eq!(curve::public_key(&keys.secret), keys.public);
/// # Ok::<(), z85::Z85Error>(())
/// ```
pub fn keypair(random: Random) -> Option<KeyPair> {
    let mut secret = Zeroizing::new([0; KEY]);
    random(&mut *secret).then(|| KeyPair::from_secret(*secret))
}

/// The public key of a secret key.
pub fn public_key(secret: &[u8; KEY]) -> [u8; KEY] {
    PublicKey::from(&StaticSecret::from(*secret)).to_bytes()
}

/// The unique encoding of a public key. Bit 255 has no meaning in a point's coordinate, and adding the field's prime
/// does not change it either (RFC 7748, section 5), so without this, one key could be presented under several names.
///
/// ```
/// use zeroxide_proto::mechanisms::curve;
///
/// let key = [7; 32];
/// let mut same = key;
/// same[31] |= 0x80;
/// assert_eq!(curve::canonical_key(&same), key);
/// ```
pub fn canonical_key(key: &[u8; KEY]) -> [u8; KEY] {
    /// The lowest byte of the prime 2^255 - 19; the others are ones.
    const LOWEST: u8 = 0xed;
    let mut key = *key;
    key[KEY - 1] &= 0x7f;
    let [first, middle @ .., last] = &key;
    if *first >= LOWEST && *last == 0x7f && middle.iter().all(|byte| *byte == 0xff) {
        let rest = first - LOWEST;
        key = [0; KEY];
        key[0] = rest;
    }
    key
}

/// The shared key, which only the owners of both pairs can compute. `None` for a public key that gives the same result
/// with every secret key.
pub(super) fn agree(ours: &[u8; KEY], theirs: &[u8; KEY]) -> Option<Zeroizing<[u8; KEY]>> {
    let point = StaticSecret::from(*ours).diffie_hellman(&PublicKey::from(*theirs));
    point
        .was_contributory()
        .then(|| Zeroizing::new(salsa20::hsalsa20(point.as_bytes(), &[0; 16])))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_has_one_spelling() {
        let prime = |lowest: u8| {
            let mut key = [0xff; KEY];
            (key[0], key[KEY - 1]) = (lowest, 0x7f);
            key
        };
        let small = |lowest: u8| {
            let mut key = [0; KEY];
            key[0] = lowest;
            key
        };
        assert_eq!(canonical_key(&prime(0xec)), prime(0xec));
        assert_eq!(canonical_key(&prime(0xed)), small(0));
        assert_eq!(canonical_key(&prime(0xff)), small(18));
        assert_eq!(canonical_key(&[0xff; KEY]), small(18));
        assert_eq!(canonical_key(&small(9)), small(9));
    }
}
