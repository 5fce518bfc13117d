//! One writer, one reader: the queue inside every message pipe.
//!
//! Items are numbered from 0 in the order of pushing, and the numbers never start again. Producer
//! and consumer each keep counts of their own and share one, the *published* count, which only
//! grows:
//!
//! ```text
//!       popped           available         published          written
//!         │                  │                 │                 │
//!  ───────┼──────────────────┼─────────────────┼─────────────────┼──────►  item numbers
//!   gone  │ the consumer's:  │ visible, not    │ the producer's: │
//!         │ plain reads      │ yet looked for  │ plain writes    │
//! ```
//!
//! | call    | what it costs                                                                |
//! |---------|------------------------------------------------------------------------------|
//! | `push`  | one plain write; now and then the next chunk, nearly always the spare one |
//! | `flush` | one Release store, one fence, one load from the line that was stored to      |
//! | `pop`   | one plain read; when the prefetched items are used up, one Acquire load      |
//! | `sleep` | one swap, one fence, one load                                                |
//!
//! A batch of any length is therefore handed over for the price of one item, and nothing is visible
//! before its `flush`: a writer that has pushed half a message can still take it back with
//! `rollback`.

use std::{fmt, ptr};

use crate::{
    chunk::{Chunk, LARGE, SHALLOW, SMALL, Spare},
    doorbell::Doorbell,
    primitive::{Arc, AtomicBool, AtomicU64, Hint, Ordering, OwnLine, UnsafeCell},
};

/// An empty queue, as its two ends. It grows as needed: a bound is the business of the pipe, which
/// knows the high-water mark and may change it at any time.
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
/// The first `push` allocates the first chunk: a pipe that never carries anything costs a few cache
/// lines.
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
/// Dropping it publishes what was pushed and ends the stream, but cannot report that the consumer
/// sleeps; [`close`](Self::close) can.
pub struct Producer<T> {
    /// The chunk of the newest item, number `written - 1`; null while `written` is 0.
    tail: Position<T>,
    /// Items pushed, less those rolled back.
    written: u64,
    /// Our own copy of the published count.
    published: u64,
    closed: bool,
    shared: Arc<Shared<T>>,
}

// SAFETY: a producer hands values to the consumer's thread and drops some on its own, so `T` must
// be Send. Everything else in it is a count, or points to memory that the two ends share by the
// rules of SAFETY.md, which do not depend on the threads they are on.
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
        // SAFETY: `tail` is the chunk of item number `written` now. That item is not published, so
        // its slot is ours alone; and it is empty, since we neither skip a slot nor push twice
        // without taking back.
        unsafe { Chunk::put(self.tail.chunk, self.tail.slot(self.written), value) };
        self.written += 1;
    }

    /// As [`push`](Self::push), of a value that others have put together: it is copied once, from its place to its slot, and
    /// leaves the default behind.
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

    /// Makes everything pushed so far visible to the consumer, all at once.
    ///
    /// `true`: the consumer was asleep, and the caller must wake it now. From here on it counts as
    /// awake, so no later flush asks for the same again.
    #[inline]
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn flush(&mut self) -> bool {
        self.flush_but(0)
    }

    /// As [`flush`](Self::flush), but keeps the newest `kept` values to itself: what is not complete
    /// yet does not hold up what came before it.
    #[inline]
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn flush_but(&mut self, kept: usize) -> bool {
        let until = self.written.saturating_sub(kept as u64);
        if until <= self.published || self.closed {
            return false;
        }
        self.publish(until, 0)
    }

    /// Takes back the newest value that is not flushed yet, if there is one.
    pub fn rollback(&mut self) -> Option<T> {
        if self.written == self.published {
            return None;
        }
        self.written -= 1;
        // SAFETY: item number `written` was pushed and is not published: it lies in `tail` and is
        // ours alone.
        let value = unsafe { Chunk::take(self.tail.chunk, self.tail.slot(self.written)) };
        if self.written == self.tail.start {
            // The emptied chunk stays linked, for the next push to find.
            // SAFETY: we are the producer. The chunk we go back to is alive, because the consumer
            // leaves it only for an item published behind it, and there is none.
            self.tail = unsafe { Position::ending((*self.tail.chunk).prev(), self.written) };
        }
        Some(value)
    }

    /// How many values wait for a flush.
    #[inline]
    pub fn unflushed(&self) -> usize {
        (self.written - self.published) as usize
    }

    /// Flushes and ends the stream: nothing follows what is in the queue now. Returns what a flush
    /// returns, because a sleeping consumer has to learn about the end, too. Closing again does
    /// nothing.
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn close(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        self.publish(self.written, CLOSED)
    }

    /// Whether the consumer was dropped: nobody will read what is pushed from now on.
    #[inline]
    pub fn is_consumer_gone(&self) -> bool {
        // Acquire: a caller that sees the consumer gone also sees what it did before it went.
        let side = &self.shared.producer_side;
        side.consumer_gone.load(Ordering::Acquire)
    }

    /// Whether the consumer slept when last heard of, to guess from.
    #[inline]
    pub fn is_consumer_asleep(&self) -> bool {
        self.shared.producer_side.doorbell.is_armed()
    }

    /// How many values are published and not read. For statistics: the consumer tells how far it is
    /// only now and then, so this is never less than the truth, and at most one chunk more (272).
    pub fn published_unread(&self) -> usize {
        // It cannot be ahead of our own count.
        let popped = self.shared.consumer_side.popped.get();
        (self.published - popped) as usize
    }

    #[inline]
    fn publish(&mut self, until: u64, mark: u64) -> bool {
        self.published = until;
        let side = &self.shared.producer_side;
        // Release: whoever sees this count sees the items below it and the links between their
        // chunks.
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
            // A rollback has left it there.
            // SAFETY: a chunk that is linked behind `tail` is alive.
            self.tail = unsafe { Position::starting(linked, self.written) };
            return;
        }
        let waiting = self.written - shared.consumer_side.popped.get();
        let capacity = if waiting < SMALL as u64 { SMALL } else { LARGE };
        let chunk = shared.consumer_side.spare.take_or_allocate(capacity);
        // SAFETY: until it is linked the chunk is ours alone, and nothing behind `tail` is
        // published, so the consumer does not look at the link we write.
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
        // Values pushed after a close have no way out but this one.
        while self.closed && self.rollback().is_some() {}
        // A caller who drops instead of closing has chosen not to know whether the consumer sleeps.
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
/// Dropping it drops the values published by then; later ones are dropped when the producer is.
pub struct Consumer<T> {
    /// The chunk of the item popped last, number `popped - 1`; null while `popped` is 0.
    head: Position<T>,
    /// Items popped.
    popped: u64,
    /// The published count as last seen: up to here we read without asking.
    available: u64,
    /// The most items that were found waiting while `head` was read.
    deepest: u64,
    shared: Arc<Shared<T>>,
}

// SAFETY: a consumer receives values from another thread and drops some on its own, so `T` must be
// Send. Everything else in it is a count, or points to memory that the two ends share by the rules
// of SAFETY.md, which do not depend on the threads they are on.
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
        // SAFETY: `head` is the chunk of item number `popped` now. The item is published and not
        // popped, and the Acquire that told us so made its slot ours alone.
        let value = unsafe { Chunk::take(self.head.chunk, self.head.slot(self.popped)) };
        self.popped += 1;
        Some(value)
    }

    /// As [`pop`](Self::pop), straight to its place, in lieu of what is there. False when nothing is published.
    #[inline]
    pub fn pop_to(&mut self, value: &mut T) -> bool {
        if self.is_empty() {
            return false;
        }
        if self.popped == self.head.end {
            self.enter_next_chunk();
        }
        let slot = self.head.slot(self.popped);
        // Before it is taken: a panic of the value that is dropped in exchange must not leave it there as well.
        self.popped += 1;
        // SAFETY: as in `pop`.
        unsafe { Chunk::take_to(self.head.chunk, slot, value) };
        true
    }

    /// The value that [`pop`](Self::pop) would return, left where it is.
    #[inline]
    pub fn peek(&mut self) -> Option<&T> {
        if self.is_empty() {
            return None;
        }
        // SAFETY: the item is published: it lies in the first slot of the chunk after `head`, or in
        // `head`. It stays there until our next `pop`, which has to wait for the end of the borrow
        // we return.
        unsafe {
            let (chunk, slot) = if self.popped == self.head.end {
                (self.shared.chunk_after(self.head.chunk), 0)
            } else {
                (self.head.chunk, self.head.slot(self.popped))
            };
            Some(&*Chunk::look(chunk, slot))
        }
    }

    /// How many values are published and not popped.
    #[inline]
    pub fn len(&mut self) -> usize {
        self.prefetch();
        (self.available - self.popped) as usize
    }

    /// Whether there is nothing to pop. Asks the producer only when the prefetched values are used
    /// up.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.popped == self.available && {
            self.prefetch();
            self.popped == self.available
        }
    }

    /// Announces sleep. `true`: nothing is published, and the next flush will tell the producer to
    /// wake us. `false`: there is something to read, or the producer has closed; stay awake.
    ///
    /// A flush that runs in the middle of a `sleep` that ends in `false` may ask for a wake-up all
    /// the same: wake-ups can be one too many, never one too few.
    #[must_use = "false means that the consumer must stay awake"]
    pub fn sleep(&mut self) -> bool {
        if self.popped != self.available {
            return false;
        }
        let side = &self.shared.producer_side;
        side.doorbell.arm();
        // The look after arming, without which a wake-up gets lost: see the module `doorbell`.
        // Relaxed, for whatever it finds is read only after a prefetch.
        if side.published.load(Ordering::Relaxed) == self.available {
            return true;
        }
        side.doorbell.disarm();
        false
    }

    /// Whether the producer has closed and everything has been popped: nothing will ever come.
    #[inline]
    pub fn is_finished(&mut self) -> bool {
        // Both questions to one load. Between two loads, a last item could be published and the
        // queue closed.
        self.popped == self.available && self.prefetch() == self.popped | CLOSED
    }

    /// Whether the producer has closed or was dropped. There may still be values to read.
    #[inline]
    pub fn is_producer_gone(&self) -> bool {
        // Acquire: a caller that sees the producer gone also sees what it did before it went.
        let side = &self.shared.producer_side;
        side.published.load(Ordering::Acquire) & CLOSED != 0
    }

    /// Asks how much has been published; returns the whole word, [`CLOSED`] included.
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

    /// Moves `head` to the chunk that begins with item number `popped`, which is published, and
    /// gives the chunk before it back.
    #[cold]
    fn enter_next_chunk(&mut self) {
        let shared = &*self.shared;
        let left = self.head.chunk;
        // SAFETY: an item behind `head` is published. Every item in `head` was popped, and the
        // producer, having published behind it, neither writes nor rolls back into it any more.
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

    /// Notes how far we are, for whoever cleans up in the end.
    fn leave_rest(&self) {
        let (head, popped) = (self.head, self.popped);
        self.shared.consumer_side.rest.with_mut(|rest| {
            // SAFETY: as long as the consumer is there, nobody else touches `rest`.
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
            // Before the destructor runs: should it panic, the values behind this one are dropped
            // in the end.
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

/// Set in the published count at the end of the stream. In the same word, so that one load answers
/// "is there more?" and "will there be more?" for the same moment. 63 bits of count last for
/// centuries.
const CLOSED: u64 = 1 << 63;

/// A chunk in use, and the numbers of its items.
struct Position<T> {
    chunk: *mut Chunk<T>,
    /// The item in its first slot.
    start: u64,
    /// The first item behind it.
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
        // SAFETY: the caller vouches for the chunk.
        let end = start + unsafe { Chunk::capacity(chunk) } as u64;
        Self { chunk, start, end }
    }

    /// # Safety
    /// `chunk` is alive, or null, which ends before item 0.
    unsafe fn ending(chunk: *mut Chunk<T>, end: u64) -> Self {
        if chunk.is_null() {
            return Self::START;
        }
        // SAFETY: the caller vouches for the chunk.
        let start = end - unsafe { Chunk::capacity(chunk) } as u64;
        Self { chunk, start, end }
    }

    /// The slot of the item with this number, which lies in this chunk.
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

/// What the two ends have in common, each on the cache line of the one who writes it.
struct Shared<T> {
    producer_side: OwnLine<ProducerSide<T>>,
    consumer_side: OwnLine<ConsumerSide<T>>,
}

/// What a flush touches. The line stays in the producer's cache until the consumer runs dry.
struct ProducerSide<T> {
    /// Items ever published, and [`CLOSED`]. Written by the producer only.
    published: AtomicU64,
    /// Whether the consumer sleeps.
    doorbell: Doorbell,
    /// On this side, because the producer may ask for every message and the consumer answers once.
    consumer_gone: AtomicBool,
    /// The very first chunk. Written by the producer before it publishes item 0.
    first: UnsafeCell<*mut Chunk<T>>,
}

/// What the consumer writes while it reads.
struct ConsumerSide<T> {
    /// Items popped, as of the last prefetch or change of chunk. For statistics, and to
    /// choose the size of the next chunk.
    popped: Hint,
    /// A chunk on its way back to the producer.
    spare: Spare<T>,
    /// Where the consumer stopped, as its `head` and `popped`: written while it is dropped, read when
    /// both ends are gone.
    rest: UnsafeCell<(Position<T>, u64)>,
}

impl<T> Shared<T> {
    /// The chunk after `chunk`, where null stands for the place before the first one.
    ///
    /// # Safety
    /// `chunk` is null or alive, and the caller may read the link: see [`Chunk::next`].
    unsafe fn chunk_after(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller vouches for the chunk; `first` follows the same rule as `Chunk::next`.
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
    /// As for [`chunk_after`](Self::chunk_after), and nobody uses `chunk` any more.
    unsafe fn leave_chunk(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller vouches for it.
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
    /// Both ends are gone, and the Arc has brought us everything that they did.
    fn drop(&mut self) {
        let published = self.producer_side.published.load(Ordering::Relaxed) & !CLOSED;
        let (mut head, popped) = self.consumer_side.rest.with(|rest| {
            // SAFETY: nobody else is left.
            unsafe { *rest }
        });
        for number in popped..published {
            if number == head.end {
                // SAFETY: nobody else is left, the items in this chunk are gone, and the next one is
                // alive, because `number` lies in it.
                head = unsafe { Position::starting(self.leave_chunk(head.chunk), number) };
            }
            // SAFETY: this is the chunk of the item, which is published and was not popped.
            drop(unsafe { Chunk::take(head.chunk, head.slot(number)) });
        }
        let mut chunk = head.chunk;
        // The last chunk, and those that a rollback has left behind it. If there was never an item, the
        // last chunk is null, and the first one may be such a leftover.
        loop {
            // SAFETY: nobody else is left, and there are no items left.
            chunk = unsafe { self.leave_chunk(chunk) };
            if chunk.is_null() {
                break;
            }
        }
    }
}
