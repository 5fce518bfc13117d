//! System calls. This is the only module of this crate in which `unsafe` is allowed, and the interface to other
//! systems: no other module names a system call, an error number of the system, or the crates libc and rustix
//! (`tests/seams.rs`).
//!
//! The requirements on each file, if another system gets its own:
//!
//! * [`selector`]: edge-triggered readiness of many descriptors, both directions at once, each with a 64-bit key; a wait
//!   that a signal interrupts returns no events.
//! * [`wake_fd`]: a descriptor that any thread can make readable; one drain is sufficient after several signals.
//! * [`word`]: waits for a word to change, and reports that a signal handler ran meanwhile.
//! * [`stream`]: reads and writes a connected socket without blocking, without signals, and without accessing
//!   uninitialised memory.
//! * [`datagram`]: sends and receives several datagrams at once, and counts those that the kernel dropped.
//! * [`thread`]: threads that receive no signals, with a name, a priority and a set of CPUs.
//! * [`parting`]: threads that sleep instead of being ended from outside in the middle of a call.
//! * [`poll`]: readiness of a few descriptors of the application, once.
//! * [`sync`], [`clock`], [`chance`]: locks, atomics, the time and random numbers, which a test replaces by those of a scheduler.
//! * [`errno`]: the numbers of errors.
//! * [`files`]: a flag for opening files.
//! * [`fork`]: tells a forked child from its parent.
//! * [`liveness`]: probes of a TCP peer's machine, and what it has acknowledged.
//! * [`local`]: the addresses of Unix domain sockets, and their peers.
//! * [`interfaces`]: the addresses of the network interfaces.
//! * [`tipc`]: the addresses of TIPC.
//! * [`memory`]: returns the allocator's free memory to the system; reports the limit of a process, and whether memory
//!   is available.

#![allow(unsafe_code)]

pub(crate) mod chance;
pub(crate) mod clock;
pub(crate) mod datagram;
pub(crate) mod errno;
pub(crate) mod files;
pub(crate) mod fork;
pub(crate) mod interfaces;
pub(crate) mod limits;
pub(crate) mod liveness;
pub(crate) mod local;
pub(crate) mod memory;
pub(crate) mod parting;
pub(crate) mod poll;
pub(crate) mod selector;
#[cfg(zeroxide_shuttle)]
pub mod simulated;
pub(crate) mod stream;
pub(crate) mod sync;
pub(crate) mod thread;
pub(crate) mod tipc;
pub(crate) mod wake_fd;
pub(crate) mod word;

use std::time::{Duration, Instant};

use rustix::time::Timespec;

/// Called before the kernel is asked to wait for descriptors, with the same deadline. Coroutines wait here instead, because
/// the kernel would stop all of them.
#[cfg(not(zeroxide_shuttle))]
#[inline(always)]
fn pause(_: &[rustix::event::PollFd<'_>], _: Option<Instant>) {}

#[cfg(zeroxide_shuttle)]
use simulated::pause;

/// The time until `deadline`, in the kernel's format. `None` waits forever, and so does a time that the kernel cannot
/// represent.
fn time_until(deadline: Option<Instant>) -> Option<Timespec> {
    let wait = deadline?.saturating_duration_since(clock::now());
    timespec(wait)
}

fn timespec(wait: Duration) -> Option<Timespec> {
    // Longer than any program runs, and short enough not to overflow in the kernel.
    const CENTURY: Duration = Duration::from_secs(100 * 365 * 24 * 3600);
    if wait > CENTURY {
        return None;
    }
    Some(Timespec {
        tv_sec: wait.as_secs() as i64,
        tv_nsec: i64::from(wait.subsec_nanos()),
    })
}
