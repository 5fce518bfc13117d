//! System calls: the one place of this crate where `unsafe` may live, and the seam for other systems.
//!
//! What is asked of each file, should another system get its own:
//!
//! * [`epoll`]: edge-triggered readiness of many descriptors, both directions at once, each under a 64-bit key; a wait
//!   that a signal interrupts is an empty one.
//! * [`eventfd`]: a descriptor that any thread can make readable; made readable twice it is drained once.
//! * [`futex`]: waits for a word to change, and says when a signal handler ran in the meantime.
//! * [`stream`]: bytes in and out of a connected socket without blocking, without signals, without touching memory
//!   that holds no bytes yet.
//! * [`thread`]: threads that no signal is delivered to, with a name, a priority and their own set of CPUs.
//! * [`parting`]: threads that sleep where they would be ended from outside in the middle of a call.
//! * [`poll`]: readiness of a few descriptors that the application brings, once.
//! * [`interfaces`]: the addresses of the network interfaces.
//! * [`memory`]: what the allocator keeps, back to the system; how much a process may have, and whether there is some.

#![allow(unsafe_code)]

pub(crate) mod epoll;
pub(crate) mod eventfd;
pub(crate) mod futex;
pub(crate) mod interfaces;
pub(crate) mod memory;
pub(crate) mod parting;
pub(crate) mod poll;
pub(crate) mod stream;
pub(crate) mod thread;

use std::time::{Duration, Instant};

use rustix::time::Timespec;

/// How long it is until `deadline`, as the kernel wants it. `None` waits for ever; so does a time the kernel cannot
/// count.
fn time_until(deadline: Option<Instant>) -> Option<Timespec> {
    let wait = deadline?.saturating_duration_since(Instant::now());
    timespec(wait)
}

fn timespec(wait: Duration) -> Option<Timespec> {
    // Far beyond any program's life, far below what overflows inside the kernel.
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    if wait > CENTURY {
        return None;
    }
    Some(Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    })
}
