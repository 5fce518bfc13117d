//! One writer, one reader: the queue of every message pipe.
//!
//! Items are numbered from 0 in the order of pushing, and numbers are never reused. Producer and consumer each keep
//! their own counts and share one, the *published* count, which only grows:
//!
//! ```text
//!       popped           available         published          written
//!         │                  │                 │                 │
//!  ───────┼──────────────────┼─────────────────┼─────────────────┼──────►  item numbers
//!   gone  │ the consumer's:  │ visible, not    │ the producer's: │
//!         │ plain reads      │ yet looked for  │ plain writes    │
//! ```
//!
//! | call    | cost                                                                         |
//! |---------|------------------------------------------------------------------------------|
//! | `push`  | one plain write; after each chunk, the next one, usually the spare           |
//! | `flush` | one Release store, one fence, one load from the line that was stored to      |
//! | `pop`   | one plain read; when the prefetched items are used up, one Acquire load      |
//! | `sleep` | one swap, one fence, one load                                                |
//!
//! A batch of any length is therefore handed over at the cost of one item. Nothing is visible before its `flush`, so a
//! writer that has pushed half a message can still take it back with `rollback`.

use std::{fmt, ptr};

use crate::{
    chunk::{Chunk, LARGE, SHALLOW, SMALL, Spare},
    doorbell::Doorbell,
    primitive::{Arc, AtomicBool, AtomicU64, Hint, Ordering, OwnLine, UnsafeCell},
};

/// An empty queue, as its two ends. It grows as needed: bounds are up to the pipe, which knows the high-water mark and
/// may change it at any time.
///
/// ```
/// let (mut producer, mut consumer) = zeroxide_queue::spsc::channel();
/// producer.push("Hello");
/// producer.push("World");
/// assert_eq!(consumer.pop(), None); // not flushed yet
/// let must_wake = producer.flush();
/// assert!(!must_wake); // the consumer never said that it sleeps
/// assert_eq!(consumer.pop(), Some("Hello"));
/// assert_eq!(consumer.pop(), Some("World"));
/// ```
///
/// The first `push` allocates the first chunk, so an unused pipe costs only a few cache lines.
pub fn channel<T>() -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared {
        producer_side: OwnLine(ProducerSide {
            published: AtomicU64::new(0),
            doorbell: Doorbell::new(),
            consumer_gone: AtomicBool::new(false),
            first: UnsafeCell::new(ptr::null_mut()),
        }),
        consumer_side: OwnLine(ConsumerSide {
            popped: Hint::new(0),
            spare: Spare::new(),
            rest: UnsafeCell::new((Position::START, 0)),
        }),
    });
    let producer = Producer {
        tail: Position::START,
        written: 0,
        published: 0,
        closed: false,
        shared: shared.clone(),
    };
    let consumer = Consumer {
        head: Position::START,
        popped: 0,
        available: 0,
        deepest: 0,
        shared,
    };
    (producer, consumer)
}

/// The writing end.
///
/// Dropping it publishes the pushed values and ends the stream, but cannot report that the consumer sleeps;
/// [`close`](Self::close) can.
pub struct Producer<T> {
    /// The chunk of the newest item, number `written - 1`; null while `written` is 0.
    tail: Position<T>,
    /// Items pushed, minus those rolled back.
    written: u64,
    /// Our own copy of the published count.
    published: u64,
    closed: bool,
    shared: Arc<Shared<T>>,
}

// SAFETY: a producer passes values to the consumer's thread and drops some on its own, so `T` must be Send. Everything
// else in it is a count, or a pointer to memory that the two ends share by the rules of SAFETY.md, which do not depend
// on particular threads.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T> Producer<T> {
    /// Adds a value, which stays invisible to the consumer until the next [`flush`](Self::flush).
    ///
    /// A value pushed after [`close`](Self::close) is never delivered.
    #[inline]
    pub fn push(&mut self, value: T) {
        if self.written == self.tail.end {
            self.enter_next_chunk();
        }
        // SAFETY: `tail` is the chunk of item number `written` now. That item is not published, so its slot is
        // exclusively ours. The slot is empty, because no slot is skipped or filled twice without a rollback.
        unsafe { Chunk::put(self.tail.chunk, self.tail.slot(self.written), value) };
        self.written += 1;
    }

    /// Like [`push`](Self::push), but moves the value out of `value`, which is copied only once, and leaves the default
    /// there.
    #[inline]
    pub fn push_taken(&mut self, value: &mut T)
    where
        T: Default,
    {
        if self.written == self.tail.end {
            self.enter_next_chunk();
        }
        // SAFETY: as in `push`.
        unsafe { Chunk::put_taken(self.tail.chunk, self.tail.slot(self.written), value) };
        self.written += 1;
    }

    /// Makes all pushed values visible to the consumer at once.
    ///
    /// `true` means that the consumer was asleep, and the caller must wake it now. From here on the consumer counts as
    /// awake, so no later flush returns `true` for the same sleep.
    #[inline]
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn flush(&mut self) -> bool {
        self.flush_but(0)
    }

    /// Like [`flush`](Self::flush), but does not publish the newest `kept` values, so that an incomplete message does
    /// not delay the ones before it.
    #[inline]
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn flush_but(&mut self, kept: usize) -> bool {
        let until = self.written.saturating_sub(kept as u64);
        if until <= self.published || self.closed {
            return false;
        }
        self.publish(until, 0)
    }

    /// Takes back the newest value that is not flushed, if there is one.
    pub fn rollback(&mut self) -> Option<T> {
        if self.written == self.published {
            return None;
        }
        self.written -= 1;
        // SAFETY: item number `written` was pushed and is not published: it is in `tail` and exclusively ours.
        let value = unsafe { Chunk::take(self.tail.chunk, self.tail.slot(self.written)) };
        if self.written == self.tail.start {
            // The emptied chunk stays linked for the next push. SAFETY: we are the producer. The previous chunk is
            // alive, because the consumer leaves it only for an item published after it, and there is none.
            self.tail = unsafe { Position::ending((*self.tail.chunk).prev(), self.written) };
        }
        Some(value)
    }

    /// The number of values that wait for a flush.
    #[inline]
    pub fn unflushed(&self) -> usize {
        (self.written - self.published) as usize
    }

    /// Flushes and ends the stream: no values follow those in the queue. Returns the result of a flush, because a
    /// sleeping consumer must also be woken for the end. Closing again does nothing.
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn close(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        self.publish(self.written, CLOSED)
    }

    /// Whether the consumer was dropped, so that later values will not be read.
    #[inline]
    pub fn is_consumer_gone(&self) -> bool {
        // Acquire: a caller that sees that the consumer is gone also sees everything it did before.
        let side = &self.shared.producer_side;
        side.consumer_gone.load(Ordering::Acquire)
    }

    /// Whether the consumer was asleep at the last look, as a hint.
    #[inline]
    pub fn is_consumer_asleep(&self) -> bool {
        self.shared.producer_side.doorbell.is_armed()
    }

    /// The number of values that are published and not read. For statistics: the consumer reports its position only
    /// occasionally, so this may be too high by up to one chunk (272), but never too low.
    pub fn published_unread(&self) -> usize {
        // It cannot be ahead of our own count.
        let popped = self.shared.consumer_side.popped.get();
        (self.published - popped) as usize
    }

    #[inline]
    fn publish(&mut self, until: u64, mark: u64) -> bool {
        self.published = until;
        let side = &self.shared.producer_side;
        // Release: a consumer that sees this count sees the items below it and the links between their chunks.
        side.published.store(until | mark, Ordering::Release);
        side.doorbell.ring()
    }

    /// Moves `tail` to the chunk that begins with item number `written`.
    #[cold]
    fn enter_next_chunk(&mut self) {
        let shared = &*self.shared;
        // SAFETY: we are the producer, and `tail` is alive or null.
        let linked = unsafe { shared.chunk_after(self.tail.chunk) };
        if !linked.is_null() {
            // A rollback has left it there. SAFETY: a chunk that is linked after `tail` is alive.
            self.tail = unsafe { Position::starting(linked, self.written) };
            return;
        }
        let waiting = self.written - shared.consumer_side.popped.get();
        let capacity = if waiting < SMALL as u64 { SMALL } else { LARGE };
        let chunk = shared.consumer_side.spare.take_or_allocate(capacity);
        // SAFETY: the chunk is exclusively ours until it is linked. Nothing after `tail` is published, so the consumer
        // does not read the link that we write.
        unsafe {
            (*chunk).set_prev(self.tail.chunk);
            match self.tail.chunk.as_ref() {
                Some(tail) => tail.set_next(chunk),
                None => shared.producer_side.first.with_mut(|first| *first = chunk),
            }
            self.tail = Position::starting(chunk, self.written);
        }
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Values pushed after a close can only be dropped here.
        while self.closed && self.rollback().is_some() {}
        // A caller that drops instead of closing does not need to know whether the consumer sleeps.
        let _ = self.close();
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("published", &self.published)
            .field("unflushed", &self.unflushed())
            .finish_non_exhaustive()
    }
}

/// The reading end.
///
/// Dropping it drops the values published by then; later ones are dropped with the producer.
pub struct Consumer<T> {
    /// The chunk of the last popped item, number `popped - 1`; null while `popped` is 0.
    head: Position<T>,
    /// Items popped.
    popped: u64,
    /// The published count at the last look; items below it can be read without another one.
    available: u64,
    /// The maximum number of waiting items found while `head` was read.
    deepest: u64,
    shared: Arc<Shared<T>>,
}

// SAFETY: a consumer receives values from another thread and drops some on its own, so `T` must be Send. Everything
// else in it is a count, or a pointer to memory that the two ends share by the rules of SAFETY.md, which do not depend
// on particular threads.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T> Consumer<T> {
    /// The oldest published value. `None` when nothing is published, which is not the end of the
    /// stream: see [`is_finished`](Self::is_finished).
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        if self.popped == self.head.end {
            self.enter_next_chunk();
        }
        // SAFETY: `head` is the chunk of item number `popped` now. The item is published and not popped, and the
        // Acquire load of the count made its slot exclusively ours.
        let value = unsafe { Chunk::take(self.head.chunk, self.head.slot(self.popped)) };
        self.popped += 1;
        Some(value)
    }

    /// Like [`pop`](Self::pop), but moves the value to a place and replaces the one there. False if nothing is
    /// published.
    #[inline]
    pub fn pop_to(&mut self, value: &mut T) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.popped == self.head.end {
            self.enter_next_chunk();
        }
        let slot = self.head.slot(self.popped);
        // Counted before it is taken, because a panic while the replaced value is dropped must not leave the item in
        // the queue as well.
        self.popped += 1;
        // SAFETY: as in `pop`.
        unsafe { Chunk::take_to(self.head.chunk, slot, value) };
        true
    }

    /// The value that [`pop`](Self::pop) would return, without removing it.
    #[inline]
    pub fn peek(&mut self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the item is published, in the first slot of the chunk after `head` or in `head`. It stays there until
        // our next `pop`, which cannot happen before the returned borrow ends.
        unsafe {
            let (chunk, slot) = if self.popped == self.head.end {
                (self.shared.chunk_after(self.head.chunk), 0)
            } else {
                (self.head.chunk, self.head.slot(self.popped))
            };
            Some(&*Chunk::look(chunk, slot))
        }
    }

    /// The number of values that are published and not popped.
    #[inline]
    pub fn len(&mut self) -> usize {
        self.prefetch();
        (self.available - self.popped) as usize
    }

    /// Whether there is nothing to pop. Reads the producer's count only when the prefetched values are used up.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.popped == self.available && {
            self.prefetch();
            self.popped == self.available
        }
    }

    /// Announces sleep. `true` means that nothing is published, and the next flush will tell the producer to wake us.
    /// `false` means that there is something to read, or the producer has closed, so stay awake.
    ///
    /// After a `sleep` that returns `false`, a flush may still request a wake-up: there may be one wake-up too many, but
    /// never one too few. Several threads may use this end one after the other, and a thread that sleeps after its own
    /// call relies on that request when the others only look.
    #[must_use = "false means that the consumer must stay awake"]
    pub fn sleep(&mut self) -> bool {
        if self.popped != self.available {
            return false;
        }
        let side = &self.shared.producer_side;
        side.doorbell.arm();
        // The check after arming, without which a wake-up could be lost: see the module `doorbell`. Relaxed, because
        // items are read only after a prefetch.
        // The bell stays armed in either case, because it may be that of another thread that sleeps.
        side.published.load(Ordering::Relaxed) == self.available
    }

    /// Whether the producer has closed and everything has been popped, so that nothing will follow.
    #[inline]
    pub fn is_finished(&mut self) -> bool {
        // One load answers both questions. Between two loads, a last item could be published and the queue closed.
        self.popped == self.available && self.prefetch() == self.popped | CLOSED
    }

    /// Whether the producer has closed or was dropped. There may still be values to read.
    #[inline]
    pub fn is_producer_gone(&self) -> bool {
        // Acquire: a caller that sees that the producer is gone also sees everything it did before.
        let side = &self.shared.producer_side;
        side.published.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Loads the published count; returns the whole word, including [`CLOSED`].
    #[inline]
    fn prefetch(&mut self) -> u64 {
        let shared = &*self.shared;
        // Acquire pairs with the Release in `publish`: the items below this count are ours to read.
        let state = shared.producer_side.published.load(Ordering::Acquire);
        self.available = state & !CLOSED;
        self.deepest = self.deepest.max(self.available - self.popped);
        shared.consumer_side.popped.set(self.popped);
        state
    }

    /// Moves `head` to the chunk that begins with item number `popped`, which is published, and returns the previous
    /// chunk to the producer.
    #[cold]
    fn enter_next_chunk(&mut self) {
        let shared = &*self.shared;
        let left = self.head.chunk;
        // SAFETY: an item after `head` is published. Every item in `head` was popped, and the producer, having
        // published after it, neither writes nor rolls back into it any more.
        unsafe {
            self.head = Position::starting(shared.chunk_after(left), self.popped);
            if !left.is_null() {
                if Chunk::capacity(left) > SMALL && self.deepest <= SHALLOW {
                    Chunk::free(left);
                } else {
                    shared.consumer_side.spare.give(left);
                }
            }
        }
        self.deepest = self.available - self.popped;
        shared.consumer_side.popped.set(self.popped);
    }

    /// Records our position for the final cleanup.
    fn leave_rest(&self) {
        let (head, popped) = (self.head, self.popped);
        self.shared.consumer_side.rest.with_mut(|rest| {
            // SAFETY: only the consumer accesses `rest` while it exists.
            unsafe { *rest = (head, popped) }
        });
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        let side = &self.shared.producer_side;
        // Release pairs with the Acquire in `is_consumer_gone`.
        side.consumer_gone.store(true, Ordering::Release);
        self.leave_rest();
        while let Some(value) = self.pop() {
            // Before the destructor runs: if it panics, the values after this one are still dropped at the end.
            self.leave_rest();
            drop(value);
        }
    }
}

impl<T> fmt::Debug for Consumer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Consumer")
            .field("popped", &self.popped)
            .field("available", &self.available)
            .finish_non_exhaustive()
    }
}

/// Set in the published count at the end of the stream. It is in the same word, so that one load answers "is there
/// more?" and "will there be more?" for the same moment. 63 bits of count are enough for centuries.
const CLOSED: u64 = 1 << 63;

/// A chunk in use, and the numbers of its items.
struct Position<T> {
    chunk: *mut Chunk<T>,
    /// The item in its first slot.
    start: u64,
    /// The first item after the chunk.
    end: u64,
}

impl<T> Position<T> {
    /// Before the first chunk.
    const START: Self = Self {
        chunk: ptr::null_mut(),
        start: 0,
        end: 0,
    };

    /// # Safety
    /// `chunk` is alive.
    unsafe fn starting(chunk: *mut Chunk<T>, start: u64) -> Self {
        // SAFETY: the caller guarantees that the chunk is alive.
        let end = start + unsafe { Chunk::capacity(chunk) } as u64;
        Self { chunk, start, end }
    }

    /// # Safety
    /// `chunk` is alive, or null, which ends before item 0.
    unsafe fn ending(chunk: *mut Chunk<T>, end: u64) -> Self {
        if chunk.is_null() {
            return Self::START;
        }
        // SAFETY: the caller guarantees that the chunk is alive.
        let start = end - unsafe { Chunk::capacity(chunk) } as u64;
        Self { chunk, start, end }
    }

    /// The slot of the item with this number, which is in this chunk.
    #[inline(always)]
    fn slot(&self, number: u64) -> usize {
        (number - self.start) as usize
    }
}

impl<T> Clone for Position<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Position<T> {}

/// The state that the two ends share, with the fields of each writer on a cache line of their own.
struct Shared<T> {
    producer_side: OwnLine<ProducerSide<T>>,
    consumer_side: OwnLine<ConsumerSide<T>>,
}

/// The fields used by a flush. The line stays in the producer's cache until the consumer has nothing left to read.
struct ProducerSide<T> {
    /// Items ever published, and [`CLOSED`]. Written by the producer only.
    published: AtomicU64,
    /// Whether the consumer sleeps.
    doorbell: Doorbell,
    /// On this side, because the producer may check it for every message, while the consumer sets it once.
    consumer_gone: AtomicBool,
    /// The very first chunk. Written by the producer before it publishes item 0.
    first: UnsafeCell<*mut Chunk<T>>,
}

/// The fields that the consumer writes while it reads.
struct ConsumerSide<T> {
    /// The number of popped items at the last prefetch or change of chunk. For statistics, and for choosing the size of
    /// the next chunk.
    popped: Hint,
    /// A chunk on its way back to the producer.
    spare: Spare<T>,
    /// The final position of the consumer, its `head` and `popped`: written when it is dropped, read when both ends are
    /// gone.
    rest: UnsafeCell<(Position<T>, u64)>,
}

impl<T> Shared<T> {
    /// The chunk after `chunk`, where null stands for the position before the first one.
    ///
    /// # Safety
    /// `chunk` is null or alive, and the caller may read the link: see [`Chunk::next`].
    unsafe fn chunk_after(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller guarantees the rules; `first` follows the same rule as `Chunk::next`.
        unsafe {
            match chunk.as_ref() {
                Some(chunk) => chunk.next(),
                None => self.producer_side.first.with(|first| *first),
            }
        }
    }

    /// Frees `chunk`, unless it is null, and returns the one after it.
    ///
    /// # Safety
    /// As for [`chunk_after`](Self::chunk_after), and `chunk` is not used any more.
    unsafe fn leave_chunk(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller guarantees the rules.
        unsafe {
            let next = self.chunk_after(chunk);
            if !chunk.is_null() {
                Chunk::free(chunk);
            }
            next
        }
    }
}

impl<T> Drop for Shared<T> {
    /// Both ends are gone, and the Arc has made everything they did visible.
    fn drop(&mut self) {
        let published = self.producer_side.published.load(Ordering::Relaxed) & !CLOSED;
        let (mut head, popped) = self.consumer_side.rest.with(|rest| {
            // SAFETY: both ends are gone.
            unsafe { *rest }
        });
        for number in popped..published {
            if number == head.end {
                // SAFETY: both ends are gone, the items in this chunk are gone, and the next one is alive, because
                // `number` is in it.
                head = unsafe { Position::starting(self.leave_chunk(head.chunk), number) };
            }
            // SAFETY: this is the chunk of the item, which is published and was not popped.
            drop(unsafe { Chunk::take(head.chunk, head.slot(number)) });
        }
        let mut chunk = head.chunk;
        // The last chunk, and those that a rollback has left after it. If there was never an item, the last chunk is
        // null, and the first one may be such a remainder.
        loop {
            // SAFETY: both ends are gone, and there are no items left.
            chunk = unsafe { self.leave_chunk(chunk) };
            if chunk.is_null() {
                break;
            }
        }
    }
}
