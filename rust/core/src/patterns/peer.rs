//! PEER: like SERVER, but its peers are of the same type, and it also connects to them.

use zeroxide_proto::socket_type::SocketType;

use crate::options::ids;
use crate::patterns::PatternSpec;
use crate::patterns::server::Server;

pub(super) static PEER: PatternSpec = PatternSpec {
    single_part: true,
    numbers_peers: true,
    options: &[ids::HELLO_MSG, ids::DISCONNECT_MSG, ids::HICCUP_MSG],
    ..PatternSpec::new(SocketType::Peer, || Box::new(Server::new(SocketType::Peer)))
};
