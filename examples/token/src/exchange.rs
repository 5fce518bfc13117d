//! The handshake: one state machine for each side.

use bytes::Bytes;
use zeroxide::mechanisms::{
    CloseReason, Local, Mechanism, MechanismConfig, Peer, ProtocolError, Random, Started, command,
};

use crate::proof::{NONCE, PROOF, Side, Token, Transcript};
use crate::{MECHANISM, NAME, SECRET};

const HELLO: &[u8] = b"\x05HELLO";
const CHALLENGE: &[u8] = b"\x09CHALLENGE";
const INITIATE: &[u8] = b"\x08INITIATE";

/// The longest name, as for the option.
const NAME_MAX: usize = 255;

pub(crate) fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    let secret = config
        .parameter(SECRET)
        .and_then(|secret| Token::new(secret));
    let Some(token) = secret else {
        return Err(misconfigured("TOKEN_SECRET is missing"));
    };
    let nonce = fresh(local.random)?;
    let properties = local.properties.to_vec();
    if local.as_server {
        return Ok(Box::new(Server {
            token,
            nonce,
            properties,
            authenticate: local.authenticate,
            step: AtServer::AwaitHello,
        }));
    }
    let Some(name) = config.parameter(NAME) else {
        return Err(misconfigured("TOKEN_NAME is missing"));
    };
    Ok(Box::new(Client {
        token,
        properties,
        transcript: Transcript {
            client_nonce: nonce,
            server_nonce: [0; NONCE],
            name: name.to_vec(),
        },
        step: AtClient::SendHello,
    }))
}

type Properties = Vec<(String, Bytes)>;

struct Client {
    token: Token,
    properties: Vec<u8>,
    transcript: Transcript,
    step: AtClient,
}

enum AtClient {
    SendHello,
    AwaitChallenge,
    SendInitiate,
    AwaitReady,
    Meet(Properties),
    Done,
}

impl Mechanism for Client {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let (name, data) = command::split(body)?;
        self.step = match (&self.step, name) {
            (AtClient::AwaitChallenge | AtClient::AwaitReady, command::ERROR) => {
                return Err(command::refusal(data)?);
            }
            (AtClient::AwaitChallenge, CHALLENGE) => {
                self.transcript.server_nonce = data
                    .try_into()
                    .map_err(|_| malformed("CHALLENGE", "a nonce that has not 32 bytes"))?;
                AtClient::SendInitiate
            }
            (AtClient::AwaitReady, command::READY) => {
                let theirs = proven("READY", data, &self.token, Side::Server, &self.transcript)?;
                AtClient::Meet(theirs)
            }
            (AtClient::AwaitChallenge, name) => {
                return Err(command::unexpected("CHALLENGE", name).into());
            }
            (AtClient::AwaitReady, name) => return Err(command::unexpected("READY", name).into()),
            (_, name) => return Err(command::unexpected("nothing yet", name).into()),
        };
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        let transcript = &self.transcript;
        let (body, next) = match self.step {
            AtClient::SendHello => {
                let hello = [HELLO, &transcript.client_nonce, &transcript.name].concat();
                (hello, AtClient::AwaitChallenge)
            }
            AtClient::SendInitiate => {
                let proof = self.token.prove(Side::Client, transcript, &self.properties);
                let initiate = [INITIATE, &proof, &self.properties].concat();
                (initiate, AtClient::AwaitReady)
            }
            _ => return None,
        };
        self.step = next;
        Some(body)
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        let AtClient::Meet(properties) = &mut self.step else {
            return None;
        };
        let properties = std::mem::take(properties);
        self.step = AtClient::Done;
        Some(Peer {
            properties,
            user_id: None,
            key: None,
            cipher: None,
        })
    }
}

struct Server {
    token: Token,
    nonce: [u8; NONCE],
    properties: Vec<u8>,
    /// Whether there is an authenticator.
    authenticate: bool,
    step: AtServer,
}

/// A client, as far as its HELLO and INITIATE show it.
struct Guest {
    transcript: Transcript,
    name: String,
    properties: Properties,
}

enum AtServer {
    AwaitHello,
    SendChallenge(Guest),
    AwaitInitiate(Guest),
    Ask(Guest),
    AwaitVerdict(Guest),
    SendReady(Guest),
    Meet(Guest),
    Done,
}

impl Mechanism for Server {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let (name, data) = command::split(body)?;
        // An error ends the connection, so what the step has held is not needed any more.
        self.step = match (std::mem::replace(&mut self.step, AtServer::Done), name) {
            (AtServer::AwaitHello, HELLO) => AtServer::SendChallenge(self.greeted(data)?),
            (AtServer::AwaitInitiate(guest), INITIATE) => {
                let theirs = proven(
                    "INITIATE",
                    data,
                    &self.token,
                    Side::Client,
                    &guest.transcript,
                )?;
                let guest = Guest {
                    properties: theirs,
                    ..guest
                };
                match self.authenticate {
                    true => AtServer::Ask(guest),
                    false => AtServer::SendReady(guest),
                }
            }
            (AtServer::AwaitHello, name) => return Err(command::unexpected("HELLO", name).into()),
            (AtServer::AwaitInitiate(_), name) => {
                return Err(command::unexpected("INITIATE", name).into());
            }
            (_, name) => return Err(command::unexpected("nothing yet", name).into()),
        };
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        let (body, next) = match std::mem::replace(&mut self.step, AtServer::Done) {
            AtServer::SendChallenge(guest) => {
                let challenge = [CHALLENGE, &self.nonce].concat();
                (challenge, AtServer::AwaitInitiate(guest))
            }
            AtServer::SendReady(guest) => {
                let proof = self
                    .token
                    .prove(Side::Server, &guest.transcript, &self.properties);
                let ready = [command::READY, &proof, &self.properties].concat();
                (ready, AtServer::Meet(guest))
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
        match std::mem::replace(&mut self.step, AtServer::Done) {
            AtServer::Ask(guest) => {
                let name = Bytes::copy_from_slice(guest.name.as_bytes());
                self.step = AtServer::AwaitVerdict(guest);
                Some(vec![name])
            }
            other => {
                self.step = other;
                None
            }
        }
    }

    fn accept(&mut self) {
        self.step = match std::mem::replace(&mut self.step, AtServer::Done) {
            AtServer::AwaitVerdict(guest) => AtServer::SendReady(guest),
            other => other,
        };
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        match std::mem::replace(&mut self.step, AtServer::Done) {
            AtServer::Meet(guest) => Some(Peer {
                properties: guest.properties,
                user_id: Some(guest.name),
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

impl Server {
    /// The client that sends a HELLO with this data.
    fn greeted(&self, data: &[u8]) -> Result<Guest, CloseReason> {
        let Some((client_nonce, name)) = data.split_first_chunk::<NONCE>() else {
            return Err(malformed("HELLO", "a nonce that has not 32 bytes"));
        };
        let text = match std::str::from_utf8(name) {
            Ok(text) if (1..=NAME_MAX).contains(&text.len()) => text,
            _ => {
                return Err(malformed(
                    "HELLO",
                    "a name that is not 1 to 255 bytes of UTF-8",
                ));
            }
        };
        Ok(Guest {
            transcript: Transcript {
                client_nonce: *client_nonce,
                server_nonce: self.nonce,
                name: name.to_vec(),
            },
            name: text.to_owned(),
            properties: Vec::new(),
        })
    }
}

/// The properties of a side that has proved to know the token.
fn proven(
    name: &'static str,
    data: &[u8],
    token: &Token,
    side: Side,
    transcript: &Transcript,
) -> Result<Properties, CloseReason> {
    let Some((proof, properties)) = data.split_first_chunk::<PROOF>() else {
        return Err(malformed(name, "a proof that has not 32 bytes"));
    };
    if !token.accepts(proof, side, transcript, properties) {
        return Err(ProtocolError::Cryptographic(name).into());
    }
    Ok(command::parse_properties(properties)?)
}

fn fresh(random: Random) -> Result<[u8; NONCE], CloseReason> {
    let mut nonce = [0; NONCE];
    match random(&mut nonce) {
        true => Ok(nonce),
        false => Err(misconfigured("the system has no random bytes")),
    }
}

fn malformed(command: &'static str, problem: &'static str) -> CloseReason {
    ProtocolError::Malformed { command, problem }.into()
}

fn misconfigured(problem: &'static str) -> CloseReason {
    CloseReason::Misconfigured {
        mechanism: MECHANISM.name,
        problem,
    }
}

#[cfg(test)]
mod tests;
