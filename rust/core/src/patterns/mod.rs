//! Messaging patterns: who gets a message, and whose message is next.
//!
//! A pattern sees pipes, never transports. It runs under its socket's lock and never blocks: what cannot be done now is
//! answered with `Again`, and the socket waits. Adding a pattern is one file that ends in a [`PatternSpec`] and one line
//! in [`PATTERNS`].
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
use crate::pipe::PipeId;

/// What a message that was received and given back means for sending.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Turns {
    /// Nothing: the two directions have nothing to do with each other.
    None,
    /// It has to be received first.
    Strict,
    /// It is forgotten once another one is sent.
    Relaxed,
}

/// The behaviour of one socket type.
pub trait Pattern: Send {
    /// A pipe exists. On the connecting side its connection may not be up yet.
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The connection behind the pipe finished its handshake; `pipes.get(id).peer()` is current. SUB and XSUB send
    /// their subscriptions here, ROUTER learns the routing id, a probe or a welcome goes out.
    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The connection was lost; the pipe lives on and will be ready again.
    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let _ = (pipes, id);
    }

    /// Messages may have arrived on a pipe whose `check_read` was false.
    fn readable(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// There may be room in a pipe whose `check_write` was false.
    fn writable(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The far end closed: nothing can be sent to it any more, what it sent before can still be read. `detach` follows
    /// once that is drained.
    fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
        self.writable(pipes, id);
    }

    /// The pipe is removed right after this call.
    fn detach(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// Sends a whole message, and leaves of it what is to be dropped. The socket flushes afterwards.
    ///
    /// # Errors
    /// `Again` when it must wait; the pattern's own (`Fsm`, `HostUnreachable`, ...) otherwise. The message is as it was then.
    fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()>;

    /// Puts the next whole message into `message`, which is new, and says which pipe it came from.
    ///
    /// # Errors
    /// `Again` when nothing is there; the pattern's own otherwise.
    fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>>;

    /// Whether [`send`](Self::send) would not answer `Again` (what POLLOUT says).
    fn can_send(&mut self, pipes: &mut PipeSet) -> bool;

    /// Whether a message that begins with `head` could be sent now, as far as its first part shows.
    ///
    /// # Errors
    /// As [`send`](Self::send).
    fn check_send(&mut self, pipes: &mut PipeSet, head: &Frame) -> Result<()> {
        let _ = head;
        if self.can_send(pipes) {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::Again))
        }
    }

    /// Whether [`recv`](Self::recv) would not answer `Again` (what POLLIN says).
    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool;

    /// What a message that was received and given back means for sending.
    fn turns(&self) -> Turns {
        Turns::None
    }

    /// Whether what was received last can still be given back: nothing was sent since that took its place.
    fn takes_back(&self) -> bool {
        true
    }

    /// Who gets a message that begins with `topic`; an id may come several times. `None` if nobody subscribes to this
    /// pattern.
    fn subscribed(&mut self, pipes: &mut PipeSet, topic: &[u8]) -> Option<Vec<PipeId>> {
        let _ = (pipes, topic);
        None
    }

    /// Applies an option that concerns routing.
    ///
    /// # Errors
    /// `Invalid` for an option this pattern does not have.
    fn set(&mut self, pipes: &mut PipeSet, option: &PatternOption) -> Result<()> {
        let _ = (pipes, option);
        Err(Error::new(ErrorKind::Invalid))
    }

    /// Whether this peer is connected and yet not there for the application: somebody else has its routing id.
    fn is_waiting(&self, id: PipeId) -> bool {
        let _ = id;
        false
    }

    /// What the application wants the peer of the connect that is being made to be called (CONNECT_ROUTING_ID), once.
    fn take_peer_name(&mut self) -> Option<Bytes> {
        None
    }

    /// How many different topics are subscribed to (TOPICS_COUNT). `None` if this pattern has no topics.
    fn topics(&self) -> Option<usize> {
        None
    }

    /// The routing id that the pattern gave to the newest connection it made (STREAM's readable ROUTING_ID).
    fn newest_routing_id(&self) -> Option<Bytes> {
        None
    }
}

/// One row of [`PATTERNS`].
pub struct PatternSpec {
    /// Which socket type this is.
    pub socket_type: SocketType,
    /// Makes the pattern's state for one socket.
    pub new: fn() -> Box<dyn Pattern>,
    /// Whether the type can send at all; if not, sending is `NotSupported`.
    pub can_send: bool,
    /// Whether the type can receive at all; if not, receiving is `NotSupported`.
    pub can_recv: bool,
    /// Whether CONFLATE has an effect on this type: on what it sends if it can send, on what it receives if it can
    /// receive. The other direction of a PUB or SUB carries subscriptions, each of which counts.
    pub conflates: bool,
    /// Whether a second connect to the same endpoint is a silent success without a second connection.
    pub single_connect: bool,
    /// Whether what arrives must be looked at even while the application makes no call: subscriptions, which hold for
    /// one connection. Where the next one uses the same pipe, a mark lies between the two
    /// ([`is_lapse`](crate::pipe::is_lapse)).
    pub eager: bool,
}

/// The behaviour of `socket_type`.
pub fn spec(socket_type: SocketType) -> Option<&'static PatternSpec> {
    PATTERNS
        .iter()
        .copied()
        .find(|spec| spec.socket_type == socket_type)
}

/// Whether CONFLATE has an effect on what a socket with these options sends, and on what it receives. What goes the other
/// way, such as subscriptions, is never conflated.
pub(crate) fn conflation(options: &Options) -> (bool, bool) {
    let spec = spec(options.socket_type).filter(|spec| options.conflate && spec.conflates);
    (
        spec.is_some_and(|spec| spec.can_send),
        spec.is_some_and(|spec| spec.can_recv),
    )
}

/// Every pattern there is.
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
