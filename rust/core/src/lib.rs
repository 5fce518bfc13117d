//! Sockets.

#![deny(unsafe_code)]

mod error;
mod options;
mod resolver;
mod sys;
mod transports;

pub use error::{Error, ErrorKind, Result};
pub use options::{
    AddressFilter, CONTEXT_OPTIONS, ContextOptions, ContextRow, CredentialFilter, Kind, OptionRow,
    Options, PatternOption, SOCKET_OPTIONS, Value, ids, pattern_option,
};
