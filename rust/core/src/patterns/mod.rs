//! Messaging patterns: they decide which peers get a message, and which message is received next.
//!
//! A pattern sees pipes, never transports. It runs under its socket's lock and never blocks: an operation that is not
//! possible now returns `Again`, and the socket waits. A new pattern is one file that ends in a [`PatternSpec`] and one
//! line in [`PATTERNS`].
//!
//! The life of a pipe as a pattern sees it:
//!
//! | call | when |
//! |---|---|
//! | [`attach`](Pattern::attach) | the pipe exists; on the connecting side that is before the connection is up |
//! | [`ready`](Pattern::ready) | the handshake is done and `peer()` current; again after each reconnect |
//! | [`disconnected`](Pattern::disconnected) | the connection was lost, the pipe lives on |
//! | [`readable`](Pattern::readable), [`writable`](Pattern::writable) | a sleeping reader or a full writer should look again |
//! | [`detach`](Pattern::detach) | the far end closed and everything it sent was read, or the pattern dropped the pipe |

mod blocks;
mod claims;
mod distributor;
mod fair_queue;
mod headroom;
mod load_balancer;
mod notices;
mod pipe_set;
mod publisher;
#[cfg(test)]
mod rig;
mod ring;
mod router_table;
mod spec;
mod subscriber;

mod dealer;
mod pair;
mod publish;
mod pull;
mod push;
mod rep;
mod req;
mod router;
mod stream;
mod subscribe;
mod xpub;
mod xsub;

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;

use crate::error::{Error, ErrorKind, Result};
use crate::options::{Options, PatternOption};
pub use crate::patterns::pipe_set::{Counters, DropReason, PipeSet, Side};
pub use crate::patterns::spec::{Dialogue, PatternSpec};
use crate::pipe::PipeId;

/// The effect of returning a received message on sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// None, because the two directions are independent.
    None,
    /// It must be received again before anything is sent.
    Strict,
    /// It is discarded when another message is sent.
    Relaxed,
}

/// The behaviour of one socket type.
pub trait Pattern: Send {
    /// A pipe exists. On the connecting side its connection may not be up yet.
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The connection of the pipe completed its handshake, and `pipes.get(id).peer()` is current. SUB and XSUB send
    /// their subscriptions here, ROUTER learns the routing id, and probes and welcome messages are sent.
    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The connection was lost; the pipe lives on and will be ready again.
    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let _ = (pipes, id);
    }

    /// Messages may have arrived on a pipe whose `check_read` was false.
    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// There may be room in a pipe whose `check_write` was false.
    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The far end closed: nothing can be sent to it any more, but its earlier messages can still be read. `detach`
    /// follows once they are.
    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.writable(pipes, id);
    }

    /// The pipe is removed after this call.
    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// Sends a complete message, and leaves any remains to be dropped in `message`. The socket flushes afterwards.
    ///
    /// # Errors
    /// `Again` if it must wait; the pattern's own errors (`Fsm`, `HostUnreachable`, ...) otherwise. The message is then
    /// unchanged.
    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()>;

    /// Moves the next complete message into `message`, which is empty, and returns its pipe.
    ///
    /// # Errors
    /// `Again` if there is none; the pattern's own errors otherwise.
    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>>;

    /// Whether [`send`](Self::send) would not return `Again`, for POLLOUT.
    fn can_send(&mut self, pipes: &mut PipeSet) -> bool;

    /// Checks whether a message that begins with `head` could be sent now, as far as its first part shows.
    ///
    /// # Errors
    /// As for [`send`](Self::send).
    fn check_send(&mut self, pipes: &mut PipeSet, head: &Frame) -> Result<()> {
        let _ = head;
        if self.can_send(pipes) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Again))
        }
    }

    /// Whether [`recv`](Self::recv) would not return `Again`, for POLLIN.
    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool;

    /// The effect of returning a received message on sending.
    fn turns(&self) -> Turns {
        Turns::None
    }

    /// Whether the last received message can still be returned, because no later send has replaced it.
    fn takes_back(&self) -> bool {
        true
    }

    /// The pipes that get a message beginning with `topic`; an id may occur several times. `None` if this pattern has
    /// no subscriptions.
    fn subscribed(&mut self, pipes: &mut PipeSet, topic: &[u8]) -> Option<Vec<PipeId>> {
        let _ = (pipes, topic);
        None
    }

    /// Applies an option that concerns routing.
    ///
    /// # Errors
    /// `Invalid` if this pattern does not have the option.
    fn set(&mut self, pipes: &mut PipeSet, option: &PatternOption) -> Result<()> {
        let _ = (pipes, option);
        Err(Error::new(ErrorKind::Invalid))
    }

    /// Whether this peer is connected but not usable yet, because another peer has its routing id.
    fn is_waiting(&self, id: PipeId) -> bool {
        let _ = id;
        false
    }

    /// The id that precedes what this peer sends, where the pattern puts one there.
    fn route(&self, id: PipeId) -> Option<Bytes> {
        let _ = id;
        None
    }

    /// The routing id that the application chose for the peer of the current connect (CONNECT_ROUTING_ID), once.
    fn take_peer_name(&mut self) -> Option<Bytes> {
        None
    }

    /// The number of distinct subscribed topics (TOPICS_COUNT). `None` if this pattern has no topics.
    fn topics(&self) -> Option<usize> {
        None
    }

    /// The routing id that the pattern gave to its newest connection (STREAM's readable ROUTING_ID).
    fn newest_routing_id(&self) -> Option<Bytes> {
        None
    }
}

/// The behaviour of `socket_type`.
pub fn spec(socket_type: SocketType) -> Option<&'static PatternSpec> {
    PATTERNS
        .iter()
        .copied()
        .find(|spec| spec.socket_type == socket_type)
}

/// Whether CONFLATE has an effect on the messages that a socket with these options sends, and on those that it
/// receives. The other direction, for example subscriptions, is never conflated.
pub(crate) fn conflation(options: &Options) -> (bool, bool) {
    let spec = spec(options.socket_type).filter(|spec| options.conflate && spec.conflates);
    (
        spec.is_some_and(|spec| spec.can_send),
        spec.is_some_and(|spec| spec.can_recv),
    )
}

/// The type of the sockets that carry a monitor's events.
pub(crate) const FOR_EVENTS: SocketType = SocketType::Pair;

/// The type that the library shows to a ZAP handler, which it asks like a program would.
pub(crate) const FOR_QUESTIONS: SocketType = SocketType::Req;

/// All patterns.
pub static PATTERNS: &[&PatternSpec] = &[
    &pair::PAIR,
    &publish::PUB,
    &subscribe::SUB,
    &req::REQ,
    &rep::REP,
    &dealer::DEALER,
    &router::ROUTER,
    &pull::PULL,
    &push::PUSH,
    &xpub::XPUB,
    &xsub::XSUB,
    &stream::STREAM,
];

#[cfg(test)]
mod tests;
