//! The pipeline over zeroxide sockets: the collector, which writes the rows of producers to a log and serves them; the
//! producer, which keeps rows until they are acknowledged; and the reader, which fetches ranges of offsets.

#![forbid(unsafe_code)]

pub mod client;
mod clock;
pub mod collector;
#[cfg(feature = "fuzzing")]
#[doc(hidden)]
pub mod fuzzing;
mod link;
pub mod producer;
pub mod reader;
#[cfg(zeroxide_disk)]
#[doc(hidden)]
pub mod simulation;
mod threads;
mod wake;
pub mod wire;

pub use link::{Denial, Security};
