//! Messaging patterns: they decide which peers get a message, and which message is received next.
//!
//! A pattern sees pipes, never transports: a [`PipeSet`] has one pipe for each peer of the socket. A new pattern of this
//! library is one file that ends in a [`PatternSpec`], and one line in `PATTERNS`. A pattern of another crate is added to
//! a context with [`Context::add_pattern`](crate::Context::add_pattern). Such sockets then have all that others have:
//! every transport and mechanism, high-water marks, waiting, polling, async calls, statistics and monitors.
//!
//! # A pattern of your own
//!
//! The sockets of this pattern send each message to the next peer that has room, like PUSH, and accept messages from any
//! of them. It consists of building blocks: a [`LoadBalancer`] chooses the peer to send to, a [`FairQueue`] the message
//! to receive, and a [`Distributor`] would send a message to many peers.
//!
//! ```
//! use zeroxide::patterns::{
//!     FairQueue, LoadBalancer, Pattern, PatternSpec, PipeId, PipeSet, Priority, Rig, TypeFacts,
//! };
//! use zeroxide::{Context, Error, ErrorKind, Message, Result, SocketType, Wait};
//!
//! /// The name for peers, the number for programs, and the types that it may talk to.
//! static FACTS: TypeFacts = TypeFacts::new("WORKER", 200, || &[WORKER]);
//! const WORKER: SocketType = SocketType::Other(&FACTS);
//! static SPEC: PatternSpec = PatternSpec::new(WORKER, || Box::new(Worker::default()));
//!
//! #[derive(Default)]
//! struct Worker {
//!     outbound: LoadBalancer,
//!     inbound: FairQueue,
//! }
//!
//! impl Pattern for Worker {
//!     fn set_priority(&mut self, id: PipeId, priority: Priority) {
//!         self.outbound.set_priority(id, priority.send);
//!         self.inbound.set_priority(id, priority.recv);
//!     }
//!
//!     fn attach(&mut self, _: &mut PipeSet, id: PipeId) {
//!         self.outbound.insert(id);
//!         self.inbound.insert(id);
//!     }
//!
//!     fn ready(&mut self, _: &mut PipeSet, _: PipeId) {}
//!
//!     fn readable(&mut self, _: &mut PipeSet, id: PipeId) {
//!         self.inbound.insert(id);
//!     }
//!
//!     fn writable(&mut self, pipes: &mut PipeSet, id: PipeId) {
//!         self.outbound.writable(pipes, id);
//!     }
//!
//!     fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
//!         self.outbound.hung_up(pipes, id);
//!     }
//!
//!     fn far_closed(&mut self, pipes: &mut PipeSet, id: PipeId) {
//!         self.outbound.remove(id);
//!         self.inbound.far_closed(pipes, id);
//!     }
//!
//!     fn detach(&mut self, _: &mut PipeSet, id: PipeId) {
//!         self.outbound.remove(id);
//!         self.inbound.remove(id);
//!     }
//!
//!     fn send(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<()> {
//!         self.outbound.send(pipes, message)
//!     }
//!
//!     fn recv(&mut self, pipes: &mut PipeSet, message: &mut Message) -> Result<Option<PipeId>> {
//!         match self.inbound.recv_to(pipes, message) {
//!             Some(id) => Ok(Some(id)),
//!             None => Err(Error::new(ErrorKind::Again)),
//!         }
//!     }
//!
//!     fn can_send(&mut self, pipes: &mut PipeSet) -> bool {
//!         self.outbound.can_send(pipes)
//!     }
//!
//!     fn can_recv(&mut self, pipes: &mut PipeSet) -> bool {
//!         self.inbound.can_recv(pipes)
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let context = Context::new();
//! context.add_pattern(&SPEC)?;
//! let (one, other) = (context.socket(WORKER)?, context.socket(WORKER)?);
//! other.connect(&one.bind("tcp://127.0.0.1:*")?)?;
//! other.send("a job", Wait::Forever)?;
//! assert_eq!(one.recv(Wait::Forever)?, Message::from("a job"));
//!
//! // Without sockets, threads or time:
//! let mut rig = Rig::new(&SPEC);
//! let (first, second) = (rig.accept(""), rig.accept(""));
//! for job in ["1", "2", "3"] {
//!     rig.send([job]).unwrap();
//! }
//! assert_eq!(rig.far_recv_all(first), ["1", "3"]);
//! assert_eq!(rig.far_recv_all(second), ["2"]);
//! rig.far_send(second, ["done"]);
//! rig.settle();
//! assert_eq!(rig.recv_from().unwrap(), (vec!["done".to_owned()], Some(second)));
//! # Ok(())
//! # }
//! ```
//!
//! [`Rig`] is for tests, because most of the behaviour of a pattern can be tested without a socket.
//!
//! # Rules
//!
//! * A pattern runs under its socket's lock, in threads of the application and in I/O threads. It must not block, use the
//!   socket or another socket, or take long.
//! * An operation that is not possible now returns `Again`, and the socket waits and asks again. For a peer without room,
//!   the pattern may instead drop the message and count it with [`PipeSet::count_drop`]: every lost message has a
//!   [`DropReason`].
//! * A pipe that had no message ([`PipeSet::check_read`] was false) or no room ([`PipeSet::check_write`] was false) is
//!   not asked again before `readable` or `writable` is called for it.
//! * A pipe whose far end has closed is read to its end. The socket then detaches it.
//! * The pattern keeps nothing about a pipe after `detach`. The ids of pipes are not used again.
//! * A peer may send anything, at any rate: nothing that a pattern keeps may grow without bound because of it, and no call
//!   may last as long as the peer sends. A pattern that reads messages without returning them reports that with
//!   [`PipeSet::drop_read`] or [`PipeSet::spend`]. When one of these returns false, the call returns as if there were no
//!   message.
//! * The types that a [`TypeFacts`] lists as peers must list it, too. Numbers below 32 are ZeroMQ's.
//!
//! # The life of a pipe
//!
//! | call | when |
//! |---|---|
//! | [`set_priority`](Pattern::set_priority) | before `attach`, if the pipe has other priorities than the default, and when they change |
//! | [`attach`](Pattern::attach) | the pipe exists; on the connecting side that is before the connection is up |
//! | [`ready`](Pattern::ready) | the handshake is done and [`PipeSet::peer`] current; again after each reconnect |
//! | [`disconnected`](Pattern::disconnected) | the connection was lost, the pipe lives on |
//! | [`readable`](Pattern::readable), [`writable`](Pattern::writable) | a sleeping reader or a full writer should look again |
//! | [`detach`](Pattern::detach) | the far end closed and everything it sent was read, or the pattern dropped the pipe |

mod blocks;
mod claims;
mod distributor;
mod draining;
mod drops;
mod fair_queue;
mod headroom;
mod known;
mod lag;
mod load_balancer;
mod notices;
mod pipe_set;
mod priority;
mod publisher;
mod rig;
mod ring;
mod router_table;
mod sieve;
mod single_part;
mod spec;
mod subscriber;

mod channel;
mod client;
mod dealer;
mod dgram;
mod dish;
mod gather;
mod pair;
mod peer;
mod publish;
mod pull;
mod push;
mod radio;
mod rep;
mod req;
mod router;
mod scatter;
mod server;
mod sp;
mod stream;
mod subscribe;
mod xpub;
mod xsub;

use std::time::Instant;

use bytes::Bytes;
use zeroxide_proto::frame::Frame;
use zeroxide_proto::message::Message;
use zeroxide_proto::socket_type::SocketType;
pub use zeroxide_proto::socket_type::TypeFacts;

use crate::error::{Error, ErrorKind, Result};
pub use crate::options::{PatternOption, SlowSubscriber};
pub(crate) use crate::patterns::dgram::address as datagram_address;
pub use crate::patterns::distributor::Distributor;
pub(crate) use crate::patterns::draining::{Next, drain};
pub(crate) use crate::patterns::drops::DoomReason;
pub use crate::patterns::drops::{Counters, DropReason};
pub use crate::patterns::fair_queue::FairQueue;
pub(crate) use crate::patterns::known::Patterns;
pub use crate::patterns::load_balancer::LoadBalancer;
pub(crate) use crate::patterns::pipe_set::Overflow;
pub use crate::patterns::pipe_set::{PipeSet, Side, Spills, effort};
pub(crate) use crate::patterns::priority::PRIORITIES;
pub use crate::patterns::priority::Priority;
pub use crate::patterns::rig::{Rejected, Rig};
pub(crate) use crate::patterns::single_part::several_parts;
pub use crate::patterns::spec::{Dialogue, PatternSpec};
pub use crate::pipe::PipeId;
use crate::undelivered::UndeliveredPeer;

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

/// The behaviour of one socket type: see the [module](self).
///
/// The methods from [`turns`](Self::turns) on are for peculiarities of ZeroMQ's own types. Most patterns keep their
/// defaults.
pub trait Pattern: Send {
    /// A pipe exists. On the connecting side its connection may not be up yet.
    fn attach(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// Other priorities than the default apply to the pipe: 1 is the best, 16 the last. This is called before `attach`, and
    /// again when they change. Patterns that choose a peer pass them on to their [`LoadBalancer`] and [`FairQueue`].
    fn set_priority(&mut self, id: PipeId, priority: Priority) {
        let _ = (id, priority);
    }

    /// The connection of the pipe completed its handshake, and [`PipeSet::peer`] is current. SUB and XSUB send
    /// their subscriptions here, ROUTER learns the routing id, and XPUB sends its welcome message.
    fn ready(&mut self, pipes: &mut PipeSet, id: PipeId);

    /// The connection was lost; the pipe lives on and will be ready again.
    fn disconnected(&mut self, pipes: &mut PipeSet, id: PipeId) {
        let _ = (pipes, id);
    }

    /// The peer has hung up and can be sent nothing more, but messages that it sent still wait for room in the pipe.
    /// `disconnected` or `far_closed` follows when they were read.
    fn hung_up(&mut self, pipes: &mut PipeSet, id: PipeId) {
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

    /// The far end has withdrawn the messages that it sent and that were not read. `far_closed` follows.
    fn withdrawn(&mut self, pipes: &mut PipeSet, id: PipeId) {
        pipes.discard(id, DropReason::Stale);
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

    /// Continues what an earlier call did not finish because of [`PipeSet::spend`]. This is for patterns that read messages
    /// without being asked to receive.
    fn go_on(&mut self, pipes: &mut PipeSet) {
        let _ = pipes;
    }

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

    /// An error of [`recv`](Self::recv) did not reach the application, and has to be returned again.
    fn put_off(&mut self, error: Error) {
        let _ = error;
    }

    /// Whether [`recv`](Self::recv) would not return `Again`, for POLLIN.
    fn can_recv(&mut self, pipes: &mut PipeSet) -> bool;

    /// The socket closes. Gives up a message that has no pipe: its peer left before it arrived, and no other peer has come
    /// to take it. The socket counts and reports it.
    fn abandon(&mut self) -> Option<UndeliveredPeer> {
        None
    }

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

    /// The same, for a peer that has it again when it returns.
    fn own_name(&self, id: PipeId) -> Option<Bytes> {
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

    /// The number by which messages are sent to this peer, as their routing id, if the pattern numbers its peers.
    fn peer_number(&self, id: PipeId) -> Option<u32> {
        let _ = id;
        None
    }

    /// The peer with this number.
    fn peer_numbered(&self, number: u32) -> Option<PipeId> {
        let _ = number;
        None
    }

    /// Joins a group.
    ///
    /// # Errors
    /// `NotSupported` if the pattern has no groups, `Invalid` if the group is already joined or its name is invalid.
    fn join(&mut self, pipes: &mut PipeSet, group: &[u8]) -> Result<()> {
        let _ = (pipes, group);
        Err(Error::new(ErrorKind::NotSupported))
    }

    /// Leaves a group.
    ///
    /// # Errors
    /// `NotSupported` if the pattern has no groups, `Invalid` if the group is not joined.
    fn leave(&mut self, pipes: &mut PipeSet, group: &[u8]) -> Result<()> {
        let _ = (pipes, group);
        Err(Error::new(ErrorKind::NotSupported))
    }

    /// When [`handle_timeout`](Self::handle_timeout) is due; `None` if no deadline is set. If [`PatternSpec::timed`] is set,
    /// this is asked after an option was set, and after each call that has succeeded if sending and receiving alternate.
    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    /// Deadlines up to `now` have passed. This may come late.
    fn handle_timeout(&mut self, pipes: &mut PipeSet, now: Instant) {
        let _ = (pipes, now);
    }

    /// The calls from now on belong to this context of the socket; 0 is the socket itself. Returns false if the pattern
    /// has no contexts.
    fn enter(&mut self, context: u64) -> bool {
        context == 0
    }

    /// A context has ended.
    fn end_context(&mut self, pipes: &mut PipeSet, context: u64) {
        let _ = (pipes, context);
    }

    /// The routing id that the pattern gave to its newest connection (STREAM's readable ROUTING_ID).
    fn newest_routing_id(&self) -> Option<Bytes> {
        None
    }
}

/// The type of the sockets that carry a monitor's events.
pub(crate) const FOR_EVENTS: SocketType = SocketType::Pair;

/// The type of the socket that answers observers.
pub(crate) const FOR_ANSWERS: SocketType = SocketType::Rep;

/// The type that the library shows to a ZAP handler, which it asks like a program would.
pub(crate) const FOR_QUESTIONS: SocketType = SocketType::Req;

/// The patterns of the library.
pub(crate) static PATTERNS: &[&PatternSpec] = &[
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
    &server::SERVER,
    &client::CLIENT,
    &radio::RADIO,
    &dish::DISH,
    &gather::GATHER,
    &scatter::SCATTER,
    &dgram::DGRAM,
    &peer::PEER,
    &channel::CHANNEL,
    &sp::SURVEYOR,
    &sp::RESPONDENT,
    &sp::BUS,
];

/// The patterns that take the place of those of the same name when a socket speaks another wire protocol. Those
/// whose messages may have several parts can do without: `spec` then derives a pattern.
static OVER_OTHERS: &[&PatternSpec] = &[
    &sp::PAIR,
    &sp::PUB,
    &sp::SUB,
    &sp::REQ,
    &sp::REP,
    &sp::PUSH,
    &sp::PULL,
];

#[cfg(test)]
mod tests;
