//! What runs in a run: the patterns, and how a seed chooses hosts, sockets and options.

use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use zeroxide::SocketType;
use zeroxide::simulation::network::Weather;

use super::dice::Dice;

use SocketType::{
    Channel, Client, Dealer, Dish, Gather, Pair, Pub, Pull, Push, Radio, Rep, Req, Router, Scatter,
    Server, Sub, Xpub, Xsub,
};

/// Two types of sockets that talk to each other.
pub struct Pattern {
    pub name: &'static str,
    pub sides: [SocketType; 2],
    /// The most sockets of each side.
    most: [usize; 2],
    /// A message goes to every peer that wants it.
    pub spreads: bool,
    /// Messages have one part.
    pub is_single: bool,
    /// Only the newest message is kept.
    pub conflates: bool,
}

const USUAL: Pattern = Pattern {
    name: "",
    sides: [Push, Pull],
    most: [3, 3],
    spreads: false,
    is_single: false,
    conflates: false,
};

impl Pattern {
    /// Whether a socket has one peer at a time.
    pub fn is_exclusive(&self) -> bool {
        matches!(self.sides[0], Pair | Channel)
    }
}

/// All patterns.
pub const PATTERNS: &[Pattern] = &[
    Pattern {
        name: "pushpull",
        ..USUAL
    },
    Pattern {
        name: "pubsub",
        sides: [Pub, Sub],
        spreads: true,
        ..USUAL
    },
    Pattern {
        name: "xpubxsub",
        sides: [Xpub, Xsub],
        spreads: true,
        ..USUAL
    },
    Pattern {
        name: "dealerrouter",
        sides: [Dealer, Router],
        ..USUAL
    },
    Pattern {
        name: "reqrep",
        sides: [Req, Rep],
        most: [3, 2],
        ..USUAL
    },
    Pattern {
        name: "pair",
        sides: [Pair, Pair],
        most: [1, 1],
        ..USUAL
    },
    Pattern {
        name: "channel",
        sides: [Channel, Channel],
        most: [1, 1],
        is_single: true,
        ..USUAL
    },
    Pattern {
        name: "scattergather",
        sides: [Scatter, Gather],
        is_single: true,
        ..USUAL
    },
    Pattern {
        name: "clientserver",
        sides: [Client, Server],
        is_single: true,
        ..USUAL
    },
    Pattern {
        name: "radiodish",
        sides: [Radio, Dish],
        spreads: true,
        is_single: true,
        ..USUAL
    },
    Pattern {
        name: "conflate",
        is_single: true,
        conflates: true,
        ..USUAL
    },
];

/// One socket in its own context on its own host.
#[derive(Clone)]
pub struct Role {
    pub index: usize,
    pub kind: SocketType,
    pub binds: bool,
    /// The binding members that it connects to.
    pub peers: Vec<usize>,
    pub options: Options,
    /// How many things its program does.
    pub steps: usize,
}

/// The options of a socket.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    pub sndhwm: usize,
    pub rcvhwm: usize,
    pub heartbeat: Option<Duration>,
    pub immediate: bool,
    pub mandatory: bool,
    pub relaxed: bool,
    /// It has a routing id of its own.
    pub named: bool,
    /// Its program pauses for as long as 20 s.
    pub drowsy: bool,
    pub reconnect: Duration,
    /// The interval doubles up to this one.
    pub reconnect_max: Option<Duration>,
}

impl Role {
    pub fn host(&self) -> IpAddr {
        host(self.index)
    }

    /// Where it binds.
    pub fn endpoint(&self) -> String {
        format!("tcp://{}:5000", self.host())
    }

    /// How it names the endpoint of another member.
    pub fn endpoint_of(&self, peer: usize) -> String {
        format!("tcp://{};{}:5000", self.host(), host(peer))
    }
}

/// The address of a member.
pub fn host(index: usize) -> IpAddr {
    Ipv4Addr::new(10, 0, 0, 1 + index as u8).into()
}

/// The members of a run.
pub fn roles(pattern: &Pattern, dice: &mut Dice) -> Vec<Role> {
    let counts = pattern.most.map(|most| 1 + dice.below(most));
    let binding = dice.below(2);
    let options = options(dice);
    let steps = dice.pick(&[4, 12, 25]);
    let first = [0, counts[0]];
    let mut roles = Vec::new();
    for (side, count) in counts.into_iter().enumerate() {
        for index in first[side]..first[side] + count {
            let others = first[1 - side]..first[1 - side] + counts[1 - side];
            let mut peers: Vec<usize> = others.filter(|_| !dice.one_in(4)).collect();
            if peers.is_empty() {
                peers.push(first[1 - side] + dice.below(counts[1 - side]));
            }
            let binds = side == binding;
            if binds {
                peers.clear();
            }
            let mut options = match dice.one_in(4) {
                true => self::options(dice),
                false => options,
            };
            if pattern.is_exclusive() {
                // It would refuse a peer that has lost its power and returns, until it notices.
                options.heartbeat.get_or_insert(Duration::from_secs(1));
                // It refuses a new connection until its program has received what is left of the last one.
                options.reconnect = options.reconnect.max(Duration::from_millis(100));
            }
            roles.push(Role {
                index,
                kind: pattern.sides[side],
                binds,
                peers,
                options,
                steps,
            });
        }
    }
    roles
}

fn options(dice: &mut Dice) -> Options {
    let mark = |dice: &mut Dice| dice.pick(&[1, 2, 3, 10, 1000]);
    Options {
        sndhwm: mark(dice),
        rcvhwm: mark(dice),
        heartbeat: dice
            .one_in(3)
            .then(|| Duration::from_millis(dice.pick(&[300, 1000, 3000]))),
        immediate: dice.one_in(4),
        mandatory: dice.one_in(2),
        relaxed: dice.one_in(2),
        named: dice.one_in(2),
        drowsy: dice.one_in(4),
        reconnect: Duration::from_millis(dice.pick(&[1, 10, 100, 1000])),
        reconnect_max: (!dice.one_in(8)).then_some(Duration::from_secs(1)),
    }
}

/// A behaviour of the network.
pub fn weather(dice: &mut Dice) -> Weather {
    Weather {
        latency: Duration::from_micros(dice.pick(&[10, 200, 3000, 50_000])),
        jitter: Duration::from_micros(dice.pick(&[0, 100, 5000])),
        piece: dice.pick(&[20, 1500, 1500, 1 << 16]),
        window: dice.pick(&[1000, 10_000, 1 << 16]),
        room: dice.pick(&[2304, 10_000, 1 << 16]),
    }
}

/// The behaviour in which everything that can arrive does so soon.
pub fn calm() -> Weather {
    Weather {
        latency: Duration::from_micros(100),
        jitter: Duration::from_micros(10),
        piece: 1 << 16,
        window: 1 << 16,
        room: 1 << 16,
    }
}
