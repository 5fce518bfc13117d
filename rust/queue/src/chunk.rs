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
//! Chunks come in two sizes. A queue begins with a [`SMALL`] one and stays with them while its
//! consumer keeps up: ten thousand quiet connections cost little. As soon as a small chunk has been
//! filled with nothing read from it, the next is a [`LARGE`] one, so that a backlog costs less
//! than one allocation per 256 items; and a large chunk during which the queue was always nearly empty is not
//! used again. A queue that flows allocates nothing at all: the chunk just emptied, still warm in the
//! cache, is the next one to be filled. More than one spare is not kept, so that a burst gives its
//! memory back.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    mem::MaybeUninit,
    ptr,
};

use crate::primitive::{AtomicPtr, Ordering, UnsafeCell};

/// Items in a chunk of a queue that is nearly empty, and of any queue at first.
#[cfg(not(zeroxide_loom))]
pub(crate) const SMALL: usize = 16;
/// Items in a chunk of a queue with a backlog: so many that even with the small chunks before, it
/// soon takes less than one allocation per 256 items.
#[cfg(not(zeroxide_loom))]
pub(crate) const LARGE: usize = 272;
/// Nearly empty: never more items than this waited. The producer knows how far the consumer was only
/// when it last looked, so twice as many may seem to wait; less than [`SMALL`] even so, or a chunk
/// would be freed on one side and wanted on the other.
#[cfg(not(zeroxide_loom))]
pub(crate) const SHALLOW: u64 = 7;

// Small enough for loom to walk over the seams between chunks of either size.
#[cfg(zeroxide_loom)]
pub(crate) const SMALL: usize = 2;
#[cfg(zeroxide_loom)]
pub(crate) const LARGE: usize = 3;
#[cfg(zeroxide_loom)]
pub(crate) const SHALLOW: u64 = 1;

/// A block of slots. Which of them hold an item is known to the queue, not to the chunk: dropping a
/// chunk drops no items.
///
/// This is its head; the slots follow in the same allocation. Everything is therefore done through
/// the pointer that [`allocate`](Self::allocate) returned: a reference would reach the head only.
#[repr(C)]
pub(crate) struct Chunk<T> {
    /// Towards the consumer. Written and read by the producer only, to roll back over the seam.
    prev: UnsafeCell<*mut Chunk<T>>,
    /// Towards the producer, who writes it before it publishes the first item behind it.
    next: UnsafeCell<*mut Chunk<T>>,
    /// How many slots there are; never written again.
    capacity: usize,
    slots: [UnsafeCell<MaybeUninit<T>>; 0],
}

impl<T> Chunk<T> {
    /// A chunk of `capacity` empty slots, to be given back with [`free`](Self::free).
    pub(crate) fn allocate(capacity: usize) -> *mut Self {
        let layout = Self::layout(capacity);
        // SAFETY: the head makes the layout larger than nothing.
        let chunk: *mut Self = unsafe { alloc(layout) }.cast();
        if chunk.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory is ours, large enough and aligned, and nobody else knows it. Each
        // field is written through a raw pointer, so no reference to uninitialised memory ever
        // exists.
        unsafe {
            (&raw mut (*chunk).prev).write(UnsafeCell::new(ptr::null_mut()));
            (&raw mut (*chunk).next).write(UnsafeCell::new(ptr::null_mut()));
            (&raw mut (*chunk).capacity).write(capacity);
            for slot in 0..capacity {
                // Writes nothing at run time, except under loom, whose cells have a history.
                Self::cell(chunk, slot).write(UnsafeCell::new(MaybeUninit::uninit()));
            }
        }
        chunk
    }

    /// Releases the memory; items still inside are leaked.
    ///
    /// # Safety
    /// `chunk` comes from [`allocate`](Self::allocate), and nobody uses it any more.
    pub(crate) unsafe fn free(chunk: *mut Self) {
        // SAFETY: `allocate` used the same layout, and the caller gives up the last use.
        unsafe {
            let capacity = Self::capacity(chunk);
            #[cfg(zeroxide_loom)]
            {
                // loom's cells own memory of their own.
                (0..capacity).for_each(|slot| Self::cell(chunk, slot).drop_in_place());
                chunk.drop_in_place();
            }
            dealloc(chunk.cast(), Self::layout(capacity));
        }
    }

    /// The memory of a chunk: the head, and the slots where `slots` begins.
    fn layout(capacity: usize) -> Layout {
        let slots = Layout::array::<UnsafeCell<MaybeUninit<T>>>(capacity);
        slots
            .and_then(|slots| Layout::new::<Self>().extend(slots))
            .expect("a few hundred items of any size fit into the address space")
            .0
            .pad_to_align()
    }

    /// Where a slot lies.
    ///
    /// # Safety
    /// `chunk` is alive, and has more than `slot` slots.
    #[inline(always)]
    unsafe fn cell(chunk: *mut Self, slot: usize) -> *mut UnsafeCell<MaybeUninit<T>> {
        // SAFETY: the caller vouches for the bounds; `layout` put the slots there.
        unsafe {
            (&raw mut (*chunk).slots)
                .cast::<UnsafeCell<MaybeUninit<T>>>()
                .add(slot)
        }
    }

    /// How many slots `chunk` has.
    ///
    /// # Safety
    /// `chunk` is alive.
    #[inline]
    pub(crate) unsafe fn capacity(chunk: *const Self) -> usize {
        // SAFETY: the caller vouches for the chunk, and nobody writes this field.
        unsafe { (*chunk).capacity }
    }

    /// Moves `value` into a slot.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot is empty, and only the caller may touch it now.
    #[inline(always)]
    pub(crate) unsafe fn put(chunk: *mut Self, slot: usize, value: T) {
        // SAFETY: the caller vouches for the slot; cells are shared by design.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with_mut(|place| {
            // SAFETY: the caller has the slot to itself; being empty, it has nothing to drop.
            unsafe { place.write(MaybeUninit::new(value)) }
        });
    }

    /// As [`put`](Self::put), out of a place that holds the default afterwards.
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    #[inline(always)]
    pub(crate) unsafe fn put_taken(chunk: *mut Self, slot: usize, value: &mut T)
    where
        T: Default,
    {
        let left = T::default();
        // SAFETY: the caller vouches for the slot; cells are shared by design.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with_mut(|place| {
            // SAFETY: as in `put`; and nothing between the copy and the write, which makes the copy the only one, can panic.
            unsafe {
                place.cast::<T>().copy_from_nonoverlapping(value, 1);
                ptr::write(value, left);
            }
        });
    }

    /// Moves the value out of a slot, which is empty then.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot holds an item, and only the caller may touch it
    /// now.
    #[inline(always)]
    pub(crate) unsafe fn take(chunk: *mut Self, slot: usize) -> T {
        // SAFETY: the caller vouches for the slot; cells are shared by design.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        // SAFETY: there is an item, and the caller has the slot to itself and treats it as empty
        // from now on.
        cell.with(|place| unsafe { place.read().assume_init() })
    }

    /// As [`take`](Self::take), to a place whose value is dropped.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    #[inline(always)]
    pub(crate) unsafe fn take_to(chunk: *mut Self, slot: usize, value: &mut T) {
        // SAFETY: the caller vouches for the slot; cells are shared by design.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with(|place| {
            // SAFETY: as in `take`. What was there is ours once the copy has taken its place.
            let old = unsafe {
                let old = ptr::read(value);
                ptr::copy_nonoverlapping(place.cast::<T>(), value, 1);
                old
            };
            drop(old);
        });
    }

    /// Where the value of a slot lies.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot holds an item, and nobody writes to it as long as
    /// the pointer is used.
    #[inline(always)]
    pub(crate) unsafe fn look(chunk: *mut Self, slot: usize) -> *const T {
        // SAFETY: the caller vouches for the slot; cells are shared by design.
        let cell = unsafe { &*Self::cell(chunk, slot) };
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

    /// Producer: the spare chunk if it has at least `capacity` slots, or else a new one with just as
    /// many. Its slots are empty, and nothing is linked behind it.
    pub(crate) fn take_or_allocate(&self, capacity: usize) -> *mut Chunk<T> {
        // Acquire pairs with the Release in `give`: what the consumer read from the slots, it has
        // read before we write there again.
        let spare = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        if spare.is_null() {
            return Chunk::allocate(capacity);
        }
        // SAFETY: the swap made the chunk ours alone.
        unsafe {
            if Chunk::capacity(spare) >= capacity {
                return spare;
            }
            Chunk::free(spare);
        }
        Chunk::allocate(capacity)
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
