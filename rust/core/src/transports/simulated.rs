//! TCP over the network of a schedule (`sys::simulated::network`), with TCP's scheme and addresses.
//!
//! A connect names its host as the source of the endpoint: `tcp://10.0.0.1;10.0.0.2:5555`.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use socket2::{Protocol, SockAddr};
use zeroxide_proto::socket_type::SocketType;

use super::address;
use super::probing::{is_probed_later, probe};
use super::tcp::{TCP, targets_of};
use super::{Arrival, ByteTransport, Listen, Opening, Peer, Stream, Target, Targets};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;
use crate::sys::simulated::network;

/// See the module text.
pub(super) struct Simulated;

pub(super) static SIMULATED: Simulated = Simulated;

impl ByteTransport for Simulated {
    fn scheme(&self) -> &'static str {
        TCP.scheme()
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        TCP.check(address, socket, bind)
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        let address = address::to_bind(address)?;
        let local = address.host.local(address.port, options.ipv6)?;
        let local = local.ok_or_else(|| Error::new(ErrorKind::NoDevice))?;
        let (fd, address) = network::listen(local)?;
        let options = options.clone();
        Ok(Box::new(SimulatedListener {
            fd,
            address,
            options,
        }))
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        let (source, target) = address::to_connect(address)?;
        let local = target.host.local(target.port, options.ipv6)?;
        let target = local.ok_or_else(|| Error::new(ErrorKind::NoDevice))?;
        let targets = targets_of(vec![target], source.as_ref(), None, options.ipv6)?;
        Ok(Targets::Ready(targets))
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        let source = target.source.as_ref().and_then(SockAddr::as_socket_ipv4);
        let source = source.map_or(Ipv4Addr::LOCALHOST, |source| *source.ip());
        let address = target.address.as_socket();
        let address = address.ok_or_else(|| Error::new(ErrorKind::NoDevice))?;
        let fd = network::connect(IpAddr::V4(source), address)?;
        if !is_probed_later(options) {
            probe(fd.as_fd(), options, Protocol::TCP)?;
        }
        Ok(Opening {
            stream: Stream::from(fd),
            connected: false,
        })
    }
}

struct SimulatedListener {
    fd: OwnedFd,
    address: SocketAddr,
    options: Options,
}

impl Listen for SimulatedListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        let Some((fd, _)) = super::accept(self.fd())? else {
            return Ok(None);
        };
        let peer = network::accepted(self.address, fd.as_fd());
        if peer.is_some() {
            probe(fd.as_fd(), &self.options, Protocol::TCP)?;
        }
        Ok(Some(Ok(Stream {
            peer: peer.map_or(Peer::Here, Peer::Ip),
            ..Stream::from(fd)
        })))
    }

    fn endpoint(&self) -> String {
        super::endpoint(&SockAddr::from(self.address))
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

impl Drop for SimulatedListener {
    fn drop(&mut self) {
        network::stop_listening(self.address);
    }
}
