//! The texts of errors: what the socket expected, and the state of its endpoints. This code only runs after a call has
//! failed.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::time::Duration;

use super::Wait;
use super::core::{Core, State};
use super::entries::{Attached, Place};
use super::setbacks::Setbacks;
use crate::error::{Error, ErrorKind};
use crate::options::Options;
use crate::patterns::{Dialogue, PatternSpec};

/// The maximum number of endpoints that an error names. The others are counted.
const MOST_PLACES: usize = 3;
/// Peers are counted up to this number, because counting holds the socket's lock.
const MOST_PEERS: usize = 1000;

/// The direction in which a call moves messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// A call of the `send` family.
    Send,
    /// A call of the `recv` family.
    Recv,
}

impl Direction {
    /// Returns the direction of a call that sends, or of one that receives.
    pub fn of(sends: bool) -> Direction {
        match sends {
            true => Direction::Send,
            false => Direction::Recv,
        }
    }
}

impl Core {
    /// See [`SocketInternals::too_few`](super::SocketInternals::too_few).
    pub(super) fn too_few(&self, found: usize, wanted: usize, what: &str) -> Error {
        self.again(|state, peers| {
            let place = match only_bind(state) {
                // The list of endpoints would repeat the count.
                Some(endpoint) if what == "connected" => format!(" at {endpoint}"),
                _ => whereabouts(state, peers),
            };
            format!("{found} of {wanted} peers are {what}{place}")
        })
    }

    /// See [`SocketInternals::overview`](super::SocketInternals::overview).
    pub(super) fn overview(&self) -> Option<String> {
        self.check_open().ok()?;
        let state = self.try_lock()?;
        let text = listed(&state, &Peers::of(&state, &self.setbacks()));
        (!text.is_empty()).then_some(text)
    }

    #[cold]
    pub(super) fn only_receives(&self) -> Error {
        self.one_way("only receives", "send to")
    }

    #[cold]
    pub(super) fn only_sends(&self) -> Error {
        self.one_way("only sends", "receive from")
    }

    /// The error for the direction that the socket type does not support.
    fn one_way(&self, has: &str, other: &str) -> Error {
        let socket_type = self.spec().socket_type;
        let mut text = format!("a {socket_type} socket {has}");
        if let Some(peer) = socket_type.peers().first() {
            // Writing to a String cannot fail.
            let _ = write!(text, "; use {peer} to {other} it");
        }
        Error::with(ErrorKind::NotSupported, text)
    }

    /// Adds a text to the `Again` of a call that used the socket's own timeout. With [`Wait::Until`], the call may be
    /// one of several that make up one wait. Such a caller calls
    /// [`SocketInternals::timed_out`](super::SocketInternals::timed_out) at the end of the wait.
    #[cold]
    pub(super) fn explained(
        &self,
        error: Error,
        direction: Direction,
        wait: Wait,
        timeout: Option<Duration>,
    ) -> Error {
        if error.kind() != ErrorKind::Again || wait != Wait::Default {
            return error;
        }
        self.timed_out(direction, timeout)
    }

    pub(super) fn timed_out(&self, direction: Direction, waited: Option<Duration>) -> Error {
        let spec = self.spec();
        self.again(|state, peers| describe(state, peers, spec, direction, waited))
    }

    #[cold]
    fn again(&self, describe: impl FnOnce(&State, &Peers<'_>) -> String) -> Error {
        let Ok(mut state) = self.lock_open() else {
            return Error::new(ErrorKind::Again);
        };
        self.begin_run(&mut state);
        let text = describe(&state, &Peers::of(&state, &self.setbacks()));
        self.end_run(&mut state, false);
        Error::with(ErrorKind::Again, text)
    }
}

/// The number of peers of each bind and connect.
struct Peers<'a> {
    setbacks: &'a Setbacks,
    /// The number of each call with a pipe, and its connected peers.
    connected: Vec<(u64, usize)>,
    total: usize,
    /// Pipes to peers, connected or not.
    pipes: usize,
    /// There are more than [`MOST_PEERS`] pipes, and the others were not counted.
    more: bool,
}

impl<'a> Peers<'a> {
    fn of(state: &State, setbacks: &'a Setbacks) -> Peers<'a> {
        let mut peers = Peers {
            setbacks,
            connected: Vec::new(),
            total: 0,
            pipes: 0,
            more: false,
        };
        state.pipes.for_each(|id, pipe, _, _| {
            peers.pipes += 1;
            if peers.pipes > MOST_PEERS {
                peers.more = true;
                return ControlFlow::Break(());
            }
            if let Some(origin) = state.origins.get(&id).filter(|_| !pipe.is_far_closed()) {
                let new = usize::from(pipe.is_connected());
                peers.total += new;
                let mut known = peers.connected.iter_mut();
                match known.find(|(source, _)| *source == origin.source) {
                    Some((_, count)) => *count += new,
                    None => peers.connected.push((origin.source, new)),
                }
            }
            ControlFlow::Continue(())
        });
        peers
    }

    fn are_none(&self) -> bool {
        self.total == 0 && !self.more
    }

    fn at(&self, source: u64) -> usize {
        let mut known = self.connected.iter();
        known
            .find(|(known, _)| *known == source)
            .map_or(0, |(_, count)| *count)
    }

    fn has_pipe(&self, source: u64) -> bool {
        self.connected.iter().any(|(known, _)| *known == source)
    }

    fn state_of(&self, place: &Place<'_>) -> String {
        let count = self.at(place.source);
        let mut text = match place.attached {
            Attached::Bound => match count {
                1 => "1 peer connected".to_owned(),
                _ => format!("{count} peers connected"),
            },
            Attached::Ended => "not connected, and not tried again".to_owned(),
            _ if count > 0 => "connected".to_owned(),
            Attached::Connected => "connecting".to_owned(),
            Attached::ConnectedHere if self.has_pipe(place.source) => {
                "nothing is bound there yet".to_owned()
            }
            Attached::ConnectedHere => {
                "the socket there has left or takes no further peer; connect again".to_owned()
            }
        };
        if count == 0
            && let Some(why) = self.setbacks.of(place.source)
        {
            text.push_str("; ");
            text.push_str(why);
        }
        text
    }
}

fn describe(
    state: &State,
    peers: &Peers<'_>,
    spec: &PatternSpec,
    direction: Direction,
    waited: Option<Duration>,
) -> String {
    let waited = match waited {
        Some(waited) => format!("within {} ms", waited.as_millis()),
        None => "in time".to_owned(),
    };
    let mut text = match direction {
        Direction::Recv if spec.dialogue == Dialogue::Asks => format!("no reply arrived {waited}"),
        Direction::Recv => format!("nothing arrived {waited}"),
        Direction::Send if peers.are_none() => format!("no peer {waited}"),
        Direction::Send => format!("no room in the queue of any peer {waited}"),
    };
    text.push_str(&whereabouts(state, peers));
    text.push_str(&hint(state, spec, direction, peers));
    text
}

/// The endpoints, as the end of a sentence.
fn whereabouts(state: &State, peers: &Peers<'_>) -> String {
    match listed(state, peers) {
        text if text.is_empty() => ": this socket is neither bound nor connected".to_owned(),
        text => format!(" at {text}"),
    }
}

/// The endpoint of a socket that has a single endpoint, and is bound to it.
fn only_bind(state: &State) -> Option<&str> {
    let mut places = state.endpoints.places();
    let first = places.next()?;
    (first.attached == Attached::Bound && places.next().is_none()).then_some(first.endpoint)
}

/// The first [`MOST_PLACES`] endpoints with their peers, and the number of the others.
fn listed(state: &State, peers: &Peers<'_>) -> String {
    let places: Vec<_> = state.endpoints.places().collect();
    let mut text = String::new();
    if places.is_empty() {
        return text;
    }
    for (index, place) in places.iter().take(MOST_PLACES).enumerate() {
        let before = if index == 0 { "" } else { ", " };
        // Writing to a String cannot fail.
        let _ = write!(text, "{before}{}", place.endpoint);
        if !peers.more {
            let _ = write!(text, " ({})", peers.state_of(place));
        }
    }
    if places.len() > MOST_PLACES {
        let _ = write!(text, " and {} more", places.len() - MOST_PLACES);
    }
    if peers.more {
        let _ = write!(text, " (more than {MOST_PEERS} peers)");
    }
    text
}

/// The likely cause, where the state of the socket shows it.
fn hint(state: &State, spec: &PatternSpec, direction: Direction, peers: &Peers<'_>) -> String {
    match direction {
        Direction::Recv
            if !spec.can_send
                && state.pattern.topics() == Some(0)
                && !state.options.invert_matching =>
        {
            format!(
                "; this {} socket has no subscription, and subscribe(\"\") receives everything",
                spec.socket_type
            )
        }
        Direction::Send if peers.are_none() && peers.pipes > 0 => {
            format!("; the queue is full ({})", marks(&state.options))
        }
        Direction::Send if !peers.are_none() => format!("; {}", marks(&state.options)),
        _ => String::new(),
    }
}

/// The high-water marks for sending.
fn marks(options: &Options) -> String {
    match options.sndhwm_bytes {
        0 => format!("SNDHWM is {}", options.sndhwm),
        bytes => format!("SNDHWM is {}, SNDHWM_BYTES {bytes}", options.sndhwm),
    }
}

#[cfg(test)]
mod tests {
    use zeroxide_proto::message::Message;
    use zeroxide_proto::socket_type::SocketType;

    use super::*;
    use crate::context::Context;
    use crate::options::{Value, ids};
    use crate::socket::{Socket, SocketInternals};

    fn sent(socket: &Socket) -> Error {
        let failed = socket.send(Message::from_frames(["x".into()]), Wait::Default);
        failed.unwrap_err().error
    }

    fn impatient(context: &Context, socket_type: SocketType) -> Socket {
        let socket = context.socket(socket_type).unwrap();
        for id in [ids::RCVTIMEO, ids::SNDTIMEO, ids::LINGER] {
            socket.set_option(id, &Value::Int(20)).unwrap();
        }
        socket
    }

    #[test]
    fn a_timeout_names_the_time_the_endpoints_and_the_peers() {
        let context = Context::new();
        let pull = impatient(&context, SocketType::Pull);
        let said = |text: &str| format!("Resource temporarily unavailable: {text}");
        let received = || pull.recv(Wait::Default).unwrap_err().to_string();
        assert_eq!(
            received(),
            said("nothing arrived within 20 ms: this socket is neither bound nor connected")
        );
        let endpoint = pull.bind("tcp://127.0.0.1:*").unwrap();
        assert_eq!(
            received(),
            said(&format!(
                "nothing arrived within 20 ms at {endpoint} (0 peers connected)"
            ))
        );
        pull.connect("inproc://nowhere").unwrap();
        assert_eq!(
            received(),
            said(&format!(
                "nothing arrived within 20 ms at {endpoint} (0 peers connected), \
                 inproc://nowhere (nothing is bound there yet)"
            ))
        );
        let push = impatient(&context, SocketType::Push);
        assert_eq!(
            sent(&push).to_string(),
            said("no peer within 20 ms: this socket is neither bound nor connected")
        );
        push.set_option(ids::SNDHWM, &Value::Int(1)).unwrap();
        push.connect("inproc://later").unwrap();
        push.send(Message::from_frames(["x".into()]), Wait::Dont)
            .unwrap();
        assert_eq!(
            sent(&push).to_string(),
            said(
                "no peer within 20 ms at inproc://later (nothing is bound there yet); \
                 the queue is full (SNDHWM is 1)"
            )
        );
    }

    #[test]
    fn an_overview_names_endpoints_and_peers_without_waiting() {
        let context = Context::new();
        let pull = impatient(&context, SocketType::Pull);
        assert_eq!(pull.overview(), None);
        let endpoint = pull.bind("inproc://here").unwrap();
        let push = impatient(&context, SocketType::Push);
        push.connect(&endpoint).unwrap();
        pull.wait_connected(1, Wait::Default).unwrap();
        assert_eq!(
            pull.overview().unwrap(),
            format!("{endpoint} (1 peer connected)")
        );
        assert_eq!(push.overview().unwrap(), format!("{endpoint} (connected)"));
        let held = pull.core().lock();
        assert_eq!(pull.overview(), None);
        drop(held);
        pull.close(None);
        assert_eq!(pull.overview(), None);
    }

    #[test]
    fn an_inproc_peer_that_left_or_has_one_already_is_not_a_missing_bind() {
        let context = Context::new();
        let [bound, first, second] = [(); 3].map(|()| impatient(&context, SocketType::Pair));
        let endpoint = bound.bind("inproc://pair").unwrap();
        first.connect(&endpoint).unwrap();
        second.connect(&endpoint).unwrap();
        let turned_away = format!(
            "{endpoint} (the socket there has left or takes no further peer; connect again)"
        );
        second.recv(Wait::Dont).unwrap_err();
        assert_eq!(second.overview().unwrap(), turned_away);
        bound.close(None);
        first.recv(Wait::Dont).unwrap_err();
        assert_eq!(first.overview().unwrap(), turned_away);
    }

    #[test]
    fn endpoints_beyond_the_first_three_are_counted() {
        let context = Context::new();
        let sub = impatient(&context, SocketType::Sub);
        for name in ["a", "b", "c", "d", "e"] {
            sub.connect(&format!("inproc://{name}")).unwrap();
        }
        let error = sub.recv(Wait::Default).unwrap_err().to_string();
        assert!(
            error.contains("inproc://c (nothing is bound there yet) and 2 more; "),
            "{error}"
        );
        assert!(
            error.ends_with(
                "this SUB socket has no subscription, and subscribe(\"\") receives everything"
            ),
            "{error}"
        );
    }

    #[test]
    fn one_way_sockets_name_their_direction() {
        let context = Context::new();
        for (socket_type, says) in [
            (
                SocketType::Push,
                "a PUSH socket only sends; use PULL to receive from it",
            ),
            (
                SocketType::Pub,
                "a PUB socket only sends; use SUB to receive from it",
            ),
        ] {
            let socket = impatient(&context, socket_type);
            assert_eq!(
                socket.recv(Wait::Default).unwrap_err().context(),
                Some(says)
            );
        }
        for (socket_type, says) in [
            (
                SocketType::Pull,
                "a PULL socket only receives; use PUSH to send to it",
            ),
            (
                SocketType::Sub,
                "a SUB socket only receives; use PUB to send to it",
            ),
        ] {
            let socket = impatient(&context, socket_type);
            assert_eq!(sent(&socket).context(), Some(says));
        }
    }
}
