//! [`PatternSpec`]: everything that the rest of the crate knows about a pattern.

use std::sync::LazyLock;

use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires::{self, WIRES, WireSpec};

use crate::error::{Error, ErrorKind, Result};
use crate::options::{OptionRow, PatternFacts, PatternOption, Value, ids};
use crate::patterns::pipe_set::Spills;
use crate::patterns::{OVER_OTHERS, PATTERNS, Pattern};

/// The description of a pattern, independent of sockets. A pattern states what differs from [`PatternSpec::new`]:
///
/// ```
/// # use zeroxide::SocketType;
/// # use zeroxide::patterns::{Pattern, PatternSpec};
/// # fn describe(socket_type: SocketType, new: fn() -> Box<dyn Pattern>) -> PatternSpec {
/// PatternSpec {
///     can_send: false,
///     ..PatternSpec::new(socket_type, new)
/// }
/// # }
/// ```
pub struct PatternSpec {
    /// The socket type: the name, the number, the valid peers, and whether it publishes or sends an identity.
    pub socket_type: SocketType,
    /// Creates the pattern's state for one socket.
    pub new: fn() -> Box<dyn Pattern>,
    /// Whether the type can send at all; if not, sending is `NotSupported`.
    pub can_send: bool,
    /// Whether the type can receive at all; if not, receiving is `NotSupported`.
    pub can_recv: bool,
    /// Whether CONFLATE has an effect on this type: on what it sends if it can send, on what it receives if it can
    /// receive. The other direction of a PUB or SUB carries subscriptions, each of which counts.
    pub conflates: bool,
    /// Whether a second connect to the same endpoint is a silent success without a second connection.
    pub single_connect: bool,
    /// Whether its sockets are bound to one endpoint at a time.
    pub single_endpoint: bool,
    /// Whether received messages must be processed even while the application makes no call. This applies to
    /// subscriptions, which are valid for one connection. If the next connection uses the same pipe, a mark separates
    /// the two: an empty message of the kind [`FrameKind::Command`](crate::FrameKind::Command).
    pub eager: bool,
    /// Whether messages are read even while the application makes no call, because it does not ask for those that the
    /// pattern drops. [`Pattern::readable`] is then called at once.
    pub prompt: bool,
    /// Whether messages that were queued before a close are still sent by default. Subscriptions are not: they are
    /// useless once the socket is closed.
    pub lingers: bool,
    /// Whether messages have exactly one part. The pattern itself refuses other messages. A part that announces another
    /// one is refused earlier.
    pub single_part: bool,
    /// Whether connections carry plain bytes, without ZMTP, at least with ROUTER_RAW. A message is then a routing id and one
    /// part.
    pub may_be_raw: bool,
    /// Whether sending and receiving alternate, and which comes first.
    pub dialogue: Dialogue,
    /// Whether messages are sent to the names that peers have chosen. A peer that comes back with another name is then
    /// another peer.
    pub addresses_names: bool,
    /// Whether messages are addressed to numbers, which the pattern assigns to its peers as their routing ids.
    pub numbers_peers: bool,
    /// Whether it has deadlines: see [`Pattern::poll_timeout`].
    pub timed: bool,
    /// Where the messages wait that exceed the high-water mark, if the socket has a SPILL_DIR.
    pub spills: Spills,
    /// The numbers of the options that concern its routing, out of those in [`ids`](crate::ids). It is notified of them
    /// by [`Pattern::set`].
    pub options: &'static [i32],
}

/// Whether sending and receiving alternate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialogue {
    /// They are independent.
    Free,
    /// It sends first, then receives the reply.
    Asks,
    /// It receives first, then sends the reply.
    Answers,
}

impl PatternSpec {
    /// A pattern that sends and receives independently and has no options of its own.
    pub const fn new(socket_type: SocketType, new: fn() -> Box<dyn Pattern>) -> PatternSpec {
        PatternSpec {
            socket_type,
            new,
            can_send: true,
            can_recv: true,
            conflates: false,
            single_connect: false,
            single_endpoint: false,
            eager: false,
            prompt: false,
            lingers: true,
            single_part: false,
            may_be_raw: false,
            dialogue: Dialogue::Free,
            addresses_names: false,
            numbers_peers: false,
            timed: false,
            spills: Spills::Never,
            options: &[],
        }
    }

    /// The facts that the connections of its sockets have to know.
    pub(crate) fn facts(&self) -> PatternFacts {
        PatternFacts {
            conflates: (
                self.conflates && self.can_send,
                self.conflates && self.can_recv,
            ),
            eager: self.eager,
            addresses_names: self.addresses_names,
            lingers: self.lingers,
            other: Some(self.socket_type).filter(|_| !self.wire().is_default()),
        }
    }

    /// What its sockets speak.
    pub(crate) fn wire(&self) -> &'static WireSpec {
        wires::of(self.socket_type)
    }

    /// The pattern of this type over another wire protocol; `None` if there is none.
    pub(crate) fn over(&self, wire: &WireSpec) -> Option<&'static PatternSpec> {
        self.over_others().find(|spec| spec.wire() == wire)
    }

    /// The patterns of this type over all other wire protocols.
    fn over_others(&self) -> impl Iterator<Item = &'static PatternSpec> {
        let name = self.socket_type.name();
        let all = OVER_OTHERS.iter().copied().chain(DERIVED.iter());
        all.filter(move |spec| spec.socket_type.name() == name)
    }

    /// Checks that sockets of this type have an option, and that it has an effect over their wire protocol. libzmq's types
    /// accept CONFLATE even if it has none.
    ///
    /// # Errors
    /// `Invalid`, naming the types that have it, or the wire protocol.
    pub(crate) fn check_option(&self, row: &OptionRow) -> Result<()> {
        self.check_effect(row)?;
        if !row.of_patterns || self.options.contains(&row.id) {
            return Ok(());
        }
        let owners: Vec<_> = row.sockets().iter().map(|owner| owner.name()).collect();
        let (name, socket_type) = (row.name, self.socket_type);
        let has = |spec: &&PatternSpec| spec.options.contains(&row.id);
        let text = if !owners.contains(&socket_type.name()) {
            let owners = listed(&owners);
            format!("{name} is an option of {owners}, not of {socket_type}")
        } else if let Some(spec) = self.over_others().find(has) {
            let number = spec.wire().number;
            format!(
                "{name} is an option of {socket_type} with WIRE_PROTOCOL {number}, set before it"
            )
        } else {
            let (standard, number) = (wires::standard().name, self.wire().number);
            format!(
                "{name} is an option of {socket_type} over {standard}, but WIRE_PROTOCOL is {number}"
            )
        };
        Err(Error::with(ErrorKind::Invalid, text))
    }

    fn check_effect(&self, row: &OptionRow) -> Result<()> {
        let (name, own, wire) = (row.name, self.socket_type, self.wire());
        let is_void = row.of_standard && !wire.is_default() && !self.options.contains(&row.id);
        let text = if is_void {
            format!(
                "{name} has no effect on a {own} socket over {} (WIRE_PROTOCOL {}): leave it out",
                wire.title, wire.number
            )
        } else if row.id == ids::CONFLATE && !self.conflates && !is_of_libzmq(own) {
            format!("{name} has no effect on a {own} socket: leave it out")
        } else {
            return Ok(());
        };
        Err(Error::with(ErrorKind::Invalid, text))
    }

    /// Converts an option for the pattern; `None` if the option does not concern it.
    pub(crate) fn option(&self, id: i32, value: &Value) -> Option<Result<PatternOption>> {
        if !self.options.contains(&id) {
            return None;
        }
        OptionRow::find(id).ok()?.for_pattern(value)
    }
}

impl OptionRow {
    /// The socket types that have the option; none if all have it.
    pub fn sockets(&self) -> Vec<SocketType> {
        if !self.of_patterns {
            return Vec::new();
        }
        let has = |spec: &PatternSpec| spec.options.contains(&self.id);
        let specs = PATTERNS.iter();
        specs
            .filter(|spec| has(spec) || spec.over_others().any(has))
            .map(|spec| spec.socket_type)
            .collect()
    }
}

/// Names in a sentence: `A, B and C`.
fn listed(names: &[&str]) -> String {
    match names {
        [others @ .., last] if !others.is_empty() => format!("{} and {last}", others.join(", ")),
        _ => names.concat(),
    }
}

/// Whether libzmq has a type of this name.
fn is_of_libzmq(socket_type: SocketType) -> bool {
    let mut all = SocketType::ALL.iter();
    all.any(|own| own.name() == socket_type.name())
}

/// The patterns of ZeroMQ's types over those wire protocols for which [`OVER_OTHERS`] has none. They send the same parts.
static DERIVED: LazyLock<Vec<PatternSpec>> = LazyLock::new(|| derived(WIRES));

fn derived(wires: &[&WireSpec]) -> Vec<PatternSpec> {
    let types = wires.iter().filter_map(|wire| {
        let has_parts = wire.form.as_ref()?.has_parts;
        Some(wire.types.iter().map(move |own| (*own, has_parts)))
    });
    let derived = types.flatten().filter_map(|(own, has_parts)| {
        let mut written = OVER_OTHERS.iter().chain(PATTERNS);
        if written.any(|spec| spec.socket_type == own) {
            return None;
        }
        let mut patterns = PATTERNS.iter().copied();
        let base = patterns.find(|spec| spec.socket_type.name() == own.name())?;
        // Of other patterns, nothing would keep the parts apart.
        (has_parts || base.single_part).then_some(PatternSpec {
            socket_type: own,
            ..*base
        })
    });
    derived.collect()
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::socket_type::TypeFacts;
    use zeroxide_proto::wires::Form;

    use super::*;

    const NUMBER: i32 = 100;

    static TYPES: &[SocketType] = &[
        SocketType::Other(&facts("PUSH")),
        SocketType::Other(&facts("CLIENT")),
        SocketType::Other(&facts("CLOUD")),
    ];

    const fn facts(name: &'static str) -> TypeFacts {
        TypeFacts {
            wire: NUMBER,
            ..TypeFacts::new(name, 200, || &[])
        }
    }

    fn wire(has_parts: bool) -> WireSpec {
        WireSpec {
            name: "TEST",
            title: "the test",
            number: NUMBER,
            types: TYPES,
            form: Some(Form {
                has_parts,
                begins: b"\0",
                opening: |_| Vec::new(),
                parse_opening: |_, _| Ok(None),
                parse_header: |_, _| Ok(None),
                put_header: |_, _, _, _| {},
                over_ws: None,
            }),
        }
    }

    #[test]
    fn a_wire_protocol_without_patterns_has_those_whose_parts_it_can_carry() {
        let names = |has_parts| {
            let derived = derived(&[&wire(has_parts)]);
            assert!(derived.iter().all(|spec| spec.socket_type.wire() == NUMBER));
            let names = derived.iter().map(|spec| spec.socket_type.name());
            names.collect::<Vec<_>>()
        };
        assert_eq!(names(true), ["PUSH", "CLIENT"]);
        assert_eq!(names(false), ["CLIENT"]);
    }
}
