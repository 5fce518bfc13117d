//! The time.

use std::time::{Duration, Instant};

/// The current time.
#[cfg(not(zeroxide_shuttle))]
#[inline(always)]
pub(crate) fn now() -> Instant {
    Instant::now()
}

#[cfg(zeroxide_shuttle)]
pub(crate) use super::simulated::now;

/// The time that has passed since `start`.
#[inline(always)]
pub(crate) fn since(start: Instant) -> Duration {
    now().saturating_duration_since(start)
}
