//! Socket events: what they are called, what they carry, and how libzmq's programs expect them on the wire.

use bytes::{BufMut, BytesMut};
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

/// What happened. The discriminants are libzmq's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u16)]
pub enum EventKind {
    /// A connection was made; the value is its descriptor.
    Connected = 0x1,
    /// A connect could not be finished at once and goes on in the background.
    ConnectDelayed = 0x2,
    /// The next attempt comes after this many ms.
    ConnectRetried = 0x4,
    /// A listener is up; the value is its descriptor.
    Listening = 0x8,
    /// Binding failed; the value is the errno.
    BindFailed = 0x10,
    /// A connection was accepted; the value is its descriptor.
    Accepted = 0x20,
    /// Accepting failed; the value is the errno.
    AcceptFailed = 0x40,
    /// A descriptor was closed on purpose.
    Closed = 0x80,
    /// Closing failed; the value is the errno.
    CloseFailed = 0x100,
    /// An established connection ended.
    Disconnected = 0x200,
    /// This monitor ends.
    MonitorStopped = 0x400,
    /// A handshake failed without a reason of the protocol's; the value is an errno.
    HandshakeFailedNoDetail = 0x800,
    /// A handshake is done.
    HandshakeSucceeded = 0x1000,
    /// A handshake broke the protocol; the value is one of libzmq's protocol error codes.
    HandshakeFailedProtocol = 0x2000,
    /// A handshake was refused; the value is the status: 300, 400 or 500.
    HandshakeFailedAuth = 0x4000,
}

/// One event of a socket.
#[derive(Clone, Debug)]
pub struct MonitorEvent {
    /// What happened.
    pub kind: EventKind,
    /// What `kind` says that it is.
    pub value: u64,
    /// The endpoint it happened to.
    pub endpoint: String,
    /// The reason in words, where there is one.
    pub reason: Option<String>,
}

impl MonitorEvent {
    /// An event without a reason.
    pub fn new(kind: EventKind, value: u64, endpoint: &str) -> MonitorEvent {
        MonitorEvent {
            kind,
            value,
            endpoint: endpoint.to_owned(),
            reason: None,
        }
    }

    /// Adds the reason in words.
    pub fn because(mut self, reason: impl ToString) -> MonitorEvent {
        self.reason = Some(reason.to_string());
        self
    }

    /// The two frames of event format 1: six packed bytes in host order, then the endpoint.
    pub fn to_message(&self) -> Message {
        let mut head = BytesMut::with_capacity(6);
        head.put_slice(&(self.kind as u16).to_ne_bytes());
        head.put_slice(&(self.value as u32).to_ne_bytes());
        Message::from_frames([
            Frame::copy_from(&head),
            Frame::copy_from(self.endpoint.as_bytes()),
        ])
    }
}
