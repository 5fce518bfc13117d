//! Routing: the cost for a socket of choosing among many peers, over inproc and within one thread, so that neither the
//! network nor a wake-up is included. The receiving ends are emptied between the runs, outside the measured time.

use std::time::{Duration, Instant};

use criterion::Throughput;
use zeroxide::{Context, Frame, Message, Result, Socket, SocketType, Wait};

mod timing;

use timing::Rows;

const EACH: usize = 200; // messages to one peer in a round, below the high-water mark

fn main() {
    timing::run("routing", |rows| all(rows).expect("sockets"));
}

fn all(rows: &mut Rows<'_>) -> Result<()> {
    for peers in [1, 10, 100, 1000] {
        let (push, pulls) = joined(SocketType::Push, SocketType::Pull, peers)?;
        sending(
            rows,
            &format!("PUSH to {peers} PULL in turns"),
            &push,
            &pulls,
            |_| body(),
        );
        let (router, dealers) = joined(SocketType::Router, SocketType::Dealer, peers)?;
        let ids = introduced(&router, &dealers);
        sending(
            rows,
            &format!("ROUTER to {peers} DEALER by id"),
            &router,
            &dealers,
            |turn| Message::from_frames([ids[turn % peers].clone(), frame()]),
        );
        let (pull, pushes) = joined(SocketType::Pull, SocketType::Push, peers)?;
        receiving(
            rows,
            &format!("PULL from {peers} PUSH, fairly"),
            &pull,
            &pushes,
        );
    }
    for subscribers in [1, 10, 100] {
        let (publisher, subs) = joined(SocketType::Pub, SocketType::Sub, subscribers)?;
        for sub in &subs {
            sub.subscribe("")?;
        }
        sending(
            rows,
            &format!("PUB to {subscribers} SUB, all of them"),
            &publisher,
            &subs,
            |_| body(),
        );
    }
    Ok(())
}

fn joined(one: SocketType, other: SocketType, count: usize) -> Result<(Socket, Vec<Socket>)> {
    let context = Context::new();
    let bound = context.socket(one)?;
    bound.bind("inproc://routing")?;
    let others = (0..count)
        .map(|_| {
            let socket = context.socket(other)?;
            socket.connect("inproc://routing")?;
            Ok(socket)
        })
        .collect::<Result<_>>()?;
    Ok((bound, others))
}

fn introduced(router: &Socket, dealers: &[Socket]) -> Vec<Frame> {
    dealers
        .iter()
        .map(|dealer| {
            send(dealer, body());
            let mut message = router.recv(Wait::Forever).expect("an open socket");
            message.pop_front().expect("a routing id")
        })
        .collect()
}

fn frame() -> Frame {
    Frame::copy_from(&[7; 64])
}

fn body() -> Message {
    Message::single(frame())
}

fn send(socket: &Socket, message: Message) {
    socket.send(message, Wait::Dont).expect("room in the pipe");
}

fn empty(socket: &Socket) -> usize {
    std::iter::from_fn(|| socket.recv(Wait::Dont).ok()).count()
}

fn sending(
    rows: &mut Rows<'_>,
    name: &str,
    from: &Socket,
    to: &[Socket],
    message: impl Fn(usize) -> Message,
) {
    rounds(rows, name, EACH, || {
        let start = Instant::now();
        for turn in 0..EACH {
            send(from, message(turn));
        }
        let took = start.elapsed();
        to.iter().for_each(|socket| {
            empty(socket);
        });
        took
    });
}

fn receiving(rows: &mut Rows<'_>, name: &str, at: &Socket, from: &[Socket]) {
    let each = EACH.div_ceil(from.len());
    rounds(rows, name, each * from.len(), || {
        for socket in from {
            (0..each).for_each(|_| send(socket, body()));
        }
        let start = Instant::now();
        let arrived = empty(at);
        let took = start.elapsed();
        assert_eq!(arrived, each * from.len());
        took
    });
}

/// A row of what `run` says that it took.
fn rounds(rows: &mut Rows<'_>, name: &str, messages: usize, mut run: impl FnMut() -> Duration) {
    rows.throughput(Throughput::Elements(messages as u64));
    rows.bench_function(name, |bencher| {
        bencher.iter_custom(|times| (0..times).map(|_| run()).sum());
    });
}
