//! Sockets as `Stream` and `Sink`, for programs that use the combinators of the crate `futures`.

use std::pin::Pin;
use std::task::{Context, Poll, ready};

use futures_core::{FusedStream, Stream};
use futures_sink::Sink;
use zeroxide_proto::message::Message;

use super::{SendError, Socket};
use crate::error::{ErrorKind, Result};
use crate::signal::{Place, own_place};

/// The messages of a socket as they arrive: see [`Socket::stream`].
#[derive(Debug)]
#[must_use = "streams do nothing unless polled"]
pub struct MessageStream {
    socket: Socket,
    place: Place,
    is_over: bool,
}

/// Sends messages to a socket: see [`Socket::sink`].
#[derive(Debug)]
#[must_use = "sinks do nothing unless polled"]
pub struct MessageSink {
    socket: Socket,
    place: Place,
    /// A message that was accepted, but not sent yet. The next poll sends it.
    next: Option<Message>,
}

impl Socket {
    /// Returns the messages of this socket as a stream. The stream ends after the error `Terminated` or `NotSocket`,
    /// when the context is shut down or the socket is closed. Other errors do not end it. There may be several streams,
    /// and each message goes to one of them.
    pub fn stream(&self) -> MessageStream {
        MessageStream {
            socket: self.clone(),
            place: own_place(),
            is_over: false,
        }
    }

    /// Returns a sink that sends its items as messages. The sink holds at most one message until it is flushed. Closing
    /// the sink flushes it, but leaves the socket open.
    pub fn sink(&self) -> MessageSink {
        MessageSink {
            socket: self.clone(),
            place: own_place(),
            next: None,
        }
    }
}

impl MessageSink {
    /// Returns the message that the sink has accepted but not sent.
    pub fn into_message(mut self) -> Option<Message> {
        self.next.take()
    }
}

impl Stream for MessageStream {
    type Item = Result<Message>;

    fn poll_next(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Message>>> {
        if self.is_over {
            return Poll::Ready(None);
        }
        let received = ready!(self.socket.poll_recv_at(self.place, context.waker()));
        if let Err(error) = &received {
            self.is_over = matches!(error.kind(), ErrorKind::Terminated | ErrorKind::NotSocket);
        }
        Poll::Ready(Some(received))
    }
}

impl FusedStream for MessageStream {
    fn is_terminated(&self) -> bool {
        self.is_over
    }
}

impl<M: Into<Message>> Sink<M> for MessageSink {
    type Error = SendError;

    fn poll_ready(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::result::Result<(), SendError>> {
        <Self as Sink<M>>::poll_flush(self, context)
    }

    fn start_send(mut self: Pin<&mut Self>, item: M) -> std::result::Result<(), SendError> {
        assert!(
            self.next.is_none(),
            "start_send was called before poll_ready succeeded"
        );
        self.next = Some(item.into());
        Ok(())
    }

    fn poll_flush(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::result::Result<(), SendError>> {
        let Some(mut message) = self.next.take() else {
            return Poll::Ready(Ok(()));
        };
        let polled = self
            .socket
            .poll_send_at(self.place, context.waker(), &mut message);
        match polled {
            Poll::Pending => {
                self.next = Some(message);
                Poll::Pending
            }
            Poll::Ready(result) => {
                Poll::Ready(result.map_err(|error| SendError { message, error }))
            }
        }
    }

    fn poll_close(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<std::result::Result<(), SendError>> {
        <Self as Sink<M>>::poll_flush(self, context)
    }
}

impl Drop for MessageStream {
    fn drop(&mut self) {
        self.socket.vacate(self.place);
    }
}

impl Drop for MessageSink {
    fn drop(&mut self) {
        self.socket.vacate(self.place);
    }
}
