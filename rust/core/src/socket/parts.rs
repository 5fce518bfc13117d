//! Messages that threads are in the middle of, part by part.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, ThreadId};

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use super::SendError;
use crate::error::ErrorKind;

/// Per thread: what it has gathered for sending, and what is left of what it receives.
///
/// Most programs never send or receive in parts; they pay one load.
#[derive(Default)]
pub(super) struct Parts {
    busy: AtomicUsize,
    /// How many threads have parts left to receive.
    receiving: AtomicUsize,
    threads: Mutex<HashMap<ThreadId, Thread>>,
}

#[derive(Default)]
struct Thread {
    outgoing: Option<Message>,
    incoming: VecDeque<Frame>,
    /// Who the incoming message is from.
    peer: Option<Arc<PeerInfo>>,
}

impl Thread {
    fn is_idle(&self) -> bool {
        self.outgoing.is_none() && self.incoming.is_empty()
    }
}

impl Parts {
    fn lock(&self) -> MutexGuard<'_, HashMap<ThreadId, Thread>> {
        self.threads.lock().unwrap_or_else(PoisonError::into_inner)
    }

    #[inline]
    fn nobody(&self) -> bool {
        // A thread's own entry is always visible to it; those of others do not concern it.
        self.busy.load(Ordering::Relaxed) == 0
    }

    fn with<T>(&self, work: impl FnOnce(&mut Thread) -> T) -> T {
        let mut threads = self.lock();
        let me = thread::current().id();
        let mine = threads.entry(me).or_default();
        let before = usize::from(!mine.incoming.is_empty());
        let result = work(mine);
        let after = usize::from(!mine.incoming.is_empty());
        let receiving = self.receiving.load(Ordering::Relaxed) + after - before;
        self.receiving.store(receiving, Ordering::Relaxed);
        if mine.is_idle() {
            threads.remove(&me);
        }
        self.busy.store(threads.len(), Ordering::Relaxed);
        result
    }

    /// Keeps a part of the message that this thread is sending.
    pub(super) fn gather(&self, frame: Frame) {
        self.with(|mine| match &mut mine.outgoing {
            Some(message) => message.push(frame),
            None => mine.outgoing = Some(Message::single(frame)),
        });
    }

    /// What this thread has gathered.
    pub(super) fn take(&self) -> Option<Message> {
        if self.nobody() {
            None
        } else {
            self.with(|mine| mine.outgoing.take())
        }
    }

    /// Puts back what could not be sent yet, but for its last part, which goes back to the caller. What will never be
    /// sent goes back as a whole: the next message must not begin with it.
    pub(super) fn give_back(&self, failed: SendError) -> SendError {
        if !matches!(
            failed.error.kind(),
            ErrorKind::Again | ErrorKind::Interrupted
        ) {
            return failed;
        }
        let SendError { message, error } = failed;
        let mut frames: Vec<Frame> = message.into_iter().collect();
        let last = frames.pop().unwrap_or_default();
        self.with(|mine| mine.outgoing = Some(Message::from_frames(frames)));
        SendError {
            message: Message::single(last),
            error,
        }
    }

    /// Whether this thread has gathered something.
    pub(super) fn is_gathering(&self) -> bool {
        !self.nobody() && self.with(|mine| mine.outgoing.is_some())
    }

    /// The next part of the message that this thread is receiving.
    pub(super) fn next(&self) -> Option<(Frame, Option<Arc<PeerInfo>>)> {
        if self.nobody() {
            return None;
        }
        self.with(|mine| {
            mine.incoming
                .pop_front()
                .map(|frame| (frame, mine.peer.clone()))
        })
    }

    /// This thread begins to receive `message`: its first part now, the others later.
    pub(super) fn begin(&self, message: Message, peer: Option<Arc<PeerInfo>>) -> Frame {
        if message.len() == 1 {
            return message.into_iter().next().unwrap_or_default();
        }
        let mut frames: VecDeque<Frame> = message.into_iter().collect();
        let first = frames.pop_front().unwrap_or_default();
        self.with(|mine| {
            mine.incoming = frames;
            mine.peer = peer;
        });
        first
    }

    /// Puts parts before those that are left for this thread.
    pub(super) fn put_back(&self, parts: Vec<Frame>, peer: Option<Arc<PeerInfo>>) {
        self.with(|mine| {
            for part in parts.into_iter().rev() {
                mine.incoming.push_front(part);
            }
            mine.peer = peer;
        });
    }

    /// Whether parts are left for this thread.
    pub(super) fn rcvmore(&self) -> bool {
        !self.nobody() && self.with(|mine| !mine.incoming.is_empty())
    }

    /// Whether parts are left for any thread.
    #[inline]
    pub(super) fn is_anybody_receiving(&self) -> bool {
        self.receiving.load(Ordering::Relaxed) > 0
    }

    /// Forgets everything.
    pub(super) fn clear(&self) {
        let mut threads = self.lock();
        threads.clear();
        self.receiving.store(0, Ordering::Relaxed);
        self.busy.store(0, Ordering::Relaxed);
    }
}
