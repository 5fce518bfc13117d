//! [`SocketType`]: what peers of a socket must know about its pattern.

use std::fmt;
use std::hash::{Hash, Hasher};

/// The facts about a socket type that matter to its peers.
///
/// A new type states what differs from [`TypeFacts::new`]:
///
/// ```
/// use zeroxide_proto::socket_type::{SocketType, TypeFacts};
///
/// static FACTS: TypeFacts = TypeFacts::new("MESH", 128, || &[MESH]);
/// const MESH: SocketType = SocketType::Other(&FACTS);
/// assert!(MESH.compatible(MESH) && !MESH.compatible(SocketType::Pair));
/// ```
#[derive(Debug)]
pub struct TypeFacts {
    /// The name in the Socket-Type property.
    pub name: &'static str,
    /// The number, as in `zmq.h` and in the ZMTP 2.0 greeting. libzmq uses those below 32.
    pub number: u8,
    /// The types that it may communicate with. They must list it, too. A function, because types refer to each other.
    pub peers: fn() -> &'static [SocketType],
    /// Whether it sends a routing id to its peer.
    pub sends_identity: bool,
    /// Whether its peers subscribe to what it sends.
    pub publishes: bool,
    /// Whether its peers join the groups to which it sends.
    pub has_groups: bool,
    /// Whether it speaks no ZMTP, only plain bytes.
    pub raw: bool,
    /// Whether it speaks no ZMTP, only datagrams.
    pub datagrams: bool,
    /// The number of the [wire protocol](crate::wires) that it speaks; 0 is ZMTP. Another one may have other numbers for
    /// types, and `number` is then the one there.
    pub wire: i32,
}

impl TypeFacts {
    /// A type that speaks ZMTP, sends no routing id and has no subscribers.
    pub const fn new(
        name: &'static str,
        number: u8,
        peers: fn() -> &'static [SocketType],
    ) -> TypeFacts {
        TypeFacts {
            name,
            number,
            peers,
            sends_identity: false,
            publishes: false,
            has_groups: false,
            raw: false,
            datagrams: false,
            wire: 0,
        }
    }
}

/// By number and wire protocol only.
impl PartialEq for TypeFacts {
    fn eq(&self, other: &TypeFacts) -> bool {
        self.number == other.number && self.wire == other.wire
    }
}

impl Eq for TypeFacts {}

impl Hash for TypeFacts {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.number.hash(state);
    }
}

/// The type of a socket, which determines its compatible peers.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub enum SocketType {
    /// One peer, both directions.
    Pair,
    /// Publishes to subscribers, never waits for them.
    Pub,
    /// Receives what it subscribed to.
    Sub,
    /// Sends a request, then waits for its reply.
    Req,
    /// Receives a request, then sends its reply.
    Rep,
    /// A request socket without the lock-step; sends round-robin.
    Dealer,
    /// Sends to the peer named by the first frame.
    Router,
    /// Receives from pushers, fairly.
    Pull,
    /// Sends to pullers, round-robin.
    Push,
    /// A publisher that sees the subscriptions.
    Xpub,
    /// A subscriber that sends its subscriptions as messages.
    Xsub,
    /// Raw TCP without ZMTP.
    Stream,
    /// Receives from clients, and replies to the one whose routing id a message has.
    Server,
    /// Sends to servers, round-robin, and receives from them, fairly.
    Client,
    /// Sends to the members of a group, never waits for them.
    Radio,
    /// Receives from the groups that it joined.
    Dish,
    /// Receives single parts from scatterers, fairly.
    Gather,
    /// Sends single parts to gatherers, round-robin.
    Scatter,
    /// Datagrams to and from any address, without ZMTP.
    Dgram,
    /// Sends to the peer whose routing id a message has, and receives from all.
    Peer,
    /// One peer, both directions, single parts.
    Channel,
    /// A type that is not ZeroMQ's own.
    Other(&'static TypeFacts),
}

impl SocketType {
    /// ZeroMQ's types, in the order of the ids.
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
        SocketType::Server,
        SocketType::Client,
        SocketType::Radio,
        SocketType::Dish,
        SocketType::Gather,
        SocketType::Scatter,
        SocketType::Dgram,
        SocketType::Peer,
        SocketType::Channel,
    ];

    const fn facts(self) -> &'static TypeFacts {
        match self {
            SocketType::Pair => &PAIR,
            SocketType::Pub => &PUB,
            SocketType::Sub => &SUB,
            SocketType::Req => &REQ,
            SocketType::Rep => &REP,
            SocketType::Dealer => &DEALER,
            SocketType::Router => &ROUTER,
            SocketType::Pull => &PULL,
            SocketType::Push => &PUSH,
            SocketType::Xpub => &XPUB,
            SocketType::Xsub => &XSUB,
            SocketType::Stream => &STREAM,
            SocketType::Server => &SERVER,
            SocketType::Client => &CLIENT,
            SocketType::Radio => &RADIO,
            SocketType::Dish => &DISH,
            SocketType::Gather => &GATHER,
            SocketType::Scatter => &SCATTER,
            SocketType::Dgram => &DGRAM,
            SocketType::Peer => &PEER,
            SocketType::Channel => &CHANNEL,
            SocketType::Other(facts) => facts,
        }
    }

    /// ZeroMQ's type with this id, as in `zmq.h` and in the ZMTP 2.0 greeting.
    pub fn from_id(id: i32) -> Option<SocketType> {
        let mut all = SocketType::ALL.iter().copied();
        all.find(|socket| i32::from(socket.id()) == id)
    }

    /// The id, as in `zmq.h` and in the ZMTP 2.0 greeting.
    pub const fn id(self) -> u8 {
        self.facts().number
    }

    /// The name in the Socket-Type property.
    pub const fn name(self) -> &'static str {
        self.facts().name
    }

    /// The types that it may communicate with.
    pub fn peers(self) -> &'static [SocketType] {
        (self.facts().peers)()
    }

    /// The type of a peer that gives this name in its Socket-Type property; `None` if the two may not communicate.
    pub fn peer_named(self, name: &[u8]) -> Option<SocketType> {
        let mut peers = self.peers().iter();
        peers.find(|peer| peer.name().as_bytes() == name).copied()
    }

    /// The type of a peer with this id in the ZMTP 2.0 greeting; `None` if the two may not communicate.
    pub fn peer_numbered(self, id: u8) -> Option<SocketType> {
        self.peers().iter().find(|peer| peer.id() == id).copied()
    }

    /// Whether the two types may communicate: they speak the same protocol, and each lists the name of the other, as
    /// their handshake would find. STREAM and DGRAM speak no ZMTP and are compatible
    /// with no type.
    pub fn compatible(self, peer: SocketType) -> bool {
        let lists =
            |one: SocketType, other: SocketType| one.peer_named(other.name().as_bytes()).is_some();
        self.wire() == peer.wire() && lists(self, peer) && lists(peer, self)
    }

    /// Whether the type sends a routing id to its peer.
    pub const fn sends_identity(self) -> bool {
        self.facts().sends_identity
    }

    /// Whether peers subscribe to what the type sends.
    pub const fn publishes(self) -> bool {
        self.facts().publishes
    }

    /// Whether peers join the groups to which the type sends.
    pub const fn has_groups(self) -> bool {
        self.facts().has_groups
    }

    /// Whether the type speaks no ZMTP, only plain bytes.
    pub const fn is_raw(self) -> bool {
        self.facts().raw
    }

    /// Whether the type speaks no ZMTP, only datagrams.
    pub const fn is_datagram(self) -> bool {
        self.facts().datagrams
    }

    /// The number of the [wire protocol](crate::wires) that the type speaks; 0 is ZMTP.
    pub const fn wire(self) -> i32 {
        self.facts().wire
    }
}

impl fmt::Display for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The name only, because the facts of a type lead to those of its peers and back.
impl fmt::Debug for SocketType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

static PAIR: TypeFacts = TypeFacts::new("PAIR", 0, || &[SocketType::Pair]);
static PUB: TypeFacts = TypeFacts {
    publishes: true,
    ..TypeFacts::new("PUB", 1, || &[SocketType::Sub, SocketType::Xsub])
};
static SUB: TypeFacts = TypeFacts::new("SUB", 2, || &[SocketType::Pub, SocketType::Xpub]);
static REQ: TypeFacts = TypeFacts {
    sends_identity: true,
    ..TypeFacts::new("REQ", 3, || &[SocketType::Rep, SocketType::Router])
};
static REP: TypeFacts = TypeFacts::new("REP", 4, || &[SocketType::Req, SocketType::Dealer]);
static DEALER: TypeFacts = TypeFacts {
    sends_identity: true,
    ..TypeFacts::new("DEALER", 5, || {
        &[SocketType::Rep, SocketType::Dealer, SocketType::Router]
    })
};
static ROUTER: TypeFacts = TypeFacts {
    sends_identity: true,
    ..TypeFacts::new("ROUTER", 6, || {
        &[SocketType::Req, SocketType::Dealer, SocketType::Router]
    })
};
static PULL: TypeFacts = TypeFacts::new("PULL", 7, || &[SocketType::Push]);
static PUSH: TypeFacts = TypeFacts::new("PUSH", 8, || &[SocketType::Pull]);
static XPUB: TypeFacts = TypeFacts {
    publishes: true,
    ..TypeFacts::new("XPUB", 9, || &[SocketType::Sub, SocketType::Xsub])
};
static XSUB: TypeFacts = TypeFacts::new("XSUB", 10, || &[SocketType::Pub, SocketType::Xpub]);
static STREAM: TypeFacts = TypeFacts {
    raw: true,
    ..TypeFacts::new("STREAM", 11, || &[])
};
static SERVER: TypeFacts = TypeFacts::new("SERVER", 12, || &[SocketType::Client]);
static CLIENT: TypeFacts = TypeFacts::new("CLIENT", 13, || &[SocketType::Server]);
static RADIO: TypeFacts = TypeFacts {
    has_groups: true,
    ..TypeFacts::new("RADIO", 14, || &[SocketType::Dish])
};
static DISH: TypeFacts = TypeFacts::new("DISH", 15, || &[SocketType::Radio]);
static GATHER: TypeFacts = TypeFacts::new("GATHER", 16, || &[SocketType::Scatter]);
static SCATTER: TypeFacts = TypeFacts::new("SCATTER", 17, || &[SocketType::Gather]);
static DGRAM: TypeFacts = TypeFacts {
    datagrams: true,
    ..TypeFacts::new("DGRAM", 18, || &[])
};
static PEER: TypeFacts = TypeFacts::new("PEER", 19, || &[SocketType::Peer]);
static CHANNEL: TypeFacts = TypeFacts::new("CHANNEL", 20, || &[SocketType::Channel]);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ids_and_names_go_both_ways() {
        let mut ids = Vec::new();
        for socket in SocketType::ALL {
            ids.push(i32::from(socket.id()));
            assert_eq!(SocketType::from_id(socket.id().into()), Some(*socket));
        }
        assert_eq!(ids, (0..=20).collect::<Vec<_>>());
        for id in [-1, 21, 256, i32::MAX, i32::MIN] {
            assert_eq!(SocketType::from_id(id), None);
        }
        for name in [&b""[..], b"pub", b"PUBS", b"\xff"] {
            assert_eq!(SocketType::Sub.peer_named(name), None);
        }
        for id in [1, 9] {
            let peer = SocketType::Sub.peer_numbered(id).unwrap();
            assert_eq!(
                SocketType::Sub.peer_named(peer.name().as_bytes()),
                Some(peer)
            );
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
            ("SERVER", &["CLIENT"]),
            ("CLIENT", &["SERVER"]),
            ("RADIO", &["DISH"]),
            ("DISH", &["RADIO"]),
            ("GATHER", &["SCATTER"]),
            ("SCATTER", &["GATHER"]),
            ("DGRAM", &[]),
            ("PEER", &["PEER"]),
            ("CHANNEL", &["CHANNEL"]),
        ];
        assert_eq!(allowed.len(), SocketType::ALL.len());
        for (name, peers) in allowed {
            let mut all = SocketType::ALL.iter();
            let socket = *all.find(|socket| socket.name() == *name).unwrap();
            for peer in SocketType::ALL {
                assert_eq!(socket.compatible(*peer), peers.contains(&peer.name()));
                assert_eq!(socket.compatible(*peer), peer.compatible(socket));
            }
        }
    }

    #[test]
    fn a_type_that_only_one_side_lists_is_refused() {
        static FACTS: TypeFacts = TypeFacts::new("FANOUT", 200, || &[SocketType::Pull]);
        let fanout = SocketType::Other(&FACTS);
        assert_eq!(fanout.peer_named(b"PULL"), Some(SocketType::Pull));
        assert!(!fanout.compatible(SocketType::Pull));
        assert!(!SocketType::Pull.compatible(fanout));
    }

    #[test]
    fn a_type_with_the_name_of_another_talks_to_its_peers() {
        static FACTS: TypeFacts = TypeFacts::new("PUSH", 200, || &[SocketType::Pull]);
        let push = SocketType::Other(&FACTS);
        assert!(push.compatible(SocketType::Pull) && SocketType::Pull.compatible(push));
        assert_ne!(push, SocketType::Push);
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
