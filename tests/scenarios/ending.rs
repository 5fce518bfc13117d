//! Calls that wait while their socket or context ends.

use std::time::Duration;

use zeroxide::simulation::{JoinHandle, spawn};
use zeroxide::{Context, ErrorKind, Socket, SocketType, Wait};

use SocketType::{Pair, Pull, Push};

use super::{Received, ipc, join, narrow, send_until_error, sending, socket};

const NAME: &str = "inproc://a";

#[derive(Clone, Copy)]
enum End {
    Close,
    Shutdown,
    Term,
}

impl End {
    fn error(self) -> ErrorKind {
        match self {
            End::Close => ErrorKind::NotSocket,
            End::Shutdown | End::Term => ErrorKind::Terminated,
        }
    }
}

/// Ends a socket with which other threads are busy, or its context. The thread that it returns ends once all sockets are closed.
fn end(context: &Context, ends: &Socket, how: End) -> Option<JoinHandle<()>> {
    match how {
        End::Close => ends.close(None),
        End::Shutdown => context.shutdown(),
        End::Term => {
            let context = context.clone();
            return Some(spawn("term", move || context.term().unwrap()));
        }
    }
    None
}

/// Two threads wait for messages, of which a peer in another context may send some.
fn end_receivers(endpoint: &str, how: End) {
    let (context, far_context) = (Context::new(), Context::new());
    let (near, far) = (socket(&context, Pair), socket(&far_context, Pair));
    near.bind(endpoint).unwrap();
    far.set_linger(Some(Duration::ZERO)).unwrap();
    far.connect(endpoint).unwrap();
    let sender = sending(&far, 0, 2);
    let receivers = [0, 1].map(|_| {
        let near = near.clone();
        // Which of them receives what is not defined.
        spawn("receiver", move || {
            loop {
                if let Err(error) = near.recv(Wait::Forever) {
                    return error.kind();
                }
            }
        })
    });
    let term = end(&context, &near, how);
    for receiver in receivers {
        assert_eq!(receiver.join().unwrap(), how.error());
    }
    near.close(None);
    join(term);
    join([sender]);
    drop((near, far));
    context.term().unwrap();
    far_context.term().unwrap();
}

pub fn close_ends_receive_inproc() {
    end_receivers(NAME, End::Close);
}

pub fn shutdown_ends_receive_inproc() {
    end_receivers(NAME, End::Shutdown);
}

pub fn term_ends_receive_inproc() {
    end_receivers(NAME, End::Term);
}

pub fn close_ends_receive_ipc() {
    end_receivers(&ipc(), End::Close);
}

pub fn shutdown_ends_receive_ipc() {
    end_receivers(&ipc(), End::Shutdown);
}

pub fn term_ends_receive_ipc() {
    end_receivers(&ipc(), End::Term);
}

/// The peer does not read, so the sender waits for room in the end.
fn end_sender(how: End) {
    let context = Context::new();
    let (push, pull) = (socket(&context, Push), socket(&context, Pull));
    narrow(&push);
    narrow(&pull);
    pull.bind(NAME).unwrap();
    push.connect(NAME).unwrap();
    let sending = push.clone();
    let sender = spawn("sender", move || send_until_error(&sending, 0));
    let term = end(&context, &push, how);
    let (sent, error) = sender.join().unwrap();
    assert_eq!(error, how.error());
    if let End::Close = how {
        let mut received = Received::default();
        received.note_rest(&pull);
        assert_eq!(received.count(), sent);
    }
    drop((push, pull));
    join(term);
    context.term().unwrap();
}

pub fn close_ends_send() {
    end_sender(End::Close);
}

pub fn shutdown_ends_send() {
    end_sender(End::Shutdown);
}

pub fn term_ends_send() {
    end_sender(End::Term);
}

/// Contexts end in several threads at once, while sockets are still created.
pub fn term_in_two_threads() {
    let context = Context::new();
    let terms = [0, 1].map(|_| {
        let context = context.clone();
        spawn("term", move || context.term().unwrap())
    });
    if let Ok(socket) = context.socket(Pair) {
        if let Err(error) = socket.bind(NAME) {
            assert_eq!(error.kind(), ErrorKind::Terminated);
        }
        drop(socket);
    }
    join(terms);
    assert!(context.socket(Pair).is_err());
}

/// A context ends, and closes its sockets, while one is created.
pub fn term_within_beside_socket() {
    let context = Context::new();
    let term = {
        let context = context.clone();
        spawn("term", move || {
            drop(context.term_within(Some(Duration::ZERO)).unwrap())
        })
    };
    let created = context.socket(Pair);
    join([term]);
    // This would wait forever for a socket that is not closed.
    context.term().unwrap();
    if let Ok(socket) = created {
        assert!(socket.bind(NAME).is_err());
    }
}
