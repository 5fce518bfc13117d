//! Sending and receiving in tasks of async programs, on any runtime.
//!
//! A task that would have to wait registers its waker with the socket's signal. Like a thread that is blocked in the
//! socket, it is woken by the next event of the socket.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use super::core::{Core, Locked};
use super::{SendError, Socket};
use crate::error::{ErrorKind, Result};
use crate::signal::{Place, own_place};

/// Receives one message: see [`Socket::recv_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Receiving<'a> {
    socket: &'a Socket,
    place: Place,
}

/// Sends one message: see [`Socket::send_async`].
#[derive(Debug)]
#[must_use = "futures do nothing unless polled"]
pub struct Sending<'a> {
    socket: &'a Socket,
    place: Place,
    message: Option<Message>,
}

impl Socket {
    /// Receives a message in a task, without blocking the thread. RCVTIMEO does not apply; use the timeout of the
    /// runtime.
    ///
    /// Dropping the future loses no message.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), except `Again` and `Interrupted`.
    pub fn recv_async(&self) -> Receiving<'_> {
        Receiving {
            socket: self,
            place: own_place(),
        }
    }

    /// Sends a message in a task, without blocking the thread. SNDTIMEO does not apply; use the timeout of the runtime.
    ///
    /// A future that is dropped before it is done has not sent its message. [`Sending::into_message`] returns that
    /// message.
    ///
    /// # Errors
    /// As [`send`](Self::send), except `Again` and `Interrupted`. The message is returned with the reason.
    pub fn send_async(&self, message: impl Into<Message>) -> Sending<'_> {
        Sending {
            socket: self,
            place: own_place(),
            message: Some(message.into()),
        }
    }

    /// Receives a message, or has the task woken when a message may have arrived. This is for code that is polled
    /// itself; elsewhere, [`recv_async`](Self::recv_async) is simpler.
    ///
    /// Any number of tasks may poll a socket. The waker is kept until the next event of the socket. It may be called in
    /// an I/O thread, and must not use the socket itself.
    ///
    /// # Errors
    /// As [`recv`](Self::recv), except `Again` and `Interrupted`.
    pub fn poll_recv(&self, context: &mut Context<'_>) -> Poll<Result<Message>> {
        self.poll_recv_at(Place::Task, context.waker())
    }

    /// Sends a message, or has the task woken when sending may be possible. On success, `message` is left empty;
    /// otherwise it is unchanged.
    ///
    /// The waker is kept as by [`poll_recv`](Self::poll_recv).
    ///
    /// # Errors
    /// As [`send`](Self::send), except `Again` and `Interrupted`.
    pub fn poll_send(&self, context: &mut Context<'_>, message: &mut Message) -> Poll<Result<()>> {
        self.poll_send_at(Place::Task, context.waker(), message)
    }

    /// Waits until there is room for a message, like [`await_room`](Self::await_room). The room is not reserved:
    /// another thread or task may use it first.
    ///
    /// The waker is kept as by [`poll_recv`](Self::poll_recv).
    ///
    /// # Errors
    /// As [`await_room`](Self::await_room), except `Again` and `Interrupted`.
    pub fn poll_send_ready(&self, context: &mut Context<'_>) -> Poll<Result<()>> {
        self.poll_send_ready_at(Place::Task, context.waker())
    }

    pub(super) fn poll_recv_at(&self, place: Place, waker: &Waker) -> Poll<Result<Message>> {
        let mut message = Message::new();
        self.poll_at(place, waker, |core, state| {
            core.recv_now(state, &mut message).map(drop)
        })
        .map_ok(|()| message)
    }

    pub(super) fn poll_send_at(
        &self,
        place: Place,
        waker: &Waker,
        message: &mut Message,
    ) -> Poll<Result<()>> {
        self.poll_at(place, waker, |core, state| {
            core.send_now(state, message)?;
            *message = Message::new();
            Ok(())
        })
    }

    pub(super) fn poll_send_ready_at(&self, place: Place, waker: &Waker) -> Poll<Result<()>> {
        self.poll_at(place, waker, |core, state| {
            match core.check_send_now(state, &Frame::new()) {
                Err(error) if error.kind() == ErrorKind::HostUnreachable => Ok(()),
                other => other,
            }
        })
    }

    /// Makes attempts until one succeeds or fails, or until the task is registered for the next event.
    fn poll_at(
        &self,
        place: Place,
        waker: &Waker,
        mut attempt: impl FnMut(&Core, &mut Locked<'_>) -> Result<()>,
    ) -> Poll<Result<()>> {
        let core = self.core();
        loop {
            let ticket = core.signal.ticket();
            let result = match core.lock_open() {
                Ok(mut state) => attempt(core, &mut state),
                Err(error) => Err(error),
            };
            match result {
                Err(error) if error.kind() == ErrorKind::Again => {}
                other => {
                    self.vacate(place);
                    return Poll::Ready(other);
                }
            }
            let is_current = core.signal.enlist(place, waker, ticket);
            // A thread that read from the connection itself may have left it unread until the next call that blocks.
            self.release_line();
            if is_current {
                return Poll::Pending;
            }
        }
    }

    /// Stops waking the task of `place`.
    pub(super) fn vacate(&self, place: Place) {
        // In a forked child, threads that do not exist there may hold the signal's lock.
        if place != Place::Task && self.is_own_process() {
            self.core().signal.delist(place);
        }
    }
}

impl Sending<'_> {
    /// Gives up, and returns the message, or `None` if the future is done.
    pub fn into_message(mut self) -> Option<Message> {
        self.message.take()
    }
}

impl Future for Receiving<'_> {
    type Output = Result<Message>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<Message>> {
        self.socket.poll_recv_at(self.place, context.waker())
    }
}

impl Future for Sending<'_> {
    type Output = std::result::Result<(), SendError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        let mut message = self.message.take().expect("polled after completion");
        let polled = self
            .socket
            .poll_send_at(self.place, context.waker(), &mut message);
        match polled {
            Poll::Pending => {
                self.message = Some(message);
                Poll::Pending
            }
            Poll::Ready(result) => {
                Poll::Ready(result.map_err(|error| SendError { message, error }))
            }
        }
    }
}

impl Drop for Receiving<'_> {
    fn drop(&mut self) {
        self.socket.vacate(self.place);
    }
}

impl Drop for Sending<'_> {
    fn drop(&mut self) {
        self.socket.vacate(self.place);
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::task::Wake;
    use std::thread;

    use zeroxide_proto::socket_type::SocketType;

    use super::*;

    /// Drops its socket instead of running a task, as executors do after their end.
    struct Drops(Mutex<Option<Socket>>);

    impl Wake for Drops {
        fn wake(self: Arc<Self>) {
            drop(self.0.lock().unwrap().take());
        }
    }

    #[test]
    fn a_waker_may_drop_the_last_handle_of_a_locked_socket() {
        let context = crate::context::Context::new();
        let socket = context.socket(SocketType::Pull).unwrap();
        let core = socket.core().arc().unwrap();
        let waker = Arc::new(Drops(Mutex::default()));
        let polled = socket.poll_recv(&mut Context::from_waker(&waker.clone().into()));
        assert!(polled.is_pending());
        *waker.0.lock().unwrap() = Some(socket);
        let locked = core.lock();
        core.signal.wake();
        assert!(waker.0.lock().unwrap().is_none());
        drop(locked);
        while !core.is_closed() {
            thread::yield_now();
        }
        context.term().unwrap();
    }
}
