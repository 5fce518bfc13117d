//! Security mechanisms: what happens between the greeting and the first message.
//!
//! A new mechanism is one file that ends in a [`MechanismSpec`], and one line in [`MECHANISMS`].
//!
//! What a mechanism must do:
//! * take each handshake command of the peer in [`Mechanism::handle_command`]; the first error ends the
//!   connection;
//! * give out its own commands in [`Mechanism::poll_command`], which the engine asks after the greeting and
//!   after everything that happened, until it gets `None`;
//! * if [`Local::authenticate`] is set and it is the side that checks the other one: return from
//!   [`Mechanism::poll_credentials`] what the authenticator must know, once it knows it itself, and then have
//!   neither a command nor a peer to give until [`Mechanism::accept`] is called;
//! * return the peer's properties from [`Mechanism::poll_peer`] once it has seen and sent everything; until
//!   then no message passes in either direction;
//! * return a [`Cipher`] with them when messages are to be wrapped.

pub mod curve;
pub mod null;
pub mod plain;

use crate::command;
use crate::error::{CloseReason, ProtocolError};
use crate::socket_type::SocketType;
use bytes::Bytes;
use std::fmt;
use zeroize::Zeroize;

/// Every mechanism.
pub static MECHANISMS: &[&MechanismSpec] = &[&null::NULL, &plain::PLAIN, &curve::CURVE];

/// What a mechanism is, apart from any connection.
pub struct MechanismSpec {
    /// The name in the greeting; at most 20 ASCII characters.
    pub name: &'static str,
    /// Starts one side of one connection. Fails when a parameter is missing or of no use.
    pub start: fn(&MechanismConfig, Local<'_>) -> Started,
}

/// One side of one connection, started.
pub type Started = Result<Box<dyn Mechanism>, CloseReason>;

impl fmt::Debug for MechanismSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// The mechanism of a connection and its settings.
#[derive(Clone)]
pub struct MechanismConfig {
    /// The mechanism.
    pub spec: &'static MechanismSpec,
    /// Keys, names and passwords, under names that the mechanism's file defines.
    pub parameters: Vec<(&'static str, Bytes)>,
}

impl MechanismConfig {
    /// The value of a parameter.
    pub fn parameter(&self, name: &str) -> Option<&Bytes> {
        self.parameters
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, value)| value)
    }
}

/// Overwrites what nobody else holds a reference to.
impl Drop for MechanismConfig {
    fn drop(&mut self) {
        self.parameters.drain(..).for_each(|(_, value)| wipe(value));
    }
}

/// Overwrites bytes, unless somebody else holds a reference to them.
fn wipe(bytes: Bytes) {
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.as_mut().zeroize();
    }
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

/// Names of parameters only: the values are secrets.
impl fmt::Debug for MechanismConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
        write!(f, "{:?} {names:?}", self.spec)
    }
}

/// Our side, for the mechanism to tell the peer about.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a> {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Whether we are the side that checks the other one. Set by an option, not by who connected.
    pub as_server: bool,
    /// Whether somebody is there to ask about the peer.
    pub authenticate: bool,
    /// Our properties, ready to follow the name of a READY or INITIATE.
    pub properties: &'a [u8],
    /// Where keys and nonces come from.
    pub random: Random,
    /// The peer, as far as the greeting shows it.
    pub peer: Greeted,
}

/// Fills the whole of a buffer with bytes that nobody can guess; false if there are none to be had.
pub type Random = fn(&mut [u8]) -> bool;

/// The operating system's random bytes.
pub fn system_random(bytes: &mut [u8]) -> bool {
    getrandom::fill(bytes).is_ok()
}

/// What the greeting shows of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// The minor version of ZMTP 3 to speak: 0 or 1.
    pub minor: u8,
    /// Its signature carries a length, as libzmq's and its descendants' do: it also has their habits.
    pub libzmq: bool,
}

/// What an authenticator has to know about a peer.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The mechanism.
    pub mechanism: &'static str,
    /// What the peer showed: nothing for NULL, user name and password for PLAIN, for CURVE the 32 bytes of the
    /// long-term public key that it has proved to be its own.
    pub credentials: Vec<Bytes>,
}

/// Overwrites what nobody else holds a reference to.
impl Drop for Credentials {
    fn drop(&mut self) {
        self.credentials.drain(..).for_each(wipe);
    }
}

/// How many credentials there are; one may be a password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} with {} credentials",
            self.mechanism,
            self.credentials.len()
        )
    }
}

/// What an authenticator says about a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// 200 lets it in. 300 closes without a word, so that it tries again; any other status closes and tells it.
    pub status: u16,
    /// Who the peer is; empty if that is not known.
    pub user_id: String,
    /// What else is known about the peer; goes before what the peer says about itself.
    pub metadata: Vec<(String, Bytes)>,
}

impl Verdict {
    /// Reads metadata in the form in which an authenticator of RFC 27 sends it, which is that of a READY command.
    ///
    /// # Errors
    /// When it is malformed.
    pub fn parse_metadata(data: &[u8]) -> Result<Vec<(String, Bytes)>, ProtocolError> {
        command::parse_properties(data)
    }
}

/// The peer, as the handshake revealed it.
pub struct Peer {
    /// Its properties as they came.
    pub properties: Vec<(String, Bytes)>,
    /// Who it is, if the mechanism itself knows; what an authenticator says goes before it.
    pub user_id: Option<String>,
    /// The public key that it has proved to be its own.
    pub key: Option<Bytes>,
    /// What wraps the messages, if anything does.
    pub cipher: Option<Box<dyn Cipher>>,
}

/// One side of one handshake.
pub trait Mechanism: Send {
    /// Takes a command of the peer: its name with the length byte, then its data.
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason>;

    /// The body of the next command to send.
    fn poll_command(&mut self) -> Option<Vec<u8>>;

    /// What the authenticator must know, once. Asked for only if [`Local::authenticate`] was set.
    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        None
    }

    /// The authenticator lets the peer in.
    fn accept(&mut self) {}

    /// The command that tells the peer why it is refused.
    fn error_command(&self, reason: &str) -> Vec<u8> {
        [command::ERROR, &command::error_data(reason)].concat()
    }

    /// The peer, once, when the handshake is over on this side.
    fn poll_peer(&mut self) -> Option<Peer>;
}

/// Wraps frames after the handshake.
pub trait Cipher: Send {
    /// By how many bytes a wrapped frame is longer than its content.
    fn overhead(&self) -> usize;

    /// Appends to `out` the body of the data frame that travels in place of this content:
    /// [`overhead`](Cipher::overhead) bytes more than there are in it.
    fn seal(&mut self, content: Content<'_>, out: &mut Vec<u8>);

    /// Opens, in place, the body of a frame that came.
    fn open(&mut self, body: &mut [u8]) -> Result<Opened, ProtocolError>;
}

/// A frame to be wrapped: the bytes of `prefix`, then those of `body`.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Whether it is a command; a part of a message otherwise.
    pub command: bool,
    /// Whether the message goes on.
    pub more: bool,
    /// The name of a command, or nothing.
    pub prefix: &'a [u8],
    /// The rest.
    pub body: &'a [u8],
}

/// What was wrapped: the bytes from `start` to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// Where the content begins.
    pub start: usize,
    /// Whether it is a command; a part of a message otherwise.
    pub command: bool,
    /// Whether the message goes on.
    pub more: bool,
}
