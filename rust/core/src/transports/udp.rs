//! udp: one message per datagram. RADIO connects and DISH binds, and their datagrams are those of libzmq. DGRAM binds,
//! and exchanges plain datagrams with any program.
//!
//! A datagram may get lost, arrive twice, or overtake another one. A multicast group is an address of a datagram like
//! any other; a socket that binds to it joins it.

mod place;
mod seeker;

use std::sync::Arc;

use zeroxide_proto::datagram::LARGEST;
use zeroxide_proto::socket_type::SocketType;

use self::place::Goal;
use super::datagrams;
use super::messages::{Bound, Hold, MessagePort, MessageTransport};
use crate::error::Result;
use crate::sys::clock;
use crate::sys::datagram::is_unreachable;

const SCHEME: &str = "udp";

/// See the module text.
struct Udp;

pub(super) fn new() -> Arc<dyn MessageTransport> {
    Arc::new(Udp)
}

impl MessageTransport for Udp {
    fn scheme(&self) -> &str {
        SCHEME
    }

    fn check(&self, address: &str, socket: SocketType, bind: bool) -> Result<()> {
        datagrams::check(SCHEME, socket, bind)?;
        place::parse(address, bind).map(drop)
    }

    fn bind(&self, address: &str, port: MessagePort) -> Result<Bound> {
        let open = |options: &_| place::bound(address, options);
        datagrams::bind(SCHEME, port, open, |socket| {
            place::endpoint(address, socket)
        })
    }

    fn connect(&self, address: &str, port: MessagePort) -> Result<Hold> {
        let place = place::parse(address, false)?;
        let goal = place.goal(&port.options)?;
        if let Goal::Address(target) = goal {
            let open = |options: &_| place::open(&place, target, options, LARGEST);
            let renew = place::renewal(&place, target, &port.options);
            let is_retried = port.options.reconnect_ivl.is_some();
            match datagrams::connect(port.clone(), open, renew) {
                // There may be a route later.
                Err(error) if is_unreachable(error.errno()) && is_retried => {}
                connected => return connected,
            }
        }
        seeker::start(goal, place, port, clock::now())?;
        Ok(Box::new(()))
    }
}

#[cfg(test)]
mod tests;
