//! Security mechanisms: the exchange between the greeting and the first message.
//!
//! A new mechanism is one file with a [`MechanismSpec`], which lists its options, too, and one line in [`MECHANISMS`].
//! A mechanism may also be in another crate; [`command`] has the functions that all of them need.
//!
//! A mechanism must:
//! * handle each handshake command of the peer in [`Mechanism::handle_command`]; the first error ends the connection;
//! * return its own commands from [`Mechanism::poll_command`], which the engine calls after the greeting and after
//!   every event, until it returns `None`;
//! * if [`Local::authenticate`] is set and it is the side that authenticates the other one: return from
//!   [`Mechanism::poll_credentials`] the data for the authenticator once it has them, and return neither a command nor
//!   a peer until [`Mechanism::accept`] is called;
//! * return the peer's properties from [`Mechanism::poll_peer`] once it has received and sent everything; until then no
//!   message passes in either direction;
//! * return a [`Cipher`] with them when messages must be wrapped.

pub mod curve;
pub mod null;
pub mod plain;
mod spec;

use crate::command;
use crate::error::{CloseReason, ProtocolError};
use crate::socket_type::SocketType;
use bytes::Bytes;
pub use spec::{Inquiry, MechanismSpec, Parameter, Setting, SettingKind, Shows, Started};
use std::fmt;
use zeroize::Zeroize;

/// Every mechanism.
pub static MECHANISMS: &[&MechanismSpec] = &[&null::NULL, &plain::PLAIN, &curve::CURVE];

/// The mechanism of a connection whose options select none: no security.
pub fn none() -> &'static MechanismSpec {
    &null::NULL
}

/// The numbers of the options that belong to mechanisms.
pub mod ids {
    pub use super::{curve::ids::*, plain::ids::*};
}

/// The mechanism of a connection and its settings.
#[derive(Clone)]
pub struct MechanismConfig {
    /// The mechanism.
    pub spec: &'static MechanismSpec,
    /// Keys, names and passwords, under names defined in the mechanism's file.
    pub parameters: Vec<Parameter>,
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

/// Overwrites secrets to which no other references exist.
impl Drop for MechanismConfig {
    fn drop(&mut self) {
        self.parameters.drain(..).for_each(|(_, value)| wipe(value));
    }
}

/// Overwrites bytes, unless other references to them exist.
pub(crate) fn wipe(bytes: Bytes) {
    if let Ok(mut bytes) = bytes.try_into_mut() {
        bytes.as_mut().zeroize();
    }
}

impl Default for MechanismConfig {
    /// NULL: no security.
    fn default() -> MechanismConfig {
        MechanismConfig {
            spec: none(),
            parameters: Vec::new(),
        }
    }
}

/// Shows only the names of parameters, because the values are secrets.
impl fmt::Debug for MechanismConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = self.parameters.iter().map(|(name, _)| *name).collect();
        write!(f, "{:?} {names:?}", self.spec)
    }
}

/// Our side, as the mechanism describes it to the peer.
#[derive(Clone, Copy, Debug)]
pub struct Local<'a> {
    /// Our socket type.
    pub socket_type: SocketType,
    /// Whether we are the side that authenticates the other one. Set by an option, and independent of which side
    /// connected.
    pub as_server: bool,
    /// Whether there is an authenticator for the peer.
    pub authenticate: bool,
    /// Our properties, ready to follow the name of a READY or INITIATE.
    pub properties: &'a [u8],
    /// The source of keys and nonces.
    pub random: Random,
    /// The peer, as far as the greeting shows it.
    pub peer: Greeted,
}

/// Fills a buffer with unpredictable bytes; returns false if the system provides none.
pub type Random = fn(&mut [u8]) -> bool;

/// The operating system's random bytes.
pub fn system_random(bytes: &mut [u8]) -> bool {
    getrandom::fill(bytes).is_ok()
}

/// The properties of a peer that its greeting reveals.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Greeted {
    /// The minor version of ZMTP 3 to use: 0 or 1.
    pub minor: u8,
    /// Whether its signature has a length, as those of libzmq and its descendants do, which also share other
    /// peculiarities.
    pub libzmq: bool,
}

/// The data about a peer for an authenticator.
#[derive(Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The mechanism.
    pub mechanism: &'static str,
    /// The peer's credentials, which [`MechanismSpec::shows`] describes.
    pub credentials: Vec<Bytes>,
}

/// Overwrites secrets to which no other references exist.
impl Drop for Credentials {
    fn drop(&mut self) {
        self.credentials.drain(..).for_each(wipe);
    }
}

/// Shows the number of credentials only, because one may be a password.
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

/// The verdict of an authenticator about a peer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdict {
    /// 200 admits the peer. 300 closes the connection without a reason, so that the peer retries; any other status is
    /// sent to the peer.
    pub status: u16,
    /// The user id of the peer, which may be empty; `None` if no authenticator was asked.
    pub user_id: Option<String>,
    /// Further properties of the peer, which take precedence over those that the peer sent.
    pub metadata: Vec<(String, Bytes)>,
}

impl Verdict {
    /// Parses metadata in the format in which an authenticator of RFC 27 sends it, which is that of a READY command. The
    /// first value of a name that occurs twice counts, as in libzmq.
    ///
    /// # Errors
    /// If it is malformed.
    pub fn parse_metadata(data: &[u8]) -> Result<Vec<(String, Bytes)>, ProtocolError> {
        command::parse_first_properties(data)
    }
}

/// The peer, as known from the handshake.
pub struct Peer {
    /// Its properties as received.
    pub properties: Vec<(String, Bytes)>,
    /// Its user id, if the mechanism itself knows it. One from an authenticator takes precedence, unless it is empty.
    pub user_id: Option<String>,
    /// Its authenticated public key.
    pub key: Option<Bytes>,
    /// The cipher that wraps messages, if there is one.
    pub cipher: Option<Box<dyn Cipher>>,
}

/// One side of one handshake.
pub trait Mechanism: Send {
    /// Handles a command of the peer: its name with the length byte, then its data.
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason>;

    /// The body of the next command to send.
    fn poll_command(&mut self) -> Option<Vec<u8>>;

    /// The data for the authenticator, once. Called only if [`Local::authenticate`] was set.
    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        None
    }

    /// The authenticator admits the peer.
    fn accept(&mut self) {}

    /// The command that reports the refusal to the peer.
    fn error_command(&self, reason: &str) -> Vec<u8> {
        [command::ERROR, &command::error_data(reason)].concat()
    }

    /// The peer, once, when the handshake is complete on this side.
    fn poll_peer(&mut self) -> Option<Peer>;
}

/// Wraps frames after the handshake.
pub trait Cipher: Send {
    /// The difference in length between a wrapped frame and its content.
    fn overhead(&self) -> usize;

    /// Appends the body of the data frame that carries this content to `out`: [`overhead`](Cipher::overhead) bytes more
    /// than the content.
    ///
    /// # Errors
    /// The connection ends for this reason, for instance because the cipher must not seal another frame.
    fn seal(&mut self, content: Content<'_>, out: &mut Vec<u8>) -> Result<(), CloseReason>;

    /// Opens, in place, the body of a received frame.
    fn open(&mut self, body: &mut [u8]) -> Result<Opened, ProtocolError>;
}

/// A frame to wrap: the bytes of `prefix`, then those of `body`.
#[derive(Clone, Copy, Debug)]
pub struct Content<'a> {
    /// Whether it is a command; a part of a message otherwise.
    pub command: bool,
    /// Whether the message continues.
    pub more: bool,
    /// The name of a command, or nothing.
    pub prefix: &'a [u8],
    /// The rest of the content.
    pub body: &'a [u8],
}

/// The content of a wrapped frame: the bytes from `start` to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opened {
    /// The start of the content.
    pub start: usize,
    /// Whether it is a command; a part of a message otherwise.
    pub command: bool,
    /// Whether the message continues.
    pub more: bool,
}
