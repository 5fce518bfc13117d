//! Sockets.

#![deny(unsafe_code)]

mod error;
mod sys;

pub use error::{Error, ErrorKind, Result};
