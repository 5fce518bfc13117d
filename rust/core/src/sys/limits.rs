//! The limits of this process.

use rustix::process::{Resource, getrlimit};

/// The descriptors that no connection caused by a peer may use: an eighth, and at most 64.
const RESERVE_SHARE: u64 = 8;
const RESERVE_MAX: u64 = 64;

/// Whether peers must not use a descriptor. The system gives the lowest number that is free, so a high number shows that
/// few are left. The rest is for the program, which could otherwise open no file.
pub(crate) fn is_reserved(descriptor: u64) -> bool {
    getrlimit(Resource::Nofile).current.is_some_and(|most| {
        let reserve = RESERVE_MAX.min(most / RESERVE_SHARE);
        descriptor >= most - reserve
    })
}
