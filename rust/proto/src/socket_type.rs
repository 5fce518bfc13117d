//! [`SocketType`]: ids, wire names, and compatibility.

use std::fmt;

/// The type of a socket, which determines its compatible peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum SocketType {
    /// One peer, both directions.
    Pair = 0,
    /// Publishes to subscribers, never waits for them.
    Pub = 1,
    /// Receives what it subscribed to.
    Sub = 2,
    /// Sends a request, then waits for its reply.
    Req = 3,
    /// Receives a request, then sends its reply.
    Rep = 4,
    /// A request socket without the lock-step; sends round-robin.
    Dealer = 5,
    /// Sends to the peer named by the first frame.
    Router = 6,
    /// Receives from pushers, fairly.
    Pull = 7,
    /// Sends to pullers, round-robin.
    Push = 8,
    /// A publisher that sees the subscriptions.
    Xpub = 9,
    /// A subscriber that sends its subscriptions as messages.
    Xsub = 10,
    /// Raw TCP without ZMTP.
    Stream = 11,
}

impl SocketType {
    /// Every type, in the order of the ids.
    pub const ALL: &[SocketType] = &[
        SocketType::Pair,
        SocketType::Pub,
        SocketType::Sub,
        SocketType::Req,
        SocketType::Rep,
        SocketType::Dealer,
        SocketType::Router,
        SocketType::Pull,
        SocketType::Push,
        SocketType::Xpub,
        SocketType::Xsub,
        SocketType::Stream,
    ];

    /// The type with this id, as in `zmq.h` and in the ZMTP 2.0 greeting.
    pub fn from_id(id: i32) -> Option<SocketType> {
        SocketType::ALL.get(usize::try_from(id).ok()?).copied()
    }

    /// The id, as in `zmq.h` and in the ZMTP 2.0 greeting.
    pub const fn id(self) -> u8 {
        self as u8
    }

    /// The name in the Socket-Type property.
    pub const fn name(self) -> &'static str {
        match self {
            SocketType::Pair => "PAIR",
            SocketType::Pub => "PUB",
            SocketType::Sub => "SUB",
            SocketType::Req => "REQ",
            SocketType::Rep => "REP",
            SocketType::Dealer => "DEALER",
            SocketType::Router => "ROUTER",
            SocketType::Pull => "PULL",
            SocketType::Push => "PUSH",
            SocketType::Xpub => "XPUB",
            SocketType::Xsub => "XSUB",
            SocketType::Stream => "STREAM",
        }
    }

    /// The type that a peer names in its Socket-Type property.
    pub fn from_name(name: &[u8]) -> Option<SocketType> {
        SocketType::ALL
            .iter()
            .copied()
            .find(|socket| socket.name().as_bytes() == name)
    }

    /// Whether the two types may communicate. Symmetric. STREAM speaks no ZMTP and is compatible with no type.
    pub const fn compatible(self, peer: SocketType) -> bool {
        use SocketType::*;
        matches!(
            (self, peer),
            (Pair, Pair)
                | (Pub | Xpub, Sub | Xsub)
                | (Sub | Xsub, Pub | Xpub)
                | (Req, Rep | Router)
                | (Rep, Req | Dealer)
                | (Dealer, Rep | Dealer | Router)
                | (Router, Req | Dealer | Router)
                | (Pull, Push)
                | (Push, Pull)
        )
    }

    /// Whether the type sends a routing id to its peer.
    pub const fn sends_identity(self) -> bool {
        matches!(
            self,
            SocketType::Req | SocketType::Dealer | SocketType::Router
        )
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_go_both_ways() {
        for (id, socket) in SocketType::ALL.iter().enumerate() {
            assert_eq!(usize::from(socket.id()), id);
            assert_eq!(SocketType::from_id(id as i32), Some(*socket));
            assert_eq!(
                SocketType::from_name(socket.name().as_bytes()),
                Some(*socket)
            );
        }
        for id in [-1, 12, 256, i32::MAX, i32::MIN] {
            assert_eq!(SocketType::from_id(id), None);
        }
        for name in [&b""[..], b"pub", b"PUBS", b"\xff"] {
            assert_eq!(SocketType::from_name(name), None);
        }
    }

    #[test]
    fn pairs_are_those_of_the_pattern_rfcs() {
        let allowed: &[(&str, &[&str])] = &[
            ("PAIR", &["PAIR"]),
            ("PUB", &["SUB", "XSUB"]),
            ("SUB", &["PUB", "XPUB"]),
            ("REQ", &["REP", "ROUTER"]),
            ("REP", &["REQ", "DEALER"]),
            ("DEALER", &["REP", "DEALER", "ROUTER"]),
            ("ROUTER", &["REQ", "DEALER", "ROUTER"]),
            ("PULL", &["PUSH"]),
            ("PUSH", &["PULL"]),
            ("XPUB", &["SUB", "XSUB"]),
            ("XSUB", &["PUB", "XPUB"]),
            ("STREAM", &[]),
        ];
        assert_eq!(allowed.len(), SocketType::ALL.len());
        for (name, peers) in allowed {
            let socket = SocketType::from_name(name.as_bytes()).unwrap();
            for peer in SocketType::ALL {
                assert_eq!(socket.compatible(*peer), peers.contains(&peer.name()));
                assert_eq!(socket.compatible(*peer), peer.compatible(socket));
            }
        }
    }

    #[test]
    fn identities_come_from_req_dealer_and_router() {
        let senders: Vec<_> = SocketType::ALL
            .iter()
            .filter(|socket| socket.sends_identity())
            .map(|socket| socket.name())
            .collect();
        assert_eq!(senders, ["REQ", "DEALER", "ROUTER"]);
    }
}
