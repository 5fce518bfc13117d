//! A value behind a lock, the mailbox of the thread that holds the lock, and the duty to look again after unlocking.
//!
//! Threads that hold the lock work on the value. Others post what happened to it, which locks nothing, and never waits.
//! Most posts wait for the next thread that locks and [takes](Exclusive::take) them. An *urgent* one cannot, because no
//! thread may come: if the lock is free, its poster serves it; otherwise the holder does, after unlocking. What serving
//! means is up to the owner of the value, which implements [`Serve`].
//!
//! # Why no urgent post is forgotten
//!
//! A poster announces and then tries the lock. A holder unlocks and then looks for announcements:
//!
//! ```text
//!   poster                                       holder
//!   P1  push the post                            H1  unlock
//!   P2  urgent = true            (urge)          H2  fence(SeqCst)            (look_again)
//!   P3  fence(SeqCst)            (look_again)    H3  urgent? yes: try the lock, and serve
//!   P4  try the lock; if it is free, serve
//! ```
//!
//! This is the scheme of [`doorbell`](crate::doorbell): each side stores first and then loads what the other one stores.
//! If P3 comes before H2, H3 cannot miss P2: the holder sees the announcement. If H2 comes first, P4 cannot miss H1: the
//! poster finds the lock free, or held by a later holder, for whom the same holds. Without either of the fences, loom
//! finds a post that no thread serves. A thread that finds the lock taken may leave, because its holder has yet to do H1 to
//! H3. A thread that served is a holder itself, so it looks again in turn.
//!
//! The lock is the standard library's, and it has to be a word that `lock`, `try_lock` and unlocking change in one order,
//! as every lock is that does not ask the kernel each time.
//!
//! # Why a withdrawn announcement leaves no post behind
//!
//! Taking the posts first withdraws the announcement (T1) and then empties the mailbox (T2). T1 is a swap with Acquire,
//! and each P2 a swap with Release. If T1 comes before P2 in the order of these swaps, the announcement stands, and the
//! post is served after unlocking. If P2 comes before T1, T1 reads it, or reads a later swap of the same release
//! sequence; then P1 happens before T2, and T2 finds the post. A plain store as P2 would end the sequence of another
//! poster's P2, whose post T2 could then miss. loom finds a forgotten post if P2 or T1 is a store, or if T2 comes before
//! T1. It lets every swap read the newest value, so it cannot check Release and Acquire here.
//!
//! # Once each, and in order
//!
//! Only the holder takes posts: [`take`](Exclusive::take) demands the locked value. One batch has the posts of a thread
//! in the order in which it pushed them, the batches follow one another as the holders do, and each post is in one batch.

use std::fmt;
use std::ops::{Deref, DerefMut};

use crate::mpsc::{Batch, Queue};
use crate::primitive::{AtomicBool, Mutex, MutexGuard, Ordering, PoisonError, TryLockError, fence};

/// A value with its lock and its mailbox. See the module text.
///
/// ```
/// use zeroxide_queue::exclusive::{Exclusive, Serve};
/// use zeroxide_queue::mpsc::Batch;
///
/// struct Account {
///     balance: Exclusive<i64, i64>,
/// }
///
/// impl Serve for Account {
///     type Value = i64;
///     type Post = i64;
///
///     fn exclusive(&self) -> &Exclusive<i64, i64> {
///         &self.balance
///     }
///
///     fn serve(&self, balance: &mut i64, posts: Batch<i64>) {
///         *balance += posts.sum::<i64>();
///     }
/// }
///
/// let account = Account { balance: Exclusive::new(0) };
/// account.balance.post(1);
/// let locked = account.lock();
/// account.balance.post(2);
/// account.balance.urge(&account); // the lock is taken: its holder serves both
/// assert_eq!(*locked, 0);
/// drop(locked);
/// assert_eq!(*account.lock(), 3);
/// ```
pub struct Exclusive<T, P> {
    value: Mutex<T>,
    posts: Queue<P>,
    /// There are posts that must not wait for the next thread that locks.
    urgent: AtomicBool,
}

/// What owns an [`Exclusive`], and knows how its posts are served.
pub trait Serve {
    /// The type of the value.
    type Value;
    /// The type of the posts.
    type Post;

    /// The value with its lock and its mailbox.
    fn exclusive(&self) -> &Exclusive<Self::Value, Self::Post>;

    /// Serves posts, oldest first. Only called if one of them is urgent.
    fn serve(&self, value: &mut Self::Value, posts: Batch<Self::Post>);

    /// Waits for the lock.
    #[inline]
    fn lock(&self) -> Locked<'_, Self> {
        Locked {
            value: self.exclusive().guard(),
            _duty: Duty(self),
        }
    }

    /// The lock, unless another thread holds it.
    #[inline]
    fn try_lock(&self) -> Option<Locked<'_, Self>> {
        Some(Locked {
            value: self.exclusive().try_guard()?,
            _duty: Duty(self),
        })
    }
}

/// The locked value. Dropping this unlocks it, and then serves what has become urgent meanwhile.
pub struct Locked<'a, S: Serve + ?Sized> {
    // Fields are dropped in this order: the lock is free when `Duty` looks again.
    value: MutexGuard<'a, S::Value>,
    _duty: Duty<'a, S>,
}

/// The duty to look again, after unlocking.
struct Duty<'a, S: Serve + ?Sized>(&'a S);

impl<S: Serve + ?Sized> Deref for Locked<'_, S> {
    type Target = S::Value;

    #[inline(always)]
    fn deref(&self) -> &S::Value {
        &self.value
    }
}

impl<S: Serve + ?Sized> DerefMut for Locked<'_, S> {
    #[inline(always)]
    fn deref_mut(&mut self) -> &mut S::Value {
        &mut self.value
    }
}

impl<S: Serve + ?Sized> Drop for Duty<'_, S> {
    #[inline]
    fn drop(&mut self) {
        let exclusive = self.0.exclusive();
        if exclusive.is_urgent() {
            exclusive.look_again(self.0);
        }
    }
}

impl<T, P> Exclusive<T, P> {
    /// Puts a value behind a lock, with an empty mailbox.
    pub fn new(value: T) -> Self {
        Self {
            value: Mutex::new(value),
            posts: Queue::new(),
            urgent: AtomicBool::new(false),
        }
    }

    /// Posts something. It is taken by the next thread that locks the value and looks; [`urge`](Self::urge) if none may
    /// come.
    #[inline]
    pub fn post(&self, post: P) {
        self.posts.push(post);
    }

    /// Everything that this thread has posted is urgent: it is served now, or by the holder of the lock.
    pub fn urge(&self, owner: &(impl Serve<Value = T, Post = P> + ?Sized)) {
        // Release pairs with `take`: see the module text.
        self.urgent.swap(true, Ordering::Release);
        if self.is_urgent() {
            self.look_again(owner);
        }
    }

    /// Whether the mailbox is empty, by one load. A post that has just been pushed may be missed.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.posts.is_empty()
    }

    /// Takes everything that was posted, oldest first. The locked value proves that the caller holds the lock.
    #[inline]
    pub fn take(&self, _locked: &mut T) -> Batch<P> {
        // Acquire pairs with `urge`: see the module text.
        self.urgent.swap(false, Ordering::Acquire);
        self.posts.take_all()
    }

    #[inline(always)]
    fn is_urgent(&self) -> bool {
        // P3 and H2: see the module text. The fence orders this load, so it may be Relaxed.
        fence(Ordering::SeqCst);
        self.urgent.load(Ordering::Relaxed)
    }

    /// Serves urgent posts until there are none, or another thread has the duty to.
    #[inline(never)]
    fn look_again(&self, owner: &(impl Serve<Value = T, Post = P> + ?Sized)) {
        while let Some(mut value) = self.try_guard() {
            let posts = self.take(&mut value);
            owner.serve(&mut value, posts);
            drop(value);
            if !self.is_urgent() {
                return;
            }
        }
    }

    #[inline]
    fn guard(&self) -> MutexGuard<'_, T> {
        // A panic while the lock was held leaves a value that only its owner can judge.
        self.value.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn try_guard(&self) -> Option<MutexGuard<'_, T>> {
        match self.value.try_lock() {
            Ok(value) => Some(value),
            Err(TryLockError::Poisoned(value)) => Some(value.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T, P> fmt::Debug for Exclusive<T, P> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Exclusive")
            .field("is_empty", &self.is_empty())
            .finish_non_exhaustive()
    }
}

impl<S: Serve + ?Sized> fmt::Debug for Locked<'_, S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Locked").finish_non_exhaustive()
    }
}
