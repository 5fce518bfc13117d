//! The pipeline over zeroxide sockets: the collector, which writes what producers send into a log and serves it; the
//! producer, which keeps what is not acknowledged; and the reader, which fetches ranges of offsets.

#![forbid(unsafe_code)]

pub mod client;
pub mod collector;
mod link;
pub mod producer;
pub mod reader;
mod wake;
pub mod wire;

pub use link::{Denial, Security};
