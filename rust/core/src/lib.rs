//! ZeroMQ written anew in Rust: sockets that carry complete messages in patterns, over tcp, TLS, WebSocket, ipc, inproc,
//! udp, PGM, vsock, tipc and sctp.
//!
//! This page is a short manual: [quick start](#quick-start), [messages](#messages), [patterns](#patterns),
//! [options](#options), [waiting](#waiting), [errors](#errors), [shutdown](#shutdown), [async](#async) and
//! [extensions](#extensions).
//!
//! # Quick start
//!
//! ```
//! use zeroxide::{Context, SocketType, Wait};
//!
//! # fn main() -> zeroxide::Result<()> {
//! let context = Context::new();
//! let pull = context.socket(SocketType::Pull)?;
//! let endpoint = pull.bind("tcp://127.0.0.1:*")?;
//! let push = context.socket(SocketType::Push)?;
//! push.connect(&endpoint)?;
//! push.send("Hello", Wait::Forever)?;
//! assert_eq!(pull.recv(Wait::Forever)?.head().as_slice(), b"Hello");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Context`] owns the I/O threads, and one is enough for a program. A [`Socket`] may [`bind`](Socket::bind) and
//! [`connect`](Socket::connect) to any number of endpoints, in any order: connections are made in the background, and
//! made again when they are lost.
//!
//! | endpoint | reaches |
//! | --- | --- |
//! | `tcp://127.0.0.1:5555`, `tcp://[::1]:5555`, `tcp://host:5555` | any machine. To bind, `*` stands for every address, or for a free port |
//! | `ipc:///tmp/name`, `ipc://@name` | processes of this machine, through a path or an abstract name |
//! | `inproc://name` | sockets of the same context |
//! | `tls+tcp://host:5555`, `ws://host:5555/path`, `wss://host:5555/path` | any machine, with TLS, over WebSocket, or both |
//!
//! Clones of a socket are the same socket, and any thread may use any of them. A child of `fork` needs a context of its
//! own.
//!
//! # Messages
//!
//! A [`Message`] is one or more [`Frame`]s, which arrive together or not at all. Small bodies are stored in the frame,
//! large ones are shared and not copied. [`Socket::send`] takes all that converts into a message: text, bytes,
//! [`bytes::Bytes`], a frame, or an array or a vector of these for a message of several frames.
//!
//! ```
//! # use zeroxide::{Context, SocketType, Wait};
//! # fn main() -> zeroxide::Result<()> {
//! # let context = Context::new();
//! # let pull = context.socket(SocketType::Pull)?;
//! # let push = context.socket(SocketType::Push)?;
//! # push.connect(&pull.bind("inproc://messages")?)?;
//! push.send(["header", "body"], Wait::Forever)?;
//! push.send(vec![0u8; 1 << 20], Wait::Forever)?;
//!
//! let message = pull.recv(Wait::Forever)?;
//! let frames: Vec<&[u8]> = message.iter().map(|frame| frame.as_slice()).collect();
//! assert_eq!(frames, [b"header".as_slice(), b"body"]);
//! assert_eq!(pull.recv(Wait::Forever)?.into_head().into_bytes().len(), 1 << 20);
//! # Ok(())
//! # }
//! ```
//!
//! [`send_batch`](Socket::send_batch) and [`recv_batch`](Socket::recv_batch) move many messages with one call;
//! [`recv_from`](Socket::recv_from) also returns the peer.
//!
//! # Patterns
//!
//! The [`SocketType`] decides who gets a message, and what happens if no peer can take it.
//!
//! | type | talks to | sends | if the queue is full |
//! | --- | --- | --- | --- |
//! | `Req` | `Rep`, `Router` | a request, then receives the reply | waits |
//! | `Rep` | `Req`, `Dealer` | the reply to the request received last | drops |
//! | `Dealer` | `Router`, `Rep`, `Dealer` | to its peers in turns | waits |
//! | `Router` | `Dealer`, `Req`, `Router` | to the peer that the first frame names | drops, or an error with ROUTER_MANDATORY |
//! | `Pub`, `Xpub` | `Sub`, `Xsub` | to each peer that subscribes to the beginning of the message | drops |
//! | `Push` | `Pull` | to its peers in turns | waits |
//! | `Pair` | one `Pair` | to this peer | waits |
//! | `Stream` | any TCP program | plain bytes, to the peer that the first frame names | waits |
//!
//! ```
//! # use zeroxide::{Context, SocketType, Wait};
//! # fn main() -> zeroxide::Result<()> {
//! let context = Context::new();
//! let publisher = context.socket(SocketType::Pub)?;
//! let subscriber = context.socket(SocketType::Sub)?;
//! subscriber.subscribe("weather.")?;
//! subscriber.connect(&publisher.bind("inproc://news")?)?;
//! publisher.wait_subscribed("weather.", 1, Wait::Forever)?;
//! publisher.send(["sports.", "2:1"], Wait::Forever)?;
//! publisher.send(["weather.", "sunny"], Wait::Forever)?;
//! assert_eq!(subscriber.recv(Wait::Forever)?.head().as_slice(), b"weather.");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Proxy`] connects two sockets, for example `Router` and `Dealer`. [`Socket::stats`] counts what was sent, received and
//! lost, with a [`DropReason`]; [`Socket::event_stream`] reports connections made and lost. An [`Observer`] lets the command
//! `zeroxide top` show all of it, and [`snapshot`] returns it as JSON.
//!
//! # Options
//!
//! Each option of `zmq.h` has a method of its own, named after it, in the type of its value: a `bool`, a number, a
//! `Duration`, bytes or text. Most hold for endpoints that are bound or connected afterwards.
//!
//! ```
//! use std::time::Duration;
//! # use zeroxide::{Context, SocketType, Value, ids};
//! # fn main() -> zeroxide::Result<()> {
//! # let context = Context::new();
//! let dealer = context.socket(SocketType::Dealer)?;
//! dealer.set_routing_id("worker-7")?;
//! dealer.set_sndhwm(10_000)?;
//! dealer.set_linger(Some(Duration::from_millis(500)))?;
//! dealer.set_heartbeat_ivl(Some(Duration::from_secs(2)))?;
//! assert_eq!(dealer.sndhwm()?, 10_000);
//!
//! // By number, for programs that know the option only when they run.
//! dealer.set_option(ids::IPV6, &Value::from(true))?;
//! context.set_max_sockets(100)?;
//! # Ok(())
//! # }
//! ```
//!
//! [`SOCKET_OPTIONS`] and [`CONTEXT_OPTIONS`] list all of them. [`Socket::secure_server`] and
//! [`Socket::secure_client`] encrypt connections with CURVE; [`curve_keypair`] makes the keys.
//!
//! # Waiting
//!
//! [`Wait`] limits how long a call may take. [`Wait::Default`] is the limit of the options SNDTIMEO and RCVTIMEO, which is
//! none unless they are set. [`poll`] waits for several sockets and descriptors, and [`Socket::poll`] for one socket; for
//! an event loop of its own, a program takes [`Socket::fd`] or a [`Watcher`].
//!
//! ```
//! use std::time::{Duration, Instant};
//! use zeroxide::{ErrorKind, Events, PollItem, Wait, poll};
//! # use zeroxide::{Context, SocketType};
//! # fn main() -> zeroxide::Result<()> {
//! # let context = Context::new();
//! # let (jobs, control) = (context.socket(SocketType::Pull)?, context.socket(SocketType::Sub)?);
//! # jobs.bind("inproc://jobs")?;
//! let soon = Instant::now() + Duration::from_millis(10);
//! let error = jobs.recv(Wait::Until(soon)).unwrap_err();
//! assert_eq!(error.kind(), ErrorKind::Again);
//!
//! let mut items = [
//!     PollItem::socket(&jobs, Events::READABLE),
//!     PollItem::socket(&control, Events::READABLE),
//! ];
//! let ready = poll(&mut items, Some(soon))?;
//! assert_eq!((ready, items[0].revents), (0, Events::NONE));
//! # Ok(())
//! # }
//! ```
//!
//! # Errors
//!
//! An [`Error`] has an [`ErrorKind`] for programs, libzmq's [`errno`](Error::errno), and a text for people that names the
//! endpoint and what the socket expected. A message that was not sent is in the [`SendError`], which converts into an
//! `Error` where the message does not matter.
//!
//! | kind | what to do |
//! | --- | --- |
//! | [`Again`](ErrorKind::Again) | the time is over: try later |
//! | [`Interrupted`](ErrorKind::Interrupted) | a signal handler ran: call again, or end |
//! | [`Terminated`](ErrorKind::Terminated), [`NotSocket`](ErrorKind::NotSocket) | the context or the socket was closed: end |
//! | [`Fsm`](ErrorKind::Fsm), [`NotSupported`](ErrorKind::NotSupported), [`Invalid`](ErrorKind::Invalid) | a mistake in the program: mend it |
//!
//! ```
//! # use zeroxide::{Context, ErrorKind, Message, SocketType, Wait};
//! # fn main() -> zeroxide::Result<()> {
//! # let context = Context::new();
//! let push = context.socket(SocketType::Push)?;
//! let failed = push.send("no peer there", Wait::Dont).unwrap_err();
//! assert_eq!(failed.error.kind(), ErrorKind::Again);
//! assert_eq!(failed.message, Message::from("no peer there"));
//! # Ok(())
//! # }
//! ```
//!
//! # Shutdown
//!
//! A socket closes with [`Socket::close`] or with its last clone. Messages that were sent are still delivered in the
//! background, for as long as LINGER allows; without a limit by default. [`Context::term`] waits for that, and so a program
//! that ends with `term` loses nothing:
//!
//! ```
//! # use std::time::{Duration, Instant};
//! # use zeroxide::{Context, SocketType};
//! # fn main() -> zeroxide::Result<()> {
//! # let context = Context::new();
//! # let push = context.socket(SocketType::Push)?;
//! push.close(None); // or close(Some(Some(time))), which replaces LINGER
//! context.term_until(Some(Instant::now() + Duration::from_secs(10)))?;
//! # Ok(())
//! # }
//! ```
//!
//! [`Context::shutdown`] ends the calls of other threads: those that wait, and all later ones, fail with `Terminated`. So
//! does `term`, before it waits for the sockets to be closed. [`Socket::flush`] waits for what was sent so far, without
//! closing.
//!
//! # Async
//!
//! [`Socket::recv_async`] and [`Socket::send_async`] return futures for any runtime, and the crate has none of its own: I/O
//! threads call the wakers of tasks. No future blocks its thread, and a future that is dropped, for example by a timeout,
//! has neither lost a message nor sent one.
//!
//! ```
//! # use std::time::Duration;
//! # use zeroxide::{Context, SocketType};
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build()?;
//! # runtime.block_on(async {
//! let context = Context::new();
//! let rep = context.socket(SocketType::Rep)?;
//! let req = context.socket(SocketType::Req)?;
//! req.connect(&rep.bind("inproc://questions")?)?;
//!
//! let server = tokio::spawn(async move {
//!     while let Ok(question) = rep.recv_async().await {
//!         rep.send_async(question).await?;
//!     }
//!     Ok::<(), zeroxide::SendError>(())
//! });
//! req.send_async("ping").await?;
//! let answer = tokio::time::timeout(Duration::from_secs(10), req.recv_async()).await??;
//! assert_eq!(answer.head().as_slice(), b"ping");
//!
//! context.shutdown(); // ends the server
//! server.await??;
//! # Ok(())
//! # })
//! # }
//! ```
//!
//! [`poll_recv`](Socket::poll_recv), [`poll_send`](Socket::poll_send) and [`poll_send_ready`](Socket::poll_send_ready) are for
//! code that is polled itself. With the feature `futures`, `Socket::stream` and `Socket::sink` return a `Stream` and a `Sink`.
//! Everything else returns at once, except [`Context::term`], [`Socket::flush`], their forms with a time limit and the
//! calls that take a [`Wait`]: run these in a thread for blocking work.
//!
//! # Extensions
//!
//! A context can have socket types, security mechanisms and transports of other crates. Their sockets have all that others
//! have.
//!
//! | extension | guide | registered by |
//! | --- | --- | --- |
//! | pattern, which is a new socket type | [`patterns`] | [`Context::add_pattern`] |
//! | security mechanism | [`mechanisms`] | [`Context::add_mechanism`] |
//! | transport of messages | [`MessageTransport`] | [`Context::add_transport`] |
//!
//! # Features and crates
//!
//! * `futures`: `Stream` and `Sink`; depends on `futures-core` and `futures-sink`.
//!
//! [`zeroxide-proto`](https://docs.rs/zeroxide-proto) is ZMTP without I/O, for proxies, sniffers and fuzzers of your own;
//! [`zeroxide-queue`](https://docs.rs/zeroxide-queue) has the lock-free queues. `ARCHITECTURE.md` in the repository shows
//! how they fit together.

#![deny(unsafe_code)]

mod access;
#[doc(hidden)]
pub mod binding;
mod budget;
mod capabilities;
#[cfg(test)]
#[path = "../../../tests/common/certificates.rs"]
mod certificates;
mod command;
mod connecter;
mod context;
#[cfg(test)]
#[path = "../../../tests/common/drawing.rs"]
mod drawing;
mod error;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod io_thread;
mod json;
mod listener;
mod mailbox;
pub mod mechanisms;
mod monitor;
mod observer;
mod options;
mod pace;
pub mod patterns;
mod pipe;
mod poller;
mod port;
mod proxy;
mod reactor;
mod registry;
mod resolver;
mod session;
mod signal;
mod socket;
mod spill;
mod sys;
mod transports;
mod undelivered;
mod watcher;
mod zap;

pub use crate::access::{
    AllowList, Key, PUBLIC_KEY, Passwords, curve_keypair, curve_public, parse_key,
};
pub use crate::capabilities::has;
pub use crate::context::Context;
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::monitor::{EventKind, MonitorEvent, Party};
pub use crate::observer::{Observer, default_folder as observer_folder, snapshot};
pub use crate::options::{
    CONTEXT_OPTIONS, ContextOptions, ContextRow, OptionKind, OptionRow, SOCKET_OPTIONS, Value,
    context_ids, ids,
};
pub use crate::patterns::{Counters, DropReason};
pub use crate::poller::{PollItem, PollTarget, poll};
pub use crate::proxy::{Proxy, SideStats};
pub use crate::socket::{
    EventStream, Events, FlushError, PeerStats, Receiving, SendError, Sending, Socket,
    SocketContext, SocketStats, Wait,
};
#[cfg(feature = "futures")]
pub use crate::socket::{MessageSink, MessageStream};
pub use crate::transports::{
    Bound, Hold, IoWork, IoWorker, MessagePipe, MessagePort, MessageTransport, Next,
};
pub use crate::undelivered::{Undelivered, UndeliveredPeer};
pub use crate::watcher::Watcher;
pub use zeroxide_proto::engine::PeerInfo;
pub use zeroxide_proto::frame::{Frame, FrameKind};
pub use zeroxide_proto::message::{GROUP_MAX, Message};
pub use zeroxide_proto::socket_type::SocketType;
pub use zeroxide_proto::wires::sp;
pub use zeroxide_proto::z85;

#[cfg(zeroxide_shuttle)]
#[doc(hidden)]
pub use sys::simulated as simulation;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
