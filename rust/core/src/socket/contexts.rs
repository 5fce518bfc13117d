//! Several requests or surveys of one socket at a time: the contexts of nng.

use zeroxide_proto::message::Message;

use super::core::{Core, State};
use super::{Direction, SendError, Socket, Wait, ended, limit};
use crate::error::{Error, ErrorKind, Result};
use crate::signal::Signal;
use crate::sys::sync::atomic::{AtomicBool, Ordering};

/// One of several conversations of a socket, with a request or a survey of its own, whose replies come to it alone. The
/// conversation ends when its context is dropped or [closed](Self::close).
///
/// Contexts share the connections and the options of their socket. Each thread or task can use one of its own.
///
/// ```
/// # fn main() -> zeroxide::Result<()> {
/// use zeroxide::{Context, Message, SocketType, Wait};
///
/// let context = Context::new();
/// let (rep, req) = (context.socket(SocketType::Rep)?, context.socket(SocketType::Req)?);
/// rep.set_wire_protocol(1)?;
/// req.set_wire_protocol(1)?;
/// req.connect(&rep.bind("tcp://127.0.0.1:*")?)?;
/// let (one, other) = (req.open_context()?, req.open_context()?);
/// one.send("1", Wait::Forever)?;
/// other.send("2", Wait::Forever)?;
/// for _ in 0..2 {
///     let request = rep.recv(Wait::Forever)?;
///     rep.send(request, Wait::Forever)?;
/// }
/// assert_eq!(other.recv(Wait::Forever)?, Message::from("2"));
/// assert_eq!(one.recv(Wait::Forever)?, Message::from("1"));
/// # Ok(())
/// # }
/// ```
pub struct SocketContext {
    socket: Socket,
    number: u64,
    /// Changes under the socket's lock.
    closed: AtomicBool,
}

impl Socket {
    /// Opens a context.
    ///
    /// # Errors
    /// `NotSupported` unless this is a SURVEYOR, a RESPONDENT, or a REQ or REP with WIRE_PROTOCOL 1; `Terminated`,
    /// `NotSocket`.
    pub fn open_context(&self) -> Result<SocketContext> {
        let core = self.core();
        let mut state = core.lock_open()?;
        let number = state.contexts + 1;
        let has_contexts = state.pattern.enter(number);
        state.pattern.enter(0);
        if !has_contexts {
            let text = format!(
                "a {} socket has no contexts; SURVEYOR and RESPONDENT have, and REQ and REP with WIRE_PROTOCOL 1",
                core.spec().socket_type
            );
            return Err(Error::with(ErrorKind::NotSupported, text));
        }
        state.contexts = number;
        Ok(SocketContext {
            socket: self.clone(),
            number,
            closed: AtomicBool::new(false),
        })
    }
}

impl SocketContext {
    /// The socket.
    pub fn socket(&self) -> &Socket {
        &self.socket
    }

    /// Sends a request or a survey, which replaces the last one of this context, or the answer to the question that it
    /// received last.
    ///
    /// # Errors
    /// As [`Socket::send`]; also `NotSocket` if this context is closed.
    pub fn send(
        &self,
        message: impl Into<Message>,
        wait: Wait,
    ) -> std::result::Result<(), SendError> {
        let mut message = message.into();
        let sent = self.repeat(Direction::Send, wait, |core, state| {
            core.send_in(state, self.number, &mut message)
        });
        sent.map_err(|error| SendError { message, error })
    }

    /// Receives the reply to the request of this context, an answer to its survey, or the next question.
    ///
    /// # Errors
    /// As [`Socket::recv`]; also `NotSocket` if this context is closed.
    pub fn recv(&self, wait: Wait) -> Result<Message> {
        self.repeat(Direction::Recv, wait, |core, state| {
            core.recv_in(state, self.number)
        })
    }

    /// Ends the conversation, and forgets its request or survey. Calls that wait in this context fail with `NotSocket`.
    pub fn close(&self) {
        // In a forked child, threads that do not exist there may hold the lock.
        if !self.socket.is_own_process() {
            return;
        }
        let core = self.socket.core();
        {
            let mut state = core.lock();
            if self.closed.swap(true, Ordering::Relaxed) {
                return;
            }
            let State { pattern, pipes, .. } = &mut *state;
            pattern.end_context(pipes, self.number);
            core.settle(&mut state);
            if core.spec().timed && !core.is_closed() {
                core.set_alarm(&mut state);
            }
        }
        core.signal.wake();
    }

    /// Whether it is closed.
    pub fn is_closed(&self) -> bool {
        self.closed.load(Ordering::Relaxed)
    }

    /// Calls `attempt` until it does not have to wait.
    fn repeat<T>(
        &self,
        direction: Direction,
        wait: Wait,
        mut attempt: impl FnMut(&Core, &mut State) -> Result<T>,
    ) -> Result<T> {
        let core = self.socket.core();
        let mut deadline = None;
        let mut timeout = None;
        let mut must_end = None;
        loop {
            let ticket = core.signal.ticket();
            {
                let mut state = core.lock_open()?;
                if self.is_closed() {
                    let text = "this context of a socket is closed";
                    return Err(Error::with(ErrorKind::NotSocket, text));
                }
                match attempt(core, &mut state) {
                    Err(error) if error.kind() == ErrorKind::Again => {
                        if wait == Wait::Dont && !core.take_in(&state) {
                            return Err(error);
                        }
                    }
                    other => return other,
                }
                if wait == Wait::Dont {
                    continue;
                }
                if deadline.is_none() {
                    timeout = match direction {
                        Direction::Send => state.options.sndtimeo,
                        Direction::Recv => state.options.rcvtimeo,
                    };
                    deadline = Some(limit(wait, timeout));
                }
                if let Some(woken) = must_end {
                    drop(state);
                    return Err(core.explained(ended(woken), direction, wait, timeout));
                }
                // Several contexts wait at a time, so the I/O thread reads.
                core.release_line(&state);
            }
            self.socket
                .wait(ticket, deadline.flatten())
                .map_err(|error| core.explained(error, direction, wait, timeout))?;
            must_end = Signal::must_end(deadline.flatten());
        }
    }
}

impl Drop for SocketContext {
    fn drop(&mut self) {
        self.close();
    }
}

impl Core {
    fn send_in(&self, state: &mut State, context: u64, message: &mut Message) -> Result<()> {
        self.begin_run(state);
        state.pattern.enter(context);
        let result = state.pattern.send(&mut state.pipes, message);
        state.pattern.enter(0);
        self.end_run(state, result.is_ok());
        result
    }

    fn recv_in(&self, state: &mut State, context: u64) -> Result<Message> {
        let mut message = Message::new();
        self.begin_run(state);
        state.pattern.enter(context);
        let result = state.pattern.recv(&mut state.pipes, &mut message);
        state.pattern.enter(0);
        self.end_run(state, result.is_ok());
        result.map(|_| message)
    }
}
