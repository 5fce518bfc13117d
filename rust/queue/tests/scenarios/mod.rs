//! The rules that must hold whatever the threads do: each function runs one short scenario and checks its rule.
//!
//! `model.rs` runs them on real threads, many times; `loom.rs` runs them under every interleaving. Readers sleep by
//! parking, so after a lost wake-up a reader sleeps forever: loom reports a deadlock, and on real threads [`park`]
//! times out.

pub mod driving;
pub mod waiting;

#[cfg(zeroxide_loom)]
use loom::{
    cell::Cell,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};
#[cfg(not(zeroxide_loom))]
use std::{
    cell::Cell,
    sync::{
        Arc, Condvar, Mutex, MutexGuard,
        atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed},
    },
    thread,
};

use zeroxide_queue::loan::{Event, Lending, State};
use zeroxide_queue::{
    doorbell::Doorbell,
    exclusive::{Exclusive, Serve},
    mpsc, spsc,
};

#[cfg(not(zeroxide_loom))]
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(20);

#[cfg(zeroxide_loom)]
fn park() {
    thread::park();
}

#[cfg(not(zeroxide_loom))]
fn park() {
    let before = std::time::Instant::now();
    thread::park_timeout(PATIENCE);
    assert!(before.elapsed() < PATIENCE, "the reader was not woken");
}

#[cfg(zeroxide_loom)]
fn wait<'a>(condition: &Condvar, guard: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
    condition.wait(guard).unwrap()
}

#[cfg(not(zeroxide_loom))]
fn wait<'a>(condition: &Condvar, guard: MutexGuard<'a, bool>) -> MutexGuard<'a, bool> {
    let (guard, waited) = condition.wait_timeout(guard, PATIENCE).unwrap();
    assert!(!waited.timed_out(), "the bell was not sounded");
    guard
}

/// Counts its values that have not been dropped. Not a loom type, because the count is not part of the scenario, and
/// loom would try every order of it.
#[derive(Clone, Default)]
struct Alive(std::sync::Arc<()>);

struct Tracked {
    number: usize,
    _alive: Alive,
}

impl Alive {
    fn value(&self, number: usize) -> Tracked {
        Tracked {
            number,
            _alive: self.clone(),
        }
    }

    fn count(&self) -> usize {
        std::sync::Arc::strong_count(&self.0) - 1
    }
}

/// Reads until the producer has closed, and sleeps whenever there is nothing to read.
fn read_to_the_end(mut consumer: spsc::Consumer<usize>) -> Vec<usize> {
    let mut values = Vec::new();
    loop {
        while let Some(next) = consumer.peek().copied() {
            assert_eq!(consumer.pop(), Some(next));
            values.push(next);
        }
        if consumer.is_finished() {
            assert_eq!(consumer.pop(), None);
            assert!(consumer.is_producer_gone());
            return values;
        }
        if consumer.sleep() {
            park();
        }
    }
}

/// All pushed values arrive, in order, flushed in batches, the last of them by the close.
pub fn everything_arrives_in_order(total: usize, batch: usize) {
    let (mut producer, consumer) = spsc::channel();
    let reader = thread::spawn(|| read_to_the_end(consumer));
    for number in 1..=total {
        producer.push(number);
        if number % batch == 0 && number != total && producer.flush() {
            reader.thread().unpark();
        }
    }
    if producer.close() {
        reader.thread().unpark();
    }
    assert!(!producer.close());
    assert!(reader.join().unwrap().into_iter().eq(1..=total));
    assert_eq!(producer.published_unread(), 0);
    assert!(producer.is_consumer_gone());
}

/// A chunk comes back through the spare slot while the reader has not slept, so only that hand-over shows that it has
/// finished with the slots. (Under loom, a small chunk has two.)
pub fn a_recycled_chunk_is_filled_after_it_was_read(chunk: usize) {
    let (mut producer, mut consumer) = spsc::channel();
    // Here and below, the reader looks once more than there is to read. Only then does it record its position, and the
    // next chunk is a small one again.
    producer.push(0);
    let _ = producer.flush();
    assert_eq!(consumer.pop(), Some(0));
    assert_eq!(consumer.pop(), None);
    (1..=chunk).for_each(|number| producer.push(number));
    let _ = producer.flush();
    // Relaxed, so it hands nothing over; it makes loom try the order in which the reader comes first.
    let read = Arc::new(AtomicUsize::new(0));
    let read_there = read.clone();
    let reader = thread::spawn(move || {
        // The last of these is in the second chunk, so the first one is returned.
        for number in 1..=chunk {
            assert_eq!(consumer.pop(), Some(number));
        }
        assert_eq!(consumer.pop(), None);
        read_there.store(chunk, Relaxed);
        consumer
    });
    let _ = read.load(Relaxed);
    // The rest of the second chunk, and the whole next one, which may be the first one again.
    (chunk + 1..3 * chunk).for_each(|number| producer.push(number));
    let mut consumer = reader.join().unwrap();
    let _ = producer.close();
    for number in chunk + 1..3 * chunk {
        assert_eq!(consumer.pop(), Some(number));
    }
    assert!(consumer.is_finished());
}

/// For each sleep there is at most one request to wake the reader, and exactly one if it was needed.
pub fn one_wake_per_sleep(total: usize) {
    let (mut producer, mut consumer) = spsc::channel();
    let reader = thread::spawn(move || {
        let (mut sleeps, mut read) = (0, 0);
        while read < total {
            if let Some(value) = consumer.pop() {
                assert_eq!(value, read);
                read += 1;
                continue;
            }
            sleeps += 1;
            if consumer.sleep() {
                park();
            }
        }
        (consumer, sleeps)
    });
    let mut wakes = 0;
    for number in 0..total {
        producer.push(number);
        if producer.flush() {
            wakes += 1;
            reader.thread().unpark();
        }
    }
    let (mut consumer, sleeps) = reader.join().unwrap();
    assert!(wakes <= sleeps, "{wakes} wakes for {sleeps} sleeps");
    assert!(!consumer.is_finished());
    drop(producer);
    assert!(consumer.is_finished());
}

/// Two threads share the reading end. One of them looks and reads nothing, which does not take the wake-up from the other
/// one, which sleeps.
pub fn a_look_leaves_the_wake_to_a_sleeper() {
    let (mut producer, consumer) = spsc::channel();
    let consumer = Arc::new(Mutex::new(consumer));
    let bell = Arc::new((Mutex::new(false), Condvar::new()));
    let reader = thread::spawn({
        let (consumer, bell) = (consumer.clone(), bell.clone());
        move || {
            loop {
                let mut locked = consumer.lock().unwrap();
                let (value, asleep) = (locked.pop(), locked.sleep());
                drop(locked);
                if let Some(value) = value {
                    return value;
                }
                let mut sounded = bell.0.lock().unwrap();
                while asleep && !*sounded {
                    sounded = wait(&bell.1, sounded);
                }
            }
        }
    });
    let other = thread::spawn(move || {
        let _ = consumer.lock().unwrap().sleep();
    });
    producer.push(7);
    if producer.flush() {
        *bell.0.lock().unwrap() = true;
        bell.1.notify_one();
    }
    assert_eq!(reader.join().unwrap(), 7);
    other.join().unwrap();
}

/// A value that is rolled back is never seen, however many chunks it spans, and its slot is reused.
pub fn rollback_is_invisible(kept: usize, taken_back: usize) {
    let (mut producer, consumer) = spsc::channel();
    let reader = thread::spawn(|| read_to_the_end(consumer));
    (0..kept).for_each(|number| producer.push(number));
    if producer.flush() {
        reader.thread().unpark();
    }
    for number in 0..taken_back {
        producer.push(usize::MAX - number);
    }
    assert_eq!(producer.unflushed(), taken_back);
    for number in (0..taken_back).rev() {
        assert_eq!(producer.rollback(), Some(usize::MAX - number));
    }
    assert_eq!(producer.rollback(), None);
    (kept..2 * kept).for_each(|number| producer.push(number));
    if producer.close() {
        reader.thread().unpark();
    }
    assert!(reader.join().unwrap().into_iter().eq(0..2 * kept));
}

/// Whichever end is dropped first, and whatever was pushed, published or read by then, each value is dropped once.
pub fn both_ends_drop_the_remaining_values(total: usize, read: usize) {
    let alive = Alive::default();
    let (mut producer, mut consumer) = spsc::channel::<Tracked>();
    let reader = thread::spawn(move || {
        for number in 0..read {
            if let Some(value) = consumer.pop() {
                assert!(value.number <= number);
            }
        }
    });
    for number in 0..total {
        producer.push(alive.value(number));
        // Every other value waits for the next flush, the last one for the drop.
        if number % 2 == 0 && number + 1 != total {
            let _ = producer.flush();
        }
    }
    drop(producer);
    reader.join().unwrap();
    assert_eq!(alive.count(), 0);
}

/// A number in a cell, so that loom reports a reader that accesses it before it was handed over. (The slots of the
/// other queue are such cells already.)
fn watched(number: usize) -> Cell<usize> {
    let cell = Cell::new(0);
    cell.set(number);
    cell
}

/// Runs `write` on two threads, as writer 0 and writer 1; returns the results of the reader and of the writers.
fn two_writers<R: Send + 'static, W: Send + 'static>(
    reader: thread::JoinHandle<R>,
    write: impl Fn(usize, &thread::Thread) -> W + Clone + Send + 'static,
) -> (R, [W; 2]) {
    let (other_write, thread) = (write.clone(), reader.thread().clone());
    let other = thread::spawn(move || other_write(1, &thread));
    let one = write(0, reader.thread());
    let other = other.join().unwrap();
    (reader.join().unwrap(), [one, other])
}

/// A push onto the empty queue returns true, which is sufficient to wake a reader that sleeps when the queue is empty.
/// The values of each writer stay in order.
pub fn writers_share_a_queue(each: usize) {
    let queue = Arc::new(mpsc::Queue::<(usize, Cell<usize>)>::new());
    let ours = queue.clone();
    let reader = thread::spawn(move || {
        let mut next = [0, 0];
        while next != [each, each] {
            let batch = ours.take_all();
            if batch.len() == 0 {
                park();
            }
            for (writer, number) in batch {
                assert_eq!(number.get(), next[writer]);
                next[writer] += 1;
            }
        }
        assert!(ours.is_empty());
    });
    two_writers(reader, move |writer, reader| {
        for number in 0..each {
            if queue.push((writer, watched(number))) {
                reader.unpark();
            }
        }
    });
}

/// A mailbox: the queue for the commands, the bell for the sleep. The reader is woken when necessary, and by at most
/// one writer per sleep.
pub fn writers_share_a_doorbell(each: usize) {
    let mailbox = Arc::new((mpsc::Queue::new(), Doorbell::new()));
    let ours = mailbox.clone();
    let reader = thread::spawn(move || {
        let (queue, bell) = &*ours;
        let (mut read, mut sleeps) = (0, 0);
        while read < 2 * each {
            let batch = queue.take_all();
            read += batch.len();
            if batch.len() > 0 {
                continue;
            }
            sleeps += 1;
            bell.arm();
            if queue.is_empty() {
                park();
            } else {
                bell.disarm();
            }
        }
        sleeps
    });
    let (sleeps, wakes) = two_writers(reader, move |writer, reader| {
        let (queue, bell) = &*mailbox;
        let mut wakes = 0;
        for number in 0..each {
            queue.push((writer, number));
            if bell.ring() {
                wakes += 1;
                reader.unpark();
            }
        }
        wakes
    });
    let [one, other] = wakes;
    assert!(
        one + other <= sleeps,
        "{one} + {other} wakes for {sleeps} sleeps"
    );
}

/// A reader that finds its bell rung also sees the data published before, without other orderings.
pub fn a_rung_bell_brings_the_news() {
    let shared = Arc::new((AtomicUsize::new(0), Doorbell::new()));
    let ours = shared.clone();
    let reader = thread::spawn(move || {
        let (news, bell) = &*ours;
        bell.arm();
        let rung = !bell.disarm();
        // Loaded in any case, because loom tries more orders for unconditional accesses.
        let seen = news.load(Relaxed) == 1;
        assert!(seen || !rung);
        rung
    });
    let (news, bell) = &*shared;
    news.store(1, Relaxed);
    let rung = bell.ring();
    assert_eq!(reader.join().unwrap(), rung);
}

/// An end that sees that the other one is gone also sees everything the other did before.
pub fn an_end_that_leaves_publishes_its_work() {
    let (producer, consumer) = spsc::channel::<usize>();
    let (echo_producer, echo_consumer) = spsc::channel::<usize>();
    let word = Arc::new(AtomicUsize::new(0));
    let theirs = word.clone();
    let leaver = thread::spawn(move || {
        theirs.store(1, Relaxed);
        drop((consumer, echo_producer));
    });
    let gone = producer.is_consumer_gone();
    let seen = word.load(Relaxed) == 1;
    assert!(seen || !gone);
    let gone = echo_consumer.is_producer_gone();
    let seen = word.load(Relaxed) == 1;
    assert!(seen || !gone);
    leaver.join().unwrap();
    assert!(producer.is_consumer_gone() && echo_consumer.is_producer_gone());
}

/// Values that are not taken are dropped with the queue, and values that are not requested with their batch.
pub fn mailboxes_drop_the_remaining_values(total: usize) {
    let alive = Alive::default();
    let queue = Arc::new(mpsc::Queue::<Tracked>::new());
    let ours = queue.clone();
    let reader = thread::spawn(move || {
        let first = ours.take_all().next();
        assert!(first.is_none_or(|value| value.number == 0));
    });
    for number in 0..total {
        queue.push(alive.value(number));
    }
    drop(queue);
    reader.join().unwrap();
    assert_eq!(alive.count(), 0);
}

/// The owner of a thing that is lent, as its lock shows it.
struct Owner {
    /// The owner looks after the thing itself.
    watches: bool,
    /// It will look whether the thing is still used.
    guards: bool,
}

type Lent = (Lending, Mutex<Owner>);

/// Checks what must hold under the owner's lock. Without the lock, a borrower can only resume.
fn check_owner(lending: &Lending, owner: &Owner) {
    match lending.state() {
        State::Home => assert!(owner.watches, "no thread looks after it"),
        State::Held { .. } => assert!(!owner.watches, "two look after it"),
        State::Paused { .. } => assert!(!owner.watches && owner.guards, "it may be forgotten"),
    }
}

/// Borrows the thing `times` times, and pauses each time but the last.
fn borrow(shared: &Lent, times: usize) {
    let (lending, owner) = shared;
    for time in 1..=times {
        let loan = lending.resume().or_else(|| {
            let mut owner = owner.lock().unwrap();
            let loan = lending.lend(7)?;
            owner.watches = false;
            check_owner(lending, &owner);
            Some(loan)
        });
        let Some(loan) = loan else { continue };
        assert_eq!(loan.tag(), 7);
        let mut owner = owner.lock().unwrap();
        if !lending.is_held(loan) {
            continue;
        }
        if time < times {
            owner.guards = true;
            let (before, _) = lending.change(Event::Pause);
            assert!(
                matches!(before, State::Held { .. }),
                "another thread had it"
            );
        } else {
            assert_eq!(lending.change(Event::Return).1, State::Home);
            (owner.watches, owner.guards) = (true, false);
        }
        check_owner(lending, &owner);
    }
}

/// Takes the thing back if `event` has that effect.
fn take_back(shared: &Lent, event: Event) {
    let (lending, owner) = shared;
    let mut owner = owner.lock().unwrap();
    check_owner(lending, &owner);
    match lending.change(event) {
        (State::Home, _) => {}
        (_, State::Home) => (owner.watches, owner.guards) = (true, false),
        (State::Held { used: false }, _) => owner.guards = false,
        _ => {}
    }
    check_owner(lending, &owner);
}

/// A thing that is lent is always looked after: by its owner, by a borrower, or at intervals by a guard.
pub fn a_lent_thing_is_not_forgotten(borrowers: usize, times: usize, events: &'static [Event]) {
    let owner = Owner {
        watches: true,
        guards: false,
    };
    let shared: Arc<Lent> = Arc::new((Lending::new(), Mutex::new(owner)));
    let others: Vec<_> = (0..borrowers)
        .map(|_| {
            let shared = shared.clone();
            thread::spawn(move || borrow(&shared, times))
        })
        .collect();
    events.iter().for_each(|event| take_back(&shared, *event));
    others.into_iter().for_each(|other| other.join().unwrap());
    // No borrower comes back, and the guard notices.
    take_back(&shared, Event::Look);
    take_back(&shared, Event::Look);
    assert_eq!(shared.0.state(), State::Home);
}

/// Posts are (poster, number). `served` is what the lock guards; it can be read without taking the lock, because that
/// would serve what is urgent. It is std's, because the lock is part of the scenario, and this is not.
struct Office {
    served: std::sync::Mutex<Vec<(usize, usize)>>,
    value: Exclusive<Cell<usize>, (usize, usize)>,
    /// Changed after posts were taken, and before one is posted, so that loom tries a post between taking and unlocking.
    /// Relaxed, so it hands nothing over.
    between: AtomicUsize,
}

impl Serve for Office {
    type Value = Cell<usize>;
    type Post = (usize, usize);

    fn exclusive(&self) -> &Exclusive<Cell<usize>, (usize, usize)> {
        &self.value
    }

    fn serve(&self, count: &mut Cell<usize>, posts: mpsc::Batch<(usize, usize)>) {
        count.set(count.get() + posts.len());
        self.served.lock().unwrap().extend(posts);
        self.between.fetch_add(1, Relaxed);
    }
}

impl Office {
    /// Works under the lock, and looks at the mailbox if it seems worthwhile.
    fn work(&self, locked: &mut Cell<usize>) {
        if !self.value.is_empty() {
            let posts = self.value.take(locked);
            self.serve(locked, posts);
        }
    }
}

/// One thread per item of `posters`: whether each of its posts is urgent. Others hold the lock for a while, or only if it
/// is free. Every urgent post is served without any further call, and so is what its thread posted before; each post is
/// served once, in the order of its poster.
pub fn urgent_posts_are_served(posters: &[&'static [bool]], rounds: usize, holders: [bool; 2]) {
    let office = Arc::new(Office {
        served: std::sync::Mutex::default(),
        value: Exclusive::new(Cell::new(0)),
        between: AtomicUsize::new(0),
    });
    let mut threads = Vec::new();
    for (poster, posts) in posters.iter().copied().enumerate() {
        let office = office.clone();
        threads.push(thread::spawn(move || {
            for round in 0..rounds {
                for (at, urgent) in posts.iter().enumerate() {
                    office.between.fetch_add(1, Relaxed);
                    office.value.post((poster, round * posts.len() + at));
                    if *urgent {
                        office.value.urge(&*office);
                    }
                }
            }
        }));
    }
    if holders[1] {
        let office = office.clone();
        threads.push(thread::spawn(move || {
            for _ in 0..rounds {
                if let Some(mut locked) = office.try_lock() {
                    office.work(&mut locked);
                }
            }
        }));
    }
    if holders[0] {
        for _ in 0..rounds {
            office.work(&mut office.lock());
        }
    }
    for thread in threads {
        thread.join().unwrap();
    }
    let count = |poster: usize| {
        let served = office.served.lock().unwrap();
        let numbers = served.iter().filter(|(from, _)| *from == poster);
        let numbers: Vec<usize> = numbers.map(|(_, number)| *number).collect();
        assert!(numbers.iter().copied().eq(0..numbers.len()), "{served:?}");
        numbers.len()
    };
    for (poster, posts) in posters.iter().enumerate() {
        let last = posts.iter().rposition(|urgent| *urgent);
        let least = last.map_or(0, |at| (rounds - 1) * posts.len() + at + 1);
        assert!(count(poster) >= least, "an urgent post was forgotten");
    }
    let mut locked = office.lock();
    office.work(&mut locked);
    for (poster, posts) in posters.iter().enumerate() {
        assert_eq!(count(poster), rounds * posts.len());
    }
    assert_eq!(locked.get(), office.served.lock().unwrap().len());
}
