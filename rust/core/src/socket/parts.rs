//! Messages that threads have sent or received only in part so far.

use std::collections::{HashMap, VecDeque};
use std::mem;
use std::process;

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use crate::sys::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use crate::sys::sync::thread::{self, ThreadId};
use crate::sys::sync::thread_local;
use crate::sys::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// For each thread, the parts that it has gathered for sending, and the parts that it has not received yet. When a
/// thread ends, both are lost, and the loss is counted.
///
/// Most programs never send or receive in parts; for them, each check costs one load.
#[derive(Default)]
pub(super) struct Parts {
    shared: Arc<Shared>,
}

#[derive(Default)]
struct Shared {
    busy: AtomicUsize,
    /// The number of threads that have parts left to receive.
    receiving: AtomicUsize,
    /// The number of messages that were begun in parts and lost.
    unfinished: AtomicU64,
    threads: Mutex<HashMap<ThreadId, Thread>>,
}

#[derive(Default)]
struct Thread {
    outgoing: Option<Message>,
    incoming: VecDeque<Frame>,
    /// One entry for each part at the front of `incoming` that was given back: when it was received, and its sender.
    returned: VecDeque<(u64, Peer)>,
    /// The sender of the incoming message.
    peer: Peer,
}

type Peer = Option<Arc<PeerInfo>>;

impl Thread {
    fn is_idle(&self) -> bool {
        self.outgoing.is_none() && self.incoming.is_empty()
    }
}

/// A thread as a receiver of parts. Parts that it received return to it, whichever thread gives them back.
#[derive(Clone, Debug)]
pub struct PartsReceiver {
    unfinished: Arc<Unfinished>,
}

impl PartsReceiver {
    /// Returns the calling thread, or `None` if the thread is ending.
    pub fn current() -> Option<PartsReceiver> {
        let mine = UNFINISHED.try_with(|mine| mine.0.clone()).ok()?;
        Some(PartsReceiver { unfinished: mine })
    }
}

/// The sockets with which a thread has an unfinished message. Entries of sockets that are gone are removed when others
/// are added.
#[derive(Debug)]
struct Unfinished {
    thread: ThreadId,
    process: u32,
    /// `None` once the thread has ended.
    sockets: Mutex<Option<Vec<Weak<Shared>>>>,
}

/// The entry of the calling thread, dropped when the thread ends.
struct Mine(Arc<Unfinished>);

thread_local! {
    static UNFINISHED: Mine = Mine(Arc::new(Unfinished {
        thread: thread::current().id(),
        process: process::id(),
        sockets: Mutex::new(Some(Vec::new())),
    }));
}

/// The calling thread, even while it ends.
fn current_id() -> ThreadId {
    let id = UNFINISHED.try_with(|mine| mine.0.thread);
    id.unwrap_or_else(|_| thread::current().id())
}

impl Unfinished {
    fn sockets(&self) -> MutexGuard<'_, Option<Vec<Weak<Shared>>>> {
        self.sockets.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the thread's unfinished messages, unless the thread has ended.
    fn with<T>(&self, shared: &Arc<Shared>, work: impl FnOnce(&mut Thread) -> T) -> Option<T> {
        let mut sockets = self.sockets();
        let sockets = sockets.as_mut()?;
        let (result, has_begun) = shared.with(self.thread, work);
        if has_begun {
            note(sockets, shared);
        }
        Some(result)
    }
}

fn note(sockets: &mut Vec<Weak<Shared>>, shared: &Arc<Shared>) {
    let mut noted = sockets.iter();
    if noted.any(|noted| noted.as_ptr() == Arc::as_ptr(shared)) {
        return;
    }
    if sockets.len() == sockets.capacity() {
        sockets.retain(|noted| noted.strong_count() > 0);
    }
    sockets.push(Arc::downgrade(shared));
}

impl Drop for Mine {
    fn drop(&mut self) {
        // In a forked child, the locks may be held by threads that do not exist there.
        if self.0.process != process::id() {
            return;
        }
        let sockets = self.0.sockets().take().unwrap_or_default();
        for shared in sockets.iter().filter_map(Weak::upgrade) {
            let (thread, _) = shared.with(self.0.thread, mem::take);
            let halves = [thread.outgoing.is_some(), !thread.incoming.is_empty()];
            let lost = halves.into_iter().filter(|half| *half).count();
            shared.unfinished.fetch_add(lost as u64, Ordering::Relaxed);
        }
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` on the unfinished messages of `thread`. Returns also whether it has any now and had none before.
    fn with<T>(&self, thread: ThreadId, work: impl FnOnce(&mut Thread) -> T) -> (T, bool) {
        let mut threads = self.lock();
        let theirs = threads.entry(thread).or_default();
        let was_idle = theirs.is_idle();
        let before = usize::from(!theirs.incoming.is_empty());
        let result = work(theirs);
        let after = usize::from(!theirs.incoming.is_empty());
        let receiving = self.receiving.load(Ordering::Relaxed) + after - before;
        self.receiving.store(receiving, Ordering::Relaxed);
        let idle = theirs.is_idle();
        if idle {
            threads.remove(&thread);
        }
        self.busy.store(threads.len(), Ordering::Relaxed);
        (result, was_idle && !idle)
    }
}

impl Parts {
    /// Whether any thread has unfinished messages; if not, this thread has none.
    #[inline]
    pub(super) fn are_any(&self) -> bool {
        // A thread always sees its own entry. The entries of other threads do not matter to it.
        self.shared.busy.load(Ordering::Relaxed) > 0
    }

    fn with<T>(&self, work: impl FnOnce(&mut Thread) -> T) -> T {
        let (result, has_begun) = self.shared.with(current_id(), work);
        if has_begun {
            // Fails in a thread that is ending. Its entry then stays until the socket ends.
            let _ = UNFINISHED.try_with(|mine| {
                if let Some(sockets) = &mut *mine.0.sockets() {
                    note(sockets, &self.shared);
                }
            });
        }
        result
    }

    /// Stores the first part of a message that this thread sends.
    pub(super) fn begin_sending(&self, first: Frame) {
        self.with(|mine| mine.outgoing = Some(Message::single(first)));
    }

    /// Stores another part of the message that this thread is sending. Returns the part if there is no such message.
    pub(super) fn append(&self, part: Frame) -> Result<(), Frame> {
        if !self.are_any() {
            return Err(part);
        }
        self.with(|mine| match &mut mine.outgoing {
            Some(message) => {
                message.push(part);
                Ok(())
            }
            None => Err(part),
        })
    }

    /// Takes the parts that this thread has gathered.
    pub(super) fn take(&self) -> Option<Message> {
        if !self.are_any() {
            None
        } else {
            self.with(|mine| mine.outgoing.take())
        }
    }

    /// Counts a message that was begun in parts and is lost.
    pub(super) fn count_unfinished(&self) {
        self.shared.unfinished.fetch_add(1, Ordering::Relaxed);
    }

    /// The number of messages that were begun in parts and lost.
    pub(super) fn unfinished(&self) -> u64 {
        self.shared.unfinished.load(Ordering::Relaxed)
    }

    /// Whether this thread has begun to send a message in parts.
    pub(super) fn is_sending(&self) -> bool {
        self.are_any() && self.with(|mine| mine.outgoing.is_some())
    }

    /// The next part of the message that this thread is receiving.
    pub(super) fn next(&self) -> Option<(Frame, Option<Arc<PeerInfo>>)> {
        if !self.are_any() {
            return None;
        }
        self.with(|mine| {
            let frame = mine.incoming.pop_front()?;
            let peer = match mine.returned.pop_front() {
                Some((_, peer)) => peer,
                None => mine.peer.clone(),
            };
            Some((frame, peer))
        })
    }

    /// Begins to receive `message` in this thread. Returns its first part, and stores the others for later.
    pub(super) fn begin(&self, message: Message, peer: Option<Arc<PeerInfo>>) -> Frame {
        if message.len() == 1 {
            return message.into_iter().next().unwrap_or_default();
        }
        let mut frames: VecDeque<Frame> = message.into_iter().collect();
        let first = frames.pop_front().unwrap_or_default();
        self.with(|mine| {
            mine.incoming = frames;
            mine.returned.clear();
            mine.peer = peer;
        });
        first
    }

    /// Inserts parts before those that are left for the thread that received them. Returns false if that thread has
    /// ended: then the parts are lost.
    pub(super) fn put_back(
        &self,
        receiver: &PartsReceiver,
        order: u64,
        parts: Vec<Frame>,
        peer: &Peer,
    ) -> bool {
        let put = receiver.unfinished.with(&self.shared, |theirs| {
            let at = theirs
                .returned
                .partition_point(|(returned, _)| *returned < order);
            for (offset, part) in parts.into_iter().enumerate() {
                theirs.returned.insert(at + offset, (order, peer.clone()));
                theirs.incoming.insert(at + offset, part);
            }
        });
        put.is_some()
    }

    /// Discards the parts that are left for this thread. Returns whether there were any.
    pub(super) fn forget_incoming(&self) -> bool {
        self.are_any()
            && self.with(|mine| {
                mine.returned.clear();
                !mem::take(&mut mine.incoming).is_empty()
            })
    }

    /// Whether parts are left for this thread.
    #[inline]
    pub(super) fn rcvmore(&self) -> bool {
        self.are_any() && self.with(|mine| !mine.incoming.is_empty())
    }

    /// Whether parts are left for any thread.
    #[inline]
    pub(super) fn is_anybody_receiving(&self) -> bool {
        self.shared.receiving.load(Ordering::Relaxed) > 0
    }

    /// Discards the parts of all threads.
    pub(super) fn clear(&self) {
        let mut threads = self.shared.lock();
        threads.clear();
        self.shared.receiving.store(0, Ordering::Relaxed);
        self.shared.busy.store(0, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_parts_of_a_thread_are_lost_when_it_ends() {
        let parts = Parts::default();
        let others = Parts::default();
        parts.begin_sending(Frame::from("mine"));
        thread::scope(|scope| {
            let ends = scope.spawn(|| {
                for parts in [&parts, &others, &parts] {
                    parts.begin_sending(Frame::from("never sent"));
                }
                let message = Message::from_frames(["1", "2", "3"].map(Frame::from));
                parts.begin(message, None);
                assert!(parts.is_anybody_receiving());
            });
            // Unlike the end of the scope, `join` waits until the thread has dropped its thread-local values.
            ends.join().unwrap();
        });
        assert!(!parts.is_anybody_receiving());
        assert_eq!(parts.shared.lock().len(), 1);
        assert!(!others.are_any());
        // One message that the thread was sending, and one that it was receiving.
        assert_eq!((parts.unfinished(), others.unfinished()), (2, 1));
        assert_eq!(parts.take().unwrap().len(), 1);
    }

    #[test]
    fn a_thread_forgets_sockets_that_are_gone() {
        for _ in 0..1000 {
            Parts::default().begin_sending(Frame::from("x"));
        }
        let parts = Parts::default();
        parts.begin_sending(Frame::from("x"));
        parts.begin_sending(Frame::from("x"));
        UNFINISHED.with(|mine| assert!(mine.0.sockets().as_ref().unwrap().len() < 10));
    }

    #[test]
    fn returned_parts_go_to_the_thread_that_received_them_and_keep_their_senders() {
        let parts = Parts::default();
        let peer = |name: &str| {
            let name = name.as_bytes().to_vec();
            Some(Arc::new(PeerInfo {
                routing_id: name.into(),
                ..PeerInfo::default()
            }))
        };
        let me = PartsReceiver::current().unwrap();
        let message = |frames: [&str; 2]| Message::from_frames(frames.map(Frame::from));
        let first = parts.begin(message(["1a", "1b"]), peer("one"));
        let second = parts.next().unwrap().0;
        parts.begin(message(["2a", "2b"]), peer("two"));
        let ended = thread::scope(|scope| {
            let other = scope.spawn(|| {
                assert!(parts.put_back(&me, 1, vec![second], &peer("one")));
                assert!(parts.put_back(&me, 0, vec![first], &peer("one")));
                assert!(
                    parts.next().is_none(),
                    "the parts belong to the other thread"
                );
                PartsReceiver::current().unwrap()
            });
            other.join().unwrap()
        });
        let all = std::iter::from_fn(|| parts.next());
        let all: Vec<_> = all
            .map(|(part, peer)| (part.to_bytes(), peer.unwrap().routing_id.clone()))
            .collect();
        let expected = [("1a", "one"), ("1b", "one"), ("2b", "two")];
        assert_eq!(all, expected.map(|(part, peer)| (part.into(), peer.into())));
        // Parts cannot be given back to a thread that has ended, because no thread would receive them.
        assert!(!parts.put_back(&ended, 2, vec![Frame::from("late")], &None));
        assert!(!parts.is_anybody_receiving());
    }
}
