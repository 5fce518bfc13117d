//! Beacons over UDP: broadcasts on the interfaces of this machine.

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4, UdpSocket};
use std::os::fd::{AsRawFd, RawFd};

use socket2::{Domain, Protocol, Socket, Type};

use crate::interfaces::{Interface, interfaces};
use crate::wire::BEACON_SIZE;

/// A look for a datagram.
pub(crate) enum Received {
    /// A datagram, and its host.
    Datagram(Vec<u8>, String),
    /// One of another interface, which is ignored.
    Foreign,
    /// There is none.
    Nothing,
}

/// The UDP socket of a node.
pub(crate) struct Beacon {
    socket: UdpSocket,
    port: u16,
    chosen: Option<String>,
    /// Looked up again for each beacon, because interfaces come and go.
    interfaces: Vec<Interface>,
}

impl Beacon {
    /// Opens the socket for beacons at a port, on the interface with a name or address, or on all.
    ///
    /// # Errors
    /// The system's error, for example if another program does not share the port.
    pub(crate) fn open(port: u16, chosen: Option<&str>) -> io::Result<Beacon> {
        let socket = shared()?;
        // The address is not bound, because a socket with an address receives no broadcasts.
        socket.bind(&SocketAddrV4::new(Ipv4Addr::UNSPECIFIED, port).into())?;
        socket.set_nonblocking(true)?;
        Ok(Beacon {
            socket: socket.into(),
            port,
            chosen: chosen.map(str::to_owned),
            interfaces: interfaces(chosen)?,
        })
    }

    pub(crate) fn descriptor(&self) -> RawFd {
        self.socket.as_raw_fd()
    }

    /// Broadcasts a beacon. Errors are ignored, because the next beacon is due soon.
    pub(crate) fn send(&mut self, beacon: &[u8]) {
        if let Ok(found) = interfaces(self.chosen.as_deref()) {
            self.interfaces = found;
        }
        for interface in &self.interfaces {
            let _ = send_through(interface, self.port, beacon);
        }
    }

    /// Receives the next datagram.
    pub(crate) fn receive(&self) -> Received {
        // One more than a beacon has, so that a longer datagram is none.
        let mut buffer = [0; BEACON_SIZE + 1];
        match self.socket.recv_from(&mut buffer) {
            Ok((length, SocketAddr::V4(sender))) if self.is_near(*sender.ip()) => {
                Received::Datagram(buffer[..length].to_vec(), sender.ip().to_string())
            }
            Ok(_) => Received::Foreign,
            Err(_) => Received::Nothing, // or the error of an earlier broadcast
        }
    }

    fn is_near(&self, host: Ipv4Addr) -> bool {
        self.chosen.is_none() || self.interfaces.iter().any(|near| near.reaches(host))
    }
}

/// A UDP socket whose port others may share, and that may broadcast.
fn shared() -> io::Result<Socket> {
    let socket = Socket::new(Domain::IPV4, Type::DGRAM, Some(Protocol::UDP))?;
    socket.set_broadcast(true)?;
    socket.set_reuse_address(true)?;
    socket.set_reuse_port(true)?;
    Ok(socket)
}

/// Broadcasts on one interface: with its address, so that the beacon tells where the node is.
fn send_through(interface: &Interface, port: u16, beacon: &[u8]) -> io::Result<usize> {
    let socket = shared()?;
    // Two interfaces may have the same network. Kernels before 5.7 let only root choose one, and then routes decide.
    let _ = socket.bind_device(Some(interface.name.as_bytes()));
    socket.bind(&SocketAddrV4::new(interface.address, 0).into())?;
    let target = SocketAddr::new(IpAddr::V4(interface.broadcast()), port);
    socket.send_to(beacon, &target.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::interfaces::own_address;

    #[test]
    fn each_datagram_of_another_interface_ends_a_look() {
        let beacon = Beacon::open(0, Some("lo")).unwrap();
        let port = beacon.socket.local_addr().unwrap().port();
        // The address of another interface, if there is one.
        let Some(other) = own_address(Ipv4Addr::new(198, 51, 100, 1)) else {
            return;
        };
        let flood = UdpSocket::bind((other, 0)).unwrap();
        for _ in 0..3 {
            flood.send_to(b"beacon", (other, port)).unwrap();
        }
        for _ in 0..3 {
            assert!(matches!(beacon.receive(), Received::Foreign));
        }
        assert!(matches!(beacon.receive(), Received::Nothing));
    }
}
