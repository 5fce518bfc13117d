//! Messages that a socket sends or receives of its own accord when connections begin and end.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;

use super::Options;

impl Options {
    /// The first messages to a peer.
    pub(crate) fn greetings(&self) -> impl Iterator<Item = Message> {
        let probes = self.probe_router.load(Ordering::Relaxed);
        let probe = probes.then(|| Message::single(Frame::new()));
        let greetings = probe.into_iter().chain(said(&self.hello_msg));
        greetings.filter(|_| !self.is_raw())
    }

    /// The last message from a peer that had connected to this socket.
    pub(crate) fn on_left(&self) -> Option<Message> {
        said(&self.disconnect_msg)
    }

    /// The message after the loss of a connection that this socket has made, and makes again.
    pub(crate) fn on_lost(&self) -> Option<Message> {
        said(&self.hiccup_msg)
    }
}

fn said(body: &Bytes) -> Option<Message> {
    (!body.is_empty()).then(|| Message::single(Frame::from_bytes(body.clone())))
}
