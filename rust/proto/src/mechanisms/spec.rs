//! [`MechanismSpec`]: everything that a socket knows about a mechanism.

use super::{Local, Mechanism, MechanismConfig};
use crate::error::CloseReason;
use bytes::Bytes;
use std::fmt;

/// The description of a mechanism, independent of connections. A mechanism states what differs from
/// [`MechanismSpec::new`].
pub struct MechanismSpec {
    /// The name in the greeting; at most 20 ASCII characters.
    pub name: &'static str,
    /// The value of the option MECHANISM. libzmq uses 0 to 3.
    pub number: i32,
    /// Starts one side of one connection. Fails if a parameter is missing or invalid.
    pub start: fn(&MechanismConfig, Local<'_>) -> Started,
    /// The options of a socket that select the mechanism and hold its parameters.
    pub settings: &'static [Setting],
    /// Checks the parameters before the first connection, for the side that authenticates the other one (`true`) or the
    /// other side. Returns parameters that follow from them.
    ///
    /// # Errors
    /// The missing or wrong setting, for the user to read.
    pub check: fn(&MechanismConfig, bool) -> Result<Vec<Parameter>, &'static str>,
    /// Who asks an authenticator about peers.
    pub inquiry: Inquiry,
    /// The credentials of a client.
    pub shows: Shows,
    /// Whether a client can be sure of the server when the handshake is complete.
    pub proves_server: bool,
    /// What to warn about if the peer is on another machine.
    pub remote_warning: Option<&'static str>,
    /// What to warn about if there was no authenticator to ask.
    pub unchecked_warning: Option<&'static str>,
    /// The likely cause if a server closes a client's connection without a reason.
    pub silence_hint: Option<&'static str>,
}

/// One side of one connection, started.
pub type Started = Result<Box<dyn Mechanism>, CloseReason>;

/// A parameter of a mechanism, with its name.
pub type Parameter = (&'static str, Bytes);

/// Who asks an authenticator about peers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Inquiry {
    /// Either side, about the address of its peer, if the socket has an authentication domain. Peers do not prove who
    /// they are.
    Address,
    /// The server, and without an authenticator it admits no peer.
    Required,
    /// The server, if there is an authenticator.
    Optional,
}

/// The credentials of a client.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Shows {
    /// None.
    Nothing,
    /// A user name and a password.
    Password,
    /// The 32 bytes of a public key, and the client has proved that it owns the key.
    Key,
    /// Something that only an authenticator understands.
    Other,
}

/// An option of a socket that belongs to a mechanism. The last one that was written decides about the mechanism.
#[derive(Debug)]
pub struct Setting {
    /// The number of the option. Those of libzmq are below 1000.
    pub number: i32,
    /// Its name.
    pub name: &'static str,
    /// Its value.
    pub kind: SettingKind,
    /// Whether writing it makes this side a client.
    pub of_client: bool,
    /// Its effect, in a sentence.
    pub doc: &'static str,
}

/// The value of a [`Setting`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum SettingKind {
    /// Whether this side authenticates the other one; `false` returns to NULL.
    Server,
    /// A parameter of 1 to 255 bytes, by its name.
    Text(&'static str),
    /// A parameter of 32 bytes, by its name. It can also be written, and is always read, in Z85.
    Key(&'static str),
}

impl MechanismSpec {
    /// A mechanism without options. Its server admits no peer unless an authenticator does.
    pub const fn new(
        name: &'static str,
        number: i32,
        start: fn(&MechanismConfig, Local<'_>) -> Started,
    ) -> MechanismSpec {
        MechanismSpec {
            name,
            number,
            start,
            settings: &[],
            check: |_, _| Ok(Vec::new()),
            inquiry: Inquiry::Required,
            shows: Shows::Other,
            proves_server: false,
            remote_warning: None,
            unchecked_warning: None,
            silence_hint: None,
        }
    }
}

impl Setting {
    /// The name of the parameter that it holds.
    pub const fn parameter(&self) -> Option<&'static str> {
        match self.kind {
            SettingKind::Server => None,
            SettingKind::Text(name) | SettingKind::Key(name) => Some(name),
        }
    }
}

/// Mechanisms are equal if their numbers are.
impl PartialEq for MechanismSpec {
    fn eq(&self, other: &MechanismSpec) -> bool {
        self.number == other.number
    }
}

impl Eq for MechanismSpec {}

impl fmt::Debug for MechanismSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

/// Generates the settings of a mechanism, and the constants in `ids`, from one row each.
macro_rules! settings {
    ($($number:literal $name:ident: $kind:expr, $of_client:literal, $doc:literal;)*) => {
        /// The numbers of the options.
        pub mod ids {
            $(#[doc = $doc] pub const $name: i32 = $number;)*
        }

        static SETTINGS: &[super::Setting] = &[$(super::Setting {
            number: $number,
            name: stringify!($name),
            kind: $kind,
            of_client: $of_client,
            doc: $doc,
        },)*];
    };
}

pub(super) use settings;
