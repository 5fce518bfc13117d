//! Sockets: the application's side of pipes and patterns.
//!
//! Any thread may use any socket. A call holds the socket's lock only while it looks at queues; a blocked call holds
//! nothing and waits on the socket's [`Signal`](crate::signal::Signal). Whole messages are atomic. Parts sent with
//! `more` gather per thread and enter the pattern with the last one; the frames that remain of a message belong to the
//! thread that took its first.
//!
//! What happens to pipes arrives in the socket's own mailbox. Whoever posts something that must not wait for the
//! application's next call (a new pipe, a finished handshake, a subscription) works the mailbox off itself if the lock
//! is free, and otherwise leaves it to the holder, who looks again after unlocking.

mod calls;
mod close;
mod core;
mod endpoints;
mod entries;
mod explain;
mod flush;
mod inbox;
mod inproc;
mod monitor;
mod monitoring;
mod parts;
mod peers;
mod phase;
mod post;
mod relay;
mod returned;
mod securing;
mod settings;
mod stats;
mod totals;
mod waiting;

use std::cell::RefCell;
use std::fmt;
use std::mem;
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use zeroxide_proto::engine::PeerInfo;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::registry::Registry;
use crate::signal::{Signal, Woken};
use crate::socket::calls::Source;
pub use crate::socket::calls::{Receipt, Receipts};
use crate::socket::core::{Core, State};
pub use crate::socket::explain::Direction;
pub use crate::socket::flush::FlushError;
pub use crate::socket::monitoring::EventStream;
pub use crate::socket::parts::PartsReceiver;
pub(crate) use crate::socket::relay::Stuck;
pub use crate::socket::stats::{PeerStats, SocketStats};

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: `Again` if it would have to.
    Dont,
    /// As SNDTIMEO or RCVTIMEO says.
    Default,
    /// Until a point in time, then `Again`, without a text: see [`Socket::timed_out`].
    Until(Instant),
    /// For ever.
    Forever,
}

/// What a socket is ready for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Events {
    /// A message can be received without waiting.
    pub readable: bool,
    /// A message can be sent without waiting.
    pub writable: bool,
}

/// A message that was not sent, given back with the reason.
#[derive(Debug)]
pub struct SendError {
    /// The message as it was handed in.
    pub message: Message,
    /// Why.
    pub error: Error,
}

impl From<SendError> for Error {
    fn from(failed: SendError) -> Error {
        failed.error
    }
}

/// How an attempt ended that may not wait, not even for another thread to leave the socket.
#[derive(Debug)]
pub enum Attempt<T, M = ()> {
    /// Done.
    Done(T),
    /// It would have to wait for a peer; for a send, the message comes back.
    WouldBlock(M),
    /// Another thread is inside the socket: let go of whatever it may be waiting for, then make the ordinary call.
    Contended(M),
    /// It failed.
    Failed(Error),
}

/// A socket. Clones are the same socket; it closes with [`close`](Self::close) or with its last clone.
#[derive(Clone)]
pub struct Socket {
    handle: Arc<Handle>,
}

struct Handle {
    core: Arc<Core>,
}

impl Drop for Handle {
    fn drop(&mut self) {
        if !self.core.registry.is_own_process() {
            // A forked child: the pipes and locks in here are copies in whatever state the fork met them, and the
            // descriptors are the parent's too. Nothing of it may be touched, not even to tidy up.
            mem::forget(self.core.clone());
            return;
        }
        self.core.close(None);
    }
}

impl fmt::Debug for Socket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Socket({} {:#x})", self.socket_type(), self.id())
    }
}

impl Socket {
    pub(crate) fn new(registry: &Arc<Registry>, socket_type: SocketType) -> Result<Socket> {
        Ok(Socket {
            handle: Arc::new(Handle {
                core: Core::new(registry, socket_type)?,
            }),
        })
    }

    #[inline]
    fn core(&self) -> &Core {
        &self.handle.core
    }

    /// What is woken whenever something happens to the socket.
    pub(crate) fn signal(&self) -> &Signal {
        &self.core().signal
    }

    /// Somebody watches from now on: see [`Core::release_line`].
    pub(crate) fn release_line(&self) {
        let core = self.core();
        core.release_line(&core.lock());
    }

    /// Whether this process made the socket. A forked child must not touch it.
    pub(crate) fn is_own_process(&self) -> bool {
        self.core().registry.is_own_process()
    }

    /// A number that is the same for all clones and no other socket.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.handle) as usize
    }

    /// Its type.
    pub fn socket_type(&self) -> SocketType {
        self.core().spec().socket_type
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.core().is_closed()
    }

    // ---- messages --------------------------------------------------------------------------------------------------

    /// Sends a whole message.
    ///
    /// # Errors
    /// The message comes back with the reason: `Again` when no peer can take it in time, `Interrupted` when a signal
    /// handler ran (call again), `Terminated`, `NotSocket` after close, `NotSupported` and `Fsm` by the pattern's rules,
    /// `HostUnreachable` for an unknown routing id where that is an error.
    pub fn send(&self, mut message: Message, wait: Wait) -> std::result::Result<(), SendError> {
        let core = self.core();
        let ticket = core.signal.ticket();
        let mut state = core.lock();
        if let Err(error) = core.check_open() {
            return Err(SendError { message, error });
        }
        match core.send_now(&mut state, &mut message) {
            Ok(()) => Ok(()),
            Err(error) if error.kind() == ErrorKind::Again && wait != Wait::Dont => {
                let timeout = state.options.sndtimeo;
                drop(state);
                self.send_waiting(message, ticket, wait, timeout)
            }
            Err(error) => Err(SendError { message, error }),
        }
    }

    /// Sends a message that could not be sent when the ticket was taken.
    #[cold]
    fn send_waiting(
        &self,
        mut message: Message,
        mut ticket: u32,
        wait: Wait,
        timeout: Option<Duration>,
    ) -> std::result::Result<(), SendError> {
        let core = self.core();
        let deadline = limit(wait, timeout);
        loop {
            if let Err(error) = self.wait(ticket, deadline) {
                let error = core.explained(error, Direction::Send, wait, timeout);
                return Err(SendError { message, error });
            }
            ticket = core.signal.ticket();
            let mut state = match core.lock_open() {
                Ok(state) => state,
                Err(error) => return Err(SendError { message, error }),
            };
            match core.send_now(&mut state, &mut message) {
                Ok(()) => return Ok(()),
                Err(error) if error.kind() == ErrorKind::Again => {}
                Err(error) => return Err(SendError { message, error }),
            }
        }
    }

    /// Receives a whole message.
    ///
    /// # Errors
    /// `Again` when none came in time; otherwise as [`send`](Self::send).
    pub fn recv(&self, wait: Wait) -> Result<Message> {
        self.recv_with(wait, |_, message, _| message)
    }

    /// Receives a whole message and learns who it is from, as far as that is known.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_from(&self, wait: Wait) -> Result<(Message, Option<Arc<PeerInfo>>)> {
        self.recv_with(wait, |state, message, source| {
            (message, Core::peer_of(state, source))
        })
    }

    /// Receives a whole message with its receipt, by which it can be given back. If `named`, the receipt names the peer.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_with_receipt(&self, wait: Wait, named: bool) -> Result<(Message, Receipt)> {
        self.recv_with(wait, |state, message, source| {
            (message, Receipt::of(state, source, named))
        })
    }

    fn recv_with<T>(
        &self,
        wait: Wait,
        finish: impl FnOnce(&mut State, Message, Source) -> T,
    ) -> Result<T> {
        let core = self.core();
        let mut message = Message::new();
        let mut deadline = None;
        let mut timeout = None;
        loop {
            let ticket = core.signal.ticket();
            let outlook;
            {
                let mut state = core.lock();
                core.check_open()?;
                match core.recv_now(&mut state, &mut message) {
                    Ok(source) => return Ok(finish(&mut state, message, source)),
                    Err(error) if error.kind() != ErrorKind::Again => return Err(error),
                    Err(_) if wait == Wait::Dont && core.take_in(&state) => continue,
                    Err(error) if wait == Wait::Dont => return Err(error),
                    Err(_) => {}
                }
                if deadline.is_none() {
                    timeout = state.options.rcvtimeo;
                    deadline = Some(limit(wait, timeout));
                }
                outlook = core.outlook(&mut state);
            }
            outcome(core.wait_for_message(&outlook, ticket, deadline.flatten()))
                .map_err(|error| core.explained(error, Direction::Recv, wait, timeout))?;
        }
    }

    /// Sends without waiting for a peer or for another thread.
    #[inline]
    pub fn try_send(&self, mut message: Message) -> Attempt<(), Message> {
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

    /// Receives without waiting for a message or for another thread. Who does not go on to wait calls
    /// [`take_in`](Self::take_in) before giving up.
    #[inline]
    pub fn try_recv(&self) -> Attempt<Message> {
        self.try_recv_with(|_, message, _| message)
    }

    /// Receives without waiting for a message or for another thread, and learns who it is from.
    pub fn try_recv_from(&self) -> Attempt<(Message, Option<Arc<PeerInfo>>)> {
        self.try_recv_with(|state, message, source| (message, Core::peer_of(state, source)))
    }

    /// Receives without waiting for a message or for another thread. If `named`, the receipt names the peer.
    #[inline]
    pub fn try_recv_with_receipt(&self, named: bool) -> Attempt<(Message, Receipt)> {
        self.try_recv_with(|state, message, source| (message, Receipt::of(state, source, named)))
    }

    /// As [`try_recv`](Self::try_recv), but takes up to `max` messages, at least one, that are there, and has `make` make
    /// something of each while the socket is locked: it must neither take long nor use the socket.
    pub fn try_recv_batch_as<T>(&self, max: usize, make: impl Fn(Message) -> T) -> Attempt<Vec<T>> {
        let core = self.core();
        self.try_recv_with(|state, message, _| {
            let mut batch = vec![make(message)];
            core.recv_run(state, max, &mut batch, |_, message, _| make(message));
            batch
        })
    }

    /// Between two waits that follow each other closely, what arrives may lie where only the next wait would look. Takes
    /// it in; true if there was such a place, and it is worth receiving again.
    pub fn take_in(&self) -> bool {
        let core = self.core();
        core.try_lock().is_some_and(|state| core.take_in(&state))
    }

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
            Err(error) => Attempt::Failed(error),
        }
    }

    /// Gives back messages that were received but reached nobody, with who they are from: they are the next to be
    /// received. Of those that are given back one after the other, the one with the lowest `order` comes first.
    pub fn give_back(&self, order: u64, messages: Vec<(Message, Option<Arc<PeerInfo>>)>) {
        let core = self.core();
        // Once the socket is closed nobody will ask for them any more.
        if let Ok(mut state) = core.lock_open() {
            core.give_back_now(&mut state, order, messages);
        }
    }

    /// Gives back messages that were received but did not reach the program. They come before messages that were received
    /// later.
    pub fn give_back_received(&self, messages: Vec<(Message, Receipt)>) {
        let core = self.core();
        // A closed socket receives nothing any more.
        if let Ok(mut state) = core.lock_open() {
            core.give_back_received(&mut state, messages);
        }
    }

    /// Sends messages in order until one would have to wait longer than `wait`; whatever was sent is published at
    /// once. Returns how many were sent and, unless all were, the message that was not and the reason.
    pub fn send_batch(
        &self,
        messages: impl IntoIterator<Item = Message>,
        wait: Wait,
    ) -> (usize, Option<SendError>) {
        let core = self.core();
        let mut sent = 0;
        let mut messages = messages.into_iter();
        let mut next = messages.next();
        while let Some(message) = next {
            let failed = {
                let mut state = match core.lock_open() {
                    Ok(state) => state,
                    Err(error) => return (sent, Some(SendError { message, error })),
                };
                let (count, failed) = core.send_run(&mut state, message, &mut messages);
                sent += count;
                failed
            };
            next = match failed {
                None => None,
                Some(SendError { message, error })
                    if error.kind() == ErrorKind::Again && wait != Wait::Dont =>
                {
                    match self.send(message, wait) {
                        Ok(()) => sent += 1,
                        Err(failed) => return (sent, Some(failed)),
                    }
                    messages.next()
                }
                Some(failed) => return (sent, Some(failed)),
            };
        }
        (sent, None)
    }

    /// Receives up to `max` messages: waits for the first as `wait` says, then takes what is there.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), for the first message.
    pub fn recv_batch(&self, max: usize, wait: Wait) -> Result<Vec<Message>> {
        self.recv_batch_with(max, wait, |_, message, _| message)
    }

    /// Receives up to `max` messages and learns who they are from.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), for the first message.
    pub fn recv_batch_from(
        &self,
        max: usize,
        wait: Wait,
    ) -> Result<Vec<(Message, Option<Arc<PeerInfo>>)>> {
        self.recv_batch_with(max, wait, |state, message, source| {
            (message, Core::peer_of(state, source))
        })
    }

    /// Receives up to `max` messages, and their receipts.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), for the first message.
    pub fn recv_batch_with_receipts(
        &self,
        max: usize,
        wait: Wait,
    ) -> Result<(Vec<Message>, Receipts)> {
        let receipts = RefCell::new(Receipts::default());
        let batch = self.recv_batch_with(max, wait, |state, message, source| {
            receipts.borrow_mut().add(state, source);
            message
        })?;
        Ok((batch, receipts.into_inner()))
    }

    fn recv_batch_with<T>(
        &self,
        max: usize,
        wait: Wait,
        finish: impl Fn(&mut State, Message, Source) -> T,
    ) -> Result<Vec<T>> {
        if max == 0 {
            return Ok(Vec::new());
        }
        let mut batch = vec![self.recv_with(wait, &finish)?];
        let core = self.core();
        let mut state = core.lock();
        core.recv_run(&mut state, max, &mut batch, finish);
        Ok(batch)
    }

    /// Waits until the socket is ready for something of `wanted`. An empty answer means that the time is over.
    ///
    /// # Errors
    /// `Interrupted`, `Terminated`, `NotSocket`.
    pub fn poll(&self, wanted: Events, timeout: Option<Duration>) -> Result<Events> {
        let deadline = timeout.and_then(|timeout| Instant::now().checked_add(timeout));
        loop {
            let ticket = self.core().signal.ticket();
            let ready = self.events()?;
            let hit = Events {
                readable: ready.readable && wanted.readable,
                writable: ready.writable && wanted.writable,
            };
            if hit != Events::default() || timeout.is_some_and(|timeout| timeout.is_zero()) {
                return Ok(hit);
            }
            match self.core().signal.wait(ticket, deadline) {
                Woken::Notified => {}
                Woken::TimedOut => return Ok(Events::default()),
                Woken::Interrupted => return Err(Error::new(ErrorKind::Interrupted)),
            }
        }
    }

    /// What the socket is ready for now. Parts of a message that are left for this thread can be received.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn events(&self) -> Result<Events> {
        let core = self.core();
        let mut state = core.lock_open()?;
        Ok(core.tell_events(&mut state))
    }

    /// As [`events`](Self::events), unnoticed by those who watch the descriptor.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn readiness(&self) -> Result<Events> {
        let core = self.core();
        let mut state = core.lock_open()?;
        Ok(core.events_now(&mut state))
    }

    /// A descriptor that is readable for as long as the socket has something to receive (parts that are left for a
    /// thread included), or has become able to send since [`events`](Self::events) was last asked. For other event loops; do not read, write or close it.
    ///
    /// # Errors
    /// What the system says when it cannot be made; `Terminated`, `NotSocket`.
    pub fn fd(&self) -> Result<RawFd> {
        let core = self.core();
        let mut state = core.lock_open()?;
        let fd = core.signal.descriptor()?.as_raw_fd();
        core.release_line(&state);
        state.out_event = true;
        core.level(&mut state);
        Ok(fd)
    }

    // ---- parts -----------------------------------------------------------------------------------------------------

    /// Sends one part; the message goes with the part that has no `more`. Parts gather per calling thread.
    ///
    /// The first part waits for what the message would have to wait for, and fails for what would stop it: who sends in
    /// parts expects that what was begun can be finished. Should the room be gone when the last part comes, that waits,
    /// too.
    ///
    /// # Errors
    /// As [`send`](Self::send), whatever the part: the message is over, and comes back with all its parts. What this
    /// thread sends next begins another one. To go on with it, [`send`](Self::send) it as a whole; who gives it up says
    /// so to [`count_unfinished`](Self::count_unfinished).
    pub fn send_part(
        &self,
        frame: Frame,
        more: bool,
        wait: Wait,
    ) -> std::result::Result<(), SendError> {
        let parts = self.core().parts();
        let stopped = if more && !parts.is_gathering() {
            self.await_room_for(&frame, wait)
        } else {
            self.core().check_open()
        };
        if let Err(error) = stopped {
            let message = self.complete([frame]);
            return Err(SendError { message, error });
        }
        if more {
            parts.gather(frame);
            return Ok(());
        }
        self.send(self.complete([frame]), wait)
    }

    /// Counts a message that was begun in parts and will not be sent.
    pub fn count_unfinished(&self) {
        self.core().parts().count_unfinished();
    }

    /// Waits until there is room for a message, for who can fetch one only then. Where room depends on the message, as with
    /// ROUTER_MANDATORY, this does not wait; neither does it keep the room from others who send.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    pub fn await_room(&self, wait: Wait) -> Result<()> {
        match self.await_room_for(&Frame::new(), wait) {
            Err(error) if error.kind() == ErrorKind::HostUnreachable => Ok(()),
            other => other,
        }
    }

    /// Waits until a message that begins with `head` could be sent.
    fn await_room_for(&self, head: &Frame, wait: Wait) -> Result<()> {
        let core = self.core();
        let mut deadline = None;
        let mut timeout = None;
        loop {
            let ticket = core.signal.ticket();
            {
                let mut state = core.lock_open()?;
                match core.check_send_now(&mut state, head) {
                    Err(error) if error.kind() == ErrorKind::Again && wait != Wait::Dont => {}
                    other => return other,
                }
                if deadline.is_none() {
                    timeout = state.options.sndtimeo;
                    deadline = Some(limit(wait, timeout));
                }
            }
            self.wait(ticket, deadline.flatten())
                .map_err(|error| core.explained(error, Direction::Send, wait, timeout))?;
        }
    }

    /// Receives one part: the next of the message that this thread is in, else the first of the next message.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_part(&self, wait: Wait) -> Result<Frame> {
        self.core().check_open()?;
        if let Some((frame, _)) = self.next_part() {
            return Ok(frame);
        }
        let message = self.recv(wait)?;
        Ok(self.begin_parts(message, None))
    }

    /// The next part of the message that this thread is in, if it is in one, and who the message is from.
    pub fn next_part(&self) -> Option<(Frame, Option<Arc<PeerInfo>>)> {
        let core = self.core();
        let part = core.parts().next();
        if part.is_some() && core.signal.has_descriptor() {
            core.level(&mut core.lock());
        }
        part
    }

    /// Takes a received message apart: its first part now, the others by [`next_part`](Self::next_part) in this
    /// thread.
    pub fn begin_parts(&self, message: Message, peer: Option<Arc<PeerInfo>>) -> Frame {
        let core = self.core();
        let first = core.parts().begin(message, peer);
        if core.signal.has_descriptor() && core.parts().rcvmore() {
            core.signal.raise();
        }
        first
    }

    /// Gives back parts that `receiver` received but passed to nobody: they are the next that it receives, those with
    /// the lowest `order` first.
    pub fn give_back_parts(
        &self,
        receiver: &PartsReceiver,
        order: u64,
        parts: Vec<Frame>,
        peer: Option<Arc<PeerInfo>>,
    ) {
        let core = self.core();
        if let Ok(mut state) = core.lock_open() {
            core.give_back_parts_now(&mut state, receiver, order, parts, &peer);
        }
    }

    /// The message of which this thread has gathered all but these parts. What it sends next begins another one.
    pub fn complete(&self, rest: impl IntoIterator<Item = Frame>) -> Message {
        match self.core().parts().take() {
            Some(mut message) => {
                rest.into_iter().for_each(|part| message.push(part));
                message
            }
            None => Message::from_frames(rest),
        }
    }

    /// Whether more parts follow the last one that this thread received.
    pub fn rcvmore(&self) -> bool {
        self.core().parts().rcvmore()
    }

    /// Whether this thread has begun to send a message in parts.
    pub fn is_sending_parts(&self) -> bool {
        self.core().parts().is_gathering()
    }

    fn wait(&self, ticket: u32, deadline: Option<Instant>) -> Result<()> {
        outcome(self.core().signal.wait(ticket, deadline))
    }
}

fn outcome(woken: Woken) -> Result<()> {
    match woken {
        Woken::Notified => Ok(()),
        Woken::TimedOut => Err(Error::new(ErrorKind::Again)),
        Woken::Interrupted => Err(Error::new(ErrorKind::Interrupted)),
    }
}

/// The point in time until which a call may wait; `None` = for ever.
fn limit(wait: Wait, default: Option<Duration>) -> Option<Instant> {
    match wait {
        Wait::Dont => Some(Instant::now()),
        Wait::Default => default.and_then(|timeout| Instant::now().checked_add(timeout)),
        Wait::Until(at) => Some(at),
        Wait::Forever => None,
    }
}
