//! ZMTP without I/O: bytes and a clock in, bytes and events out.

#![forbid(unsafe_code)]

pub mod endpoint;
pub mod frame;
pub mod message;
pub mod socket_type;
pub mod subscription;

pub use frame::{Frame, Kind};
pub use message::Message;
pub use socket_type::SocketType;
