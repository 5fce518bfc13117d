//! Random numbers, for what needs no secrecy.

/// A number that another call will hardly return.
#[cfg(not(zeroxide_shuttle))]
pub(crate) fn number() -> u64 {
    use std::hash::{BuildHasher, Hasher, RandomState};
    RandomState::new().build_hasher().finish()
}

#[cfg(zeroxide_shuttle)]
pub(crate) use super::simulated::number;
