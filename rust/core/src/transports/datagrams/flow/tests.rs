use std::net::UdpSocket;
use std::time::Duration;

use super::*;
use crate::budget::Budget;
use crate::error::{Error, ErrorKind};
use crate::options::{ContextOptions, Options};
use crate::patterns::Side;
use crate::pipe::{Limit, Pipe};
use crate::port::{Origin, SocketPort};
use crate::sys::sync::{Arc, Mutex};
use crate::undelivered::UndeliveredPeer;
use zeroxide_proto::socket_type::SocketType;

/// A socket that keeps what the flow reports.
#[derive(Default)]
struct Port {
    pipe: Mutex<Option<Pipe>>,
    dropped: Mutex<Vec<(DropReason, u64)>>,
    left: Mutex<Vec<UndeliveredPeer>>,
}

impl SocketPort for Port {
    fn attach(&self, pipe: Pipe, _: &str, _: Origin) {
        *self.pipe.lock().unwrap() = Some(pipe);
    }

    fn count_drop(&self, reason: DropReason, count: u64) {
        self.dropped.lock().unwrap().push((reason, count));
    }

    fn give_up(&self, reason: DropReason, left: UndeliveredPeer) {
        self.count_drop(reason, left.messages);
        self.left.lock().unwrap().push(left);
    }

    fn is_backlogged(&self) -> bool {
        false
    }

    fn wants(&self, _: EventKind) -> bool {
        false
    }

    fn emit(&self, _: MonitorEvent) {}
}

/// A flow that sends to no program, its socket, and that socket's end of the pipe, with `count` messages of ten bytes.
fn flow(count: usize) -> (Flow, Arc<Port>, Pipe) {
    let near = Arc::new(Port::default());
    let options = Options::new(SocketType::Radio, &ContextOptions::default());
    let port = MessagePort {
        port: near.clone(),
        socket_type: SocketType::Radio,
        endpoint: "udp://there".into(),
        origin: Origin {
            source: 0,
            local: false,
            side: Side::Connecting,
        },
        limits: (Limit::outbound(&options), Limit::inbound(&options)),
        conflate: (false, false),
        options: options.into(),
        peer_name: None,
        choose_io: Arc::new(|| Err(Error::new(ErrorKind::NoThread))),
        budget: Budget::new(),
        look_up: Arc::new(|_, _| Ok(())),
    };
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let pipe = port.open_for_datagrams(Some("there"), LARGEST, || {});
    let flow = Flow::sending(
        socket.into(),
        pipe,
        port,
        (Party::default(), Box::new(|_: &Socket| Ok(()))),
    );
    let mut theirs = near.pipe.lock().unwrap().take().unwrap();
    for _ in 0..count {
        let group = Frame::copy_from(b"group");
        let body = Frame::copy_from(b"body");
        theirs.write_unchecked(&mut Message::from_frames([group, body]));
    }
    theirs.flush();
    (flow, near, theirs)
}

#[test]
fn messages_of_a_closed_socket_count_once_and_are_reported() {
    let (mut flow, port, theirs) = flow(50);
    flow.refill();
    assert_eq!(flow.outbox.len(), BATCH);
    theirs.set_linger(Some(Duration::ZERO));
    drop(theirs);
    drop(flow);
    assert_eq!(*port.dropped.lock().unwrap(), [(DropReason::Lingered, 50)]);
    let left = port.left.lock().unwrap();
    let [left] = &left[..] else {
        panic!("{left:?}");
    };
    assert_eq!((left.messages, &*left.address), (50, "there"));
    assert!((9 * 50..=10 * 50).contains(&left.bytes), "{}", left.bytes);
}

#[test]
fn messages_that_a_flow_leaves_to_an_open_socket_are_counted_there() {
    let (mut flow, port, theirs) = flow(50);
    flow.refill();
    drop(flow);
    assert!(port.dropped.lock().unwrap().is_empty());
    assert!(port.left.lock().unwrap().is_empty());
    assert_eq!(theirs.lost() + theirs.lost_unread(), 50);
}
