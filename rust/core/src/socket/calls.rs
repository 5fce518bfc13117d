//! The work of a call once it has the lock: it processes the mailbox, asks the pattern, publishes, and sets the
//! descriptor to its level.

use std::sync::Arc;

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use super::core::{Core, State};
use super::parts::PartsReceiver;
use super::returned::Returned;
use super::{Events, SendError};
use crate::error::{Error, ErrorKind, Result};
use crate::patterns::{Dialogue, DropReason, Turns};
use crate::pipe::PipeId;

#[cold]
fn to_be_received_first() -> Error {
    let text = "the rest of the last message must be received first; recv_multipart takes all of its parts";
    Error::with(ErrorKind::Fsm, text)
}

/// The origin of a received message.
#[derive(Debug)]
pub(super) enum Source {
    /// The message was just read from a pipe.
    Pipe(Option<PipeId>),
    /// The message from this peer was received earlier and given back, with this order.
    Returned(u64, Option<Arc<PeerInfo>>),
}

/// Records when a message was received and from which peer, so that it can be given back to its old position.
#[derive(Debug)]
pub struct Receipt {
    order: u64,
    source: Source,
}

impl Receipt {
    /// Creates the receipt of a message that was just received. A message that had been given back keeps its old order.
    #[inline]
    pub(super) fn of(state: &mut State, source: Source, named: bool) -> Receipt {
        let order = match &source {
            Source::Returned(order, _) => *order,
            Source::Pipe(_) => {
                state.receipts += 1;
                state.receipts
            }
        };
        let source = match named {
            true => Source::Returned(order, Core::peer_of(state, source)),
            false => source,
        };
        Receipt { order, source }
    }

    /// Returns the peer that sent the message, if the receipt names it.
    pub fn peer(&self) -> Option<Arc<PeerInfo>> {
        match &self.source {
            Source::Returned(_, peer) => peer.clone(),
            Source::Pipe(_) => None,
        }
    }
}

/// The receipts of messages that were received one after the other.
#[derive(Debug, Default)]
pub struct Receipts {
    runs: Vec<Run>,
}

/// The receipts of consecutive messages from one pipe, or of one message that had been given back.
#[derive(Debug)]
struct Run {
    /// The order of the first message in the run.
    order: u64,
    count: u64,
    source: Source,
}

impl Receipts {
    /// Adds the receipt of a message that was just received.
    #[inline]
    pub(super) fn add(&mut self, state: &mut State, source: Source) {
        if let Source::Pipe(id) = source
            && let Some(last) = self.runs.last_mut()
            && let Source::Pipe(before) = last.source
            && before == id
            && last.order + last.count == state.receipts + 1
        {
            state.receipts += 1;
            last.count += 1;
            return;
        }
        let Receipt { order, source } = Receipt::of(state, source, false);
        self.runs.push(Run {
            order,
            count: 1,
            source,
        });
    }

    /// Returns the receipts of all messages, in order.
    pub fn each(self) -> impl Iterator<Item = Receipt> {
        self.runs.into_iter().flat_map(|run| {
            let Run {
                order,
                count,
                source,
            } = run;
            let id = match source {
                Source::Pipe(id) => id,
                Source::Returned(..) => None,
            };
            let others = (1..count).map(move |next| Receipt {
                order: order + next,
                source: Source::Pipe(id),
            });
            std::iter::once(Receipt { order, source }).chain(others)
        })
    }
}

impl Core {
    /// Sends a message. Afterwards, `message` holds what remains to be dropped, or the unchanged message if it could
    /// not be sent.
    #[inline(always)]
    pub(super) fn send_now(&self, state: &mut State, message: &mut Message) -> Result<()> {
        if !self.spec.can_send {
            return Err(self.only_receives());
        }
        if !self.inner.is_empty() {
            self.process(state);
        }
        let result = self.hand_over(state, message);
        state.rhythm.note_sent();
        self.finish_call(state, result.is_ok());
        result?;
        Ok(())
    }

    #[inline]
    fn finish_call(&self, state: &mut State, done: bool) {
        self.settle(state);
        self.end_turn(state, done);
        self.level(state);
    }

    /// Whether a message that begins with `head` could be sent now.
    pub(super) fn check_send_now(&self, state: &mut State, head: &Frame) -> Result<()> {
        if !self.spec.can_send {
            return Err(self.only_receives());
        }
        if !self.inner.is_empty() {
            self.process(state);
        }
        if self.must_receive_first(state) {
            return Err(to_be_received_first());
        }
        let result = state.pattern.check_send(&mut state.pipes, head);
        self.settle(state);
        self.level(state);
        result
    }

    /// Sends `first` and the messages of `rest`, and publishes them together. Returns the number of messages sent, and
    /// the one that failed.
    pub(super) fn send_run(
        &self,
        state: &mut State,
        first: Message,
        rest: &mut impl Iterator<Item = Message>,
    ) -> (usize, Option<SendError>) {
        if !self.spec.can_send {
            let error = self.only_receives();
            return (
                0,
                Some(SendError {
                    message: first,
                    error,
                }),
            );
        }
        self.begin_run(state);
        let mut sent = 0;
        let mut next = Some(first);
        let mut failed = None;
        while let Some(mut message) = next {
            match self.hand_over(state, &mut message) {
                Ok(()) => sent += 1,
                Err(error) => {
                    failed = Some(SendError { message, error });
                    break;
                }
            }
            next = rest.next();
        }
        self.end_run(state, sent > 0);
        (sent, failed)
    }

    /// Lets the pattern send a message, unless a message must be received first.
    #[inline]
    pub(super) fn hand_over(&self, state: &mut State, message: &mut Message) -> Result<()> {
        if state.returned.is_empty() && !self.parts.is_anybody_receiving() {
            return state.pattern.send(&mut state.pipes, message);
        }
        if self.must_receive_first(state) {
            return Err(to_be_received_first());
        }
        state.pattern.send(&mut state.pipes, message)?;
        if state.pattern.turns() == Turns::Relaxed {
            let parts = usize::from(self.parts.forget_incoming());
            for _ in 0..state.returned.len() + parts {
                state.pipes.count_drop(None, DropReason::Stale);
            }
            state.returned.clear();
        }
        Ok(())
    }

    /// If sending and receiving take turns, messages that were given back must be received first, and so must parts
    /// that are left for this thread.
    pub(super) fn must_receive_first(&self, state: &State) -> bool {
        (!state.returned.is_empty() || self.parts.is_anybody_receiving())
            && state.pattern.turns() == Turns::Strict
            && (!state.returned.is_empty() || self.parts.rcvmore())
    }

    /// Called before several messages are sent or received.
    pub(super) fn begin_run(&self, state: &mut State) {
        if !self.inner.is_empty() {
            self.process(state);
        }
    }

    /// Called after several messages were sent or received: publishes those that were written.
    pub(super) fn end_run(&self, state: &mut State, done: bool) {
        self.settle(state);
        self.end_turn(state, done);
        self.level(state);
    }

    /// Receives into `message`, which must be new.
    #[inline(always)]
    pub(super) fn recv_now(&self, state: &mut State, message: &mut Message) -> Result<Source> {
        if !self.spec.can_recv {
            return Err(self.only_sends());
        }
        if !self.inner.is_empty() {
            self.process(state);
        }
        if let Some(returned) = state.returned.pop_front() {
            self.end_turn(state, true);
            self.level(state);
            *message = returned.message;
            return Ok(Source::Returned(returned.order, returned.peer));
        }
        let result = state.pattern.recv(&mut state.pipes, message);
        if result.is_ok() {
            state.rhythm.note_received();
        }
        self.finish_call(state, result.is_ok());
        Ok(Source::Pipe(result?))
    }

    /// If sending and receiving take turns, a call of one thread may allow the call for which another thread waits.
    #[inline]
    fn end_turn(&self, state: &mut State, done: bool) {
        if done && self.spec.dialogue != Dialogue::Free {
            self.signal.wake();
            if self.spec().timed {
                self.set_alarm(state);
            }
        }
    }

    /// Returns the peer that sent a message.
    pub(super) fn peer_of(state: &mut State, source: Source) -> Option<Arc<PeerInfo>> {
        match source {
            Source::Pipe(id) => state.pipes.get(id?).and_then(|pipe| pipe.peer()),
            Source::Returned(_, peer) => peer,
        }
    }

    /// Receives without waiting until `batch` has `max` items, each made by `finish`.
    pub(super) fn recv_run<T>(
        &self,
        state: &mut State,
        max: usize,
        batch: &mut Vec<T>,
        finish: impl Fn(&mut State, Message, Source) -> T,
    ) {
        self.begin_run(state);
        while batch.len() < max
            && let Some(returned) = state.returned.pop_front()
        {
            let source = Source::Returned(returned.order, returned.peer);
            batch.push(finish(state, returned.message, source));
        }
        while batch.len() < max {
            let mut message = Message::new();
            match state.pattern.recv(&mut state.pipes, &mut message) {
                Ok(id) => batch.push(finish(state, message, Source::Pipe(id))),
                Err(error) => {
                    if error.kind() != ErrorKind::Again {
                        state.pattern.put_off(error);
                    }
                    break;
                }
            }
        }
        state.rhythm.note_run(batch.len());
        self.end_run(state, !batch.is_empty());
    }

    /// Queues messages that were received but did not reach the program, before those that are still to be received.
    pub(super) fn give_back_now(
        &self,
        state: &mut State,
        order: u64,
        messages: Vec<(Message, Option<Arc<PeerInfo>>)>,
    ) {
        if !state.pattern.takes_back() {
            for _ in messages {
                state.pipes.count_drop(None, DropReason::Stale);
            }
            return;
        }
        let at = state
            .returned
            .partition_point(|returned| returned.order < order);
        for (offset, (message, peer)) in messages.into_iter().enumerate() {
            let returned = Returned {
                order,
                message,
                peer,
            };
            state.returned.insert(at + offset, returned);
        }
        self.level(state);
        self.signal.wake();
    }

    /// Puts messages that were received but did not reach the program back in their positions.
    pub(super) fn give_back_received(&self, state: &mut State, messages: Vec<(Message, Receipt)>) {
        // In reverse: of messages with the same order, the one that is given back later comes first.
        for (message, Receipt { order, source }) in messages.into_iter().rev() {
            let peer = Core::peer_of(state, source);
            self.give_back_now(state, order, vec![(message, peer)]);
        }
    }

    /// Queues parts that a thread received but that did not reach the program, before those that are left for that
    /// thread.
    pub(super) fn give_back_parts_now(
        &self,
        state: &mut State,
        receiver: &PartsReceiver,
        order: u64,
        parts: Vec<Frame>,
        peer: &Option<Arc<PeerInfo>>,
    ) {
        if !state.pattern.takes_back() || !self.parts.put_back(receiver, order, parts, peer) {
            state.pipes.count_drop(None, DropReason::Stale);
            return;
        }
        self.level(state);
        self.signal.wake();
    }

    /// Returns the events that the socket is ready for.
    pub(super) fn events_now(&self, state: &mut State) -> Events {
        self.release_line(state);
        if !self.inner.is_empty() {
            self.process(state);
        }
        let readable = self.spec.can_recv
            && (!state.returned.is_empty()
                || state.pattern.can_recv(&mut state.pipes)
                || self.parts.rcvmore());
        let writable = self.spec.can_send
            && state.pattern.can_send(&mut state.pipes)
            && !self.must_receive_first(state);
        let events = Events::READABLE.only_if(readable) | Events::WRITABLE.only_if(writable);
        self.settle(state);
        events
    }

    /// Returns the events that the socket is ready for, and updates the descriptor accordingly.
    pub(super) fn tell_events(&self, state: &mut State) -> Events {
        let events = self.events_now(state);
        state.out_event = false;
        self.level(state);
        events
    }

    /// Sets the descriptor, if there is one, to its true level.
    #[inline]
    pub(super) fn level(&self, state: &mut State) {
        if self.signal.has_descriptor() {
            self.level_descriptor(state);
        }
    }

    #[inline(never)]
    fn level_descriptor(&self, state: &mut State) {
        loop {
            let ready = self.check_open().is_err()
                || self.parts.is_anybody_receiving()
                || !state.returned.is_empty()
                || (self.spec.can_recv && state.pattern.can_recv(&mut state.pipes))
                || state.pipes.is_spent()
                || (state.out_event
                    && self.spec.can_send
                    && state.pattern.can_send(&mut state.pipes));
            // The next call begins anew.
            state.pipes.restore_effort();
            if ready {
                return self.signal.raise();
            }
            self.signal.lower();
            if self.inner.is_empty() {
                return;
            }
            self.process(state);
        }
    }
}
