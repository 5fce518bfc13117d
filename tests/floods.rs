//! Messages that a socket drops do not keep a call from ending, and a message after them is found without another event.

mod common;

use std::os::fd::BorrowedFd;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context as TaskContext, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use common::{SocketExt, Watchdog, inproc_name, message, socket};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use zeroxide::{
    Context, DropReason, ErrorKind, Events, PollItem, Socket, SocketType, Value, Wait, context_ids,
    ids,
};

use SocketType::{Dealer, Pub, Rep, Sub, Xpub, Xsub};

/// More than many calls drop.
const FLOOD: usize = 50_000;

/// Two connected sockets without marks.
struct Pair {
    context: Context,
    near: Socket,
    far: Socket,
}

impl Pair {
    fn new(near: SocketType, far: SocketType, io_threads: i64) -> Pair {
        Pair::over(&inproc_name(), near, far, io_threads)
    }

    fn over(endpoint: &str, near: SocketType, far: SocketType, io_threads: i64) -> Pair {
        let context = Context::new();
        context
            .set_option(context_ids::IO_THREADS, &Value::Int(io_threads))
            .unwrap();
        let pair = Pair {
            near: socket(&context, near),
            far: socket(&context, far),
            context,
        };
        pair.near.int(ids::RCVHWM, 0);
        pair.far.int(ids::SNDHWM, 0);
        let bound = pair.near.bind(endpoint).unwrap();
        pair.far.connect(&bound).unwrap();
        pair
    }

    /// A REP, to which requests without an envelope were sent, and then a good one.
    fn flooded(io_threads: i64) -> Pair {
        let pair = Pair::new(Rep, Dealer, io_threads);
        (0..FLOOD).for_each(|_| pair.far.put("no envelope"));
        pair.far.send(message([b"", b"good"]), Wait::Dont).unwrap();
        pair
    }

    fn end(self) {
        let dropped = self.near.dropped(DropReason::Malformed);
        assert_eq!(dropped, FLOOD as u64);
        drop((self.near, self.far));
        self.context.term().unwrap();
    }
}

/// A context without I/O threads cannot leave anything to one.
const IO_THREADS: [i64; 2] = [0, 1];

#[test]
fn a_call_that_does_not_wait_ends_and_the_next_ones_continue() {
    let _watchdog = Watchdog::new("a_call_that_does_not_wait_ends_and_the_next_ones_continue");
    for io_threads in IO_THREADS {
        let pair = Pair::flooded(io_threads);
        assert_eq!(pair.near.nothing(), ErrorKind::Again);
        let dropped = pair.near.dropped(DropReason::Malformed);
        assert!((1..FLOOD as u64 / 2).contains(&dropped), "{dropped}");
        while pair.near.events().unwrap().is_empty() {}
        assert_eq!(pair.near.take(), "good");
        pair.end();
    }
}

#[test]
fn calls_that_wait_find_what_is_behind_a_flood() {
    let _watchdog = Watchdog::new("calls_that_wait_find_what_is_behind_a_flood");
    let waits: [fn(&Socket); 4] = [
        |socket| assert_eq!(socket.take(), "good"),
        |socket| {
            let ready = socket.poll(Events::READABLE, None).unwrap();
            assert_eq!(ready, Events::READABLE);
            assert_eq!(socket.take(), "good");
        },
        |socket| {
            let mut items = [PollItem::socket(socket, Events::READABLE)];
            assert_eq!(zeroxide::poll(&mut items, None).unwrap(), 1);
            assert_eq!(socket.take(), "good");
        },
        |socket| {
            let received = socket.recv_batch(10, Wait::Forever).unwrap();
            assert_eq!(received, [message([b"good"])]);
        },
    ];
    for io_threads in IO_THREADS {
        for wait in waits {
            let pair = Pair::flooded(io_threads);
            wait(&pair.near);
            pair.end();
        }
    }
}

#[test]
fn the_descriptor_stays_readable_during_a_flood() {
    let _watchdog = Watchdog::new("the_descriptor_stays_readable_during_a_flood");
    for io_threads in IO_THREADS {
        let pair = Pair::new(Rep, Dealer, io_threads);
        let fd = pair.near.fd().unwrap();
        assert!(pair.near.events().unwrap().is_empty());
        (0..FLOOD).for_each(|_| pair.far.put("no envelope"));
        pair.far.send(message([b"", b"good"]), Wait::Dont).unwrap();
        // SAFETY: the socket owns the descriptor, and outlives this.
        let fd = unsafe { BorrowedFd::borrow_raw(fd) };
        loop {
            let patience = Timespec {
                tv_sec: 20,
                tv_nsec: 0,
            };
            let found = poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&patience));
            assert_eq!(found, Ok(1));
            if !pair.near.events().unwrap().is_empty() {
                break;
            }
        }
        assert_eq!(pair.near.take(), "good");
        pair.end();
    }
}

struct Unpark(Thread);

impl Wake for Unpark {
    fn wake(self: Arc<Self>) {
        self.0.unpark();
    }
}

fn block_on<F: Future>(future: F) -> F::Output {
    let mut future = pin!(future);
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    loop {
        match future.as_mut().poll(&mut TaskContext::from_waker(&waker)) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}

#[test]
fn a_task_is_woken_for_what_is_behind_a_flood() {
    let _watchdog = Watchdog::new("a_task_is_woken_for_what_is_behind_a_flood");
    for io_threads in IO_THREADS {
        let pair = Pair::flooded(io_threads);
        let received = block_on(pair.near.recv_async()).unwrap();
        assert_eq!(received, message([b"good"]));
        pair.end();
    }
}

#[test]
fn publishers_process_all_subscriptions_of_a_flood() {
    let _watchdog = Watchdog::new("publishers_process_all_subscriptions_of_a_flood");
    for publisher in [Pub, Xpub] {
        let pair = Pair::over("tcp://127.0.0.1:*", publisher, Xsub, 1);
        pair.far.wait_connected(1, Wait::Forever).unwrap();
        for number in 0..FLOOD {
            let verb = 1 - (number % 2) as u8;
            let request = [&[verb], &b"topic"[..]].concat();
            pair.far.send(message([&request]), Wait::Dont).unwrap();
        }
        pair.far.send(message([b"\x01last"]), Wait::Dont).unwrap();
        let count = pair.near.wait_subscribed("last", 1, Wait::Forever).unwrap();
        assert_eq!(count, 1);
        pair.near.put("last");
        assert_eq!(pair.far.take(), "last");
        drop((pair.near, pair.far));
        pair.context.term().unwrap();
    }
}

#[test]
fn what_sockets_of_one_program_subscribe_to_is_in_effect_at_once() {
    let _watchdog = Watchdog::new("what_sockets_of_one_program_subscribe_to_is_in_effect_at_once");
    type Attach = fn(&Socket, &Socket, &str);
    let attach: [Attach; 3] = [
        |publisher, sub, name| {
            publisher.bind(name).unwrap();
            sub.connect(name).unwrap();
        },
        |publisher, sub, name| {
            sub.connect(name).unwrap();
            publisher.bind(name).unwrap();
        },
        |publisher, sub, name| {
            sub.bind(name).unwrap();
            publisher.connect(name).unwrap();
        },
    ];
    for (publisher, attach) in attach
        .iter()
        .flat_map(|attach| [(Pub, attach), (Xpub, attach)])
    {
        let context = Context::new();
        // Nothing but the calls below can process subscriptions.
        context
            .set_option(context_ids::IO_THREADS, &Value::Int(0))
            .unwrap();
        let (publisher, sub) = (socket(&context, publisher), socket(&context, Sub));
        for number in 0..5000 {
            sub.subscribe(format!("{number}.")).unwrap();
        }
        attach(&publisher, &sub, &inproc_name());
        for topic in ["4999.", "2500.", "0."] {
            publisher.put(topic);
            assert_eq!(sub.take(), topic);
        }
        drop((publisher, sub));
        context.term().unwrap();
    }
}

/// A flood that goes on until the call has ended.
#[test]
fn limits_of_time_hold_during_a_flood() {
    let _watchdog = Watchdog::new("limits_of_time_hold_during_a_flood");
    for io_threads in IO_THREADS {
        let pair = Pair::new(Rep, Dealer, io_threads);
        // The queue is never empty: the sender is faster than a socket that has to look at each part.
        pair.far.int(ids::SNDHWM, 1000);
        let useless = message([b"x"; 1000]);
        thread::scope(|scope| {
            let Pair { near, far, .. } = &pair;
            let (ended, end) = std::sync::mpsc::channel::<()>();
            scope.spawn(move || {
                while end.try_recv() != Err(std::sync::mpsc::TryRecvError::Disconnected) {
                    let limit = std::time::Instant::now() + Duration::from_millis(5);
                    _ = far.send(useless.clone(), Wait::Until(limit));
                }
            });
            let limit = Duration::from_millis(50);
            near.int(ids::RCVTIMEO, 50);
            for _ in 0..5 {
                assert_eq!(
                    near.recv(Wait::Default).unwrap_err().kind(),
                    ErrorKind::Again
                );
                assert!(near.poll(Events::READABLE, Some(limit)).unwrap().is_empty());
                assert!(
                    near.poll(Events::READABLE, Some(Duration::ZERO))
                        .unwrap()
                        .is_empty()
                );
            }
            drop(ended);
        });
        drop((pair.near, pair.far));
        pair.context.term().unwrap();
    }
}
