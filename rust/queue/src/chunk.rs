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
//! Chunks come in two sizes. A queue begins with a [`SMALL`] one and keeps using them while its consumer keeps up, so
//! that ten thousand quiet connections cost little. When a small chunk has been filled and nothing was read from it,
//! the next one is [`LARGE`], so that a backlog costs less than one allocation per 256 items. A large chunk during
//! which the queue was always nearly empty is not reused. A steady queue allocates nothing: the chunk just emptied,
//! still in the cache, is filled next. Only one spare is kept, so that the memory of a burst is freed.

use std::{
    alloc::{Layout, alloc, dealloc, handle_alloc_error},
    mem::MaybeUninit,
    ptr,
};

use crate::primitive::{AtomicPtr, Ordering, UnsafeCell};

/// Items in a chunk of a queue that is nearly empty, and in every queue's first chunk.
#[cfg(not(zeroxide_loom))]
pub(crate) const SMALL: usize = 16;
/// Items in a chunk of a queue with a backlog. The number is high enough that, even with the small chunks before, there
/// is soon less than one allocation per 256 items.
#[cfg(not(zeroxide_loom))]
pub(crate) const LARGE: usize = 272;
/// A queue is nearly empty if never more items than this waited. The producer knows the consumer's position only from
/// its last look, so twice as many may seem to wait. That must still be less than [`SMALL`], or one side would free a
/// chunk that the other side needs.
#[cfg(not(zeroxide_loom))]
pub(crate) const SHALLOW: u64 = 7;

// Small enough for loom to explore the boundaries between chunks of either size.
#[cfg(zeroxide_loom)]
pub(crate) const SMALL: usize = 2;
#[cfg(zeroxide_loom)]
pub(crate) const LARGE: usize = 3;
#[cfg(zeroxide_loom)]
pub(crate) const SHALLOW: u64 = 1;

/// A block of slots. The queue, and not the chunk, knows which slots hold an item: dropping a chunk drops no items.
///
/// This is the chunk's head, and the slots follow in the same allocation. All access therefore goes through the pointer
/// that [`allocate`](Self::allocate) returned, because a reference would cover the head only.
#[repr(C)]
pub(crate) struct Chunk<T> {
    /// The chunk before, towards the consumer. Written and read by the producer only, for a rollback across the
    /// boundary.
    prev: UnsafeCell<*mut Chunk<T>>,
    /// The next chunk, towards the producer, which writes it before it publishes the first item in that chunk.
    next: UnsafeCell<*mut Chunk<T>>,
    /// The number of slots; never written again.
    capacity: usize,
    slots: [UnsafeCell<MaybeUninit<T>>; 0],
}

impl<T> Chunk<T> {
    /// Allocates a chunk of `capacity` empty slots, to be released with [`free`](Self::free).
    pub(crate) fn allocate(capacity: usize) -> *mut Self {
        let layout = Self::layout(capacity);
        // SAFETY: the head makes the layout larger than nothing.
        let chunk: *mut Self = unsafe { alloc(layout) }.cast();
        if chunk.is_null() {
            handle_alloc_error(layout);
        }
        // SAFETY: the memory is ours, large enough and aligned, and no other thread has a pointer to it. Each field is
        // written through a raw pointer, so no reference to uninitialised memory ever exists.
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
    /// `chunk` comes from [`allocate`](Self::allocate), and is not used any more.
    pub(crate) unsafe fn free(chunk: *mut Self) {
        // SAFETY: `allocate` used the same layout, and the caller guarantees that this is the last use.
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

    /// The memory layout of a chunk: the head, and the offset of the slots.
    fn layout(capacity: usize) -> Layout {
        let slots = Layout::array::<UnsafeCell<MaybeUninit<T>>>(capacity);
        slots
            .and_then(|slots| Layout::new::<Self>().extend(slots))
            .expect("a few hundred items of any size fit into the address space")
            .0
            .pad_to_align()
    }

    /// The position of a slot.
    ///
    /// # Safety
    /// `chunk` is alive, and has more than `slot` slots.
    #[inline(always)]
    unsafe fn cell(chunk: *mut Self, slot: usize) -> *mut UnsafeCell<MaybeUninit<T>> {
        // SAFETY: the caller guarantees the bounds; `layout` placed the slots there.
        unsafe {
            (&raw mut (*chunk).slots)
                .cast::<UnsafeCell<MaybeUninit<T>>>()
                .add(slot)
        }
    }

    /// The number of slots of `chunk`.
    ///
    /// # Safety
    /// `chunk` is alive.
    #[inline]
    pub(crate) unsafe fn capacity(chunk: *const Self) -> usize {
        // SAFETY: the caller guarantees that the chunk is alive, and this field is never written.
        unsafe { (*chunk).capacity }
    }

    /// Moves `value` into a slot.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot is empty, and only the caller may touch it now.
    #[inline(always)]
    pub(crate) unsafe fn put(chunk: *mut Self, slot: usize, value: T) {
        // SAFETY: the caller guarantees that the slot exists; cells may be shared.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with_mut(|place| {
            // SAFETY: the caller has exclusive access to the slot; it is empty, so there is nothing to drop.
            unsafe { place.write(MaybeUninit::new(value)) }
        });
    }

    /// Like [`put`](Self::put), but moves the value out of `from`, which holds the default afterwards.
    ///
    /// # Safety
    /// As for [`put`](Self::put).
    #[inline(always)]
    pub(crate) unsafe fn put_taken(chunk: *mut Self, slot: usize, value: &mut T)
    where
        T: Default,
    {
        let left = T::default();
        // SAFETY: the caller guarantees that the slot exists; cells may be shared.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with_mut(|place| {
            // SAFETY: as in `put`. Nothing can panic between the copy and the write that makes the copy the only one.
            unsafe {
                place.cast::<T>().copy_from_nonoverlapping(value, 1);
                ptr::write(value, left);
            }
        });
    }

    /// Moves the value out of a slot, which is empty afterwards.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot holds an item, and only the caller may touch it
    /// now.
    #[inline(always)]
    pub(crate) unsafe fn take(chunk: *mut Self, slot: usize) -> T {
        // SAFETY: the caller guarantees that the slot exists; cells may be shared.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        // SAFETY: there is an item, and the caller has exclusive access to the slot and treats it as empty from now on.
        cell.with(|place| unsafe { place.read().assume_init() })
    }

    /// Like [`take`](Self::take), but moves the value to a place whose old value is dropped.
    ///
    /// # Safety
    /// As for [`take`](Self::take).
    #[inline(always)]
    pub(crate) unsafe fn take_to(chunk: *mut Self, slot: usize, value: &mut T) {
        // SAFETY: the caller guarantees that the slot exists; cells may be shared.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with(|place| {
            // SAFETY: as in `take`. The old value is ours once the copy has replaced it.
            let old = unsafe {
                let old = ptr::read(value);
                ptr::copy_nonoverlapping(place.cast::<T>(), value, 1);
                old
            };
            drop(old);
        });
    }

    /// The position of the value in a slot.
    ///
    /// # Safety
    /// `chunk` is alive and has the slot, the slot holds an item, and no thread writes to it while the pointer is used.
    #[inline(always)]
    pub(crate) unsafe fn look(chunk: *mut Self, slot: usize) -> *const T {
        // SAFETY: the caller guarantees that the slot exists; cells may be shared.
        let cell = unsafe { &*Self::cell(chunk, slot) };
        cell.with(|place| place.cast())
    }

    /// The chunk after this one, or null.
    ///
    /// # Safety
    /// The caller is the producer, or has seen a published item that is after this chunk.
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
        // SAFETY: only the producer accesses this field while the chunk is linked.
        self.prev.with(|prev| unsafe { *prev })
    }

    /// Sets the chunk before this one.
    ///
    /// # Safety
    /// The caller is the producer, and the chunk is not linked yet.
    pub(crate) unsafe fn set_prev(&self, chunk: *mut Self) {
        // SAFETY: as for `prev`.
        self.prev.with_mut(|prev| unsafe { *prev = chunk });
    }

    /// Sets the chunk after this one.
    ///
    /// # Safety
    /// The caller is the producer and has published nothing after this chunk, or no other thread has a pointer to the
    /// chunk.
    pub(crate) unsafe fn set_next(&self, chunk: *mut Self) {
        // SAFETY: the consumer reads `next` only after something after this chunk was published.
        self.next.with_mut(|next| unsafe { *next = chunk });
    }
}

/// A slot for one unused chunk, filled by the consumer and emptied by the producer.
pub(crate) struct Spare<T>(AtomicPtr<Chunk<T>>);

impl<T> Spare<T> {
    pub(crate) fn new() -> Self {
        Self(AtomicPtr::new(ptr::null_mut()))
    }

    /// Producer: takes the spare chunk if it has at least `capacity` slots, or else allocates one with exactly as many.
    /// Its slots are empty, and no chunk is linked after it.
    pub(crate) fn take_or_allocate(&self, capacity: usize) -> *mut Chunk<T> {
        // Acquire pairs with the Release in `give`: the consumer has read the slots before the producer writes to them
        // again.
        let spare = self.0.swap(ptr::null_mut(), Ordering::Acquire);
        if spare.is_null() {
            return Chunk::allocate(capacity);
        }
        // SAFETY: the swap gave us exclusive access to the chunk.
        unsafe {
            if Chunk::capacity(spare) >= capacity {
                return spare;
            }
            Chunk::free(spare);
        }
        Chunk::allocate(capacity)
    }

    /// Consumer: leaves `chunk` for the producer, and frees a spare that the producer did not need.
    ///
    /// # Safety
    /// Only the consumer still has a pointer to `chunk`, and its slots are empty.
    pub(crate) unsafe fn give(&self, chunk: *mut Chunk<T>) {
        // SAFETY: alive, and exclusively ours until the swap below.
        unsafe { (*chunk).set_next(ptr::null_mut()) };
        // Release: see `take_or_allocate`. No Acquire is needed, because a chunk that the swap returns is one that the
        // consumer put there.
        let unused = self.0.swap(chunk, Ordering::Release);
        if !unused.is_null() {
            // SAFETY: the swap removed it before the producer saw it.
            unsafe { Chunk::free(unused) };
        }
    }
}

impl<T> Drop for Spare<T> {
    fn drop(&mut self) {
        // Relaxed: both ends are gone, and the thread that drops the last one has synchronised with the other.
        let spare = self.0.swap(ptr::null_mut(), Ordering::Relaxed);
        if !spare.is_null() {
            // SAFETY: a spare chunk belongs to this slot only.
            unsafe { Chunk::free(spare) };
        }
    }
}
