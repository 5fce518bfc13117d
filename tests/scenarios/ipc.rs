//! Connections: engines, streams and I/O threads. The bytes pass through the kernel's sockets.

use std::time::Duration;

use zeroxide::simulation::spawn;
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Wait};

use SocketType::{Pair, Pull, Push};

use super::{
    Received, inproc, ipc, join, narrow, narrow_in_bytes, receive, send_all, sending, socket,
};

/// Connects before or after the bind: then the first attempt fails, and the next one follows after a while.
pub fn connect_and_bind() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    let sender = spawn("sender", move || {
        push.connect(&ipc()).unwrap();
        send_all(&push, 0, 3);
    });
    pull.bind(&ipc()).unwrap();
    receive(&pull, 3);
    sender.join().unwrap();
    drop(pull);
    context.term().unwrap();
}

/// Both ends send and receive.
pub fn both_directions() {
    let context = Context::new();
    let (near, far) = (socket(&context, Pair), socket(&context, Pair));
    near.bind(&ipc()).unwrap();
    far.connect(&ipc()).unwrap();
    let senders = [sending(&near, 0, 3), sending(&far, 1, 3)];
    let receiver = spawn("receiver", move || receive(&far, 3).count());
    assert_eq!(receive(&near, 3).count(), 3);
    assert_eq!(receiver.join().unwrap(), 3);
    join(senders);
    drop(near);
    context.term().unwrap();
}

/// Room in the kernel for little more than one message.
const LARGE: usize = 6000;

fn large(number: u8) -> Message {
    Message::from(vec![number; LARGE].as_slice())
}

fn has_little_room(socket: &Socket) {
    narrow(socket);
    has_little_room_in_the_kernel(socket);
}

fn has_little_room_in_the_kernel(socket: &Socket) {
    socket.set_sndbuf(Some(4096)).unwrap();
    socket.set_rcvbuf(Some(4096)).unwrap();
}

/// Pipes and the kernel's buffers are full: the sender, both I/O threads and the receiver wait for each other in turn.
pub fn a_full_connection() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    has_little_room(&pull);
    has_little_room(&push);
    pass_large(context, pull, push, 6);
}

/// The same with limits in bytes, on both wire protocols. Half of a limit is not a number of whole messages.
pub fn a_connection_full_of_bytes() {
    for wire in [0, 1] {
        let context = Context::new();
        let (pull, push) = (socket(&context, Pull), socket(&context, Push));
        for socket in [&pull, &push] {
            socket.set_wire_protocol(wire).unwrap();
            narrow_in_bytes(socket, 3, LARGE);
            has_little_room_in_the_kernel(socket);
        }
        pass_large(context, pull, push, 12);
    }
}

/// Sends this many large messages in another thread, while this one receives them.
fn pass_large(context: Context, pull: Socket, push: Socket, count: u8) {
    pull.bind(&ipc()).unwrap();
    push.connect(&ipc()).unwrap();
    let sender = spawn("sender", move || {
        for number in 0..count {
            push.send(large(number), Wait::Forever).unwrap();
        }
    });
    for number in 0..count {
        let received = pull.recv(Wait::Forever).unwrap();
        assert_eq!(received.head().as_slice(), [number; LARGE]);
    }
    sender.join().unwrap();
    drop(pull);
    context.term().unwrap();
}

/// The sender closes and terminates its context, which waits until its peer has everything.
pub fn term_lingers() {
    let (near, far) = (Context::new(), Context::new());
    let pull = socket(&far, Pull);
    narrow(&pull);
    pull.bind(&ipc()).unwrap();
    let sender = spawn("sender", move || {
        let push = socket(&near, Push);
        push.connect(&ipc()).unwrap();
        send_all(&push, 0, 5);
        push.close(None);
        near.term().unwrap();
    });
    receive(&pull, 5);
    sender.join().unwrap();
    assert_eq!(pull.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Again);
    drop(pull);
    far.term().unwrap();
}

/// With a limit, `term()` ends even if the peer does not read, and the peer has the first messages.
pub fn term_lingers_for_a_while() {
    let (near, far) = (Context::new(), Context::new());
    let pull = socket(&far, Pull);
    has_little_room(&pull);
    pull.bind(&ipc()).unwrap();
    let sender = spawn("sender", move || {
        let push = socket(&near, Push);
        push.set_sndbuf(Some(4096)).unwrap();
        push.connect(&ipc()).unwrap();
        push.wait_connected(1, Wait::Forever).unwrap();
        for number in 0..6 {
            push.send(large(number), Wait::Forever).unwrap();
        }
        push.close(Some(Some(Duration::from_millis(5))));
        near.term().unwrap();
    });
    sender.join().unwrap();
    let mut next = 0;
    while let Ok(received) = pull.recv(Wait::Dont) {
        assert_eq!(received.head().as_slice(), [next; LARGE]);
        next += 1;
    }
    drop(pull);
    far.term().unwrap();
}

/// A receiver goes, and another one takes its place. Messages that
/// the first one has not received may be lost with it, but no message arrives twice or in the wrong order.
pub fn a_peer_goes() {
    let context = Context::new();
    let push = socket(&context, Push);
    push.set_linger(Some(Duration::ZERO)).unwrap();
    push.bind(&ipc()).unwrap();
    let sender = sending(&push, 0, 6);
    let first = socket(&context, Pull);
    first.connect(&ipc()).unwrap();
    let last = number(&first.recv(Wait::Forever).unwrap());
    first.close(None);
    let second = socket(&context, Pull);
    second.connect(&ipc()).unwrap();
    sender.join().unwrap();
    push.close(Some(None));
    let mut after = last;
    while let Ok(received) = second.recv(Wait::Until(
        zeroxide::simulation::now() + Duration::from_millis(200),
    )) {
        let number = number(&received);
        assert!(number > after, "{number} after {after}");
        after = number;
    }
    drop(second);
    context.term().unwrap();
}

fn number(message: &Message) -> u8 {
    message.head().as_slice()[1]
}

/// A listener goes while a peer connects and sends. Its messages arrive once and in order.
pub fn unbind_while_connecting() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    push.set_linger(Some(Duration::ZERO)).unwrap();
    let sender = spawn("sender", move || {
        push.connect(&ipc()).unwrap();
        for number in 0..3 {
            push.send(super::message(0, number), Wait::Forever).unwrap();
        }
        push.disconnect(&ipc()).unwrap();
    });
    pull.bind(&ipc()).unwrap();
    pull.unbind(&ipc()).unwrap();
    pull.bind(&ipc()).unwrap();
    sender.join().unwrap();
    Received::default().note_rest(&pull);
    drop(pull);
    context.term().unwrap();
}

/// One thread polls, and another one receives.
pub fn poll_beside_receive() {
    inproc::poll_beside(&ipc());
}
