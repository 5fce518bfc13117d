//! Programs of a network that find each other without configuration: ZRE, the protocol of Zyre
//! ([RFC 36](https://rfc.zeromq.org/spec/36/)), over zeroxide sockets.
//!
//! A [`Node`] reports the peers that enter and leave, and exchanges messages with them. It works with nodes of Zyre in C,
//! and with those of the Python package `zeroxide`. There is no server.
//!
//! ```
//! use std::time::Duration;
//! use zeroxide_discovery::{Event, Node};
//!
//! # fn main() -> zeroxide::Result<()> {
//! # let port = 15_671;
//! let kitchen = Node::builder("kitchen").interface("lo");
//! # let kitchen = kitchen.port(port);
//! let kitchen = kitchen.start()?;
//! let garden = Node::builder("garden").interface("lo");
//! # let garden = garden.port(port);
//! let garden = garden.start()?;
//!
//! for event in kitchen.events(Some(Duration::from_secs(10))) {
//!     match event {
//!         Event::Enter { peer, .. } => {
//!             kitchen.whisper(peer, "dinner is ready")?;
//!             break;
//!         }
//!         other => println!("{}: {other:?}", other.name()),
//!     }
//! }
//! for event in garden.events(Some(Duration::from_secs(10))) {
//!     if let Event::Whisper { content, .. } = event {
//!         assert_eq!(content.head().as_slice(), b"dinner is ready");
//!         break;
//!     }
//! }
//! # Ok(())
//! # }
//! ```
//!
//! # Finding each other
//!
//! By default, nodes broadcast a beacon every second on all interfaces, at UDP port 5670. Where UDP is closed, they find
//! each other through gossip: at least one of them has [`Builder::gossip_bind`], and the others connect to it with
//! [`Builder::gossip`]. What one node learns, it passes on.
//!
//! # Services
//!
//! [`Builder::offer`] tells peers that a program offers a service, [`Node::find`] returns the peers that offer one, and
//! [`Node::follow`] connects a socket to all of them, while they come and go:
//!
//! ```
//! use std::time::Duration;
//! use zeroxide::{Context, SocketType, Wait};
//! use zeroxide_discovery::Node;
//!
//! # fn main() -> zeroxide::Result<()> {
//! # let port = 15_672;
//! let context = Context::new();
//! let pull = context.socket(SocketType::Pull)?;
//! let worker = Node::builder("worker").interface("lo");
//! # let worker = worker.port(port);
//! let worker = worker.offer("resize", pull.bind("tcp://127.0.0.1:*")?).start()?;
//!
//! let push = context.socket(SocketType::Push)?;
//! let node = Node::builder("").interface("lo");
//! # let node = node.port(port);
//! let node = node.start()?;
//! let follower = node.follow(&push, "resize")?;
//! assert!(follower.wait(1, Some(Duration::from_secs(10))));
//! push.send("a picture", Wait::Forever)?;
//! assert_eq!(pull.recv(Wait::Forever)?.head().as_slice(), b"a picture");
//! # Ok(())
//! # }
//! ```
//!
//! A [`Lookup`] does the same for services in the DNS, without nodes: the addresses of a name, as of a headless service
//! of Kubernetes, and SRV records (feature `srv`).
//!
//! # Security
//!
//! Beacons and messages are not encrypted, and each node can claim to be any other one. [`Builder::configure`] sets CURVE
//! keys of each socket; then only the nodes that have the keys exchange messages. A node has 1024 peers at most
//! ([`Builder::max_peers`]), a peer up to 256 groups and 256 headers, all together in 64 KiB, and a message up to 64 MiB.
//! Anything beyond these limits is ignored, and counted in [`Node::dropped`].
//!
//! Text of peers that is not UTF-8 has replacement characters. IPv4 only, and Linux only.

#![forbid(unsafe_code)]

mod beacon;
mod driver;
mod election;
mod event;
mod follow;
mod gossip;
mod id;
mod interfaces;
mod lookup;
mod machine;
mod names;
mod node;
mod services;
mod wire;

pub use event::{Event, ExitReason, Headers, Peer};
pub use follow::Follower;
pub use id::NodeId;
pub use lookup::Lookup;
pub use node::{Builder, Node};
pub use services::Provider;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
