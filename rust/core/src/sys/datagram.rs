//! Sends and receives datagrams, several in one system call.

use std::io::{self, IoSlice};
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::ptr;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::{Errno, retry_on_intr};
use rustix::net::addr::SocketAddrArg;
use rustix::net::{MMsgHdr, SendAncillaryBuffer, SendFlags, SocketAddrAny, connect_unspec};
use socket2::SockAddr;

/// The number of datagrams that one system call sends or receives.
pub(crate) const BATCH: usize = 16;

/// A datagram to send: two slices that follow each other, and its target, if the socket is not connected.
pub(crate) struct Outgoing<'a> {
    pub(crate) to: Option<SocketAddr>,
    pub(crate) head: &'a [u8],
    pub(crate) body: &'a [u8],
}

/// Makes a socket forget its receiver, its own address unless it is bound, and its device.
///
/// # Errors
/// The system's.
pub(crate) fn disconnect(fd: BorrowedFd<'_>) -> io::Result<()> {
    Ok(connect_unspec(fd)?)
}

/// Whether a number of an error says that the machine has no route to an address, or no address of its own for it.
pub(crate) fn is_unreachable(errno: i32) -> bool {
    matches!(
        Errno::from_raw_os_error(errno),
        Errno::NETUNREACH | Errno::HOSTUNREACH | Errno::ADDRNOTAVAIL
    )
}

/// Whether the kernel has room for a datagram. A full buffer has room again when half of it is free.
pub(crate) fn has_room(fd: BorrowedFd<'_>) -> bool {
    let mut polled = [PollFd::from_borrowed_fd(fd, PollFlags::OUT)];
    let at_once = Timespec::default();
    poll(&mut polled, Some(&at_once)).is_ok_and(|ready| ready > 0)
}

/// Sends the first [`BATCH`] of these datagrams, as far as the kernel accepts them now, and returns their number. It may
/// be fewer because there is no room, or because the next datagram has an error, which is then not reported.
///
/// # Errors
/// The error of the first datagram. `ConnectionRefused` concerns an earlier one.
pub(crate) fn send(fd: BorrowedFd<'_>, datagrams: &[Outgoing<'_>]) -> io::Result<usize> {
    let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
    let datagrams = &datagrams[..datagrams.len().min(BATCH)];
    let slices: Vec<_> = datagrams
        .iter()
        .map(|datagram| [IoSlice::new(datagram.head), IoSlice::new(datagram.body)])
        .collect();
    let targets: Vec<_> = datagrams
        .iter()
        .map(|datagram| datagram.to.map(|to| to.as_any()))
        .collect();
    let mut controls: Vec<_> = datagrams
        .iter()
        .map(|_| SendAncillaryBuffer::default())
        .collect();
    let mut headers: Vec<_> = slices
        .iter()
        .zip(&targets)
        .zip(&mut controls)
        .map(|((slices, target), control)| header(target.as_ref(), slices, control))
        .collect();
    Ok(retry_on_intr(|| {
        rustix::net::sendmmsg(fd, &mut headers, flags)
    })?)
}

fn header<'a>(
    target: Option<&'a SocketAddrAny>,
    slices: &'a [IoSlice<'_>],
    control: &'a mut SendAncillaryBuffer<'_, '_, '_>,
) -> MMsgHdr<'a> {
    match target {
        Some(target) => MMsgHdr::new_with_addr(target, slices, control),
        None => MMsgHdr::new(slices, control),
    }
}

/// Received datagrams. Its memory does not grow.
pub(crate) struct Inbox {
    bytes: Vec<u8>,
    /// The room for one datagram.
    size: usize,
    received: Vec<Received>,
    next: usize,
}

struct Received {
    len: usize,
    is_cut: bool,
    from: Option<SocketAddr>,
}

/// A received datagram.
pub(crate) struct Incoming<'a> {
    pub(crate) bytes: &'a [u8],
    /// Whether it was longer than the room for it.
    pub(crate) is_cut: bool,
    /// The address of its sender.
    pub(crate) from: Option<SocketAddr>,
}

impl Inbox {
    /// An inbox for datagrams of up to `size` bytes.
    pub(crate) fn new(size: usize) -> Inbox {
        Inbox {
            bytes: vec![0; size * BATCH],
            size,
            received: Vec::with_capacity(BATCH),
            next: 0,
        }
    }

    /// The number of datagrams that [`next`](Self::next) has not returned.
    pub(crate) fn len(&self) -> usize {
        self.received.len() - self.next
    }

    /// The next datagram.
    pub(crate) fn next(&mut self) -> Option<Incoming<'_>> {
        let at = self.next;
        let received = self.received.get(at)?;
        self.next += 1;
        let start = at * self.size;
        Some(Incoming {
            bytes: &self.bytes[start..start + received.len],
            is_cut: received.is_cut,
            from: received.from,
        })
    }

    /// Receives up to [`BATCH`] datagrams, in place of those before, and returns their number.
    ///
    /// # Errors
    /// `WouldBlock` if there are none.
    pub(crate) fn fill(&mut self, fd: BorrowedFd<'_>) -> io::Result<usize> {
        self.received.clear();
        self.next = 0;
        // SAFETY: addresses and headers are plain data, for which zeros are valid.
        let mut names: [libc::sockaddr_storage; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut slices: [libc::iovec; BATCH] = unsafe { mem::zeroed() };
        // SAFETY: as above.
        let mut headers: [libc::mmsghdr; BATCH] = unsafe { mem::zeroed() };
        let rooms = self.bytes.chunks_exact_mut(self.size);
        for (((header, slice), name), room) in headers
            .iter_mut()
            .zip(&mut slices)
            .zip(&mut names)
            .zip(rooms)
        {
            slice.iov_base = room.as_mut_ptr().cast();
            slice.iov_len = room.len();
            header.msg_hdr.msg_name = ptr::from_mut(name).cast();
            header.msg_hdr.msg_namelen = size_of::<libc::sockaddr_storage>() as libc::socklen_t;
            header.msg_hdr.msg_iov = slice;
            header.msg_hdr.msg_iovlen = 1;
        }
        let count = retry_on_intr(|| {
            // SAFETY: each header points to an address and a slice that outlive the call, and each slice to its own
            // part of `bytes`. The kernel does not write more than the lengths given with them. The call is made by
            // number, because musl's libc crate does not declare it.
            let count = unsafe {
                libc::syscall(
                    libc::SYS_recvmmsg,
                    fd.as_raw_fd(),
                    headers.as_mut_ptr(),
                    BATCH as libc::c_uint,
                    libc::MSG_DONTWAIT,
                    ptr::null_mut::<libc::timespec>(),
                )
            };
            usize::try_from(count).map_err(|_| last_errno())
        })?;
        for (header, name) in headers.iter().zip(&names).take(count) {
            self.received.push(Received {
                len: usize::try_from(header.msg_len).map_or(0, |len| len.min(self.size)),
                is_cut: header.msg_hdr.msg_flags & libc::MSG_TRUNC != 0,
                from: address(name, header.msg_hdr.msg_namelen),
            });
        }
        Ok(count)
    }
}

fn last_errno() -> rustix::io::Errno {
    let error = io::Error::last_os_error();
    rustix::io::Errno::from_io_error(&error).unwrap_or(rustix::io::Errno::INVAL)
}

fn address(name: &libc::sockaddr_storage, length: libc::socklen_t) -> Option<SocketAddr> {
    // SAFETY: the kernel has written an address of this length, and what it has not written is zero.
    let copy = unsafe {
        SockAddr::try_init(|storage, size| {
            ptr::copy_nonoverlapping(ptr::from_ref(name), storage.cast(), 1);
            *size = length;
            Ok(())
        })
    };
    copy.ok()?.1.as_socket()
}

/// From `asm-generic/socket.h`, as on all systems for which wheels are built.
const SO_MEMINFO: libc::c_int = 55;
const MEMINFO_DROPS: usize = 8;

/// The number of datagrams that the kernel has dropped because the socket's buffer was full, or because their checksum
/// was wrong. It wraps around. `None` if the kernel does not count them.
pub(crate) fn dropped(fd: BorrowedFd<'_>) -> Option<u32> {
    let mut info = [0u32; MEMINFO_DROPS + 1];
    let mut size = size_of_val(&info) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `info`, which has that size; both outlive the call.
    let result = unsafe {
        libc::getsockopt(
            fd.as_raw_fd(),
            libc::SOL_SOCKET,
            SO_MEMINFO,
            info.as_mut_ptr().cast(),
            &raw mut size,
        )
    };
    let is_there = result == 0 && size as usize == size_of_val(&info);
    is_there.then_some(info[MEMINFO_DROPS])
}

/// Lets several sockets bind the same port, as is usual for multicast.
pub(crate) fn share_port(socket: &socket2::Socket) -> io::Result<()> {
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)
}

#[cfg(test)]
mod tests {
    use std::net::UdpSocket;
    use std::os::fd::AsFd;

    use super::*;

    fn pair() -> (UdpSocket, UdpSocket) {
        let near = UdpSocket::bind("127.0.0.1:0").unwrap();
        let far = UdpSocket::bind("127.0.0.1:0").unwrap();
        near.set_nonblocking(true).unwrap();
        (near, far)
    }

    fn outgoing(to: Option<SocketAddr>, body: &[u8]) -> Outgoing<'_> {
        Outgoing {
            to,
            head: b">",
            body,
        }
    }

    #[test]
    fn many_datagrams_are_sent_and_received_at_once() {
        let (near, far) = pair();
        let to = near.local_addr().unwrap();
        let bodies: Vec<_> = (0..BATCH + 4).map(|n| vec![b'x'; n]).collect();
        let all: Vec<_> = bodies.iter().map(|body| outgoing(Some(to), body)).collect();
        assert_eq!(send(far.as_fd(), &all).unwrap(), BATCH);
        far.connect(to).unwrap();
        let rest: Vec<_> = bodies[BATCH..]
            .iter()
            .map(|body| outgoing(None, body))
            .collect();
        assert_eq!(send(far.as_fd(), &rest).unwrap(), 4);
        let mut inbox = Inbox::new(10);
        assert_eq!(inbox.fill(near.as_fd()).unwrap(), BATCH);
        for body in &bodies[..BATCH] {
            let incoming = inbox.next().unwrap();
            let whole = [b">", body.as_slice()].concat();
            assert_eq!(incoming.bytes, &whole[..whole.len().min(10)]);
            assert_eq!(incoming.is_cut, whole.len() > 10);
            assert_eq!(incoming.from, Some(far.local_addr().unwrap()));
        }
        assert!(inbox.next().is_none());
        assert_eq!(inbox.fill(near.as_fd()).unwrap(), 4);
        assert_eq!(inbox.len(), 4);
        let error = inbox.fill(near.as_fd()).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock);
        assert_eq!(inbox.len(), 0);
    }

    #[test]
    fn the_kernel_counts_what_it_drops() {
        let (near, far) = pair();
        let socket = socket2::SockRef::from(&near);
        socket.set_recv_buffer_size(1).unwrap();
        let Some(before) = dropped(near.as_fd()) else {
            return;
        };
        assert_eq!(before, 0);
        for _ in 0..100 {
            far.send_to(b"x", near.local_addr().unwrap()).unwrap();
        }
        let mut kept = 0;
        let mut inbox = Inbox::new(10);
        while let Ok(count) = inbox.fill(near.as_fd()) {
            kept += count;
        }
        assert_eq!(dropped(near.as_fd()).unwrap() as usize + kept, 100);
    }

    #[test]
    fn a_refused_datagram_is_an_error_of_a_later_call() {
        let (near, far) = pair();
        let gone = far.local_addr().unwrap();
        drop(far);
        near.connect(gone).unwrap();
        assert_eq!(send(near.as_fd(), &[outgoing(None, b"x")]).unwrap(), 1);
        let error = send(near.as_fd(), &[outgoing(None, b"y")]).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::ConnectionRefused);
    }
}
