//! Subscriptions, which travel against the messages.

use zeroxide::simulation::spawn;
use zeroxide::{Context, SocketType, Wait};

use SocketType::{Pub, Sub};

use super::{ipc, join, receive, send_all, socket};

fn subscribe_and_publish(endpoint: &str) {
    let context = Context::new();
    let publisher = socket(&context, Pub);
    publisher.bind(endpoint).unwrap();
    let subscribers = [0, 1].map(|_| {
        let (context, endpoint) = (context.clone(), endpoint.to_owned());
        spawn("subscriber", move || {
            let subscriber = socket(&context, Sub);
            subscriber.connect(&endpoint).unwrap();
            subscriber.subscribe([0]).unwrap();
            receive(&subscriber, 3);
        })
    });
    publisher.wait_subscribed([0], 2, Wait::Forever).unwrap();
    send_all(&publisher, 1, 2);
    send_all(&publisher, 0, 3);
    join(subscribers);
    drop(publisher);
    context.term().unwrap();
}

pub fn inproc() {
    subscribe_and_publish("inproc://a");
}

pub fn over_ipc() {
    subscribe_and_publish(&ipc());
}

/// The subscription is sent although its socket makes no further call, even if another thread has the lock when the
/// connection is ready.
pub fn an_idle_subscriber() {
    let context = Context::new();
    let (publisher, subscriber) = (socket(&context, Pub), socket(&context, Sub));
    publisher.bind(&ipc()).unwrap();
    subscriber.subscribe([0]).unwrap();
    subscriber.connect(&ipc()).unwrap();
    let busy = subscriber.clone();
    let other = spawn("other", move || {
        for _ in 0..3 {
            assert!(busy.recv(Wait::Dont).is_err());
        }
    });
    publisher.wait_subscribed([0], 1, Wait::Forever).unwrap();
    other.join().unwrap();
    send_all(&publisher, 0, 2);
    receive(&subscriber, 2);
    drop((publisher, subscriber));
    context.term().unwrap();
}
