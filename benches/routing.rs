//! Who gets a message: what choosing among many peers costs a socket, over inproc and within one thread, so that neither
//! the network nor a wake-up is in it. The receiving ends are emptied between the runs and are not in the times either.

use std::time::{Duration, Instant};

use zeroxide::{Context, Frame, Message, Result, Socket, SocketType, Wait};

const ROUNDS: usize = 7;
const EACH: usize = 200; // messages to one peer in a round, below the high-water mark

fn main() -> Result<()> {
    for peers in [1, 10, 100, 1000] {
        let (push, pulls) = joined(SocketType::Push, SocketType::Pull, peers)?;
        sending(
            &format!("PUSH to {peers} PULL in turns"),
            &push,
            &pulls,
            |_| body(),
        );
        let (router, dealers) = joined(SocketType::Router, SocketType::Dealer, peers)?;
        let ids = introduced(&router, &dealers);
        sending(
            &format!("ROUTER to {peers} DEALER by id"),
            &router,
            &dealers,
            |turn| Message::from_frames([ids[turn % peers].clone(), frame()]),
        );
        let (pull, pushes) = joined(SocketType::Pull, SocketType::Push, peers)?;
        receiving(&format!("PULL from {peers} PUSH, fairly"), &pull, &pushes);
    }
    for subscribers in [1, 10, 100] {
        let (publisher, subs) = joined(SocketType::Pub, SocketType::Sub, subscribers)?;
        for sub in &subs {
            sub.subscribe("")?;
        }
        sending(
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

fn sending(name: &str, from: &Socket, to: &[Socket], message: impl Fn(usize) -> Message) {
    rounds(name, EACH, || {
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

fn receiving(name: &str, at: &Socket, from: &[Socket]) {
    let each = EACH.div_ceil(from.len());
    rounds(name, each * from.len(), || {
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

/// Prints the median and the least time of one message.
fn rounds(name: &str, messages: usize, mut run: impl FnMut() -> Duration) {
    run();
    let mut times: Vec<f64> = (0..ROUNDS)
        .map(|_| {
            let took: Duration = (0..20).map(|_| run()).sum();
            took.as_nanos() as f64 / (20 * messages) as f64
        })
        .collect();
    times.sort_by(f64::total_cmp);
    let (least, median) = (times[0], times[ROUNDS / 2]);
    println!("{name:<40} {median:>9.1} ns  (least {least:.1})");
}
