//! Calls for language bindings. A binding has locks of its own that it must release before a wait, and it gives back
//! messages that did not reach the program.

use std::borrow::Cow;
use std::cell::RefCell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use super::calls::{Receipt, Receipts, Source};
use super::core::{Core, Locked, State};
use super::explain::Direction;
use super::parts::PartsReceiver;
use super::{Events, SendError, Socket, Wait};
use crate::error::{Error, ErrorKind, Result};
use crate::options::OptionRow;
use crate::undelivered::Undelivered;

/// The outcome of an attempt that does not wait, not even for another thread that is using the socket.
#[derive(Debug)]
pub enum Attempt<T, M = ()> {
    /// Done.
    Done(T),
    /// The call would have to wait for a peer. A send returns its message.
    WouldBlock(M),
    /// Another thread is using the socket, or there is an error that the ordinary call returns, and only once. Release every
    /// lock that another thread may be waiting for, then make the ordinary call.
    Contended(M),
    /// The call failed.
    Failed(Error),
}

/// See the module documentation.
pub trait SocketInternals {
    /// Like [`send`](Socket::send), but not generic, so it is compiled only once.
    ///
    /// # Errors
    /// As [`send`](Socket::send).
    fn send_message(&self, message: Message, wait: Wait) -> std::result::Result<(), SendError>;

    /// Like [`send_batch`](Socket::send_batch), but without a conversion of each message.
    fn send_messages(
        &self,
        messages: impl Iterator<Item = Message>,
        wait: Wait,
    ) -> (usize, Option<SendError>);

    /// Receives a whole message with the receipt that is needed to give it back. If `named`, the receipt names the
    /// peer.
    ///
    /// # Errors
    /// As [`recv`](Socket::recv).
    fn recv_with_receipt(&self, wait: Wait, named: bool) -> Result<(Message, Receipt)>;

    /// Like [`close_within`](Socket::close_within), for callers that wait in steps: waits no longer than `until`.
    ///
    /// # Errors
    /// As [`close_within`](Socket::close_within), and `Again` if `until` passes before the report is complete. The next
    /// call continues.
    fn close_by(&self, deadline: Option<Instant>, until: Option<Instant>) -> Result<Undelivered>;

    /// Sends without waiting for a peer or for another thread.
    fn try_send(&self, message: Message) -> Attempt<(), Message>;

    /// Receives without waiting for a message or for another thread. A caller that will not wait afterwards calls
    /// [`take_in`](Self::take_in) before it gives up.
    fn try_recv(&self) -> Attempt<Message>;

    /// Like [`try_recv`](Self::try_recv), but fills a message in place. If there is none, `message` is unchanged.
    fn try_recv_to(&self, message: &mut Message) -> Attempt<()>;

    /// Receives without waiting for a message or for another thread, and returns the peer that sent the message.
    fn try_recv_from(&self) -> Attempt<(Message, Option<Arc<PeerInfo>>)>;

    /// Receives without waiting for a message or for another thread. If `named`, the receipt names the peer.
    fn try_recv_with_receipt(&self, named: bool) -> Attempt<(Message, Receipt)>;

    /// Like [`try_recv`](Self::try_recv), but takes up to `max` messages, at least one, of those that have arrived.
    /// `make` converts each message while the socket is locked, so it must be short and must not use the socket.
    fn try_recv_batch_as<T>(&self, max: usize, make: impl Fn(Message) -> T) -> Attempt<Vec<T>>;

    /// Between two waits in quick succession, arriving messages may stay in a connection that only the next wait would
    /// read. This call reads them. Returns true if there was such a connection and it is worth receiving again.
    fn take_in(&self) -> bool;

    /// Gives back messages that were received but did not reach the program, each with its sender. They are received
    /// next. If several calls give back messages, those with the lowest `order` come first.
    fn give_back(&self, order: u64, messages: Vec<(Message, Option<Arc<PeerInfo>>)>);

    /// Gives back messages that were received but did not reach the program. They come before messages that were
    /// received later.
    fn give_back_received(&self, messages: Vec<(Message, Receipt)>);

    /// Receives up to `max` messages with their receipts.
    ///
    /// # Errors
    /// As [`recv`](Socket::recv), for the first message.
    fn recv_batch_with_receipts(&self, max: usize, wait: Wait) -> Result<(Vec<Message>, Receipts)>;

    /// Like [`events`](Socket::events), but does not affect programs that watch the descriptor.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    fn readiness(&self) -> Result<Events>;

    /// Returns the description of an option by its number, even if another crate's mechanism defines the option.
    ///
    /// # Errors
    /// `Invalid` if there is no such option.
    fn option_row(&self, id: i32) -> Result<Cow<'static, OptionRow>>;

    /// Counts a message that was begun in parts and will not be sent.
    fn count_unfinished(&self);

    /// Returns the next part of the message that this thread is receiving in parts, if any, and the sender of the
    /// message.
    fn next_part(&self) -> Option<(Frame, Option<Arc<PeerInfo>>)>;

    /// Splits a received message. Returns its first part; [`next_part`](Self::next_part) returns the others to this
    /// thread.
    fn begin_parts(&self, message: Message, peer: Option<Arc<PeerInfo>>) -> Frame;

    /// Gives back parts that `receiver` received but that did not reach the program. `receiver` receives them next,
    /// those with the lowest `order` first.
    fn give_back_parts(
        &self,
        receiver: &PartsReceiver,
        order: u64,
        parts: Vec<Frame>,
        peer: Option<Arc<PeerInfo>>,
    );

    /// Returns the message of which this thread has gathered all parts but these. The next part that the thread sends
    /// begins another message.
    fn complete(&self, rest: impl IntoIterator<Item = Frame>) -> Message;

    /// Whether this thread has begun to send a message in parts.
    fn is_sending_parts(&self) -> bool;

    /// The error for a call that timed out: `Again`, with the timeout, if given, and the current state of the
    /// connections. For callers that divide one wait into several calls.
    fn timed_out(&self, direction: Direction, waited: Option<Duration>) -> Error;

    /// The error for a call that waited for `wanted` peers and found fewer: `Again`, with the current state of the
    /// connections. `what` names the state that the peers should have.
    fn too_few(&self, found: usize, wanted: usize, what: &str) -> Error;

    /// Whether the socket's messages have exactly one part.
    fn is_single_part(&self) -> bool;

    /// Whether messages are addressed by the numbers of the peers, which are their routing ids.
    fn numbers_peers(&self) -> bool;

    /// Makes later connections leave the last descriptors of the process to the program, as accepted ones do. For sockets
    /// that connect to what peers name: while there are no other descriptors, they try again.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    fn leave_descriptors(&self) -> Result<()>;

    /// Returns the endpoints with the number of their peers, as text. This call does not wait: it returns `None` while
    /// another call holds the socket's lock, on a closed socket, and without endpoints.
    fn overview(&self) -> Option<String>;
}

impl SocketInternals for Socket {
    #[inline]
    fn send_message(&self, message: Message, wait: Wait) -> std::result::Result<(), SendError> {
        Socket::send_message(self, message, wait)
    }

    #[inline]
    fn send_messages(
        &self,
        messages: impl Iterator<Item = Message>,
        wait: Wait,
    ) -> (usize, Option<SendError>) {
        Socket::send_messages(self, messages, wait)
    }

    fn recv_with_receipt(&self, wait: Wait, named: bool) -> Result<(Message, Receipt)> {
        self.recv_with(wait, |state, message, source| {
            (message, Receipt::of(state, source, named))
        })
    }

    fn close_by(&self, deadline: Option<Instant>, until: Option<Instant>) -> Result<Undelivered> {
        self.core().close_by(deadline, until)
    }

    #[inline]
    fn try_send(&self, mut message: Message) -> Attempt<(), Message> {
        let core = self.core();
        let Some(mut state) = core.try_lock() else {
            return Attempt::Contended(message);
        };
        if let Err(error) = core.check_open() {
            return Attempt::Failed(error);
        }
        match core.send_now(&mut state, &mut message) {
            Ok(()) => Attempt::Done(()),
            Err(error) if error.kind() == ErrorKind::Again => Attempt::WouldBlock(message),
            Err(error) => Attempt::Failed(error),
        }
    }

    #[inline]
    fn try_recv(&self) -> Attempt<Message> {
        self.try_recv_with(|_, message, _| message)
    }

    #[inline]
    fn try_recv_to(&self, message: &mut Message) -> Attempt<()> {
        let core = self.core();
        let Some(mut state) = core.try_lock() else {
            return Attempt::Contended(());
        };
        if let Err(error) = core.check_open() {
            return Attempt::Failed(error);
        }
        match core.recv_now(&mut state, message) {
            Ok(_) => Attempt::Done(()),
            Err(error) if error.kind() == ErrorKind::Again => Attempt::WouldBlock(()),
            Err(error) => failed(&mut state, error),
        }
    }

    fn try_recv_from(&self) -> Attempt<(Message, Option<Arc<PeerInfo>>)> {
        self.try_recv_with(|state, message, source| (message, Core::peer_of(state, source)))
    }

    #[inline]
    fn try_recv_with_receipt(&self, named: bool) -> Attempt<(Message, Receipt)> {
        self.try_recv_with(|state, message, source| (message, Receipt::of(state, source, named)))
    }

    fn try_recv_batch_as<T>(&self, max: usize, make: impl Fn(Message) -> T) -> Attempt<Vec<T>> {
        let core = self.core();
        self.try_recv_with(|state, message, _| {
            let mut batch = vec![make(message)];
            core.recv_run(state, max, &mut batch, |_, message, _| make(message));
            batch
        })
    }

    fn take_in(&self) -> bool {
        let core = self.core();
        core.try_lock().is_some_and(|state| core.take_in(&state))
    }

    fn give_back(&self, order: u64, messages: Vec<(Message, Option<Arc<PeerInfo>>)>) {
        if let Some(mut state) = self.lock_to_give_back() {
            self.core().give_back_now(&mut state, order, messages);
        }
    }

    fn give_back_received(&self, messages: Vec<(Message, Receipt)>) {
        if let Some(mut state) = self.lock_to_give_back() {
            self.core().give_back_received(&mut state, messages);
        }
    }

    fn recv_batch_with_receipts(&self, max: usize, wait: Wait) -> Result<(Vec<Message>, Receipts)> {
        let receipts = RefCell::new(Receipts::default());
        let batch = self.recv_batch_with(max, wait, |state, message, source| {
            receipts.borrow_mut().add(state, source);
            message
        })?;
        Ok((batch, receipts.into_inner()))
    }

    fn readiness(&self) -> Result<Events> {
        let core = self.core();
        let mut state = core.lock_open()?;
        Ok(core.events_now(&mut state))
    }

    fn leave_descriptors(&self) -> Result<()> {
        let mut state = self.core().lock_open()?;
        Arc::make_mut(&mut state.options).is_led_by_peers = true;
        Ok(())
    }

    fn option_row(&self, id: i32) -> Result<Cow<'static, OptionRow>> {
        self.core().registry.mechanisms.row(id)
    }

    fn count_unfinished(&self) {
        self.core().parts().count_unfinished();
    }

    fn next_part(&self) -> Option<(Frame, Option<Arc<PeerInfo>>)> {
        let core = self.core();
        let part = core.parts().next();
        if part.is_some() && core.signal.has_descriptor() {
            core.level(&mut core.lock());
        }
        part
    }

    fn begin_parts(&self, message: Message, peer: Option<Arc<PeerInfo>>) -> Frame {
        let core = self.core();
        let first = core.parts().begin(message, peer);
        if core.signal.has_descriptor() && core.parts().rcvmore() {
            core.signal.raise();
        }
        first
    }

    fn give_back_parts(
        &self,
        receiver: &PartsReceiver,
        order: u64,
        parts: Vec<Frame>,
        peer: Option<Arc<PeerInfo>>,
    ) {
        if let Some(mut state) = self.lock_to_give_back() {
            let core = self.core();
            core.give_back_parts_now(&mut state, receiver, order, parts, &peer);
        }
    }

    fn complete(&self, rest: impl IntoIterator<Item = Frame>) -> Message {
        match self.core().parts().take() {
            Some(mut message) => {
                rest.into_iter().for_each(|part| message.push(part));
                message
            }
            None => Message::from_frames(rest),
        }
    }

    fn is_sending_parts(&self) -> bool {
        self.core().parts().is_sending()
    }

    fn timed_out(&self, direction: Direction, waited: Option<Duration>) -> Error {
        self.core().timed_out(direction, waited)
    }

    fn too_few(&self, found: usize, wanted: usize, what: &str) -> Error {
        self.core().too_few(found, wanted, what)
    }

    fn is_single_part(&self) -> bool {
        self.spec().single_part
    }

    fn numbers_peers(&self) -> bool {
        self.spec().numbers_peers
    }

    fn overview(&self) -> Option<String> {
        self.core().overview()
    }
}

impl Socket {
    #[inline]
    fn try_recv_with<T>(
        &self,
        finish: impl FnOnce(&mut State, Message, Source) -> T,
    ) -> Attempt<T> {
        let core = self.core();
        let Some(mut state) = core.try_lock() else {
            return Attempt::Contended(());
        };
        if let Err(error) = core.check_open() {
            return Attempt::Failed(error);
        }
        let mut message = Message::new();
        match core.recv_now(&mut state, &mut message) {
            Ok(source) => Attempt::Done(finish(&mut state, message, source)),
            Err(error) if error.kind() == ErrorKind::Again => Attempt::WouldBlock(()),
            Err(error) => failed(&mut state, error),
        }
    }

    /// Locks the socket for messages that are given back. `None` if they are dropped: a closed socket receives none, and
    /// in a forked child, the socket is its parent's, and a thread that the child does not have may hold the lock.
    fn lock_to_give_back(&self) -> Option<Locked<'_>> {
        match self.is_own_process() {
            true => self.core().lock_open().ok(),
            false => None,
        }
    }
}

/// A failed attempt to receive. Callers may try again in another way, so an error that is returned once must not get lost.
#[cold]
fn failed<T>(state: &mut State, error: Error) -> Attempt<T> {
    if error.kind() == ErrorKind::TooSlow {
        state.pattern.put_off(error);
        return Attempt::Contended(());
    }
    Attempt::Failed(error)
}
