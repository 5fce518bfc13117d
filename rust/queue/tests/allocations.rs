//! Allocations by the queues: less than one chunk per 256 messages while they grow, none while they are steady, and
//! little memory while they are nearly empty. A list of waiters allocates only while more wait than before.
#![cfg(not(zeroxide_loom))]

use std::{
    alloc::{GlobalAlloc, Layout, System},
    cell::Cell,
    sync::{Arc, atomic::AtomicU32},
};

use zeroxide_queue::parker::{self, Parker};
use zeroxide_queue::waiters::Waiters;
use zeroxide_queue::{mpsc, spsc};

/// The size of a message's frame, which is the usual item of the queues.
type Item = [u64; 9];

const ITEM: Item = [7; 9];
/// Items in a large chunk.
const CHUNK: usize = 272;

/// The system's allocator, with a count per thread, so that concurrent tests do not affect each other.
struct Counting;

thread_local! {
    static ALLOCATIONS: Cell<usize> = const { Cell::new(0) };
    static LIVE_BYTES: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: passes everything to the system's allocator. The counters are constants without a destructor, so they need no
// allocation.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.set(ALLOCATIONS.get() + 1);
        LIVE_BYTES.set(LIVE_BYTES.get() + layout.size() as isize);
        // SAFETY: the caller follows the rules of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        LIVE_BYTES.set(LIVE_BYTES.get() - layout.size() as isize);
        // SAFETY: the caller follows the rules of `dealloc`.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// The number of allocations that `work` makes on this thread, and by how many bytes the heap grows.
fn measure(work: impl FnOnce()) -> (usize, isize) {
    let (allocations, bytes) = (ALLOCATIONS.get(), LIVE_BYTES.get());
    work();
    (ALLOCATIONS.get() - allocations, LIVE_BYTES.get() - bytes)
}

#[test]
fn an_idle_queue_holds_no_chunk() {
    let mut ends = None;
    let (allocations, bytes) = measure(|| ends = Some(spsc::channel::<Item>()));
    assert_eq!(allocations, 1);
    assert!(bytes <= 512, "{bytes} bytes");
    drop(ends);
}

#[test]
fn a_growing_queue_allocates_less_than_once_per_256_items() {
    let (mut producer, _consumer) = spsc::channel::<Item>();
    let (allocations, _) = measure(|| {
        for _ in 0..100 * 256 {
            producer.push(ITEM);
            let _ = producer.flush();
        }
    });
    assert!(allocations <= 100, "{allocations}");
}

#[test]
fn a_flowing_queue_allocates_nothing() {
    for backlog in [1, 100, CHUNK - 1, CHUNK, 5 * CHUNK + 50] {
        let (mut producer, mut consumer) = spsc::channel::<Item>();
        (0..backlog).for_each(|_| producer.push(ITEM));
        let mut flow = |count| {
            for _ in 0..count {
                producer.push(ITEM);
                let _ = producer.flush();
                assert!(consumer.pop().is_some());
            }
        };
        // Until the consumer has left its first chunk.
        flow(2 * CHUNK);
        let (allocations, _) = measure(|| flow(50 * CHUNK));
        assert_eq!(allocations, 0, "with {backlog} items waiting");
    }
}

#[test]
fn a_queue_that_is_nearly_empty_holds_little() {
    let little = (2 * (16 * size_of::<Item>() + 64) + 512) as isize;
    let mut ends = None;
    let (_, bytes) = measure(|| {
        let (producer, consumer) = ends.insert(spsc::channel::<Item>());
        for _ in 0..1000 {
            (0..7).for_each(|_| producer.push(ITEM));
            let _ = producer.flush();
            (0..7).for_each(|_| assert!(consumer.pop().is_some()));
        }
    });
    assert!(bytes <= little, "{bytes} bytes");

    // After a burst, as soon as the remains of the burst have been used up.
    let (_, more) = measure(|| {
        let (producer, consumer) = ends.as_mut().unwrap();
        (0..10 * CHUNK).for_each(|_| producer.push(ITEM));
        let _ = producer.flush();
        while consumer.pop().is_some() {}
        for _ in 0..4 * CHUNK {
            producer.push(ITEM);
            let _ = producer.flush();
            assert!(consumer.pop().is_some());
        }
    });
    assert!(bytes + more <= little, "{} bytes", bytes + more);
}

/// Whole batches in, whole batches out, over and over.
#[test]
fn alternating_batches_allocate_nothing() {
    let (mut producer, mut consumer) = spsc::channel::<Item>();
    let mut alternate = |rounds: usize| {
        for round in 0..rounds {
            let batch = round % CHUNK;
            (0..batch).for_each(|_| producer.push(ITEM));
            let _ = producer.flush();
            (0..batch).for_each(|_| assert!(consumer.pop().is_some()));
        }
    };
    alternate(CHUNK);
    let (allocations, _) = measure(|| alternate(10 * CHUNK));
    assert_eq!(allocations, 0);
}

#[test]
fn rolling_back_over_a_chunk_and_pushing_again_allocates_nothing() {
    let (mut producer, _consumer) = spsc::channel::<Item>();
    (0..3 * CHUNK).for_each(|_| producer.push(ITEM));
    let (allocations, _) = measure(|| {
        for _ in 0..10 {
            (0..3 * CHUNK).for_each(|_| assert!(producer.rollback().is_some()));
            (0..3 * CHUNK).for_each(|_| producer.push(ITEM));
        }
    });
    assert_eq!(allocations, 0);
}

#[test]
fn a_burst_gives_its_memory_back() {
    let (mut producer, mut consumer) = spsc::channel::<Item>();
    let (allocations, bytes) = measure(|| {
        (0..1000 * 256).for_each(|_| producer.push(ITEM));
        let _ = producer.flush();
        while consumer.pop().is_some() {}
    });
    assert!(allocations <= 1000, "{allocations}");
    let two_chunks = 2 * (CHUNK * size_of::<Item>() + 64) as isize;
    assert!(bytes <= two_chunks, "{bytes} bytes left");
}

#[test]
fn queues_leak_nothing() {
    for items in [0, 1, CHUNK, CHUNK + 1, 3 * CHUNK] {
        for (rolled_back, popped) in [(0, 0), (items / 2, 0), (0, items), (items, 0), (1, 1)] {
            let (_, bytes) = measure(|| {
                let (mut producer, mut consumer) = spsc::channel::<Item>();
                (0..items).for_each(|_| producer.push(ITEM));
                (0..rolled_back).for_each(|_| _ = producer.rollback());
                let _ = producer.flush();
                (0..popped).for_each(|_| _ = consumer.pop());
            });
            assert_eq!(
                bytes, 0,
                "{items} pushed, {rolled_back} rolled back, {popped} popped"
            );
        }
    }
}

#[test]
fn a_mailbox_allocates_once_per_command() {
    let (allocations, bytes) = measure(|| {
        let queue = mpsc::Queue::new();
        (0..100).for_each(|_| _ = queue.push(ITEM));
        assert_eq!(queue.take_all().count(), 100);
    });
    assert_eq!((allocations, bytes), (100, 0));
}

/// The system's part of a sleep is not needed here: the thread is notified before it sleeps.
struct Awake;

impl parker::System for Awake {
    fn wake_word(&self, _: &AtomicU32) {}
    fn sound_bell(&self) {}
}

#[test]
fn a_thread_that_waits_again_and_again_allocates_nothing() {
    let waiters: Waiters<Awake, ()> = Waiters::new();
    let threads = [0; 10].map(|_| Arc::new(Parker::new(Awake)));
    let wait = || {
        threads.iter().for_each(|thread| waiters.enter(thread));
        waiters.leave(&threads[3]);
        assert!(waiters.advance());
        let mut woken = 0;
        waiters.take(|()| (), |_| woken += 1);
        assert_eq!((woken, waiters.has_any()), (9, false));
    };
    // Until both lists have their room.
    (0..2).for_each(|_| wait());
    let (allocations, bytes) = measure(|| (0..100).for_each(|_| wait()));
    assert_eq!((allocations, bytes), (0, 0));
}
