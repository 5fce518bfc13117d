//! DGRAM: datagrams to and from any address. A message has two parts: the address, such as `192.0.2.1:5555`, and the body.

use std::net::SocketAddr;
use std::str;

use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result, printable};
use crate::patterns::PatternSpec;
use crate::patterns::pair::{Pair, Rule};
use crate::patterns::pipe_set::PipeSet;
use crate::pipe::PipeId;

/// A PAIR whose peer is the transport, which gives every message an address.
type Dgram = Pair<Addressed>;

/// The rule for messages to an address.
#[derive(Default)]
struct Addressed {
    /// The largest body.
    largest: Option<usize>,
}

/// The address that a message begins with. libzmq ends the addresses of received messages with a zero byte, so programs
/// that return them may, too.
pub(crate) fn address(head: &[u8]) -> Option<SocketAddr> {
    let text = head.strip_suffix(b"\0").unwrap_or(head);
    let address: SocketAddr = str::from_utf8(text).ok()?.parse().ok()?;
    (address.port() != 0).then_some(address)
}

impl Rule for Addressed {
    fn attached(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.largest = pipes.largest(id);
    }

    fn check(&self, message: &Message) -> Result<()> {
        let mut parts = message.iter();
        let (Some(head), Some(body), None) = (parts.next(), parts.next(), parts.next()) else {
            return Err(not_two(message.len()));
        };
        if address(head).is_none() {
            return Err(no_address(head));
        }
        match self.largest {
            Some(largest) if body.len() > largest => Err(too_long(body.len(), largest)),
            _ => Ok(()),
        }
    }
}

#[cold]
fn not_two(count: usize) -> Error {
    let text = format!(
        "a message of a DGRAM socket has two parts, the address and the body; this one has {count}"
    );
    Error::with(ErrorKind::Invalid, text)
}

#[cold]
fn no_address(head: &[u8]) -> Error {
    let text = format!(
        "'{}' is not an address to send to; write an IP address and a port, such as 192.0.2.1:5555 or [2001:db8::1]:5555",
        printable(&String::from_utf8_lossy(head))
    );
    Error::with(ErrorKind::Invalid, text)
}

/// The error for a message that does not fit into a datagram.
#[cold]
pub(super) fn too_long(size: usize, largest: usize) -> Error {
    let text = format!(
        "a datagram here has at most {largest} bytes, and this message needs {size}; send it in pieces, or over another transport"
    );
    Error::with(ErrorKind::MessageSize, text)
}

pub(super) static DGRAM: PatternSpec = PatternSpec {
    single_endpoint: true,
    ..PatternSpec::new(SocketType::Dgram, || Box::new(Dgram::default()))
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::patterns::rig::Rig;

    #[test]
    fn messages_have_an_address_and_a_body() {
        let mut rig = Rig::new(&DGRAM);
        assert!(!rig.can_send());
        let id = rig.accept("");
        rig.send(["127.0.0.1:5555", "body"]).unwrap();
        rig.send(["[::1]:5555\0", ""]).unwrap();
        assert_eq!(rig.far_recv(id).unwrap(), ["127.0.0.1:5555", "body"]);
        assert_eq!(rig.far_recv(id).unwrap(), ["[::1]:5555\\x00", ""]);
        rig.far_send(id, ["192.0.2.1:1", "answer"]);
        rig.settle();
        assert!(rig.can_recv());
        assert_eq!(rig.recv().unwrap(), ["192.0.2.1:1", "answer"]);
    }

    #[test]
    fn other_messages_are_refused_before_they_wait() {
        let mut rig = Rig::with_hwm(&DGRAM, 1);
        for parts in [
            &["127.0.0.1:5555"][..],
            &["127.0.0.1:5555", "a", "b"],
            &["127.0.0.1:0", "a"],
            &["127.0.0.1", "a"],
            &["localhost:5555", "a"],
            &["::1:5555", "a"],
            &["\0", "a"],
            &["", "a"],
        ] {
            let rejected = rig.send(parts.iter().copied()).unwrap_err();
            assert_eq!(rejected.error.kind(), ErrorKind::Invalid, "{parts:?}");
            assert_eq!(rejected.message.len(), parts.len());
        }
        let full = rig.send(["127.0.0.1:5555", "a"]).unwrap_err();
        assert_eq!(full.error.kind(), ErrorKind::Again);
    }

    #[test]
    fn a_body_that_fits_into_no_datagram_is_refused() {
        let mut rig = Rig::new(&DGRAM);
        rig.limit_datagrams(3);
        let id = rig.accept("");
        rig.send(["127.0.0.1:5555", "123"]).unwrap();
        let rejected = rig.send(["127.0.0.1:5555", "1234"]).unwrap_err();
        assert_eq!(rejected.error.kind(), ErrorKind::MessageSize);
        assert!(rejected.error.to_string().contains("at most 3 bytes"));
        assert_eq!(rig.far_recv_all(id), ["127.0.0.1:5555/123"]);
    }
}
