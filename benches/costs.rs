//! The cost of each step of a message's path on this machine, measured alone; docs/hot-path.md counts the steps. No
//! other thread uses the lock, the cache line of the counter or the descriptors meanwhile, so these are lower bounds.

use std::hint::black_box;
use std::io::{IoSlice, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::fd::AsFd;
use std::sync::Mutex;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use std::time::{Duration, Instant};

use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, epoll, eventfd, poll};
use rustix::net::sockopt::set_socket_send_buffer_size;
use rustix::thread::futex;

mod timing;

use timing::{Rows, measure};

fn main() {
    timing::run("costs", |rows| {
        processor(rows);
        kernel(rows);
        connection(rows);
    });
}

fn processor(rows: &mut Rows<'_>) {
    let lock = Mutex::new(0_u64);
    measure(rows, "lock and unlock", 1, || {
        *lock.lock().expect("no thread panics") += 1;
    });
    let count = AtomicU64::new(0);
    measure(rows, "store and fence", 1, || {
        count.store(1, Ordering::Release);
        fence(Ordering::SeqCst);
    });
    let frame = [7_u8; 72];
    let mut place = [0; 72];
    measure(rows, "copy of 72 B", 1, || {
        place = *black_box(&frame);
        black_box(&mut place);
    });
    measure(rows, "a block of 1 KiB, taken and given back", 1, || {
        black_box(Vec::<IoSlice<'_>>::with_capacity(64));
    });
    let body = [7_u8; 1024];
    let mut place = [0; 1024];
    measure(rows, "copy of 1 KiB", 1, || {
        place.copy_from_slice(black_box(&body));
        black_box(&mut place);
    });
    measure(rows, "look at the clock", 1, || {
        black_box(Instant::now());
    });
}

fn kernel(rows: &mut Rows<'_>) {
    let bell = eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor");
    measure(rows, "write to an eventfd", 1, || {
        rustix::io::write(&bell, &1_u64.to_ne_bytes()).expect("room for one more");
    });
    let word = AtomicU32::new(0);
    measure(rows, "futex wake, no thread waits", 1, || {
        futex::wake(&word, futex::Flags::PRIVATE, 1).expect("a futex");
    });
    let quiet = eventfd(0, EventfdFlags::NONBLOCK).expect("a descriptor");
    let at_once = Timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    let set = epoll::create(epoll::CreateFlags::CLOEXEC).expect("a descriptor");
    let data = epoll::EventData::new_u64(0);
    epoll::add(&set, &quiet, data, epoll::EventFlags::IN).expect("a new one");
    let mut events: Vec<epoll::Event> = Vec::with_capacity(8);
    measure(rows, "epoll_wait, nothing there", 1, || {
        let room = rustix::buffer::spare_capacity(&mut events);
        epoll::wait(&set, room, Some(&at_once)).expect("a set");
    });
    measure(rows, "poll of two, nothing there", 1, || {
        let mut both = [
            PollFd::new(&quiet, PollFlags::IN),
            PollFd::from_borrowed_fd(set.as_fd(), PollFlags::IN),
        ];
        poll(&mut both, Some(&at_once)).expect("two descriptors");
    });
}

/// Writes and reads in turn from one thread. Work of the receiver that the kernel does within the sender's call counts
/// as the sender's.
fn connection(rows: &mut Rows<'_>) {
    let (mut near, mut far) = connected();
    // The number of writes that fit into the connection without a reader.
    for (size, name, writes) in [(64, "64 B", 8), (64 << 10, "64 KiB", 1)] {
        let body = vec![7; size];
        let mut arrived = vec![0; size];
        let mut turn = |many: u64| {
            let (mut writing, mut reading) = (Duration::ZERO, Duration::ZERO);
            let turns = many.div_ceil(writes);
            for _ in 0..turns {
                let began = Instant::now();
                (0..writes).for_each(|_| near.write_all(&body).expect("an open connection"));
                let written = Instant::now();
                (0..writes).for_each(|_| far.read_exact(&mut arrived).expect("all of it"));
                writing += written - began;
                reading += written.elapsed();
            }
            let share = many as f64 / (turns * writes) as f64;
            (writing.mul_f64(share), reading.mul_f64(share))
        };
        rows.bench_function(format!("sendto {name}, tcp"), |bencher| {
            bencher.iter_custom(|times| turn(times).0);
        });
        rows.bench_function(format!("recvfrom {name}, tcp"), |bencher| {
            bencher.iter_custom(|times| turn(times).1);
        });
    }
}

fn connected() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let near = TcpStream::connect(listener.local_addr().expect("bound")).expect("a connection");
    let (far, _) = listener.accept().expect("a connection");
    near.set_nodelay(true).expect("a tcp socket");
    set_socket_send_buffer_size(&near, 128 << 10).expect("less than the most");
    (near, far)
}
