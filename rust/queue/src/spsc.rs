//! One writer, one reader: the queue inside every message pipe.
//!
//! The producer and the consumer each keep their own count of items and share a third one, the *published*
//! count. It is the number of items ever published, never reset, so it can only grow:
//!
//! ```text
//!      popped            available         published          written
//!        │                   │                 │                 │
//!  ──────┼───────────────────┼─────────────────┼─────────────────┼──────►  item numbers
//!  gone  │ prefetched: plain │ visible, not    │ pushed, private │
//!        │ reads             │ yet asked for   │ to the producer │
//!        └─── consumer's ────┘                 └── producer's ───┘
//! ```
//!
//! | call       | what it costs                                                                        |
//! |------------|--------------------------------------------------------------------------------------|
//! | `push`     | one plain write; every 256 items also the next chunk, nearly always the spare one      |
//! | `flush`    | one Release store, one fence, one load of a line that the producer already has          |
//! | `pop`      | one plain read; when the prefetched items are used up, also one Acquire load            |
//! | `sleep`    | one store, one fence, one load                                                        |
//!
//! A batch of any length is therefore handed over for the price of one item. Nothing between `push` and
//! `flush` is visible: a writer that has pushed half a message can still take it back with `rollback`.

use std::{fmt, ptr};

use crate::{
    chunk::{CHUNK, Chunk, Spare, slot_of},
    doorbell::Doorbell,
    primitive::{Arc, AtomicBool, AtomicU64, Ordering, OwnLine, UnsafeCell},
};

/// An empty queue and its two ends. It grows as needed: bounding it is the business of the pipe, which
/// knows the high-water mark and may change it at any time.
///
/// ```
/// let (mut producer, mut consumer) = zeroxide_queue::spsc::channel();
/// producer.push(1);
/// producer.push(2);
/// assert_eq!(consumer.pop(), None); // not flushed yet
/// producer.flush();
/// assert_eq!(consumer.pop(), Some(1));
/// assert_eq!(consumer.pop(), Some(2));
/// ```
///
/// The first chunk is allocated by the first `push`: a pipe that never carries anything costs a few cache
/// lines.
pub fn channel<T>() -> (Producer<T>, Consumer<T>) {
    let shared = Arc::new(Shared {
        producers: OwnLine(ProducerLine {
            published: AtomicU64::new(0),
            doorbell: Doorbell::new(),
            consumer_gone: AtomicBool::new(false),
        }),
        consumers: OwnLine(ConsumerLine {
            popped: AtomicU64::new(0),
            spare: Spare::new(),
        }),
        first: UnsafeCell::new(ptr::null_mut()),
        rest: UnsafeCell::new(Rest {
            head: ptr::null_mut(),
            popped: 0,
        }),
    });
    let producer = Producer {
        tail: ptr::null_mut(),
        written: 0,
        published: 0,
        closed: false,
        shared: shared.clone(),
    };
    let consumer = Consumer {
        head: ptr::null_mut(),
        popped: 0,
        available: 0,
        shared,
    };
    (producer, consumer)
}

/// The published count and the end of the stream share one word, so that one load answers "is there more?"
/// and "will there ever be more?" at the same moment. 63 bits of count last for centuries.
const CLOSED: u64 = 1 << 63;

struct Shared<T> {
    producers: OwnLine<ProducerLine>,
    consumers: OwnLine<ConsumerLine<T>>,
    /// The very first chunk, written by the producer before it publishes item 0.
    first: UnsafeCell<*mut Chunk<T>>,
    /// Where the consumer stopped, written when it is dropped, read when both ends are gone.
    rest: UnsafeCell<Rest<T>>,
}

/// What a flush touches, on one line, which stays with the producer until the consumer runs dry.
struct ProducerLine {
    /// Items ever published, and [`CLOSED`]. Written by the producer only.
    published: AtomicU64,
    /// Whether the consumer sleeps.
    doorbell: Doorbell,
    /// Here, because the producer asks per message and the consumer answers once.
    consumer_gone: AtomicBool,
}

/// What the consumer writes while it works.
struct ConsumerLine<T> {
    /// Items popped, as of the last prefetch or change of chunk: only for statistics.
    popped: AtomicU64,
    spare: Spare<T>,
}

struct Rest<T> {
    head: *mut Chunk<T>,
    popped: u64,
}

/// The writing end.
///
/// Dropping it publishes what was pushed and closes the queue, but cannot tell whether the consumer
/// sleeps: [`close`](Self::close) can.
pub struct Producer<T> {
    /// The chunk of the newest item, whose number is `written - 1`; null while `written` is 0.
    tail: *mut Chunk<T>,
    /// Items pushed, less those rolled back.
    written: u64,
    /// Our copy of the published count.
    published: u64,
    closed: bool,
    shared: Arc<Shared<T>>,
}

// SAFETY: a producer moves values of `T` to the consumer's thread and drops some of its own, so `T` must
// be Send; apart from that it holds counts, and pointers to chunks that the two ends share by the rules of
// SAFETY.md, whatever thread each of them is on.
unsafe impl<T: Send> Send for Producer<T> {}

impl<T> Producer<T> {
    /// Adds a value, invisible to the consumer before the next [`flush`](Self::flush).
    ///
    /// Not to be called after [`close`](Self::close): such a value is never delivered.
    #[inline]
    pub fn push(&mut self, value: T) {
        let slot = slot_of(self.written);
        if slot == 0 {
            self.enter_next_chunk();
        }
        // SAFETY: `tail` is the live chunk of item number `written`. That item is not published, so the
        // consumer does not touch its slot, and nothing was pushed there since the chunk was
        // empty, or it was rolled back.
        unsafe { (*self.tail).put(slot, value) };
        self.written += 1;
    }

    /// Takes back the newest value that has not been flushed, if there is one.
    pub fn rollback(&mut self) -> Option<T> {
        if self.written == self.published {
            return None;
        }
        self.written -= 1;
        let slot = slot_of(self.written);
        // SAFETY: the slot holds item number `written`, which is in `tail` by definition and unpublished.
        let value = unsafe { (*self.tail).take(slot) };
        if slot == 0 {
            // The chunk stays linked behind the one before, for the next push to find. The one before is
            // alive: the consumer leaves it for an item published behind it, and there is none.
            // SAFETY: `tail` is live and we are the producer.
            self.tail = unsafe { (*self.tail).prev() };
        }
        Some(value)
    }

    /// How many values wait for a flush.
    #[inline]
    pub fn unflushed(&self) -> usize {
        (self.written - self.published) as usize
    }

    /// Makes everything pushed so far visible to the consumer, all at once.
    ///
    /// `true`: the consumer was asleep and the caller must wake it now. It counts as awake from here on, so no
    /// later flush asks for the same again.
    #[inline]
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn flush(&mut self) -> bool {
        if self.written == self.published || self.closed {
            return false;
        }
        self.published = self.written;
        self.publish(self.written)
    }

    /// Whether the consumer was dropped: nobody will read what is pushed from now on.
    #[inline]
    pub fn is_consumer_gone(&self) -> bool {
        // Relaxed: nothing that the consumer did before is looked at on the strength of this.
        self.shared
            .producers
            .0
            .consumer_gone
            .load(Ordering::Relaxed)
    }

    /// Flushes and ends the stream: after what is in the queue now, nothing follows. Returns what a flush
    /// would return, for the consumer has to learn about the end, too. Closing again does nothing.
    #[must_use = "true means that the consumer sleeps and must be woken"]
    pub fn close(&mut self) -> bool {
        if self.closed {
            return false;
        }
        self.closed = true;
        self.published = self.written;
        self.publish(self.written | CLOSED)
    }

    /// How many values are published and not read yet. For statistics: the consumer counts in public
    /// only now and then, so this is never less than the truth and at most one chunk more.
    pub fn published_unread(&self) -> usize {
        // Relaxed: a number to look at.
        let popped = self.shared.consumers.0.popped.load(Ordering::Relaxed);
        self.published.saturating_sub(popped) as usize
    }

    #[inline]
    fn publish(&self, state: u64) -> bool {
        let line = &self.shared.producers.0;
        // Release: whoever reads this count sees the items below it, and the links between their chunks.
        line.published.store(state, Ordering::Release);
        line.doorbell.ring()
    }

    /// Moves `tail` to the chunk that begins with item number `written`.
    #[cold]
    fn enter_next_chunk(&mut self) {
        let shared = &*self.shared;
        // SAFETY: we are the producer, and `tail`, when there is one, is live.
        let known = unsafe { shared.chunk_after(self.tail) };
        if !known.is_null() {
            // Linked before, and left again by a rollback.
            self.tail = known;
            return;
        }
        let chunk = shared.consumers.0.spare.take_or_allocate();
        // SAFETY: the chunk is ours alone until it is linked. Nothing behind `tail` has been published, so
        // the consumer does not look at the link that we write.
        unsafe {
            (*chunk).set_prev(self.tail);
            match self.tail.as_ref() {
                Some(tail) => tail.set_next(chunk),
                None => shared.first.with_mut(|first| *first = chunk),
            }
        }
        self.tail = chunk;
    }
}

impl<T> Drop for Producer<T> {
    fn drop(&mut self) {
        // Only after a close can there be values that will never be published.
        while self.closed && self.rollback().is_some() {}
        let _ = self.close();
    }
}

impl<T> fmt::Debug for Producer<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Producer")
            .field("published", &self.published)
            .field("unflushed", &self.unflushed())
            .field("closed", &self.closed)
            .finish_non_exhaustive()
    }
}

/// The reading end.
///
/// Dropping it drops the published items; what is published later is dropped with the producer.
pub struct Consumer<T> {
    /// The chunk of the item popped last, whose number is `popped - 1`; null while `popped` is 0.
    head: *mut Chunk<T>,
    popped: u64,
    /// The published count as last seen: up to here items can be read without asking.
    available: u64,
    shared: Arc<Shared<T>>,
}

// SAFETY: a consumer takes values of `T` from another thread and drops them on its own, so `T` must be Send;
// apart from that it holds counts, and pointers to chunks that the two ends share by the rules of
// SAFETY.md, whatever thread each of them is on.
unsafe impl<T: Send> Send for Consumer<T> {}

impl<T> Consumer<T> {
    /// The oldest published value. `None` when nothing is published, which is not the end of the stream: see
    /// [`is_finished`](Self::is_finished).
    #[inline]
    pub fn pop(&mut self) -> Option<T> {
        if self.popped == self.available && !self.prefetch() {
            return None;
        }
        let slot = slot_of(self.popped);
        if slot == 0 {
            self.enter_next_chunk();
        }
        // SAFETY: `popped < available`: the item is published, and the Acquire that told us so makes its slot
        // ours. `head` is its chunk.
        let value = unsafe { (*self.head).take(slot) };
        self.popped += 1;
        Some(value)
    }

    /// Looks at the value that [`pop`](Self::pop) would return.
    #[inline]
    pub fn peek(&mut self) -> Option<&T> {
        if self.popped == self.available && !self.prefetch() {
            return None;
        }
        let slot = slot_of(self.popped);
        // SAFETY: an item is published in the chunk after `head` when the slot is 0, in `head` otherwise;
        // nobody moves it away before our next `pop`, which needs the borrow that we return.
        unsafe {
            let chunk = match slot {
                0 => self.shared.chunk_after(self.head),
                _ => self.head,
            };
            Some(&*(*chunk).look(slot))
        }
    }

    /// Announces sleep. `true`: nothing is published, and the next flush will say that the consumer has
    /// to be woken. `false`: there is something to read, or the producer has closed; stay awake.
    ///
    /// After `false` a flush that came in between may still ask for a wake-up: wake-ups are never lost, but a
    /// spare one is possible.
    pub fn sleep(&mut self) -> bool {
        if self.popped != self.available {
            return false;
        }
        let line = &self.shared.producers.0;
        line.doorbell.arm();
        // The look after arming: see the module `doorbell` for what happens without it.
        if line.published.load(Ordering::Acquire) == self.available {
            return true;
        }
        line.doorbell.disarm();
        false
    }

    /// Whether the producer has closed and everything has been popped: nothing will ever come.
    #[inline]
    pub fn is_finished(&mut self) -> bool {
        self.popped == self.available && !self.prefetch() && self.is_producer_gone()
    }

    /// Whether the producer has closed or was dropped. There may still be values to read.
    #[inline]
    pub fn is_producer_gone(&self) -> bool {
        // Acquire, for callers who conclude more from it than we can know.
        self.shared.producers.0.published.load(Ordering::Acquire) & CLOSED != 0
    }

    /// How many values are published and not popped.
    #[inline]
    pub fn len(&mut self) -> usize {
        self.prefetch();
        (self.available - self.popped) as usize
    }

    /// Whether there is nothing to pop.
    #[inline]
    pub fn is_empty(&mut self) -> bool {
        self.popped == self.available && !self.prefetch()
    }

    /// Asks how much has been published. `false` when there is nothing to read.
    #[inline]
    fn prefetch(&mut self) -> bool {
        // Acquire pairs with the Release in `publish`: the items up to this count are ours to read.
        let state = self.shared.producers.0.published.load(Ordering::Acquire);
        self.available = state & !CLOSED;
        self.shared
            .consumers
            .0
            .popped
            .store(self.popped, Ordering::Relaxed);
        self.popped != self.available
    }

    /// Moves `head` to the chunk that begins with item number `popped`, which is published, and leaves the
    /// chunk before to the producer.
    #[cold]
    fn enter_next_chunk(&mut self) {
        let shared = &*self.shared;
        // SAFETY: an item behind `head` is published.
        let next = unsafe { shared.chunk_after(self.head) };
        if !self.head.is_null() {
            // SAFETY: all its items have been popped, and the producer, having published behind it, will not
            // roll back into it.
            unsafe { shared.consumers.0.spare.give(self.head) };
        }
        self.head = next;
        shared
            .consumers
            .0
            .popped
            .store(self.popped, Ordering::Relaxed);
    }

    /// Notes where we are, for whoever cleans up in the end.
    fn leave_rest(&self) {
        let (head, popped) = (self.head, self.popped);
        self.shared.rest.with_mut(|rest| {
            // SAFETY: nobody else touches `rest` as long as the consumer lives.
            unsafe { *rest = Rest { head, popped } }
        });
    }
}

impl<T> Drop for Consumer<T> {
    fn drop(&mut self) {
        self.shared
            .producers
            .0
            .consumer_gone
            .store(true, Ordering::Relaxed);
        self.leave_rest();
        while let Some(value) = self.pop() {
            // Before the value's destructor runs: should it panic, the others are dropped in the end.
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

impl<T> Shared<T> {
    /// The chunk after `chunk`, where null stands for the place before the first one.
    ///
    /// # Safety
    /// `chunk` is null or live, and the caller may read the link: see [`Chunk::next`].
    unsafe fn chunk_after(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: handed on to the caller; `first` follows the same rule as `Chunk::next`.
        unsafe {
            match chunk.as_ref() {
                Some(chunk) => chunk.next(),
                None => self.first.with(|first| *first),
            }
        }
    }

    /// Frees `chunk` and returns the one after it.
    ///
    /// # Safety
    /// As for `chunk_after`, and nobody uses `chunk` any more.
    unsafe fn leave_chunk(&self, chunk: *mut Chunk<T>) -> *mut Chunk<T> {
        // SAFETY: the caller vouches for both.
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
    /// Both ends are gone, and their Arc has brought everything that they did before this.
    fn drop(&mut self) {
        let published = self.producers.0.published.load(Ordering::Relaxed) & !CLOSED;
        // SAFETY: nobody else is left.
        let (head, popped) = self
            .rest
            .with(|rest| unsafe { ((*rest).head, (*rest).popped) });
        // SAFETY: as above, and `head` is live or null.
        let mut chunk = match slot_of(popped) {
            0 => unsafe { self.leave_chunk(head) },
            _ => head,
        };
        for number in popped..published {
            let slot = slot_of(number);
            // SAFETY: the item is published and was not popped, so `chunk` holds it.
            drop(unsafe { (*chunk).take(slot) });
            if slot == CHUNK - 1 {
                // SAFETY: that was the last item in this chunk.
                chunk = unsafe { self.leave_chunk(chunk) };
            }
        }
        // The last chunk, and those that a rollback has left behind it.
        while !chunk.is_null() {
            // SAFETY: no items are left.
            chunk = unsafe { self.leave_chunk(chunk) };
        }
    }
}
