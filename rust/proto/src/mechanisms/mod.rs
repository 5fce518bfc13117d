//! Security mechanisms: what happens between the greeting and the first message.
//!
//! A new mechanism is one file that ends in a [`MechanismSpec`], and one line in [`MECHANISMS`].
//!
//! What a mechanism must do:
//! * take each handshake command of the peer, with its name, in [`Mechanism::handle_command`]; the first error
//!   ends the connection;
//! * give out its own commands in [`Mechanism::poll_command`], which the engine asks after the greeting and
//!   after every command that came, until it gets `None`;
//! * return the peer's properties from [`Mechanism::poll_peer`] once it has seen and sent everything; until
//!   then no message passes in either direction. One that waits for a verdict from outside simply has
//!   neither a command nor a peer to give;
//! * return a [`Cipher`] with them when messages are to be wrapped.

pub mod null;

use crate::error::{CloseReason, ProtocolError};
use crate::frame::Frame;
use crate::socket_type::SocketType;
use bytes::Bytes;
use std::fmt;

/// Every mechanism.
pub static MECHANISMS: &[&MechanismSpec] = &[&null::NULL];

/// What a mechanism is, apart from any connection.
pub struct MechanismSpec {
    /// The name in the greeting; at most 20 ASCII characters.
    pub name: &'static str,
    /// Starts one side of one connection.
    pub start: fn(&MechanismConfig, Local<'_>) -> Box<dyn Mechanism>,
}

impl fmt::Debug for MechanismSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The mechanism of a connection and its settings.
#[derive(Clone, Debug)]
pub struct MechanismConfig {
    /// The mechanism.
    pub spec: &'static MechanismSpec,
    /// Keys, names and passwords, under names that the mechanism's file defines.
    pub parameters: Vec<(&'static str, Bytes)>,
}

impl Default for MechanismConfig {
    /// NULL: no security.
    fn default() -> MechanismConfig {
        MechanismConfig {
            spec: &null::NULL,
            parameters: Vec::new(),
        }
    }
}

/// Our side, for the mechanism to tell the peer about.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a> {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Whether we are the side that checks the other one. Set by an option, not by who connected.
    pub as_server: bool,
    /// Our properties, ready to follow the name of a READY or INITIATE.
    pub properties: &'a [u8],
}

/// The peer, as the handshake revealed it.
pub struct Peer {
    /// Its properties as they came.
    pub properties: Vec<(String, Bytes)>,
    /// Who it is, if somebody vouched for it.
    pub user_id: Option<String>,
    /// What wraps the messages, if anything does.
    pub cipher: Option<Box<dyn Cipher>>,
}

/// One side of one handshake.
pub trait Mechanism: Send {
    /// Takes a command of the peer: its name with the length byte, and its data.
    fn handle_command(&mut self, name: &[u8], data: &[u8]) -> Result<(), CloseReason>;

    /// The body of the next command to send.
    fn poll_command(&mut self) -> Option<Vec<u8>>;

    /// The peer, once, when the handshake is over on this side.
    fn poll_peer(&mut self) -> Option<Peer>;
}

/// Wraps frames after the handshake.
pub trait Cipher: Send {
    /// The most bytes that wrapping adds to a frame.
    fn overhead(&self) -> usize;

    /// Turns a frame (data, or a command with its name) into what travels as a data frame.
    fn seal(&mut self, frame: Frame) -> Frame;

    /// Turns what came as a data frame back into a frame with its kind and `more` flag.
    fn open(&mut self, frame: Frame) -> Result<Frame, ProtocolError>;
}
