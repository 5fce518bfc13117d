//! PLAIN: user name and password, unencrypted. ZeroMQ RFC 24.
//!
//! ```text
//! client                          server
//! HELLO user, password  ------->  asks the authenticator
//!                       <-------  WELCOME, or ERROR
//! INITIATE properties   ------->
//!                       <-------  READY properties
//! ```
//!
//! libzmq has always misspelled PLAIN's ERROR, because a C compiler reads the escape `"\x05ERROR"` as `^RROR`. Its
//! clients do not know the right spelling, so we send them the wrong one, and accept both.

use super::SettingKind::{Server, Text};
use super::spec::settings;
use super::{Local, Mechanism, MechanismConfig, MechanismSpec, Peer, Shows, Started};
use crate::command;
use crate::error::{CloseReason, ProtocolError};
use bytes::Bytes;

/// The PLAIN mechanism.
pub static PLAIN: MechanismSpec = MechanismSpec {
    settings: SETTINGS,
    shows: Shows::Password,
    remote_warning: Some("user name and password crossed the network in clear"),
    ..MechanismSpec::new("PLAIN", 1, start)
};

settings! {
    44 PLAIN_SERVER: Server, false, "Act as server of the PLAIN mechanism.";
    45 PLAIN_USERNAME: Text(USERNAME), true, "The user name of a PLAIN client.";
    46 PLAIN_PASSWORD: Text(PASSWORD), true, "The password of a PLAIN client.";
}

/// A parameter of the client: the user name, at most 255 bytes.
pub const USERNAME: &str = "username";
/// A parameter of the client: the password, at most 255 bytes.
pub const PASSWORD: &str = "password";

const HELLO: &[u8] = b"\x05HELLO";
const WELCOME: &[u8] = b"\x07WELCOME";
const INITIATE: &[u8] = b"\x08INITIATE";
/// ERROR as spelled by libzmq. Not even its length byte is correct.
const RROR: &[u8] = b"^RROR";

fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    let step = if local.as_server {
        Step::AwaitHello
    } else {
        Step::SendHello(hello(config)?)
    };
    Ok(Box::new(Plain {
        properties: local.properties.to_vec(),
        authenticate: local.authenticate,
        libzmq: local.peer.libzmq,
        step,
    }))
}

struct Plain {
    /// Our properties to send.
    properties: Vec<u8>,
    /// Whether there is an authenticator.
    authenticate: bool,
    /// Whether the peer has libzmq's peculiarities.
    libzmq: bool,
    step: Step,
}

/// The next step. The client's steps, then the server's, then the last one of both.
enum Step {
    SendHello(Vec<u8>),
    AwaitWelcome,
    SendInitiate,
    AwaitReady,
    AwaitHello,
    Ask(Vec<Bytes>),
    AwaitVerdict,
    SendWelcome,
    AwaitInitiate,
    SendReady(Vec<(String, Bytes)>),
    Meet(Vec<(String, Bytes)>),
    Done,
}

impl Mechanism for Plain {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let client = matches!(self.step, Step::AwaitWelcome | Step::AwaitReady);
        if client && let Some(data) = body.strip_prefix(RROR) {
            return Err(command::refusal(data)?);
        }
        let (name, data) = command::split(body)?;
        self.step = match (&self.step, name) {
            (Step::AwaitWelcome | Step::AwaitReady, command::ERROR) => {
                return Err(command::refusal(data)?);
            }
            (Step::AwaitWelcome, WELCOME) if data.is_empty() => Step::SendInitiate,
            (Step::AwaitWelcome, WELCOME) => {
                return Err(malformed("WELCOME", "data that no WELCOME has"));
            }
            (Step::AwaitReady, command::READY) => Step::Meet(command::parse_properties(data)?),
            (Step::AwaitHello, HELLO) => {
                let credentials = parse_hello(data)?;
                if !self.authenticate {
                    return Err(CloseReason::NobodyToAsk(PLAIN.name));
                }
                Step::Ask(credentials)
            }
            (Step::AwaitInitiate, INITIATE) => Step::SendReady(command::parse_properties(data)?),
            (step, name) => return Err(command::unexpected(step.expects(), name).into()),
        };
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        let (body, next) = match std::mem::replace(&mut self.step, Step::Done) {
            Step::SendHello(hello) => (hello, Step::AwaitWelcome),
            Step::SendInitiate => ([INITIATE, &self.properties].concat(), Step::AwaitReady),
            Step::SendWelcome => (WELCOME.to_vec(), Step::AwaitInitiate),
            Step::SendReady(theirs) => {
                let ready = [command::READY, &self.properties].concat();
                (ready, Step::Meet(theirs))
            }
            other => {
                self.step = other;
                return None;
            }
        };
        self.step = next;
        Some(body)
    }

    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        match std::mem::replace(&mut self.step, Step::AwaitVerdict) {
            Step::Ask(credentials) => Some(credentials),
            other => {
                self.step = other;
                None
            }
        }
    }

    fn accept(&mut self) {
        self.step = Step::SendWelcome;
    }

    fn error_command(&self, reason: &str) -> Vec<u8> {
        let name = if self.libzmq { RROR } else { command::ERROR };
        [name, &command::error_data(reason)].concat()
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::Meet(properties) => Some(Peer {
                properties,
                user_id: None,
                key: None,
                cipher: None,
            }),
            other => {
                self.step = other;
                None
            }
        }
    }
}

impl Step {
    /// The commands that are allowed now, for an error text.
    fn expects(&self) -> &'static str {
        match self {
            Step::AwaitWelcome => "WELCOME",
            Step::AwaitReady => "READY",
            Step::AwaitHello => "HELLO",
            Step::AwaitInitiate => "INITIATE",
            _ => "nothing yet",
        }
    }
}

/// The client's HELLO.
fn hello(config: &MechanismConfig) -> Result<Vec<u8>, CloseReason> {
    let mut hello = HELLO.to_vec();
    for (name, problem) in [
        (USERNAME, "the user name has more than 255 bytes"),
        (PASSWORD, "the password has more than 255 bytes"),
    ] {
        let value = config.parameter(name).map_or(&[][..], |value| value);
        let Ok(len) = u8::try_from(value.len()) else {
            return Err(CloseReason::Misconfigured {
                mechanism: PLAIN.name,
                problem,
            });
        };
        hello.push(len);
        hello.extend_from_slice(value);
    }
    Ok(hello)
}

/// User name and password in the data of a HELLO.
fn parse_hello(data: &[u8]) -> Result<Vec<Bytes>, CloseReason> {
    let cut = || malformed("HELLO", "a user name or password that does not fit");
    let mut rest = data;
    let mut credentials = Vec::with_capacity(2);
    for _ in 0..2 {
        let (&len, tail) = rest.split_first().ok_or_else(cut)?;
        let (value, tail) = tail.split_at_checked(usize::from(len)).ok_or_else(cut)?;
        credentials.push(Bytes::copy_from_slice(value));
        rest = tail;
    }
    if rest.is_empty() {
        Ok(credentials)
    } else {
        Err(malformed("HELLO", "bytes after the password"))
    }
}

fn malformed(command: &'static str, problem: &'static str) -> CloseReason {
    ProtocolError::Malformed { command, problem }.into()
}
