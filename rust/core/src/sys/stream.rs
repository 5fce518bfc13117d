//! Reads and writes connected sockets, and adopts descriptors from outside.

use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, FdFlags, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown, SocketFlags};
use socket2::{SockAddr, SockRef, TcpKeepalive};

pub(crate) use super::liveness::{Acks, Keepalive};
#[cfg(zeroxide_shuttle)]
use super::simulated::{network, stir};

/// The maximum number of slices in one system call.
const MAX_SLICES: usize = 1024;
/// The number of bytes that are sent to a protocol that takes all or none of a send, as SCTP does, after it has refused
/// to take more.
const MAX_AT_ONCE: usize = 64 * 1024;
/// The room that is made in a full buffer.
const SMALL_ROOM: usize = 4096;

/// Appends received bytes to `buffer`, up to its capacity; makes room first if the buffer is full. 0 means the end of
/// the stream.
pub(crate) fn recv(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> io::Result<usize> {
    // A read without room would look like the end of the stream.
    if buffer.capacity() == buffer.len() {
        buffer
            .try_reserve(SMALL_ROOM)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
    }
    let read =
        retry_on_intr(|| rustix::net::recv(fd, spare_capacity(buffer), RecvFlags::DONTWAIT))?.1;
    #[cfg(zeroxide_shuttle)]
    network::note_read(fd, read)?;
    Ok(read)
}

/// Sends as many bytes of the slices as the kernel accepts now, without raising SIGPIPE. With `more`, the kernel may
/// delay them, because further bytes follow at once.
pub(crate) fn send(fd: BorrowedFd<'_>, slices: &[IoSlice<'_>], more: bool) -> io::Result<usize> {
    let slices = &slices[..slices.len().min(MAX_SLICES)];
    let mut flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    flags.set(SendFlags::MORE, more);
    let sent = match slices {
        [one] => retry_on_intr(|| rustix::net::send(fd, one, flags)),
        many => retry_on_intr(|| {
            rustix::net::sendmsg(fd, many, &mut SendAncillaryBuffer::default(), flags)
        }),
    };
    let sent = match (sent, slices) {
        (Err(Errno::MSGSIZE), [first, ..]) => {
            let few = &first[..first.len().min(MAX_AT_ONCE)];
            retry_on_intr(|| rustix::net::send(fd, few, flags))?
        }
        _ => sent?,
    };
    #[cfg(zeroxide_shuttle)]
    network::note_written(fd, sent);
    Ok(sent)
}

/// Whether the peer has closed or the connection broke, according to the kernel. There may be unread bytes.
pub(crate) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let over = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(over)
}

/// The part of the kernel's `tcp_info` that has existed since Linux 2.4.
const TCP_INFO_SIZE: usize = 104;
const TCP_INFO_PROBES: usize = 3;
const TCP_INFO_UNACKED: usize = 24;
const TCP_INFO_LAST_DATA_SENT: usize = 44;
const TCP_INFO_LAST_ACK_RECV: usize = 56;

/// See [`Acks`]; only for a TCP connection.
pub(crate) fn acks(fd: BorrowedFd<'_>) -> io::Result<Acks> {
    #[cfg(zeroxide_shuttle)]
    if let Some(acks) = network::acks(fd) {
        return Ok(acks);
    }
    let mut info = [0u8; TCP_INFO_SIZE];
    let mut size = TCP_INFO_SIZE as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `info`, which has that size, and the actual number to `size`;
    // both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let number = |at: usize| {
        let bytes = [info[at], info[at + 1], info[at + 2], info[at + 3]];
        u32::from_ne_bytes(bytes)
    };
    let since = |at: usize| Duration::from_millis(number(at).into());
    Ok(Acks {
        unacknowledged: number(TCP_INFO_UNACKED) > 0,
        probes: info[TCP_INFO_PROBES],
        last: since(TCP_INFO_LAST_ACK_RECV),
        sent: since(TCP_INFO_LAST_DATA_SENT),
    })
}

/// Makes the kernel probe the machine of a silent peer while nothing is unacknowledged.
pub(crate) fn keep_alive(fd: BorrowedFd<'_>, keepalive: Keepalive) -> io::Result<()> {
    #[cfg(zeroxide_shuttle)]
    if network::keep_alive(fd, keepalive) {
        return Ok(());
    }
    let mut parameters = TcpKeepalive::new();
    if let Some(idle) = keepalive.idle {
        parameters = parameters.with_time(idle);
    }
    if let Some(interval) = keepalive.interval {
        parameters = parameters.with_interval(interval);
    }
    if let Some(count) = keepalive.count {
        parameters = parameters.with_retries(count);
    }
    SockRef::from(&fd).set_tcp_keepalive(&parameters)
}

/// From `linux/tcp.h`.
const TCP_RTO_MAX_MS: libc::c_int = 44;

/// Limits the interval of the kernel's retransmissions and probes to `longest`, from a millisecond to two minutes.
///
/// # Errors
/// `ENOPROTOOPT` before Linux 6.15.
pub(crate) fn limit_backoff(fd: BorrowedFd<'_>, longest: Duration) -> io::Result<()> {
    let millis = libc::c_int::try_from(longest.as_millis()).unwrap_or(libc::c_int::MAX);
    set_number(fd, libc::IPPROTO_TCP, TCP_RTO_MAX_MS, millis)
}

/// From `linux/sctp.h`.
const SCTP_NODELAY: libc::c_int = 3;

/// Sends small packets at once; only for an SCTP socket.
pub(crate) fn set_sctp_nodelay(fd: BorrowedFd<'_>) -> io::Result<()> {
    set_number(fd, libc::IPPROTO_SCTP, SCTP_NODELAY, 1)
}

fn set_number(
    fd: BorrowedFd<'_>,
    level: libc::c_int,
    option: libc::c_int,
    value: libc::c_int,
) -> io::Result<()> {
    // SAFETY: the kernel reads one int from `value`, which outlives the call.
    let result = unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as libc::socklen_t,
        )
    };
    match result {
        0 => Ok(()),
        _ => Err(io::Error::last_os_error()),
    }
}

/// Whether a socket cannot be made because the kernel lacks its protocol.
pub(crate) fn is_unknown_family(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT | libc::ESOCKTNOSUPPORT)
    )
}

/// Why there is no connection to accept.
pub(crate) enum NotAccepted {
    /// None waits.
    NoneWaits,
    /// The process has no descriptor left.
    OwnLimit,
    /// The system has no descriptor left.
    SystemLimit,
    /// The system has no buffer left.
    NoBuffer,
    Other(io::Error),
}

/// Accepts one connection from a listening descriptor, with its peer's internet address if it has one.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> Result<(OwnedFd, Option<SocketAddr>), NotAccepted> {
    let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
    match retry_on_intr(|| rustix::net::acceptfrom_with(fd, flags)) {
        Ok((fd, peer)) => Ok((fd, peer.and_then(|peer| SocketAddr::try_from(peer).ok()))),
        Err(Errno::AGAIN) => Err(NotAccepted::NoneWaits),
        Err(Errno::MFILE) => Err(NotAccepted::OwnLimit),
        Err(Errno::NFILE) => Err(NotAccepted::SystemLimit),
        Err(Errno::NOBUFS) => Err(NotAccepted::NoBuffer),
        Err(errno) => Err(NotAccepted::Other(errno.into())),
    }
}

/// Whether an attempt to connect that returned this error goes on in the background. An interrupted one does, like a
/// slow one.
pub(crate) fn is_under_way(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EINPROGRESS | libc::EINTR))
}

/// Ends a connection whose peer acknowledges nothing for `longest`; `None` = the system's default.
pub(crate) fn limit_silence(socket: SockRef<'_>, longest: Option<Duration>) -> io::Result<()> {
    socket.set_tcp_user_timeout(longest)
}

/// Sends and receives on one interface only.
pub(crate) fn bind_to_interface(socket: SockRef<'_>, name: &str) -> io::Result<()> {
    socket.bind_device(Some(name.as_bytes()))
}

/// The address of the peer.
///
/// # Errors
/// The system's error, if the socket is not connected.
pub(crate) fn peer(fd: BorrowedFd<'_>) -> io::Result<SockAddr> {
    #[cfg(zeroxide_shuttle)]
    if let Some(peer) = network::peer(fd) {
        return Ok(SockAddr::from(peer.ok_or(Errno::NOTCONN)?));
    }
    SockRef::from(&fd).peer_addr()
}

/// Closes the sending direction.
pub(crate) fn shutdown_write(fd: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(zeroxide_shuttle)]
    stir();
    Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
}

/// Ends both directions of a connection, for all processes that have its descriptor. The bytes that were written before
/// still arrive, as after a close.
pub(crate) fn end(fd: BorrowedFd<'_>) {
    // This only fails if there is no connection.
    let _ = rustix::net::shutdown(fd, Shutdown::Both);
}

/// Resets a connection, for all processes that have its descriptor. The bytes that the peer's kernel does not have yet
/// never arrive.
pub(crate) fn reset(fd: BorrowedFd<'_>) {
    // This only fails if there is no connection.
    let _ = rustix::net::connect_unspec(fd);
}

/// Ends a listening socket, for all processes that have its descriptor, and the connections that it has not accepted.
/// Some protocols, such as vsock, do not support this.
pub(crate) fn stop_listening(fd: BorrowedFd<'_>) {
    if rustix::net::shutdown(fd, Shutdown::Both).is_ok() {
        // TCP has ended them already. A Unix socket keeps them until its last descriptor is closed.
        while accept(fd).is_ok() {}
    }
}

/// The error of a connection attempt or connection, if any; reading it clears it.
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<()> {
    #[cfg(zeroxide_shuttle)]
    if let Some(error) = network::error(fd) {
        return Err(error);
    }
    Ok(rustix::net::sockopt::socket_error(fd)??)
}

/// The number of bytes in the kernel that the peer has not acknowledged (TCP) or not read (Unix).
pub(crate) fn unsent(fd: BorrowedFd<'_>) -> io::Result<usize> {
    #[cfg(zeroxide_shuttle)]
    if let Some(unsent) = network::unsent(fd) {
        return Ok(unsent);
    }
    // SAFETY: SIOCOUTQ (another name of TIOCOUTQ) writes one int to where the getter points.
    let getter = unsafe {
        rustix::ioctl::Getter::<{ libc::TIOCOUTQ as rustix::ioctl::Opcode }, libc::c_int>::new()
    };
    // SAFETY: the opcode only reads the state of the socket.
    let bytes = unsafe { rustix::ioctl::ioctl(fd, getter)? };
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// The number of bytes in the kernel that were not read.
pub(crate) fn unread(fd: BorrowedFd<'_>) -> io::Result<usize> {
    let bytes = rustix::io::ioctl_fionread(fd)?;
    Ok(usize::try_from(bytes).unwrap_or(usize::MAX))
}

/// Takes over a descriptor that the program opened, if it passes the check. The owner of the result closes it. A
/// descriptor that fails stays open, because it is still the program's.
///
/// # Errors
/// The system's error, if it is no open descriptor.
pub(crate) fn adopt<E>(
    raw: RawFd,
    check: impl FnOnce(BorrowedFd<'_>) -> Result<(), E>,
) -> io::Result<Result<OwnedFd, E>> {
    if raw < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: it is borrowed only for these checks, which do not close it. If the number is not open, the first call fails
    // with EBADF.
    let fd = unsafe { BorrowedFd::borrow_raw(raw) };
    let flags = rustix::io::fcntl_getfd(fd)?;
    if let Err(error) = check(fd) {
        return Ok(Err(error));
    }
    rustix::io::fcntl_setfd(fd, flags | FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(fd, true)?;
    // SAFETY: the descriptor is open, and a bind that accepts the one in USE_FD takes its ownership.
    Ok(Ok(unsafe { OwnedFd::from_raw_fd(raw) }))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, IntoRawFd};
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::{SocketAddr as UnixAddr, UnixListener, UnixStream};

    use super::*;

    #[test]
    fn appends_received_bytes_up_to_the_capacity() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"abcdef").unwrap();
        let mut buffer = Vec::with_capacity(5);
        buffer.extend_from_slice(b">");
        assert_eq!(recv(near.as_fd(), &mut buffer).unwrap(), 4);
        assert_eq!(recv(near.as_fd(), &mut buffer).unwrap(), 2);
        assert_eq!(buffer, b">abcdef");
        let dry = recv(near.as_fd(), &mut buffer).unwrap_err();
        assert_eq!(dry.kind(), io::ErrorKind::WouldBlock);
        drop(far);
        assert_eq!(recv(near.as_fd(), &mut buffer).unwrap(), 0);
    }

    #[test]
    fn more_slices_than_the_kernel_takes_are_sent_in_part() {
        let (near, mut far) = UnixStream::pair().unwrap();
        let slices = vec![IoSlice::new(b"x"); MAX_SLICES + 10];
        assert_eq!(send(near.as_fd(), &slices, false).unwrap(), MAX_SLICES);
        let end = [IoSlice::new(b"end")];
        assert_eq!(send(near.as_fd(), &end, true).unwrap(), 3);
        assert!(unsent(near.as_fd()).is_ok());
        shutdown_write(near.as_fd()).unwrap();
        let mut all = Vec::new();
        far.read_to_end(&mut all).unwrap();
        assert_eq!(all.len(), MAX_SLICES + 3);
    }

    #[test]
    fn a_gone_peer_is_an_error_not_a_signal() {
        let (near, far) = UnixStream::pair().unwrap();
        drop(far);
        let error = send(near.as_fd(), &[IoSlice::new(b"x")], false).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn the_kernel_knows_whether_sent_bytes_were_acknowledged() {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = std::net::TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        near.write_all(b"taken").unwrap();
        far.read_exact(&mut [0; 5]).unwrap();
        far.write_all(b"and answered").unwrap();
        near.read_exact(&mut [0; 12]).unwrap();
        let acks = acks(near.as_fd()).unwrap();
        assert!(!acks.unacknowledged && acks.probes == 0);
        assert!(acks.last < Duration::from_secs(60));
        let (unix, _other) = UnixStream::pair().unwrap();
        assert!(super::acks(unix.as_fd()).is_err());
    }

    #[test]
    fn a_peer_that_finished_has_hung_up_before_it_was_read() {
        let (near, mut far) = UnixStream::pair().unwrap();
        far.write_all(b"last words").unwrap();
        assert!(!has_hung_up(near.as_fd()));
        shutdown_write(far.as_fd()).unwrap();
        assert!(has_hung_up(near.as_fd()));
        assert!(!has_hung_up(far.as_fd()));
        drop(near);
        assert!(has_hung_up(far.as_fd()));
    }

    #[test]
    fn a_connection_ends_although_a_forked_child_has_its_descriptor() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        let _inherited = near.try_clone().unwrap();
        near.write_all(b"last words").unwrap();
        end(near.as_fd());
        drop(near);
        let mut all = Vec::new();
        far.read_to_end(&mut all).unwrap();
        assert_eq!(all, b"last words");
        let error = far.write_all(b"late").unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::BrokenPipe);
    }

    #[test]
    fn a_listener_ends_although_a_forked_child_has_its_descriptor() {
        fn check<L: AsFd, S: Read + Write>(listener: L, connect: impl Fn() -> io::Result<S>) {
            let _inherited = listener.as_fd().try_clone_to_owned().unwrap();
            let mut peers = [connect().unwrap(), connect().unwrap()];
            peers[0].write_all(b"unread").unwrap();
            stop_listening(listener.as_fd());
            drop(listener);
            for peer in &mut peers {
                let read = peer.read(&mut [0]).map_err(|error| error.kind());
                assert!(
                    matches!(read, Ok(0) | Err(io::ErrorKind::ConnectionReset)),
                    "{read:?}"
                );
            }
            let refused = connect().map(|_| ()).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
        }
        let tcp = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        tcp.set_nonblocking(true).unwrap();
        let address = tcp.local_addr().unwrap();
        let patience = Some(Duration::from_secs(60));
        check(tcp, || {
            let peer = std::net::TcpStream::connect(address)?;
            peer.set_read_timeout(patience)?;
            Ok(peer)
        });
        let name = format!("zeroxide-stream-{}", std::process::id());
        let address = UnixAddr::from_abstract_name(name).unwrap();
        let unix = UnixListener::bind_addr(&address).unwrap();
        unix.set_nonblocking(true).unwrap();
        check(unix, || {
            let peer = UnixStream::connect_addr(&address)?;
            peer.set_read_timeout(patience)?;
            Ok(peer)
        });
    }

    #[test]
    fn adopts_open_descriptors_only() {
        let (near, _far) = UnixStream::pair().unwrap();
        let fits = |_: BorrowedFd<'_>| Ok::<(), ()>(());
        assert!(adopt(near.into_raw_fd(), fits).unwrap().is_ok());
        for closed in [-1, 1 << 20] {
            let error = adopt(closed, fits).unwrap_err();
            assert_eq!(error.raw_os_error(), Some(libc::EBADF));
        }
    }

    #[test]
    fn a_descriptor_that_fails_the_check_stays_open_and_unchanged() {
        let (mut near, mut far) = UnixStream::pair().unwrap();
        rustix::io::fcntl_setfd(&near, FdFlags::empty()).unwrap();
        let refused = adopt(near.as_raw_fd(), |_| Err("unfit")).unwrap();
        assert_eq!(refused.unwrap_err(), "unfit");
        assert_eq!(rustix::io::fcntl_getfd(&near).unwrap(), FdFlags::empty());
        // It would not wait if it were non-blocking.
        let writer = std::thread::spawn(move || far.write_all(b"later"));
        let mut bytes = [0; 5];
        near.read_exact(&mut bytes).unwrap();
        writer.join().unwrap().unwrap();
        assert_eq!(&bytes, b"later");
    }
}
