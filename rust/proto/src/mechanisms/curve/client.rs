//! The client: knows the server's key, proves its own.

use super::boxes::{self, Nonce};
use super::cipher::Messages;
use super::keys::{self, KEY, KeyPair};
use super::{
    COOKIE, HELLO, HELLO_NONCE, INITIATE, INITIATE_NONCE, READY_NONCE, VOUCH_NONCE, WELCOME,
    WELCOME_NONCE, broken, key, malformed, weak,
};
use crate::command;
use crate::error::{CloseReason, ProtocolError};
use crate::mechanisms::{Local, Mechanism, MechanismConfig, Peer, Started};
use bytes::Bytes;
use zeroize::Zeroizing;

pub(super) fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    Ok(Box::new(new(config, local)?))
}

fn new(config: &MechanismConfig, local: Local<'_>) -> Result<Client, CloseReason> {
    let server = key(
        config,
        super::SERVER_KEY,
        "the server's key is not 32 bytes long",
    )?;
    let own = super::own_keys(config)?;
    let transient = keys::keypair(local.random).ok_or_else(super::no_random)?;
    let mut vouch_nonce = [0; 16];
    if !(local.random)(&mut vouch_nonce) {
        return Err(super::no_random());
    }
    let to_server = keys::agree(&transient.secret, &server)
        .ok_or_else(|| super::misconfigured("the server's key is none"))?;
    Ok(Client {
        properties: local.properties.to_vec(),
        server,
        own,
        transient,
        vouch_nonce,
        to_server,
        step: Step::SendHello,
    })
}

struct Client {
    properties: Vec<u8>,
    /// S.
    server: [u8; KEY],
    /// C and c.
    own: KeyPair,
    /// C' and c'.
    transient: KeyPair,
    vouch_nonce: [u8; 16],
    /// The shared key of c' and S.
    to_server: Zeroizing<[u8; KEY]>,
    step: Step,
}

enum Step {
    SendHello,
    AwaitWelcome,
    SendInitiate(Vec<u8>, Zeroizing<[u8; KEY]>),
    /// With the shared key of c' and S'.
    AwaitReady(Zeroizing<[u8; KEY]>),
    Meet(Vec<(String, Bytes)>, Box<Messages>),
    Done,
}

/// The numbers of the client's first two commands. The numbers of messages follow.
const FIRST: u64 = 1;
const SECOND: u64 = 2;

impl Mechanism for Client {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let (name, data) = command::split(body)?;
        self.step = match (&self.step, name) {
            (Step::AwaitWelcome | Step::AwaitReady(_), command::ERROR) => {
                return Err(command::refusal(data)?);
            }
            (Step::AwaitWelcome, WELCOME) => self.welcomed(data)?,
            (Step::AwaitReady(shared), command::READY) => ready(data, shared)?,
            (Step::AwaitWelcome, _) => return Err(command::unexpected("WELCOME", name).into()),
            (Step::AwaitReady(_), _) => return Err(command::unexpected("READY", name).into()),
            _ => return Err(command::unexpected("messages", name).into()),
        };
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        let (body, next) = match std::mem::replace(&mut self.step, Step::Done) {
            Step::SendHello => (self.hello(), Step::AwaitWelcome),
            Step::SendInitiate(body, shared) => (body, Step::AwaitReady(shared)),
            other => {
                self.step = other;
                return None;
            }
        };
        self.step = next;
        Some(body)
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::Meet(properties, messages) => Some(Peer {
                properties,
                user_id: None,
                key: Some(Bytes::copy_from_slice(&self.server)),
                cipher: Some(messages),
            }),
            other => {
                self.step = other;
                None
            }
        }
    }
}

impl Client {
    /// Version, padding, C', number, Box [64 zeros](C'->S). The padding makes it longer than the answer.
    fn hello(&self) -> Vec<u8> {
        let nonce = Nonce::short(HELLO_NONCE, FIRST);
        let signature = boxes::seal(&self.to_server, &nonce, &[&[0; 64]]);
        [
            HELLO,
            &[1, 0],
            &[0; 72],
            &self.transient.public,
            &FIRST.to_be_bytes(),
            &signature,
        ]
        .concat()
    }

    /// Nonce, Box [S' + cookie](S->C').
    fn welcomed(&self, data: &[u8]) -> Result<Step, CloseReason> {
        const SIZE: usize = 16 + boxes::OVERHEAD + KEY + COOKIE;
        let (SIZE, Some((nonce, sealed))) = (data.len(), data.split_first_chunk()) else {
            return Err(malformed("WELCOME", "not 160 bytes of data"));
        };
        let nonce = Nonce::long(WELCOME_NONCE, nonce);
        let opened = boxes::open(&self.to_server, &nonce, sealed);
        let Some((server, cookie)) = opened
            .as_ref()
            .and_then(|opened| opened.split_first_chunk())
        else {
            return Err(broken("WELCOME"));
        };
        let shared = keys::agree(&self.transient.secret, server).ok_or_else(|| weak("WELCOME"))?;
        let to_vouch = keys::agree(&self.own.secret, server).ok_or_else(|| weak("WELCOME"))?;
        // Box [C' + S](C->S').
        let vouch = boxes::seal(
            &to_vouch,
            &Nonce::long(VOUCH_NONCE, &self.vouch_nonce),
            &[&self.transient.public, &self.server],
        );
        // Cookie, number, Box [C + vouch nonce + vouch + properties](C'->S').
        let content = boxes::seal(
            &shared,
            &Nonce::short(INITIATE_NONCE, SECOND),
            &[
                &self.own.public,
                &self.vouch_nonce,
                &vouch,
                &self.properties,
            ],
        );
        let initiate = [INITIATE, cookie, &SECOND.to_be_bytes(), &content].concat();
        Ok(Step::SendInitiate(initiate, shared))
    }
}

/// Number, Box [properties](S'->C').
fn ready(data: &[u8], shared: &[u8; KEY]) -> Result<Step, CloseReason> {
    let Some((number, sealed)) = data.split_first_chunk() else {
        return Err(malformed("READY", "shorter than its nonce"));
    };
    if sealed.len() < boxes::OVERHEAD {
        return Err(malformed("READY", "shorter than its tag"));
    }
    let number = u64::from_be_bytes(*number);
    let Some(properties) = boxes::open(shared, &Nonce::short(READY_NONCE, number), sealed) else {
        return Err(ProtocolError::Cryptographic("READY").into());
    };
    let properties = command::parse_properties(&properties)?;
    let messages = Messages::new(shared, false, SECOND, number);
    Ok(Step::Meet(properties, Box::new(messages)))
}

#[cfg(test)]
mod tests {
    use super::super::{CURVE, SECRET_KEY, SERVER_KEY, server};
    use super::*;
    use crate::SocketType;
    use crate::mechanisms::{Greeted, system_random};

    fn config(parameters: &[(&'static str, [u8; KEY])]) -> MechanismConfig {
        let parameters = parameters.iter();
        MechanismConfig {
            spec: &CURVE,
            parameters: parameters
                .map(|(name, key)| (*name, Bytes::copy_from_slice(key)))
                .collect(),
        }
    }

    fn local(as_server: bool) -> Local<'static> {
        Local {
            socket_type: SocketType::Dealer,
            as_server,
            authenticate: true,
            properties: b"",
            random: system_random,
            peer: Greeted {
                minor: 1,
                libzmq: false,
            },
        }
    }

    #[test]
    fn a_key_with_bit_255_set_is_known_under_its_only_name() {
        let (ours, theirs) = ([0x43; KEY], [0x53; KEY]);
        let own = keys::public_key(&ours);
        let mut server = server::start(&config(&[(SECRET_KEY, theirs)]), local(true)).unwrap();
        let server_key = keys::public_key(&theirs);
        let parameters = config(&[(SECRET_KEY, ours), (SERVER_KEY, server_key)]);
        let mut client = new(&parameters, local(false)).unwrap();
        client.own.public[KEY - 1] |= 0x80;

        server
            .handle_command(&client.poll_command().unwrap())
            .unwrap();
        client
            .handle_command(&server.poll_command().unwrap())
            .unwrap();
        server
            .handle_command(&client.poll_command().unwrap())
            .unwrap();
        let heard = server.poll_credentials().unwrap();
        assert_eq!(heard, [Bytes::copy_from_slice(&own)]);
    }
}
