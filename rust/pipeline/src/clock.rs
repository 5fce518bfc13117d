//! The time of day, and a clock to measure it with.

#[cfg(not(zeroxide_disk))]
use std::time::{SystemTime, UNIX_EPOCH};

/// Microseconds since 1970.
#[cfg(not(zeroxide_disk))]
pub(crate) fn wall() -> u64 {
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

/// The same, of the simulation.
#[cfg(zeroxide_disk)]
pub(crate) fn wall() -> u64 {
    zeroxide_log::disk::simulated::wall()
}

/// A clock that is never set, and also runs while the machine is suspended.
pub(crate) use zeroxide::binding::since_boot;
