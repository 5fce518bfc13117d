//! Sockets: the application's side of pipes and patterns.
//!
//! Any thread may use any socket. A call holds the socket's lock only while it looks at queues. A blocked call holds no
//! lock and waits on the socket's [`Signal`](crate::signal::Signal). Whole messages are atomic. Parts sent with `more`
//! are gathered per thread and enter the pattern together with the last part. The remaining frames of a received
//! message belong to the thread that took its first frame.
//!
//! Pipe events arrive in the socket's own mailbox. Some of them (a new pipe, a finished handshake, a subscription) must
//! not wait for the application's next call. The thread that posts such an event processes the mailbox itself if the
//! lock is free. Otherwise the holder of the lock does, because it checks the mailbox again after unlocking.

mod alarm;
mod binding;
mod calls;
mod close;
mod contexts;
mod core;
mod deadlines;
mod endpoints;
mod entries;
mod events;
mod explain;
mod facts;
mod flush;
mod groups;
mod inbox;
mod monitor;
mod monitoring;
mod parts;
mod peers;
mod phase;
mod post;
mod priorities;
mod relay;
mod returned;
mod securing;
mod setbacks;
mod settings;
mod spiller;
mod spilling;
mod stats;
#[cfg(feature = "futures")]
mod streams;
mod tasks;
mod totals;
mod typed;
mod waiting;

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
use crate::patterns::{PatternSpec, several_parts};
use crate::registry::Registry;
use crate::signal::{Signal, Woken, is_waking};
pub use crate::socket::binding::{Attempt, SocketInternals};
use crate::socket::calls::Source;
pub use crate::socket::calls::{Receipt, Receipts};
pub use crate::socket::contexts::SocketContext;
use crate::socket::core::{Core, Locked, State};
pub use crate::socket::events::Events;
pub use crate::socket::explain::Direction;
pub use crate::socket::flush::FlushError;
pub use crate::socket::monitoring::EventStream;
pub use crate::socket::parts::PartsReceiver;
pub(crate) use crate::socket::relay::Stuck;
pub use crate::socket::stats::{PeerStats, SocketStats};
#[cfg(feature = "futures")]
pub use crate::socket::streams::{MessageSink, MessageStream};
pub use crate::socket::tasks::{Receiving, Sending};
use crate::socket::waiting::Waited;
use crate::sys::clock;
use crate::sys::thread::{self, ThreadSettings};

/// How long a call may wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wait {
    /// Not at all: a call that would have to wait fails with `Again`.
    Dont,
    /// As long as SNDTIMEO or RCVTIMEO allows.
    Default,
    /// Until a point in time; then the call fails with `Again`.
    Until(Instant),
    /// Forever.
    Forever,
}

/// A message that was not sent, returned with the reason.
#[derive(Debug)]
pub struct SendError {
    /// The message as it was passed to the call.
    pub message: Message,
    /// The reason.
    pub error: Error,
}

impl fmt::Display for SendError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.error.fmt(f)
    }
}

impl std::error::Error for SendError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.error.source()
    }
}

impl From<SendError> for Error {
    fn from(failed: SendError) -> Error {
        failed.error
    }
}

/// A socket. Clones refer to the same socket. It closes with [`close`](Self::close), or when its last clone is dropped.
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
            // A forked child: the pipes and locks in here are copies in the state in which the fork found them, and the
            // parent uses the same descriptors. Nothing here may be touched, not even to clean up.
            mem::forget(self.core.clone());
            return;
        }
        if is_waking() {
            // The last handle was in a task that its waker dropped. This thread may hold locks that closing the socket
            // acquires.
            let core = self.core.clone();
            let settings = ThreadSettings {
                name: "zeroxide/closer".to_owned(),
                ..ThreadSettings::default()
            };
            // Without this thread, the socket stays open until the context ends.
            let _ = thread::spawn(settings, move || core.close(None));
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

    /// The signal that is woken whenever something happens to the socket.
    pub(crate) fn signal(&self) -> &Signal {
        &self.core().signal
    }

    /// Called when a watcher is added: see [`Core::release_line`].
    pub(crate) fn release_line(&self) {
        let core = self.core();
        core.release_line(&core.lock());
    }

    /// Whether this process made the socket. A forked child must not touch it.
    pub(crate) fn is_own_process(&self) -> bool {
        self.core().registry.is_own_process()
    }

    /// Returns a number that all clones of this socket share, and that no other socket has.
    pub fn id(&self) -> usize {
        Arc::as_ptr(&self.handle) as usize
    }

    /// Returns the specification of the socket's pattern.
    pub(crate) fn spec(&self) -> &'static PatternSpec {
        self.core().spec()
    }

    /// Returns the type with which the socket was created, whichever protocol it speaks.
    pub fn socket_type(&self) -> SocketType {
        self.core().spec.socket_type
    }

    /// Whether the socket was closed.
    pub fn is_closed(&self) -> bool {
        self.core().is_closed()
    }

    // ---- messages --------------------------------------------------------------------------------------------------

    /// Sends a whole message: bytes or text of any type, a frame, a message, or several frames in an array or vector.
    ///
    /// ```
    /// # fn main() -> zeroxide::Result<()> {
    /// # use zeroxide::{Context, SocketType, Wait};
    /// # let context = Context::new();
    /// # let pull = context.socket(SocketType::Pull)?;
    /// # let push = context.socket(SocketType::Push)?;
    /// # push.connect(&pull.bind("inproc://sends")?)?;
    /// push.send("text", Wait::Forever)?;
    /// push.send(vec![0u8; 100], Wait::Forever)?;
    /// push.send(["several", "frames"], Wait::Forever)?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// The message is returned with the reason: `Again` when no peer can accept it in time, `Interrupted` when a signal
    /// handler ran (call again), `Terminated`, `NotSocket` after close, `NotSupported` and `Fsm` if the pattern does
    /// not allow sending, `HostUnreachable` for an unknown routing id where that is an error.
    #[inline]
    pub fn send(
        &self,
        message: impl Into<Message>,
        wait: Wait,
    ) -> std::result::Result<(), SendError> {
        self.send_message(message.into(), wait)
    }

    pub(crate) fn send_message(
        &self,
        mut message: Message,
        wait: Wait,
    ) -> std::result::Result<(), SendError> {
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

    /// Waits with a message that could not be sent when the ticket was taken, and sends it.
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
    /// `Again` when no message arrived in time; otherwise the errors of [`send`](Self::send).
    pub fn recv(&self, wait: Wait) -> Result<Message> {
        self.recv_with(wait, |_, message, _| message)
    }

    /// Receives a whole message, and returns the peer that sent it, if that is known.
    ///
    /// # Errors
    /// As [`recv`](Self::recv).
    pub fn recv_from(&self, wait: Wait) -> Result<(Message, Option<Arc<PeerInfo>>)> {
        self.recv_with(wait, |state, message, source| {
            (message, Core::peer_of(state, source))
        })
    }

    fn recv_with<T>(
        &self,
        wait: Wait,
        finish: impl FnOnce(&mut State, Message, Source) -> T,
    ) -> Result<T> {
        let core = self.core();
        let mut message = Message::new();
        loop {
            let ticket = core.signal.ticket();
            let mut state = core.lock();
            core.check_open()?;
            match core.recv_now(&mut state, &mut message) {
                Ok(source) => return Ok(finish(&mut state, message, source)),
                Err(error) if error.kind() != ErrorKind::Again => return Err(error),
                Err(_) if wait == Wait::Dont && core.take_in(&state) => {}
                Err(error) if wait == Wait::Dont => return Err(error),
                Err(_) => {
                    let (mut state, source) =
                        self.recv_waiting(state, ticket, &mut message, wait)?;
                    return Ok(finish(&mut state, message, source));
                }
            }
        }
    }

    /// Waits for a message that was not there when the ticket was taken, and receives it into `message`, which is empty.
    /// Returns with the lock.
    #[inline(never)]
    fn recv_waiting<'a>(
        &'a self,
        mut state: Locked<'a>,
        mut ticket: u32,
        message: &mut Message,
        wait: Wait,
    ) -> Result<(Locked<'a>, Source)> {
        let core = self.core();
        let timeout = state.options.rcvtimeo;
        let deadline = limit(wait, timeout);
        let over = |error| core.explained(error, Direction::Recv, wait, timeout);
        loop {
            let outlook = core.outlook(&mut state);
            drop(state);
            let waited = core.wait_for_message(&outlook, ticket, deadline);
            let must_end = match waited {
                Waited::CameIn(_) | Waited::Woken(Woken::Notified) => Signal::must_end(deadline),
                Waited::Woken(woken) => return Err(over(ended(woken))),
            };
            ticket = core.signal.ticket();
            state = core.lock();
            core.check_open()?;
            if let Waited::CameIn(id) = waited {
                core.note_came_in(&mut state, id);
            }
            match core.recv_now(&mut state, message) {
                Ok(source) => return Ok((state, source)),
                Err(error) if error.kind() != ErrorKind::Again => return Err(error),
                Err(_) => {}
            }
            if let Some(woken) = must_end {
                drop(state);
                return Err(over(ended(woken)));
            }
        }
    }

    /// Sends messages in order until one would have to wait longer than `wait`. The messages that were sent are
    /// published together. Returns how many were sent and, unless all were, the first unsent message with the reason.
    ///
    /// The iterator runs while this socket is locked, so it must neither wait nor use the socket. Collect the messages
    /// first if it does.
    pub fn send_batch(
        &self,
        messages: impl IntoIterator<Item: Into<Message>>,
        wait: Wait,
    ) -> (usize, Option<SendError>) {
        self.send_messages(messages.into_iter().map(Into::into), wait)
    }

    fn send_messages(
        &self,
        mut messages: impl Iterator<Item = Message>,
        wait: Wait,
    ) -> (usize, Option<SendError>) {
        let core = self.core();
        let mut sent = 0;
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
                    match self.send_message(message, wait) {
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

    /// Receives up to `max` messages: waits for the first as `wait` allows, then takes those that have already arrived.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), for the first message.
    pub fn recv_batch(&self, max: usize, wait: Wait) -> Result<Vec<Message>> {
        self.recv_batch_with(max, wait, |_, message, _| message)
    }

    /// Receives up to `max` messages, and returns the peer that sent each.
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

    /// Waits until the socket is ready for one of the events in `wanted`. Returns an empty set when the timeout has
    /// expired.
    ///
    /// # Errors
    /// `Interrupted`, `Terminated`, `NotSocket`.
    pub fn poll(&self, wanted: Events, timeout: Option<Duration>) -> Result<Events> {
        let deadline = timeout.and_then(|timeout| clock::now().checked_add(timeout));
        let mut end = timeout.filter(Duration::is_zero).map(|_| Woken::TimedOut);
        loop {
            let ticket = self.core().signal.ticket();
            let ready = self.events()?;
            let hit = ready & wanted;
            if !hit.is_empty() {
                return Ok(hit);
            }
            match end.unwrap_or_else(|| self.core().signal.wait(ticket, deadline)) {
                Woken::Notified => end = Signal::must_end(deadline),
                Woken::TimedOut => return Ok(Events::NONE),
                Woken::Interrupted => return Err(Error::new(ErrorKind::Interrupted)),
            }
        }
    }

    /// Returns the events that the socket is ready for now. It is readable if parts of a message are left for this
    /// thread.
    ///
    /// # Errors
    /// `Terminated`, `NotSocket`.
    pub fn events(&self) -> Result<Events> {
        let core = self.core();
        let mut state = core.lock_open()?;
        Ok(core.tell_events(&mut state))
    }

    /// Returns a descriptor that is readable while the socket has something to receive (including parts that are left
    /// for a thread), or if it has become able to send since [`events`](Self::events) was last called. It is meant for
    /// other event loops; do not read, write or close it.
    ///
    /// # Errors
    /// The system's error if the descriptor cannot be created; `Terminated`, `NotSocket`.
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

    /// Sends one part. The message is sent with the part that has no `more`. Parts are gathered per calling thread.
    ///
    /// The first part waits or fails as the whole message would, because a caller that sends in parts expects that a
    /// message it has begun can be finished. If there is no room any more when the last part follows, the last part
    /// waits, too.
    ///
    /// On STREAM and with ROUTER_RAW, a message is a routing id and one part, so `more` has no effect on that part.
    ///
    /// # Errors
    /// As [`send`](Self::send), for any part. The message is then over, and is returned with all its parts. The next
    /// part that this thread sends begins another message. To send the returned message after all, pass it to
    /// [`send`](Self::send) as a whole, unless it is only the first part of one: one part, sent with `more`.
    pub fn send_part(
        &self,
        frame: impl Into<Frame>,
        more: bool,
        wait: Wait,
    ) -> std::result::Result<(), SendError> {
        let frame = frame.into();
        let (core, parts) = (self.core(), self.core().parts());
        let fail = |frame, error| {
            let message = self.complete([frame]);
            Err(SendError { message, error })
        };
        if !more || core.ends_raw_message() {
            return match core.check_open() {
                Ok(()) => self.send_message(self.complete([frame]), wait),
                Err(error) => fail(frame, error),
            };
        }
        if self.spec().single_part {
            return fail(frame, several_parts(self.socket_type()));
        }
        if let Err(error) = core.check_open() {
            return fail(frame, error);
        }
        let Err(first) = parts.append(frame) else {
            return Ok(());
        };
        if let Err(error) = self.await_room_for(&first, wait) {
            return fail(first, error);
        }
        parts.begin_sending(first);
        Ok(())
    }

    /// Waits until there is room for a message. It is meant for callers that can only fetch a message once there is
    /// room. Where the room depends on the message, as with ROUTER_MANDATORY, this does not wait. The room is not
    /// reserved: another sender may use it.
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

    /// Receives one part: the next part of the message that this thread is receiving, or else the first part of the
    /// next message.
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

    /// Whether more parts follow the last one that this thread received.
    pub fn rcvmore(&self) -> bool {
        self.core().parts().rcvmore()
    }

    fn wait(&self, ticket: u32, deadline: Option<Instant>) -> Result<()> {
        outcome(self.core().signal.wait(ticket, deadline))
    }
}

fn outcome(woken: Woken) -> Result<()> {
    match woken {
        Woken::Notified => Ok(()),
        woken => Err(ended(woken)),
    }
}

/// The error of a call whose wait has ended without success.
fn ended(woken: Woken) -> Error {
    Error::new(match woken {
        Woken::Interrupted => ErrorKind::Interrupted,
        Woken::TimedOut | Woken::Notified => ErrorKind::Again,
    })
}

/// The point in time until which a call may wait; `None` means forever.
fn limit(wait: Wait, default: Option<Duration>) -> Option<Instant> {
    match wait {
        Wait::Dont => Some(clock::now()),
        Wait::Default => default.and_then(|timeout| clock::now().checked_add(timeout)),
        Wait::Until(at) => Some(at),
        Wait::Forever => None,
    }
}
