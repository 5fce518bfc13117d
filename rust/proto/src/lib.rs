//! ZMTP without I/O: bytes and a clock in, bytes and events out.

#![forbid(unsafe_code)]

mod command;
mod decoder;
mod encoder;
pub mod endpoint;
pub mod engine;
pub mod error;
pub mod frame;
mod greeting;
mod legacy;
pub mod mechanisms;
pub mod message;
mod read_buffer;
pub mod socket_type;
pub mod subscription;
pub mod z85;

pub use engine::{Engine, EngineConfig, Event, PeerInfo};
pub use error::{CloseReason, ProtocolError};
pub use frame::{Frame, Kind};
pub use message::Message;
pub use socket_type::SocketType;
