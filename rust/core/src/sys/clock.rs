//! The time.

use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};

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

/// The time since the machine was started, with the time in which it was suspended. Nothing sets this clock.
pub fn since_boot() -> Duration {
    Duration::try_from(clock_gettime(ClockId::Boottime)).unwrap_or_default()
}
