//! Probes of the kernel, which tell whether the machine of a silent peer of TCP still responds.

use std::io;
use std::os::fd::BorrowedFd;
use std::time::Duration;

use socket2::{Protocol, SockRef};

use crate::options::Options;
use crate::sys::stream::{self, Keepalive};

/// After this silence, the peer's machine is probed, unless a PING comes first, and given up 14 seconds after the last
/// sign of life. A running machine answers, whatever the state of the program.
const KEEPALIVE_IDLE: Duration = Duration::from_secs(8);
const KEEPALIVE_INTERVAL: Duration = Duration::from_secs(2);
const KEEPALIVE_COUNT: u32 = 3;

/// The maximum interval of retransmissions and window probes, so that a machine that came back is found soon, and one
/// that died with a full receiver is detected.
const BACKOFF_MAX: Duration = Duration::from_secs(3);

/// The kernel's default maximum.
const BACKOFF_USUAL: Duration = Duration::from_secs(120);

/// Whether a connection made by this side gets its probes only when the session asks for them. A connection that ends
/// after one message then saves the system calls.
pub(super) fn is_probed_later(options: &Options) -> bool {
    options.tcp_keepalive.is_none()
        && options.heartbeat_ivl.is_none()
        && options.handshake_ivl.is_some()
}

/// See [`is_probed_later`].
pub(super) fn probe_silent(socket: BorrowedFd<'_>, options: &Options) {
    if is_probed_later(options) {
        // This fails only if the connection has ended.
        let _ = probe(socket, options, Protocol::TCP);
    }
}

/// Lifts the limit before a connection is closed that still has bytes for its peer. The kernel gives up a closed connection
/// when its interval reaches the limit, which takes a few seconds if the peer has no room.
pub(super) fn leave_to_kernel(socket: BorrowedFd<'_>) {
    // Kernels that do not have this option had no limit.
    let _ = stream::limit_backoff(socket, BACKOFF_USUAL);
}

/// Makes the kernel check whether the machine of a silent peer still responds. Silence before this call counts.
pub(super) fn probe(
    socket: BorrowedFd<'_>,
    options: &Options,
    protocol: Protocol,
) -> io::Result<()> {
    if protocol != Protocol::TCP {
        // The kernel sends heartbeats of SCTP without being asked.
        return Ok(());
    }
    match options.tcp_keepalive {
        Some(false) => SockRef::from(&socket).set_keepalive(false)?,
        _ => keepalive(socket, options)?,
    }
    if options.heartbeat_ivl.is_none() {
        // Kernels before 6.15 do not have this option. There, a peer that has not read for minutes may die undetected
        // for as long.
        let _ = stream::limit_backoff(socket, BACKOFF_MAX);
    }
    Ok(())
}

/// Turns probes on. Zeros are stored for reading back, but the kernel accepts none.
fn keepalive(socket: BorrowedFd<'_>, options: &Options) -> io::Result<()> {
    let is_ours = options.tcp_keepalive.is_none();
    let idle = options.tcp_keepalive_idle.filter(|idle| !idle.is_zero());
    let interval = options
        .tcp_keepalive_intvl
        .filter(|interval| !interval.is_zero());
    let count = options.tcp_keepalive_cnt.filter(|count| *count > 0);
    let keepalive = Keepalive {
        idle: idle.or(is_ours.then_some(KEEPALIVE_IDLE)),
        interval: interval.or(is_ours.then_some(KEEPALIVE_INTERVAL)),
        count: count.or(is_ours.then_some(KEEPALIVE_COUNT)),
    };
    stream::keep_alive(socket, keepalive)
}
