//! A new implementation of ZeroMQ: sockets that carry complete messages over tcp, ipc and inproc, in patterns.
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
//! push.send("Hello".into(), Wait::Forever)?;
//! assert_eq!(pull.recv(Wait::Forever)?.head().as_slice(), b"Hello");
//! # Ok(())
//! # }
//! ```
//!
//! Any socket may be used from any thread. `ARCHITECTURE.md` in the repository shows the layers of modules; a module
//! imports only from lower layers.

#![deny(unsafe_code)]

mod access;
mod budget;
mod command;
mod connecter;
mod context;
#[cfg(test)]
#[path = "../../../tests/common/drawing.rs"]
mod drawing;
mod error;
mod io_thread;
mod listener;
mod mailbox;
mod monitor;
mod options;
mod pace;
mod patterns;
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
mod sys;
mod transports;
mod watcher;
mod zap;

pub use crate::access::{
    AllowList, Key, PUBLIC_KEY, Passwords, curve_keypair, curve_public, parse_key,
};
pub use crate::context::Context;
pub use crate::error::{Error, ErrorKind, Result};
pub use crate::monitor::{EventKind, MonitorEvent, Party};
pub use crate::options::{
    CONTEXT_OPTIONS, ContextOptions, ContextRow, Kind, OptionRow, SOCKET_OPTIONS, Value, ids,
};
#[cfg(feature = "ablation")]
#[doc(hidden)]
pub use crate::pace::{Policy, switch_off};
pub use crate::patterns::{Counters, DropReason};
pub use crate::poller::{POLLERR, POLLIN, POLLOUT, POLLPRI, PollItem, Target, poll};
pub use crate::proxy::{Proxy, SideStats};
pub use crate::signal::{Wakes, deferring_wakes, interrupted_by};
pub use crate::socket::{
    Attempt, Direction, EventStream, Events, FlushError, PartsReceiver, PeerStats, Receipt,
    Receipts, SendError, Socket, SocketStats, Wait,
};
pub use crate::sys::interfaces::own_addresses;
#[doc(hidden)]
pub use crate::sys::parting::{prepare_for_exit, sleep_instead_of_exit};
pub use crate::sys::thread::spawn_without_signals;
pub use crate::watcher::Watcher;
pub use zeroxide_proto::copies::Copies;
pub use zeroxide_proto::engine::PeerInfo;
pub use zeroxide_proto::frame::Frame;
pub use zeroxide_proto::message::Message;
pub use zeroxide_proto::socket_type::SocketType;
pub use zeroxide_proto::z85;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;
