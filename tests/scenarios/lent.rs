//! Threads that wait for a message and take the connection over for that, while others use its socket.

use zeroxide::simulation::{JoinHandle, spawn};
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Wait};

use SocketType::{Dealer, Pair, Rep, Req};

use super::{Received, ipc, receive, send_all, sending, socket};

/// Sends back what arrives, until its context ends.
fn echo(socket: Socket) -> JoinHandle<()> {
    spawn("echo", move || {
        while let Ok(message) = socket.recv(Wait::Forever) {
            if socket.send(message, Wait::Forever).is_err() {
                return;
            }
        }
    })
}

/// A socket with a peer that answers, both in contexts of their own.
fn answered(near: SocketType, far: SocketType) -> (Context, Socket, Context, JoinHandle<()>) {
    let (context, far_context) = (Context::new(), Context::new());
    let (near, far) = (socket(&context, near), socket(&far_context, far));
    near.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    far.set_linger(Some(std::time::Duration::ZERO)).unwrap();
    far.bind(&ipc()).unwrap();
    near.connect(&ipc()).unwrap();
    let echo = echo(far);
    (context, near, far_context, echo)
}

fn ask(socket: &Socket, number: u8) -> Message {
    socket
        .send(super::message(0, number), Wait::Forever)
        .unwrap();
    socket.recv(Wait::Forever).unwrap()
}

pub fn round_trips() {
    let (context, near, far_context, echo) = answered(Req, Rep);
    let mut received = Received::default();
    for number in 0..4 {
        received.note(&ask(&near, number));
    }
    drop(near);
    context.term().unwrap();
    far_context.shutdown();
    echo.join().unwrap();
    far_context.term().unwrap();
}

/// A second thread sends, while the first one reads for itself.
pub fn another_thread_sends() {
    let (context, near, far_context, echo) = answered(Dealer, Dealer);
    near.send(super::message(0, 0), Wait::Forever).unwrap();
    let sender = sending(&near, 1, 3);
    let mut received = Received::default();
    received.note(&near.recv(Wait::Forever).unwrap());
    for number in 1..3 {
        near.send(super::message(0, number), Wait::Forever).unwrap();
        received.note(&near.recv(Wait::Forever).unwrap());
    }
    while received.next[..2] != [3, 3] {
        received.note(&near.recv(Wait::Forever).unwrap());
    }
    sender.join().unwrap();
    drop(near);
    context.term().unwrap();
    far_context.shutdown();
    echo.join().unwrap();
    far_context.term().unwrap();
}

/// Two threads receive from one connection: one of them has it, and the other one waits for the I/O thread's news.
pub fn two_receivers() {
    let (context, near, far_context, echo) = answered(Dealer, Dealer);
    let receivers = [2, 3].map(|count| {
        let near = near.clone();
        spawn("receiver", move || {
            let mut numbers = Vec::new();
            for _ in 0..count {
                numbers.push(near.recv(Wait::Forever).unwrap().head().as_slice()[1]);
            }
            assert!(numbers.is_sorted(), "{numbers:?}");
            numbers
        })
    });
    send_all(&near, 0, 5);
    let mut all: Vec<u8> = receivers
        .into_iter()
        .flat_map(|thread| thread.join().unwrap())
        .collect();
    all.sort();
    assert_eq!(all, [0, 1, 2, 3, 4]);
    drop(near);
    context.term().unwrap();
    far_context.shutdown();
    echo.join().unwrap();
    far_context.term().unwrap();
}

/// A second thread closes the socket during round trips.
pub fn another_thread_closes() {
    let (context, near, far_context, echo) = answered(Req, Rep);
    let closing = near.clone();
    let closer = spawn("closer", move || closing.close(None));
    let mut received = Received::default();
    for number in 0..3 {
        let sent = near.send(super::message(0, number), Wait::Forever);
        let answer = match sent {
            Ok(()) => near.recv(Wait::Forever),
            Err(refused) => Err(refused.error),
        };
        match answer {
            Ok(answer) => received.note(&answer),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::NotSocket);
                break;
            }
        }
    }
    closer.join().unwrap();
    drop(near);
    context.term().unwrap();
    far_context.shutdown();
    echo.join().unwrap();
    far_context.term().unwrap();
}

/// The peer closes during a wait. The messages it sent before arrive, and the wait goes on until the socket closes, too.
pub fn the_peer_closes() {
    let (context, far_context) = (Context::new(), Context::new());
    let (near, far) = (socket(&context, Pair), socket(&far_context, Pair));
    near.bind(&ipc()).unwrap();
    far.connect(&ipc()).unwrap();
    let peer = spawn("peer", move || {
        send_all(&far, 0, 3);
        far.close(None);
        far_context.term().unwrap();
    });
    receive(&near, 3);
    peer.join().unwrap();
    let waiting = near.clone();
    let waiter = spawn("waiter", move || {
        waiting.recv(Wait::Forever).unwrap_err().kind()
    });
    near.close(None);
    assert_eq!(waiter.join().unwrap(), ErrorKind::NotSocket);
    context.term().unwrap();
}

/// A thread that has read for itself does something else, and its peer sends more than fits into the kernel's buffers. The
/// peer can go on only if the I/O thread reads.
pub fn the_peer_sends_more_than_is_awaited() {
    let (context, far_context) = (Context::new(), Context::new());
    let (near, far) = (socket(&context, Pair), socket(&far_context, Pair));
    for socket in [&near, &far] {
        socket.set_sndbuf(Some(4096)).unwrap();
    }
    far.set_sndhwm(1).unwrap();
    near.bind(&ipc()).unwrap();
    far.connect(&ipc()).unwrap();
    let peer = spawn("peer", move || {
        for number in 0..3 {
            far.send(super::message(0, number), Wait::Forever).unwrap();
            far.recv(Wait::Forever).unwrap();
        }
        for number in 0..6 {
            far.send([number; LARGE].as_slice(), Wait::Forever).unwrap();
        }
        far.close(None);
        far_context.term().unwrap();
    });
    for number in 0..3 {
        assert_eq!(
            near.recv(Wait::Forever).unwrap().head().as_slice(),
            [0, number]
        );
        near.send(super::message(0, number), Wait::Forever).unwrap();
    }
    peer.join().unwrap();
    for number in 0..6 {
        let received = near.recv(Wait::Forever).unwrap();
        assert_eq!(received.head().as_slice(), [number; LARGE]);
    }
    drop(near);
    context.term().unwrap();
}

const LARGE: usize = 6000;
