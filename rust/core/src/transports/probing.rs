//! Probes of the kernel, which tell whether the machine of a silent peer of TCP still responds.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use socket2::{Protocol, SockRef, Socket, TcpKeepalive};

use crate::options::Options;
use crate::sys::stream;

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
pub(super) fn probe_silent(socket: SockRef<'_>, options: &Options) {
    if is_probed_later(options) {
        // This fails only if the connection has ended.
        let _ = probe(&socket, options, Protocol::TCP);
    }
}

/// Lifts the limit before a connection is closed that still has bytes for its peer. The kernel gives up a closed connection
/// when its interval reaches the limit, which takes a few seconds if the peer has no room.
pub(super) fn leave_to_kernel(socket: BorrowedFd<'_>) {
    // Kernels that do not have this option had no limit.
    let _ = stream::limit_backoff(socket, BACKOFF_USUAL);
}

/// Makes the kernel check whether the machine of a silent peer still responds. Silence before this call counts.
pub(super) fn probe(socket: &Socket, options: &Options, protocol: Protocol) -> io::Result<()> {
    if protocol != Protocol::TCP {
        // The kernel sends heartbeats of SCTP without being asked.
        return Ok(());
    }
    match options.tcp_keepalive {
        Some(false) => socket.set_keepalive(false)?,
        _ => keepalive(socket, options)?,
    }
    if options.heartbeat_ivl.is_none() {
        // Kernels before 6.15 do not have this option. There, a peer that has not read for minutes may die undetected
        // for as long.
        let _ = stream::limit_backoff(socket.as_fd(), BACKOFF_MAX);
    }
    Ok(())
}

/// Turns probes on. Zeros are stored for reading back, but the kernel accepts none.
fn keepalive(socket: &Socket, options: &Options) -> io::Result<()> {
    let mut parameters = TcpKeepalive::new();
    if options.tcp_keepalive.is_none() {
        parameters = parameters
            .with_time(KEEPALIVE_IDLE)
            .with_interval(KEEPALIVE_INTERVAL)
            .with_retries(KEEPALIVE_COUNT);
    }
    if let Some(idle) = options.tcp_keepalive_idle.filter(|idle| !idle.is_zero()) {
        parameters = parameters.with_time(idle);
    }
    if let Some(interval) = options
        .tcp_keepalive_intvl
        .filter(|interval| !interval.is_zero())
    {
        parameters = parameters.with_interval(interval);
    }
    if let Some(count) = options.tcp_keepalive_cnt.filter(|count| *count > 0) {
        parameters = parameters.with_retries(count);
    }
    SockRef::from(socket).set_tcp_keepalive(&parameters)
}
