//! Addresses, peers and attempts to connect of Unix domain sockets.

use std::io;
use std::os::fd::{AsFd, AsRawFd};

use socket2::SockAddr;

/// The maximum length of a path in a socket address, without the terminating zero.
pub(crate) const LONGEST_PATH: usize = 107;

/// The process at the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Credentials {
    pub(crate) user: u32,
    pub(crate) group: u32,
    pub(crate) process: i32,
}

/// The user as whom this process acts.
pub(crate) fn own_user() -> u32 {
    rustix::process::geteuid().as_raw()
}

/// The process that connected, or that listened when this side connected. Its number is 0 if it has none here: it is not in
/// this PID namespace, such as the host's seen from a container. rustix cannot be used here: in its
/// types, the number is never 0.
pub(crate) fn peer_credentials(fd: impl AsFd) -> io::Result<Credentials> {
    let mut peer = libc::ucred {
        pid: 0,
        uid: u32::MAX,
        gid: u32::MAX,
    };
    let mut size = libc::socklen_t::try_from(size_of_val(&peer)).map_err(io::Error::other)?;
    // SAFETY: there is space of this size for the result, every value of which is valid.
    let failed = unsafe {
        libc::getsockopt(
            fd.as_fd().as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_PEERCRED,
            (&raw mut peer).cast(),
            &raw mut size,
        )
    };
    if failed != 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(Credentials {
        user: peer.uid,
        group: peer.gid,
        process: peer.pid,
    })
}

/// The address of a name that is not a path.
pub(crate) fn nameless_path(name: &str) -> io::Result<SockAddr> {
    // An abstract name begins with a zero byte.
    SockAddr::unix(format!("\0{name}"))
}

/// The name in an address that is not a path, if it has one.
pub(crate) fn name(address: &SockAddr) -> Option<&[u8]> {
    address.as_abstract_namespace()
}

/// Whether a program listens at an address to which an attempt to connect has failed with `error`; `None` if the error
/// does not show it.
pub(crate) fn shows_listener(error: &io::Error) -> Option<bool> {
    match error.raw_os_error()? {
        libc::ECONNREFUSED | libc::ENOENT => Some(false),
        // A full backlog, another type of socket, or no permission to test: in use.
        libc::EAGAIN | libc::EPROTOTYPE | libc::EACCES | libc::EPERM => Some(true),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::process;

    use super::*;

    #[test]
    fn the_peer_of_a_pair_is_this_process() {
        let (near, _far) = UnixStream::pair().unwrap();
        let peer = peer_credentials(&near).unwrap();
        assert_eq!(u32::try_from(peer.process).unwrap(), process::id());
        assert_eq!(peer.user, rustix::process::getuid().as_raw());
        assert_eq!(peer.group, rustix::process::getgid().as_raw());
    }

    #[test]
    fn names_and_paths_are_distinct() {
        assert_eq!(name(&nameless_path("a").unwrap()), Some(&b"a"[..]));
        assert_eq!(name(&SockAddr::unix("/a").unwrap()), None);
    }
}
