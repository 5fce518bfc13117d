//! Errors about sockets that a transport does not carry. The names in them come from the tables.

use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires;

use super::{ByteTransport, Row, TRANSPORTS};
use crate::error::{Error, ErrorKind, Result};
use crate::options::Options;

/// The error for a socket that sends datagrams over a transport that carries none.
pub(super) fn no_datagrams(socket: SocketType) -> Error {
    let text = format!("a {socket} socket sends and receives datagrams, so it needs udp");
    Error::with(ErrorKind::IncompatibleProtocol, text)
}

/// The error for plain bytes over a transport that does not carry them.
pub(super) fn no_plain_bytes(socket: &str, scheme: &str) -> Error {
    let others = listed(&schemes(|transport| transport.carries_plain_bytes()), "or");
    let text = format!("{socket} carries plain bytes, which {scheme} does not: use {others}");
    Error::with(ErrorKind::IncompatibleProtocol, text)
}

/// The error for a socket of another wire protocol, over a transport that carries only the standard one.
pub(super) fn no_other_wire(socket: SocketType, scheme: &str) -> Error {
    let (own, standard) = (wires::of(socket), wires::standard());
    let text = format!(
        "{scheme} carries {} only, and this {socket} socket speaks {} (WIRE_PROTOCOL {}): use one with WIRE_PROTOCOL {}",
        standard.title, own.title, own.number, standard.number
    );
    Error::with(ErrorKind::IncompatibleProtocol, text)
}

/// Checks that there is no descriptor to take over, for a transport that has to make its own.
///
/// # Errors
/// `Invalid` if there is one.
pub(super) fn check_no_descriptor(scheme: &str, options: &Options) -> Result<()> {
    if options.use_fd.is_none() {
        return Ok(());
    }
    let others = listed(&schemes(|_| true), "and");
    let text = format!("USE_FD is for {others}; {scheme} makes its own descriptor");
    Err(Error::with(ErrorKind::Invalid, text))
}

/// The schemes of the transports of bytes to which this applies.
pub(super) fn schemes(applies: impl Fn(&dyn ByteTransport) -> bool) -> Vec<&'static str> {
    let scheme = |row: &Row| match row {
        Row::Bytes(transport) if applies(*transport) => Some(transport.scheme()),
        Row::Bytes(_) | Row::Messages(_) => None,
    };
    TRANSPORTS.iter().filter_map(scheme).collect()
}

/// The names of ZeroMQ's types to which this applies, in a sentence.
pub(super) fn types(applies: impl Fn(SocketType) -> bool) -> String {
    let all = SocketType::ALL.iter().filter(|socket| applies(**socket));
    listed(&all.map(|socket| socket.name()).collect::<Vec<_>>(), "and")
}

/// Words in a sentence: "a, b and c".
pub(super) fn listed(words: &[&str], last: &str) -> String {
    match words {
        [before @ .., end] if !before.is_empty() => format!("{} {last} {end}", before.join(", ")),
        _ => words.concat(),
    }
}
