//! Every pair of socket types, over every transport: whether they may talk, and what arrives.

mod common;

use common::{IpcName, Monitor, SocketExt, Watchdog, inproc_name, socket};
use zeroxide::{
    Context, DropReason, ErrorKind, EventKind, Frame, Message, Socket, SocketType, Wait, ids,
};

use SocketType::{
    Channel, Client, Dealer, Dgram, Dish, Gather, Pair, Peer, Pub, Pull, Push, Radio, Rep, Req,
    Router, Scatter, Server, Stream, Sub, Xpub, Xsub,
};

/// A pair of types that may talk, and how. `left` speaks first.
struct Row {
    left: SocketType,
    right: SocketType,
    /// Whether the right one can answer.
    answers: bool,
}

const fn both(left: SocketType, right: SocketType) -> Row {
    Row {
        left,
        right,
        answers: true,
    }
}

const fn one_way(left: SocketType, right: SocketType) -> Row {
    Row {
        left,
        right,
        answers: false,
    }
}

const ROWS: &[Row] = &[
    both(Pair, Pair),
    one_way(Pub, Sub),
    one_way(Pub, Xsub),
    one_way(Xpub, Sub),
    both(Xpub, Xsub),
    both(Req, Rep),
    both(Req, Router),
    both(Dealer, Rep),
    both(Dealer, Dealer),
    both(Dealer, Router),
    both(Router, Router),
    one_way(Push, Pull),
    both(Stream, Stream),
    both(Client, Server),
    both(Peer, Peer),
    one_way(Radio, Dish),
    one_way(Scatter, Gather),
    both(Channel, Channel),
];

/// The group of RADIO and DISH.
const GROUP: &str = "group";

const TRANSPORTS: [&str; 3] = ["tcp", "ipc", "inproc"];

/// Every body length at which something changes, single and multipart.
fn conversation() -> Vec<Vec<Vec<u8>>> {
    let body = |size: usize| (0..size).map(|n| (n % 251) as u8).collect::<Vec<u8>>();
    let mut all: Vec<_> = [0, 1, 69, 70, 255, 256, 8191, 8192, 65_537, 1 << 20]
        .map(|size| vec![body(size)])
        .into();
    all.push(vec![body(3), body(0), body(300), body(100_000), body(0)]);
    all.push((0..200).map(|n| body(n % 90)).collect());
    all
}

/// One of the two sockets, with the envelope that its pattern needs for this peer.
struct End {
    socket: Socket,
    mine: SocketType,
    theirs: SocketType,
    /// The peer's routing id: known from the start, or from its first message.
    peer: Option<Frame>,
    /// The same as a number.
    number: u32,
}

impl End {
    fn new(context: &Context, mine: SocketType, theirs: SocketType, name: &str, peer: &str) -> End {
        let socket = socket(context, mine);
        let mut known = None;
        if mine == Router && theirs == Router {
            socket.bytes(ids::ROUTING_ID, name.as_bytes());
            socket.int(ids::ROUTER_MANDATORY, 1);
            known = Some(Frame::copy_from(peer.as_bytes()));
        }
        if mine == Sub {
            socket.bytes(ids::SUBSCRIBE, b"");
        }
        if mine == Xsub {
            socket
                .send(Message::from(&b"\x01"[..]), Wait::Dont)
                .unwrap();
        }
        if mine == Dish {
            socket.join(GROUP).unwrap();
        }
        End {
            socket,
            mine,
            theirs,
            peer: known,
            number: 0,
        }
    }

    /// The frames that go before a body.
    fn envelope(&self) -> Vec<Frame> {
        let mut envelope = Vec::new();
        if matches!(self.mine, Router | Stream) {
            envelope.push(self.peer.clone().expect("the peer's routing id is known"));
        }
        let delimited = matches!(
            (self.mine, self.theirs),
            (Router, Req | Rep) | (Dealer, Rep)
        );
        if delimited {
            envelope.push(Frame::new());
        }
        envelope
    }

    fn say(&self, frames: &[Vec<u8>]) {
        let body = frames.iter().map(|frame| Frame::copy_from(frame));
        let mut message = Message::from_frames(self.envelope().into_iter().chain(body));
        message.set_routing_id(self.number);
        if self.mine == Radio {
            message.set_group(GROUP.as_bytes());
        }
        loop {
            match self.socket.send(message.clone(), Wait::Forever) {
                Ok(()) => return,
                // A mandatory ROUTER has not met its peer yet.
                Err(failed) if failed.error.kind() == ErrorKind::HostUnreachable => {
                    std::thread::yield_now();
                }
                Err(failed) => panic!("{} cannot send: {}", self.mine, failed.error),
            }
        }
    }

    fn hear(&mut self) -> Vec<Vec<u8>> {
        let message = self.socket.recv(Wait::Forever).unwrap();
        let group = (self.mine == Dish).then_some(GROUP.as_bytes());
        assert_eq!(message.group(), group);
        let numbered = matches!(self.mine, Server | Peer);
        assert_eq!(message.routing_id().is_some(), numbered);
        self.number = message.routing_id().unwrap_or(0);
        let mut frames = message.into_iter();
        if matches!(self.mine, Router | Stream) {
            self.peer = frames.next();
        }
        if matches!(
            (self.mine, self.theirs),
            (Router, Req | Rep) | (Dealer, Rep)
        ) {
            assert!(frames.next().unwrap().is_empty(), "the delimiter");
        }
        frames.map(|frame| frame.to_vec()).collect()
    }

    /// Makes sure that messages sent from now on arrive.
    fn meet(left: &mut End, right: &mut End) {
        match left.mine {
            Xpub => {
                assert_eq!(
                    left.socket.recv(Wait::Forever).unwrap().head().as_slice(),
                    b"\x01"
                );
            }
            Pub => {
                // PUB only shows its subscribers by the counter of messages without one.
                let unwanted = || left.socket.dropped(DropReason::NoSubscriber);
                loop {
                    let before = unwanted();
                    left.say(&[b"anybody?".to_vec()]);
                    if unwanted() == before {
                        break;
                    }
                    std::thread::yield_now();
                }
                assert_eq!(right.hear(), [b"anybody?"]);
            }
            Radio => {
                let members = left.socket.wait_subscribed(GROUP, 1, Wait::Forever);
                assert_eq!(members.unwrap(), 1);
            }
            Peer => {
                // Only a PEER that connects knows its peer beforehand, and neither has to here.
                right.socket.wait_connected(1, Wait::Forever).unwrap();
                left.socket.wait_connected(1, Wait::Forever).unwrap();
            }
            Stream => {
                assert_eq!(left.hear(), [b""]);
                assert_eq!(right.hear(), [b""]);
            }
            _ => {}
        }
    }
}

/// STREAM carries bytes, not messages: they come in pieces of any size, never none.
fn converse_raw(left: &mut End, right: &mut End) {
    for frames in conversation()
        .iter()
        .filter(|frames| frames.len() == 1 && !frames[0].is_empty())
    {
        for _ in 0..2 {
            left.say(frames);
            let mut heard = Vec::new();
            while heard.len() < frames[0].len() {
                heard.extend(right.hear().concat());
            }
            assert_eq!(heard, frames[0]);
            std::mem::swap(left, right);
        }
    }
}

fn converse(row: &Row, left: &mut End, right: &mut End) {
    let is_single = matches!(row.left, Client | Peer | Radio | Scatter | Channel);
    for frames in conversation() {
        if is_single && frames.len() > 1 {
            let message = Message::from_frames(frames.iter().map(|frame| Frame::copy_from(frame)));
            let failed = left.socket.send(message, Wait::Dont).unwrap_err();
            assert_eq!(failed.error.kind(), ErrorKind::Invalid, "{}", row.left);
            continue;
        }
        left.say(&frames);
        assert!(
            right.hear() == frames,
            "{} frames said by {}",
            frames.len(),
            row.left
        );
        if row.answers {
            // To an XPUB, a message that begins with 0 or 1 is a subscription.
            let mut answer = frames;
            if row.left == Xpub {
                answer.insert(0, b"up".to_vec());
            }
            right.say(&answer);
            assert!(
                left.hear() == answer,
                "{} frames said by {}",
                answer.len(),
                row.right
            );
        }
    }
}

/// Returns the number of the peer, if it has one.
fn connect(socket: &Socket, left: SocketType, endpoint: &str) -> u32 {
    if left == Peer {
        return socket.connect_peer(endpoint).unwrap();
    }
    socket.connect(endpoint).unwrap();
    0
}

fn talk(row: &Row, transport: &str, left_binds: bool, bind_first: bool) {
    let context = Context::new();
    let mut left = End::new(&context, row.left, row.right, "left", "right");
    let mut right = End::new(&context, row.right, row.left, "right", "left");
    let (binder, connecter) = if left_binds {
        (&left.socket, &right.socket)
    } else {
        (&right.socket, &left.socket)
    };
    let name = IpcName::new();
    let mut endpoint = match transport {
        "tcp" if bind_first => "tcp://127.0.0.1:*".to_owned(),
        "tcp" => common::free_tcp_endpoint(),
        "ipc" => name.endpoint(),
        _ => inproc_name(),
    };
    let mut number = 0;
    if !bind_first {
        connecter.int(ids::RECONNECT_IVL, 1);
        number = connect(connecter, row.left, &endpoint);
    }
    endpoint = binder.bind(&endpoint).unwrap();
    if bind_first {
        number = connect(connecter, row.left, &endpoint);
    }
    if left_binds {
        right.number = number;
    } else {
        left.number = number;
    }
    End::meet(&mut left, &mut right);
    if row.left == Peer && left_binds {
        // The side that knows the other one speaks first.
        std::mem::swap(&mut left, &mut right);
    }
    if row.left == Stream {
        converse_raw(&mut left, &mut right);
    } else {
        converse(row, &mut left, &mut right);
    }
    drop((left, right));
    context.term().unwrap();
}

#[test]
fn every_pair_on_every_transport_from_either_side() {
    let watchdog = Watchdog::new("every_pair_on_every_transport_from_either_side");
    for row in ROWS {
        for transport in TRANSPORTS {
            if row.left == Stream && transport == "inproc" {
                continue;
            }
            for (left_binds, bind_first) in
                [(true, true), (false, true), (true, false), (false, false)]
            {
                let order = if bind_first { "before" } else { "after" };
                let who = if left_binds { row.left } else { row.right };
                println!(
                    "{} and {} over {transport}, {who} binds {order} the connect",
                    row.left, row.right
                );
                talk(row, transport, left_binds, bind_first);
                watchdog.feed();
            }
        }
    }
}

/// The table above holds every pair there is.
#[test]
fn the_table_is_complete() {
    for left in SocketType::ALL {
        for right in SocketType::ALL {
            let listed = ROWS.iter().any(|row| {
                (row.left, row.right) == (*left, *right) || (row.right, row.left) == (*left, *right)
            });
            let valid = left.compatible(*right) || (*left, *right) == (Stream, Stream);
            assert_eq!(listed, valid, "{left} and {right}");
        }
    }
}

#[test]
fn every_other_pair_is_refused() {
    let watchdog = Watchdog::new("every_other_pair_is_refused");
    let context = Context::new();
    // These speak no ZMTP.
    let speaks = |kind: &&SocketType| !matches!(kind, Stream | Dgram);
    for bound in SocketType::ALL.iter().filter(speaks) {
        for connected in SocketType::ALL.iter().filter(speaks) {
            if bound.compatible(*connected) {
                continue;
            }
            let (server, client) = (socket(&context, *bound), socket(&context, *connected));
            let (server_events, client_events) = (
                Monitor::of(&context, &server),
                Monitor::of(&context, &client),
            );
            let endpoint = server.bind("tcp://127.0.0.1:*").unwrap();
            client.connect(&endpoint).unwrap();
            server_events.wait_for(EventKind::HandshakeFailedProtocol);
            client_events.wait_for(EventKind::HandshakeFailedProtocol);
            assert_eq!(server.peers() + client.peers(), 0);

            // Over inproc the error is immediate: connect fails, or the messages it sends have no receiver.
            let endpoint = server.bind(&inproc_name()).unwrap();
            let refused = client.connect(&endpoint).unwrap_err();
            assert_eq!(
                refused.kind(),
                ErrorKind::IncompatibleProtocol,
                "{bound} and {connected}"
            );
            watchdog.feed();
        }
    }
}

#[test]
fn stream_and_inproc_do_not_go_together() {
    let context = Context::new();
    let stream = socket(&context, Stream);
    let name = inproc_name();
    assert_eq!(
        stream.bind(&name).unwrap_err().kind(),
        ErrorKind::IncompatibleProtocol
    );
    assert_eq!(
        stream.connect(&name).unwrap_err().kind(),
        ErrorKind::IncompatibleProtocol
    );
}
