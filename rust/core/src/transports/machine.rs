//! What transports of the kernel share whose peers are machines without an IP address: vsock and tipc.

use std::os::fd::{AsFd, BorrowedFd};

use socket2::{Domain, SockAddr, Socket, Type};

use super::{Arrival, Listen, Peer, Stream, Target, Targets};
use crate::error::Result;
use crate::options::Options;

/// A bound address.
pub(super) struct MachineListener {
    pub(super) socket: Socket,
    pub(super) endpoint: String,
}

impl Listen for MachineListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let Some((fd, _)) = super::accept(self.fd())? else {
            return Ok(None);
        };
        let mut stream = Stream::from(fd);
        // A peer that has left already has no address, and its end is read later.
        if !stream.is_connected().unwrap_or(false) {
            stream.peer = Peer::Machine("".into());
        }
        Ok(Some(Ok(stream)))
    }

    fn endpoint(&self) -> String {
        self.endpoint.clone()
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// Makes a socket of a protocol, whose name is for the error.
pub(super) fn new_socket(domain: Domain, name: &str, options: &Options) -> Result<Socket> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket =
        Socket::new_raw(domain, kind, None).map_err(|error| super::without_family(error, name))?;
    super::set_buffers(&socket, options)?;
    Ok(socket)
}

/// The one address to connect to.
pub(super) fn target(address: SockAddr) -> Targets {
    Targets::Ready(vec![Target {
        address,
        source: None,
        request: None,
    }])
}
