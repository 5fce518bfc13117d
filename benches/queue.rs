//! The queues of pipes and mailboxes: the cost of one item, within a thread and across two, compared with std's
//! channel.

use std::hint::{black_box, spin_loop};
use std::sync::mpsc as std_channel;
use std::thread;

use zeroxide_proto::Frame;
use zeroxide_queue::{mpsc, spsc};

mod timing;

use timing::{Rows, measure};

const ITEMS: usize = 100_000;

fn main() {
    timing::run("queue", |rows| {
        within_a_thread(rows);
        across_threads(rows);
        mailbox(rows);
    });
}

fn within_a_thread(rows: &mut Rows<'_>) {
    let (mut producer, mut consumer) = spsc::channel();
    measure(rows, "spsc, one thread, flush each", 1000, || {
        for item in 0..1000_u64 {
            producer.push(item);
            let _ = producer.flush(); // no thread sleeps here
            black_box(consumer.pop());
        }
    });
    measure(rows, "spsc, one thread, flush per 1000", 1000, || {
        for item in 0..1000_u64 {
            producer.push(item);
        }
        let _ = producer.flush();
        while let Some(item) = consumer.pop() {
            black_box(item);
        }
    });
    let (mut producer, mut consumer) = spsc::channel();
    let body = [7; 64];
    measure(
        rows,
        "spsc of 64 B frames, one thread, flush per 1000",
        1000,
        || {
            for _ in 0..1000 {
                producer.push(Frame::copy_from(black_box(&body)));
            }
            let _ = producer.flush();
            while let Some(frame) = consumer.pop() {
                black_box(frame);
            }
        },
    );
}

fn across_threads(rows: &mut Rows<'_>) {
    for batch in [1, 16, 256] {
        measure(
            rows,
            &format!("spsc of 64 B frames, two threads, flush per {batch}"),
            ITEMS,
            || spsc_run(batch),
        );
    }
    measure(
        rows,
        "std channel of 64 B frames, two threads",
        ITEMS,
        || {
            let (sender, receiver) = std_channel::channel();
            thread::scope(|scope| {
                scope.spawn(move || {
                    (0..ITEMS)
                        .for_each(|_| sender.send(Frame::copy_from(&[7; 64])).expect("a receiver"))
                });
                receiver.iter().for_each(|frame| drop(black_box(frame)));
            });
        },
    );
}

/// The consumer spins, so that the bench measures the queue and not wake-ups.
fn spsc_run(batch: usize) {
    let (mut producer, mut consumer) = spsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for item in 1..=ITEMS {
                producer.push(Frame::copy_from(&[7; 64]));
                if item % batch == 0 {
                    let _ = producer.flush();
                }
            }
        });
        while !consumer.is_finished() {
            match consumer.pop() {
                Some(frame) => drop(black_box(frame)),
                None => spin_loop(),
            }
        }
    });
}

fn mailbox(rows: &mut Rows<'_>) {
    let queue = mpsc::Queue::new();
    measure(rows, "mpsc, one thread, taken per 100", 100, || {
        for item in 0..100_u64 {
            let _ = queue.push(item);
        }
        for item in queue.take_all() {
            black_box(item);
        }
    });
}
