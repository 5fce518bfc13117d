//! Random numbers, and random bytes that others cannot predict.

/// A number that another call will hardly return. It need not be a secret.
#[cfg(not(zeroxide_shuttle))]
pub(crate) fn number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(zeroxide_shuttle)]
pub(crate) use super::simulated::number;

/// Fills a buffer with bytes that others cannot predict. Returns false if the system provides none.
pub(crate) fn fill(bytes: &mut [u8]) -> bool {
    zeroxide_proto::mechanisms::system_random(bytes)
}
