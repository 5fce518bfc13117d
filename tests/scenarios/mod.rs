//! What happens in `schedules.rs`: each function runs once per schedule, and asserts what must hold in every one.

pub mod ending;
pub mod inproc;
pub mod ipc;
pub mod lent;
pub mod pubsub;

use std::process;

use zeroxide::simulation::{JoinHandle, spawn};
use zeroxide::{Context, ErrorKind, Message, Socket, SocketType, Wait};

/// An ipc endpoint that no other test thread uses. A schedule ends with all sockets closed, so the next one can use it.
pub fn ipc() -> String {
    thread_local! {
        static NAME: String = {
            let thread = format!("{:?}", std::thread::current().id());
            let digits: String = thread.chars().filter(char::is_ascii_digit).collect();
            format!("ipc://@zeroxide-schedules-{}-{digits}", process::id())
        };
    }
    NAME.with(String::clone)
}

/// A message that says who sent it, and the number of messages before it.
fn message(sender: u8, number: u8) -> Message {
    Message::from([sender, number].as_slice())
}

/// Sends this many messages.
fn send_all(socket: &Socket, sender: u8, count: u8) {
    for number in 0..count {
        socket.send(message(sender, number), Wait::Forever).unwrap();
    }
}

/// Sends this many messages in a thread, which returns the socket.
fn sending(socket: &Socket, sender: u8, count: u8) -> JoinHandle<()> {
    let socket = socket.clone();
    spawn("sender", move || send_all(&socket, sender, count))
}

/// The messages that a socket has received.
#[derive(Default)]
struct Received {
    /// The next number of each sender.
    next: [u8; 4],
}

impl Received {
    /// Notes a message: nothing before it from the same sender is missing, and it did not arrive before.
    fn note(&mut self, message: &Message) {
        let body = message.head();
        let [sender, number] = *body.as_slice() else {
            panic!("{body:?}");
        };
        let next = &mut self.next[usize::from(sender)];
        assert_eq!(*next, number, "from {sender}");
        *next += 1;
    }

    /// Receives until there is nothing left.
    fn note_rest(&mut self, socket: &Socket) {
        while let Ok(message) = socket.recv(Wait::Dont) {
            self.note(&message);
        }
    }

    fn count(&self) -> u8 {
        self.next.iter().sum()
    }
}

/// Receives this many messages.
fn receive(socket: &Socket, count: u8) -> Received {
    let mut received = Received::default();
    for _ in 0..count {
        received.note(&socket.recv(Wait::Forever).unwrap());
    }
    received
}

/// Sends until the call fails, and returns the number of messages that were sent and the reason.
fn send_until_error(socket: &Socket, sender: u8) -> (u8, ErrorKind) {
    for number in 0..u8::MAX {
        if let Err(refused) = socket.send(message(sender, number), Wait::Forever) {
            return (number, refused.error.kind());
        }
    }
    panic!("it is never full");
}

fn socket(context: &Context, socket_type: SocketType) -> Socket {
    context.socket(socket_type).unwrap()
}

/// One message fits into each end of a pipe.
fn narrow(socket: &Socket) {
    socket.set_sndhwm(1).unwrap();
    socket.set_rcvhwm(1).unwrap();
}

/// The bytes that a part counts in addition to its own.
const PART: usize = 72;

/// A pipe is full with this many messages of this size, by their bytes.
fn narrow_in_bytes(socket: &Socket, messages: usize, size: usize) {
    socket.set_sndhwm(0).unwrap();
    socket.set_rcvhwm(0).unwrap();
    let bytes = messages * (size + PART);
    socket.set_sndhwm_bytes(bytes).unwrap();
    socket.set_rcvhwm_bytes(bytes).unwrap();
}

fn join(threads: impl IntoIterator<Item = JoinHandle<()>>) {
    threads
        .into_iter()
        .for_each(|thread| thread.join().unwrap());
}
