//! Memory of the [`spsc`](crate::spsc) queue: chunks of slots, linked in the order of writing, and
//! one spare chunk that travels back from the consumer to the producer.
//!
//! ```text
//!   consumer                                      producer
//!      │ head                                        │ tail
//!      ▼                                             ▼
//!   ┌──────────────┐ next  ┌──────────────┐ next  ┌──────────────┐
//!   │ read │ item  │ ────► │ item │ item  │ ────► │ item │ empty │
//!   └──────────────┘ ◄──── └──────────────┘ ◄──── └──────────────┘
//!      │              prev                  prev     ▲
//!      └─ read to the end ──►  spare  ──► next chunk ┘
//! ```
//!
//! One allocation serves [`CHUNK`] items, and a queue whose consumer keeps up allocates nothing at
//! all: the chunk just emptied, still warm in the cache, is the next one to be filled. More than
//! one spare is not kept, so that a burst gives its memory back.

use std::{mem::MaybeUninit, ptr};

use crate::primitive::{AtomicPtr, Ordering, UnsafeCell};

/// Items in one chunk. A power of two, so that an item's place in its chunk is the low bits of its
/// number.
#[cfg(not(zeroxide_loom))]
pub(crate) const CHUNK: usize = 256;

/// Small enough for loom to walk over the seam between two chunks.
#[cfg(zeroxide_loom)]
pub(crate) const CHUNK: usize = 2;

/// The slot, within its chunk, of the item with this number.
#[inline(always)]
pub(crate) fn slot_of(number: u64) -> usize {
    (number % CHUNK as u64) as usize
}

/// A block of slots. Which of them hold an item is known to the queue, not to the chunk: dropping a
/// chunk drops no items.
pub(crate) struct Chunk<T> {
    /// Towards the consumer. Written and read by the producer only, to roll back over the seam.
    prev: UnsafeCell<*mut Chunk<T>>,
    /// Towards the producer, who writes it before it publishes the first item behind it.
    next: UnsafeCell<*mut Chunk<T>>,
    slots: [UnsafeCell<MaybeUninit<T>>; CHUNK],
}

impl<T> Chunk<T> {
    /// A chunk of empty slots, to be given back with [`free`](Self::free).
    pub(crate) fn allocate() -> *mut Self {
        // Written in place: a chunk is too large to be built on the stack and moved.
        let chunk: *mut Self = Box::into_raw(Box::<Self>::new_uninit()).cast();
        // SAFETY: the memory is ours, large enough and aligned, and nobody else knows it. Each
        // field is written through a raw pointer, so no reference to uninitialised memory ever
        // exists.
        unsafe {
            (&raw mut (*chunk).prev).write(UnsafeCell::new(ptr::null_mut()));
            (&raw mut (*chunk).next).write(UnsafeCell::new(ptr::null_mut()));
            let slots = (&raw mut (*chunk).slots).cast::<UnsafeCell<MaybeUninit<T>>>();
            for index in 0..CHUNK {
                // Writes nothing at run time, except under loom, whose cells have a history.
                slots
                    .add(index)
                    .write(UnsafeCell::new(MaybeUninit::uninit()));
            }
        }
        chunk
    }

    /// Releases the memory; items still inside are leaked.
    ///
    /// # Safety
    /// `chunk` comes from [`allocate`](Self::allocate), and nobody uses it any more.
    pub(crate) unsafe fn free(chunk: *mut Self) {
        // SAFETY: `allocate` got it from a Box of the same type, and the caller gives up the last
        // use.
        drop(unsafe { Box::from_raw(chunk) });
    }

    /// Moves `value` into a slot.
    ///
    /// # Safety
    /// `slot < CHUNK`, the slot is empty, and only the caller may touch it now.
    #[inline(always)]
    pub(crate) unsafe fn put(&self, slot: usize, value: T) {
        // SAFETY: the caller vouches for the bounds.
        let cell = unsafe { self.slots.get_unchecked(slot) };
        cell.with_mut(|place| {
            // SAFETY: the caller has the slot to itself; being empty, it has nothing to drop.
            unsafe { place.write(MaybeUninit::new(value)) }
        });
    }

    /// Moves the value out of a slot, which is empty then.
    ///
    /// # Safety
    /// `slot < CHUNK`, the slot holds an item, and only the caller may touch it now.
    #[inline(always)]
    pub(crate) unsafe fn take(&self, slot: usize) -> T {
        // SAFETY: the caller vouches for the bounds.
        let cell = unsafe { self.slots.get_unchecked(slot) };
        // SAFETY: there is an item, and the caller has the slot to itself and treats it as empty
        // from now on.
        cell.with(|place| unsafe { place.read().assume_init() })
    }

    /// Where the value of a slot lies.
    ///
    /// # Safety
    /// `slot < CHUNK`, the slot holds an item, and nobody writes to it as long as the pointer is
    /// used.
    #[inline(always)]
    pub(crate) unsafe fn look(&self, slot: usize) -> *const T {
        // SAFETY: the caller vouches for the bounds.
        let cell = unsafe { self.slots.get_unchecked(slot) };
        cell.with(|place| place.cast())
    }

    /// The chunk behind this one, or null.
    ///
    /// # Safety
    /// The caller is the producer, or has seen an item published that lies behind this chunk.
    pub(crate) unsafe fn next(&self) -> *mut Self {
        // SAFETY: the producer reads its own write; for the consumer, publication came after that
        // write.
        self.next.with(|next| unsafe { *next })
    }

    /// The chunk before this one; null for the first one.
    ///
    /// # Safety
    /// The caller is the producer.
    pub(crate) unsafe fn prev(&self) -> *mut Self {
        // SAFETY: nobody but the producer touches this field while the chunk is linked.
        self.prev.with(|prev| unsafe { *prev })
    }

    /// Notes where this chunk comes after.
    ///
    /// # Safety
    /// The caller is the producer, and the chunk is not linked yet.
    pub(crate) unsafe fn set_prev(&self, chunk: *mut Self) {
        // SAFETY: as for `prev`.
        self.prev.with_mut(|prev| unsafe { *prev = chunk });
    }

    /// Notes what comes behind this chunk.
    ///
    /// # Safety
    /// The caller is the producer and has published nothing behind this chunk, or nobody else knows
    /// the chunk.
    pub(crate) unsafe fn set_next(&self, chunk: *mut Self) {
        // SAFETY: the consumer reads `next` only after something behind this chunk was published.
        self.next.with_mut(|next| unsafe { *next = chunk });
    }
}

/// A place for one unused chunk, filled by the consumer and emptied by the producer.
pub(crate) struct Spare<T>(AtomicPtr<Chunk<T>>);

impl<T> Spare<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Producer: the spare chunk, or a new one. Its slots are empty, and nothing is linked behind
    /// it.
    pub(crate) fn take_or_allocate(&self) -> *mut Chunk<T> {
        // Acquire pairs with the Release in `give`: what the consumer read from the slots, it has
        // read before we write there again.
        let spare = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        if spare.is_null() {
            Chunk::allocate()
        } else {
            spare
        }
    }

    /// Consumer: leaves `chunk` for the producer, and frees the one that the producer did not need.
    ///
    /// # Safety
    /// Only the consumer still knows `chunk`, and its slots are empty.
    pub(crate) unsafe fn give(&self, chunk: *mut Chunk<T>) {
        // SAFETY: alive, and ours alone until the swap below.
        unsafe { (*chunk).set_next(ptr::null_mut()) };
        // Release: see `take_or_allocate`. No Acquire: the chunk that comes back is one that we put
        // there.
        let unused = self.0.swap(chunk, Ordering::Release);
        if !unused.is_null() {
            // SAFETY: the swap took it away from the producer, who therefore never saw it.
            unsafe { Chunk::free(unused) };
        }
    }
}

impl<T> Drop for Spare<T> {
    fn drop(&mut self) {
        // Relaxed: both ends are gone, and whoever drops the last one has synchronised with the
        // other.
        let spare = self.0.swap(ptr::null_mut(), Ordering::Relaxed);
        if !spare.is_null() {
            // SAFETY: a spare chunk belongs to the spare place alone.
            unsafe { Chunk::free(spare) };
        }
    }
}
