//! ZMTP and the scalability protocols without I/O. Bytes and a clock are inputs, bytes and events are outputs.
//!
//! An [`Engine`] is one side of one connection, as a value. It never reads a clock or a descriptor: its driver passes
//! in the received bytes and the time, and takes the events, the bytes to send and the next deadline. Even random bytes
//! come from a function that it is given ([`EngineConfig::random`]). So the same code runs in an I/O thread, in the
//! caller's thread, and in tests that cut bytes anywhere and let hours pass in microseconds. The example on [`Engine`]
//! shows the loop.
//!
//! The parts of the engine, from the wire inwards, are the receive buffer and the decoder, the greeting, the security
//! mechanisms (one file each in [`mechanisms`]), and the traffic after them. Other [wire protocols](wires), such as [`sp`],
//! have a handshake and a framing of their own; the rest of the engine is the same. It uses [`Frame`] and [`Message`],
//! [`SocketType`], the matchers for subscriptions in [`subscription`], and endpoints in [`endpoint`]. The datagrams of udp,
//! which need no engine, are in [`datagram`]. Neither does [`pgm`], which repairs what datagrams lose.
//!
//! A peer may send anything. Invalid input is refused with a reason ([`CloseReason`]). It cannot make the engine panic,
//! recurse, or keep memory out of proportion to the bytes it really sent.

#![forbid(unsafe_code)]

pub mod command;
pub mod copies;
pub mod datagram;
mod decoder;
mod encoder;
pub mod endpoint;
pub mod engine;
pub mod error;
pub mod frame;
mod framing;
mod greeting;
mod legacy;
pub mod mechanisms;
pub mod message;
pub mod pgm;
mod read_buffer;
pub mod run;
pub mod socket_type;
pub mod subscription;
pub mod wires;
pub mod z85;

pub use engine::{Engine, EngineConfig, Event, PeerInfo};
pub use error::{CloseReason, ProtocolError};
pub use frame::{Frame, FrameKind};
pub use mechanisms::{Credentials, MechanismConfig, Verdict};
pub use message::Message;
pub use socket_type::SocketType;
pub use wires::sp;
