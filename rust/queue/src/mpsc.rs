//! Many writers, one reader: the queue of mailboxes, whose commands are rare and come from any thread.
//!
//! A stack of nodes behind one pointer. Pushing links a node in front with a compare-exchange. Reading takes the
//! *whole* stack with one swap and reverses it, which restores the order of arrival. Taking everything makes the stack
//! safe: a node is never unlinked from between two others, so no pointer can return to the head while a thread compares
//! against it with another successor in mind (the "ABA" problem of stacks that pop).
//!
//! Each item takes one allocation, so messages do not use this queue.

use std::{fmt, iter::FusedIterator, ptr};

use crate::primitive::{AtomicPtr, Ordering};

/// An unbounded queue with any number of writers. A read takes everything in it.
///
/// ```
/// use zeroxide_queue::mpsc::Queue;
///
/// let queue = Queue::new();
/// assert!(queue.push("first")); // true: it was empty, a sleeping reader needs waking
/// assert!(!queue.push("second"));
/// assert_eq!(queue.take_all().collect::<Vec<_>>(), ["first", "second"]);
/// assert!(queue.is_empty());
/// ```
pub struct Queue<T> {
    /// The newest node, or null.
    newest: AtomicPtr<Node<T>>,
}

// SAFETY: the queue moves values from the threads that push to the thread that takes, and never shares one, so `T` only
// has to be Send.
unsafe impl<T: Send> Send for Queue<T> {}
// SAFETY: as above. All shared state is one atomic pointer. A node is accessed by its writer before it is published, by
// the reader after it was taken, and by no thread in between.
unsafe impl<T: Send> Sync for Queue<T> {}

struct Node<T> {
    value: T,
    /// In the stack: the node pushed before. In a batch: the one pushed after.
    link: *mut Node<T>,
}

impl<T> Queue<T> {
    /// An empty queue.
    #[cfg(not(zeroxide_loom))]
    pub const fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// An empty queue.
    #[cfg(zeroxide_loom)]
    pub fn new() -> Self {
        Self {
            newest: AtomicPtr::new(ptr::null_mut()),
        }
    }

    /// Adds a value; never blocks. `true` means that the queue was empty before: if the reader sleeps, this call has to
    /// wake it.
    pub fn push(&self, value: T) -> bool {
        // Relaxed: the pointer is only compared and linked to, never dereferenced.
        let mut newest = self.newest.load(Ordering::Relaxed);
        let node = Box::into_raw(Box::new(Node {
            value,
            link: newest,
        }));
        // Release publishes the node. The exchange also continues the release sequence of earlier pushes, so that one
        // Acquire on the newest node makes all of them visible.
        while let Err(current) =
            self.newest
                .compare_exchange_weak(newest, node, Ordering::Release, Ordering::Relaxed)
        {
            newest = current;
            // SAFETY: the exchange failed, so no other thread has a pointer to the node yet.
            unsafe { (*node).link = newest };
        }
        newest.is_null()
    }

    /// Whether the queue is empty, by one load.
    #[inline]
    pub fn is_empty(&self) -> bool {
        // Relaxed: the answer may be outdated at once. A reader that wants to sleep arms its doorbell first, whose
        // fence orders this load.
        self.newest.load(Ordering::Relaxed).is_null()
    }

    /// Takes everything that has been pushed, oldest first.
    pub fn take_all(&self) -> Batch<T> {
        // Acquire pairs with the Release of each push.
        let mut newest = self.newest.swap(ptr::null_mut(), Ordering::Acquire);
        let mut batch = Batch {
            oldest: ptr::null_mut(),
            len: 0,
        };
        while !newest.is_null() {
            // SAFETY: the swap gave us the whole stack, and its links lead through live nodes to null.
            let older = unsafe { std::mem::replace(&mut (*newest).link, batch.oldest) };
            batch.oldest = newest;
            batch.len += 1;
            newest = older;
        }
        batch
    }
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T> Drop for Queue<T> {
    fn drop(&mut self) {
        drop(self.take_all());
    }
}

impl<T> fmt::Debug for Queue<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Queue")
            .field("is_empty", &self.is_empty())
            .finish()
    }
}

/// The values that [`Queue::take_all`] took, oldest first. Dropping it drops the rest of them.
pub struct Batch<T> {
    oldest: *mut Node<T>,
    len: usize,
}

// SAFETY: a batch owns its nodes; moving it moves the values in it.
unsafe impl<T: Send> Send for Batch<T> {}

impl<T> Iterator for Batch<T> {
    type Item = T;

    fn next(&mut self) -> Option<T> {
        if self.oldest.is_null() {
            return None;
        }
        // SAFETY: the batch owns its nodes, each created from a Box by `push`; the pointer to this one is overwritten
        // below.
        let node = *unsafe { Box::from_raw(self.oldest) };
        self.oldest = node.link;
        self.len -= 1;
        Some(node.value)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        (self.len, Some(self.len))
    }
}

impl<T> ExactSizeIterator for Batch<T> {}
impl<T> FusedIterator for Batch<T> {}

impl<T> Drop for Batch<T> {
    fn drop(&mut self) {
        self.for_each(drop);
    }
}

impl<T> fmt::Debug for Batch<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Batch").field("len", &self.len).finish()
    }
}
