//! The calls of programs: those of the transport, and what they ask about their descriptors.

use std::collections::VecDeque;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use rustix::io::Errno;
use socket2::{Domain, SockAddr, Socket, Type};

use super::flow::{Flow, fill};
use super::link::{End, Link, Stage};
use super::{Listening, with};
use crate::sys::liveness::{Acks, Keepalive};

/// The buffers of a socket: one of these.
const BUFFERS: [usize; 3] = [2304, 8192, 40_000];

// ---- for the transport ---------------------------------------------------------------------------------------------

/// Listens at an address; port 0 lets the network choose.
pub(crate) fn listen(mut address: SocketAddr) -> io::Result<(OwnedFd, SocketAddr)> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    // The system chooses a name.
    socket.bind(&SockAddr::unix("")?)?;
    socket.listen(128)?;
    let name = socket.local_addr()?;
    with(|network, _| {
        if address.port() == 0 {
            address.set_port(network.new_port());
        }
        if network.listeners.contains_key(&address) {
            return Err(Errno::ADDRINUSE.into());
        }
        let queue = VecDeque::new();
        network.listeners.insert(address, Listening { name, queue });
        Ok((socket.into(), address))
    })
}

/// A program has closed the socket that listens at an address.
pub(crate) fn stop_listening(address: SocketAddr) {
    with(|network, _| network.listeners.remove(&address));
}

/// A program has accepted a connection. Returns its peer's address.
pub(crate) fn accepted(address: SocketAddr, program: BorrowedFd<'_>) -> Option<SocketAddr> {
    with(|network, _| {
        let listening = network.listeners.get_mut(&address);
        let Some(id) = listening.and_then(|listening| listening.queue.pop_front()) else {
            // The host has no power. The descriptor may have the number of one that is closed.
            network.ends.remove(&program.as_raw_fd());
            network.over.remove(&program.as_raw_fd());
            return None;
        };
        network.own(program, id, 1);
        let link = network.links.iter_mut().find(|link| link.id == id)?;
        link.ends[1].program = Some(program.as_raw_fd());
        Some(link.address[0])
    })
}

/// Begins to connect.
pub(crate) fn connect(source: IpAddr, target: SocketAddr) -> io::Result<OwnedFd> {
    let (program, socket) = Socket::pair(Domain::UNIX, Type::STREAM.nonblocking().cloexec(), None)?;
    let (program, socket) = (OwnedFd::from(program), OwnedFd::from(socket));
    with(|network, world| {
        let size = BUFFERS[world.random.below(BUFFERS.len())];
        socket2::SockRef::from(&program).set_send_buffer_size(size)?;
        socket2::SockRef::from(&socket).set_send_buffer_size(network.weather.room)?;
        fill(program.as_fd())?;
        let source = SocketAddr::new(source, network.new_port());
        network.next += 1;
        let id = network.next;
        network.own(program.as_fd(), id, 0);
        let near = End {
            socket: Some(socket),
            program: Some(program.as_raw_fd()),
            ..End::default()
        };
        let at = network.arrival(world.random, world.now);
        network.links.push(Link {
            id,
            address: [source, target],
            ends: [near, End::default()],
            flows: [Flow::default(), Flow::default()],
            stage: Stage::Asking { at, tries: 0 },
            fuse: None,
            bereaved: None,
            silent: None,
            heard: world.now,
            opened: [world.now; 2],
        });
        Ok(program)
    })
}

// ---- for `sys::stream` ---------------------------------------------------------------------------------------------

/// The peer of a connection of this network, if it is connected; `None` for a descriptor of another kind.
pub(crate) fn peer(fd: BorrowedFd<'_>) -> Option<Option<SocketAddr>> {
    with(|network, _| {
        let fd = fd.as_raw_fd();
        if let Some(over) = network.over.get(&fd) {
            let was_up = over.error != Errno::CONNREFUSED && over.error != Errno::TIMEDOUT;
            return Some(was_up.then_some(over.address));
        }
        let (link, side) = network.end(fd)?;
        let is_up = side == 1 || matches!(link.stage, Stage::Up);
        Some(is_up.then_some(link.address[1 - side]))
    })
}

/// The error that ended a connection.
pub(crate) fn error(fd: BorrowedFd<'_>) -> Option<io::Error> {
    with(|network, _| {
        let over = network.over.get(&fd.as_raw_fd())?;
        Some(over.error.into())
    })
}

/// How many bytes of the program have not reached the peer's host.
pub(crate) fn unsent(fd: BorrowedFd<'_>) -> Option<usize> {
    with(|network, _| {
        let (id, side) = *network.ends.get(&fd.as_raw_fd())?;
        let over = network.over.get(&fd.as_raw_fd()).map(|over| over.unsent);
        let link = network.known(id)?;
        link.flows[side].note_told();
        Some(over.unwrap_or_else(|| link.unsent(side)))
    })
}

/// The kernel's view of whether the peer's host acknowledges data.
pub(crate) fn acks(fd: BorrowedFd<'_>) -> Option<Acks> {
    with(|network, world| {
        let (link, side) = network.end(fd.as_raw_fd())?;
        let is_blocked = link.flows[side].is_blocked;
        Some(Acks {
            unacknowledged: !is_blocked && link.unsent(side) > 0,
            probes: link.unanswered(side, world.now),
            last: world.now.saturating_duration_since(link.heard),
            sent: Duration::MAX,
        })
    })
}

/// The program has asked for probes for life. Returns whether it is a descriptor of this network.
pub(crate) fn keep_alive(fd: BorrowedFd<'_>, keepalive: Keepalive) -> bool {
    with(|network, _| {
        let Some((id, side)) = network.ends.get(&fd.as_raw_fd()).copied() else {
            return false;
        };
        if let Some(link) = network.links.iter_mut().find(|link| link.id == id) {
            link.ends[side].keepalive = Some(keepalive);
        }
        true
    })
}

/// The program has written this many bytes at once.
pub(crate) fn note_written(fd: BorrowedFd<'_>, bytes: usize) {
    with(|network, _| {
        if let Some((id, side)) = network.ends.get(&fd.as_raw_fd()).copied()
            && let Some(link) = network.links.iter_mut().find(|link| link.id == id)
        {
            link.flows[side].note_written(bytes);
        }
    });
}

/// The program has read this many bytes, 0 at the end of the stream.
///
/// # Errors
/// The error of a broken connection, which the kernel's pair of sockets does not have.
pub(crate) fn note_read(fd: BorrowedFd<'_>, bytes: usize) -> io::Result<()> {
    with(|network, _| {
        let Some((id, side)) = network.ends.get(&fd.as_raw_fd()).copied() else {
            return Ok(());
        };
        // They may have arrived before the connection ended.
        if let Some(link) = network.known(id) {
            link.ends[side].read += bytes as u64;
        }
        match network.over.get(&fd.as_raw_fd()) {
            Some(over) if bytes == 0 && over.error != Errno::PIPE => Err(over.error.into()),
            _ => Ok(()),
        }
    })
}
