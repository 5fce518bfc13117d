//! Sockets of one context over inproc.

use zeroxide::simulation::spawn;
use zeroxide::{Context, ErrorKind, Events, SocketType, Wait};

use SocketType::{Dealer, Pair, Pull, Push};

use super::{Received, join, message, narrow, narrow_in_bytes, receive, send_all, sending, socket};

const NAME: &str = "inproc://a";

/// Connects before or after the bind, and sends at once.
pub fn connect_and_bind() {
    let context = Context::new();
    let pull = socket(&context, Pull);
    let push = socket(&context, Push);
    let sender = spawn("sender", move || {
        push.connect(NAME).unwrap();
        send_all(&push, 0, 4);
    });
    pull.bind(NAME).unwrap();
    receive(&pull, 4);
    sender.join().unwrap();
    drop(pull);
    context.term().unwrap();
}

/// Both ends send and receive.
pub fn both_directions() {
    let context = Context::new();
    let (near, far) = (socket(&context, Pair), socket(&context, Pair));
    near.bind(NAME).unwrap();
    far.connect(NAME).unwrap();
    let senders = [sending(&near, 0, 3), sending(&far, 1, 3)];
    let receiver = spawn("receiver", move || receive(&far, 3).count());
    assert_eq!(receive(&near, 3).count(), 3);
    assert_eq!(receiver.join().unwrap(), 3);
    join(senders);
    drop(near);
    context.term().unwrap();
}

/// A socket that closes has sent everything.
pub fn one_of_two_senders_closes() {
    let context = Context::new();
    let pull = socket(&context, Pull);
    pull.bind(NAME).unwrap();
    let senders = [(0, true), (1, false)].map(|(sender, closes)| {
        let context = context.clone();
        spawn("sender", move || {
            let push = socket(&context, Push);
            push.connect(NAME).unwrap();
            send_all(&push, sender, 3);
            if closes {
                push.close(None);
            } else {
                send_all_from(&push, sender, 3..5);
            }
        })
    });
    assert_eq!(receive(&pull, 8).next, [3, 5, 0, 0]);
    join(senders);
    assert_eq!(pull.recv(Wait::Dont).unwrap_err().kind(), ErrorKind::Again);
    drop(pull);
    context.term().unwrap();
}

fn send_all_from(push: &zeroxide::Socket, sender: u8, numbers: std::ops::Range<u8>) {
    for number in numbers {
        push.send(message(sender, number), Wait::Forever).unwrap();
    }
}

/// A sender waits for room, and the receiver wakes it.
pub fn a_full_pipe() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    narrow(&pull);
    narrow(&push);
    pull.bind(NAME).unwrap();
    push.connect(NAME).unwrap();
    let senders = [sending(&push, 0, 4), sending(&push, 1, 4)];
    assert_eq!(receive(&pull, 8).next, [4, 4, 0, 0]);
    join(senders);
    drop((pull, push));
    context.term().unwrap();
}

/// The same with limits in bytes. Their half is not a number of whole messages.
pub fn a_pipe_full_of_bytes() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    push.set_sndhwm(0).unwrap();
    narrow_in_bytes(&pull, 3, 2);
    pull.bind(NAME).unwrap();
    push.connect(NAME).unwrap();
    let senders = [sending(&push, 0, 6), sending(&push, 1, 6)];
    assert_eq!(receive(&pull, 12).next, [6, 6, 0, 0]);
    join(senders);
    drop((pull, push));
    context.term().unwrap();
}

/// Two threads receive from one socket: each message goes to one of them.
pub fn two_receivers() {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    pull.bind(NAME).unwrap();
    push.connect(NAME).unwrap();
    let receivers = [2, 3].map(|count| {
        let pull = pull.clone();
        spawn("receiver", move || {
            let numbers = (0..count).map(|_| pull.recv(Wait::Forever).unwrap());
            let numbers = numbers.map(|message| message.head().as_slice()[1]);
            numbers.collect::<Vec<_>>()
        })
    });
    send_all(&push, 0, 5);
    let mut all = Vec::new();
    for receiver in receivers {
        let numbers = receiver.join().unwrap();
        assert!(numbers.is_sorted(), "{numbers:?}");
        all.extend(numbers);
    }
    all.sort();
    assert_eq!(all, [0, 1, 2, 3, 4]);
    drop((pull, push));
    context.term().unwrap();
}

/// One thread polls, and another one receives.
pub fn poll_beside_receive() {
    poll_beside(NAME);
}

pub fn poll_beside(endpoint: &str) {
    let context = Context::new();
    let (pull, push) = (socket(&context, Pull), socket(&context, Push));
    pull.bind(endpoint).unwrap();
    push.connect(endpoint).unwrap();
    let polling = pull.clone();
    let poller = spawn("poller", move || {
        let mut count = 0;
        while count < 2 {
            assert!(polling.poll(Events::READABLE, None).unwrap().is_readable());
            // The other thread may have been here first.
            count += usize::from(polling.recv(Wait::Dont).is_ok());
        }
    });
    let receiving = pull.clone();
    let receiver = spawn("receiver", move || {
        receiving.recv(Wait::Forever).unwrap();
        receiving.recv(Wait::Forever).unwrap();
    });
    send_all(&push, 0, 4);
    poller.join().unwrap();
    receiver.join().unwrap();
    assert!(pull.events().unwrap() == Events::NONE);
    drop((pull, push));
    context.term().unwrap();
}

/// Sockets bind, connect and leave under each other's feet. Nothing arrives twice, and everything ends.
pub fn coming_and_going() {
    let context = Context::new();
    let (first, second) = (socket(&context, Dealer), socket(&context, Dealer));
    let dealer = socket(&context, Dealer);
    let binder = spawn("binder", move || {
        let _ = first.bind(NAME);
        let _ = first.unbind(NAME);
        Received::default().note_rest(&first);
    });
    let other = spawn("other", move || {
        let taken = second.bind(NAME).is_err_and(|error| {
            assert_eq!(error.kind(), ErrorKind::AddressInUse);
            true
        });
        let mut received = Received::default();
        received.note_rest(&second);
        assert_eq!(second.unbind(NAME).is_err(), taken);
        received.note_rest(&second);
    });
    dealer.connect(NAME).unwrap();
    for number in 0..3 {
        let _ = dealer.send(message(0, number), Wait::Dont);
    }
    dealer.disconnect(NAME).unwrap();
    assert!(dealer.send(message(0, 3), Wait::Dont).is_err());
    binder.join().unwrap();
    other.join().unwrap();
    drop(dealer);
    context.term().unwrap();
}
