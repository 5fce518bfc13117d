//! SCTP: one association per connection, at the addresses that TCP has. The kernel supervises the association.

use std::os::fd::BorrowedFd;

use socket2::{Domain, Protocol};
use zeroxide_proto::socket_type::SocketType;

use super::tcp::{self, TCP, renamed};
use super::{Arrival, ByteTransport, Listen, Opening, Target, Targets, check_family};
use crate::error::Result;
use crate::options::Options;

/// See the module text.
pub(super) struct Sctp;

pub(super) static SCTP: Sctp = Sctp;

const SCHEME: &str = "sctp";

impl ByteTransport for Sctp {
    fn scheme(&self) -> &'static str {
        SCHEME
    }

    fn is_in_kernel(&self) -> bool {
        check_family(Domain::IPV4, Some(Protocol::SCTP), "SCTP").is_ok()
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        TCP.check(address, socket, bind)?;
        match bind {
            // The bind itself shows it, and may have a descriptor to take over.
            true => Ok(()),
            false => check_family(Domain::IPV4, Some(Protocol::SCTP), "SCTP"),
        }
    }

    fn listen(&self, address: &str, options: &Options) -> Result<Box<dyn Listen>> {
        let inner = tcp::listen(address, options, Protocol::SCTP)?;
        Ok(Box::new(SctpListener(inner)))
    }

    fn resolved(&self, address: &str, options: &Options) -> Vec<String> {
        let endpoints = TCP.resolved(address, options).into_iter();
        endpoints
            .map(|endpoint| renamed(&endpoint, SCHEME))
            .collect()
    }

    fn targets(&self, address: &str, options: &Options) -> Result<Targets> {
        options.check_no_proxy(SCHEME)?;
        TCP.targets(address, options)
    }

    fn open(&self, _: &str, target: &Target, options: &Options) -> Result<Opening> {
        tcp::open(target, options, Protocol::SCTP)
    }
}

struct SctpListener(Box<dyn Listen>);

impl Listen for SctpListener {
    fn accept(&self) -> Result<Option<Arrival>> {
        self.0.accept()
    }

    fn endpoint(&self) -> String {
        renamed(&self.0.endpoint(), SCHEME)
    }

    fn fd(&self) -> BorrowedFd<'_> {
        self.0.fd()
    }
}
