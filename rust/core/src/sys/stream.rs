//! Bytes in and out of a connected socket, and adopting descriptors from outside.

use std::io::{self, IoSlice};
use std::os::fd::{BorrowedFd, FromRawFd, OwnedFd, RawFd};

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{FdFlags, retry_on_intr};
use rustix::net::{RecvFlags, SendAncillaryBuffer, SendFlags, Shutdown};

/// As many slices as the kernel takes in one call.
const MAX_SLICES: usize = 1024;
/// What a buffer gets that comes without room.
const SMALL_ROOM: usize = 4096;

/// Appends what has arrived to `buffer`, as much as it has room for; a full buffer is given some first. 0 is the end of
/// the stream.
pub(crate) fn recv(fd: BorrowedFd<'_>, buffer: &mut Vec<u8>) -> io::Result<usize> {
    // Reading into no room would look like the end of the stream.
    if buffer.capacity() == buffer.len() {
        buffer
            .try_reserve(SMALL_ROOM)
            .map_err(|_| io::ErrorKind::OutOfMemory)?;
    }
    Ok(retry_on_intr(|| rustix::net::recv(fd, spare_capacity(buffer), RecvFlags::DONTWAIT))?.1)
}

/// Sends as much of the slices as the kernel takes now, without ever raising SIGPIPE. With `more` the kernel may hold it
/// back for a moment, since something follows at once that can leave with it.
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
    Ok(sent?)
}

/// Whether the peer has finished or the connection broke, as far as the kernel knows now. Bytes may still wait to be read.
pub(crate) fn has_hung_up(fd: BorrowedFd<'_>) -> bool {
    let over = PollFlags::RDHUP | PollFlags::HUP | PollFlags::ERR;
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::RDHUP)];
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    poll(&mut polled, Some(&at_once)).is_ok() && polled[0].revents().intersects(over)
}

/// Tells the peer that nothing more comes.
pub(crate) fn shutdown_write(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::shutdown(fd, Shutdown::Write)?)
}

/// The error that a connection attempt or the connection met, if any; asking clears it.
pub(crate) fn take_error(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(rustix::net::sockopt::socket_error(fd)??)
}

/// How many bytes the kernel still holds that the peer has not acknowledged (TCP) or not read (Unix).
pub(crate) fn unsent(fd: BorrowedFd<'_>) -> io::Result<usize> {
    // SAFETY: SIOCOUTQ (another name of TIOCOUTQ) writes one int to where the getter points.
    let getter = unsafe {
        rustix::ioctl::Getter::<{ libc::TIOCOUTQ as rustix::ioctl::Opcode }, libc::c_int>::new()
    };
    // SAFETY: the opcode only reads the state of the socket.
    let bytes = unsafe { rustix::ioctl::ioctl(fd, getter)? };
    Ok(usize::try_from(bytes).unwrap_or(0))
}

/// Takes over a descriptor that the program opened. From now on it is closed by whoever holds the result.
pub(crate) fn adopt(raw: RawFd) -> io::Result<OwnedFd> {
    if raw < 0 {
        return Err(io::Error::from_raw_os_error(libc::EBADF));
    }
    // SAFETY: only borrowed to ask whether it is open; a closed number makes the question fail with EBADF.
    let flags = rustix::io::fcntl_getfd(unsafe { BorrowedFd::borrow_raw(raw) })?;
    // SAFETY: the descriptor is open, and giving its number to USE_FD hands it over.
    let fd = unsafe { OwnedFd::from_raw_fd(raw) };
    rustix::io::fcntl_setfd(&fd, flags | FdFlags::CLOEXEC)?;
    rustix::io::ioctl_fionbio(&fd, true)?;
    Ok(fd)
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::os::fd::{AsFd, IntoRawFd};
    use std::os::unix::net::UnixStream;

    use super::*;

    #[test]
    fn appends_what_arrived_into_the_room_there_is() {
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
    fn adopts_open_descriptors_only() {
        let (near, _far) = UnixStream::pair().unwrap();
        assert!(adopt(near.into_raw_fd()).is_ok());
        assert_eq!(adopt(-1).unwrap_err().raw_os_error(), Some(libc::EBADF));
        assert_eq!(
            adopt(1 << 20).unwrap_err().raw_os_error(),
            Some(libc::EBADF)
        );
    }
}
