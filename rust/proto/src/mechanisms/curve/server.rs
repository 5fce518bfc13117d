//! The server: proves its key, and verifies the client's.
//!
//! Between WELCOME and INITIATE, it stores only the key of the cookie. Everything else is in the cookie, which the
//! client sends back.

use super::boxes::{self, Nonce};
use super::cipher::Messages;
use super::keys::{self, KEY, KeyPair};
use super::{
    COOKIE, COOKIE_NONCE, HELLO, HELLO_NONCE, INITIATE, INITIATE_NONCE, READY_NONCE, VOUCH_NONCE,
    WELCOME, WELCOME_NONCE, broken, malformed, weak,
};
use crate::command;
use crate::error::{CloseReason, ProtocolError};
use crate::mechanisms::{Local, Mechanism, MechanismConfig, Peer, Random, Started};
use bytes::Bytes;
use subtle::ConstantTimeEq;
use zeroize::Zeroizing;

pub(super) fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    Ok(Box::new(Server {
        properties: local.properties.to_vec(),
        authenticate: local.authenticate,
        random: local.random,
        own: super::own_keys(config)?,
        step: Step::AwaitHello,
    }))
}

struct Server {
    properties: Vec<u8>,
    /// Whether there is an authenticator.
    authenticate: bool,
    random: Random,
    /// S and s.
    own: KeyPair,
    step: Step,
}

enum Step {
    AwaitHello,
    SendWelcome(Vec<u8>, CookieKey),
    AwaitInitiate(CookieKey),
    Ask(Client),
    AwaitVerdict(Client),
    SendReady(Client),
    Meet(Client),
    Done,
}

/// The key of the cookie, and the number of the HELLO that it answered.
struct CookieKey {
    key: Zeroizing<[u8; KEY]>,
    hello: u64,
}

/// A client that has proved its identity.
struct Client {
    /// C.
    key: [u8; KEY],
    /// The shared key of C' and S'.
    shared: Zeroizing<[u8; KEY]>,
    /// The number of its INITIATE.
    number: u64,
    properties: Vec<(String, Bytes)>,
}

/// The number of the server's first numbered command. The numbers of messages follow.
const FIRST: u64 = 1;

impl Mechanism for Server {
    fn handle_command(&mut self, body: &[u8]) -> Result<(), CloseReason> {
        let (name, data) = command::split(body)?;
        self.step = match (&self.step, name) {
            (Step::AwaitHello, HELLO) => self.welcome(data)?,
            (Step::AwaitInitiate(cookie), INITIATE) => {
                let client = self.initiated(data, cookie)?;
                if self.authenticate {
                    Step::Ask(client)
                } else {
                    Step::SendReady(client)
                }
            }
            (Step::AwaitHello, _) => return Err(command::unexpected("HELLO", name).into()),
            (Step::AwaitInitiate(_), _) => {
                return Err(command::unexpected("INITIATE", name).into());
            }
            _ => return Err(command::unexpected("nothing yet", name).into()),
        };
        Ok(())
    }

    fn poll_command(&mut self) -> Option<Vec<u8>> {
        let (body, next) = match std::mem::replace(&mut self.step, Step::Done) {
            Step::SendWelcome(body, cookie) => (body, Step::AwaitInitiate(cookie)),
            Step::SendReady(client) => (self.ready(&client), Step::Meet(client)),
            other => {
                self.step = other;
                return None;
            }
        };
        self.step = next;
        Some(body)
    }

    fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::Ask(client) => {
                let key = Bytes::copy_from_slice(&client.key);
                self.step = Step::AwaitVerdict(client);
                Some(vec![key])
            }
            other => {
                self.step = other;
                None
            }
        }
    }

    fn accept(&mut self) {
        self.step = match std::mem::replace(&mut self.step, Step::Done) {
            Step::AwaitVerdict(client) => Step::SendReady(client),
            other => other,
        };
    }

    fn poll_peer(&mut self) -> Option<Peer> {
        match std::mem::replace(&mut self.step, Step::Done) {
            Step::Meet(client) => {
                let messages = Messages::new(&client.shared, true, FIRST, client.number);
                Some(Peer {
                    properties: client.properties,
                    user_id: None,
                    key: Some(Bytes::copy_from_slice(&client.key)),
                    cipher: Some(Box::new(messages)),
                })
            }
            other => {
                self.step = other;
                None
            }
        }
    }
}

impl Server {
    /// Handles a HELLO: version, padding, C', number, Box [64 zeros](C'->S).
    fn welcome(&self, data: &[u8]) -> Result<Step, CloseReason> {
        const SIZE: usize = 2 + 72 + KEY + 8 + boxes::OVERHEAD + 64;
        if data.len() != SIZE {
            return Err(malformed("HELLO", "not 194 bytes of data"));
        }
        let (version, data) = data.split_at(2);
        if version != [1, 0] {
            return Err(malformed("HELLO", "not version 1.0"));
        }
        let (padding, data) = data.split_at(72);
        if padding != [0; 72] {
            return Err(malformed("HELLO", "padding that is not zero"));
        }
        let (client, data) = take::<KEY>(data)?;
        if client[KEY - 1] & 0x80 != 0 {
            // Key agreement ignores this bit, so it must not be possible to change it unnoticed.
            return Err(malformed("HELLO", "a key beyond the field"));
        }
        let (number, signature) = take(data)?;
        let hello = u64::from_be_bytes(*number);
        let shared = keys::agree(&self.own.secret, client).ok_or_else(|| weak("HELLO"))?;
        let nonce = Nonce::short(HELLO_NONCE, hello);
        match boxes::open(&shared, &nonce, signature) {
            Some(zeros) if zeros[..] == [0; 64] => {}
            _ => return Err(broken("HELLO")),
        }

        let transient = keys::keypair(self.random).ok_or_else(super::no_random)?;
        let mut key = Zeroizing::new([0; KEY]);
        let (mut cookie_nonce, mut nonce) = ([0; 16], [0; 16]);
        for bytes in [&mut key[..], &mut cookie_nonce, &mut nonce] {
            if !(self.random)(bytes) {
                return Err(super::no_random());
            }
        }
        // Box [C' + s'](K).
        let cookie = boxes::seal(
            &key,
            &Nonce::long(COOKIE_NONCE, &cookie_nonce),
            &[client, &*transient.secret],
        );
        // Nonce, Box [S' + cookie nonce + cookie](S->C').
        let content = boxes::seal(
            &shared,
            &Nonce::long(WELCOME_NONCE, &nonce),
            &[&transient.public, &cookie_nonce, &cookie],
        );
        let body = [WELCOME, &nonce, &content].concat();
        Ok(Step::SendWelcome(body, CookieKey { key, hello }))
    }

    /// Handles an INITIATE: cookie, number, Box [C + vouch nonce + vouch + properties](C'->S').
    fn initiated(&self, data: &[u8], cookie_key: &CookieKey) -> Result<Client, CloseReason> {
        const VOUCH: usize = boxes::OVERHEAD + 2 * KEY;
        const LEAST: usize = COOKIE + 8 + boxes::OVERHEAD + KEY + 16 + VOUCH;
        if data.len() < LEAST {
            return Err(malformed("INITIATE", "less than 248 bytes of data"));
        }
        let (cookie, data) = data.split_at(COOKIE);
        let (number, sealed) = take(data)?;
        let number = u64::from_be_bytes(*number);

        let (nonce, cookie) = take(cookie)?;
        let nonce = Nonce::long(COOKIE_NONCE, nonce);
        let opened = boxes::open(&cookie_key.key, &nonce, cookie)
            .ok_or(ProtocolError::Cryptographic("the cookie of INITIATE"))?;
        let (transient, secret) = take::<KEY>(&opened)?;
        let (secret, _) = take(secret)?;

        let shared = keys::agree(secret, transient).ok_or_else(|| weak("INITIATE"))?;
        let nonce = Nonce::short(INITIATE_NONCE, number);
        let content = boxes::open(&shared, &nonce, sealed).ok_or_else(|| broken("INITIATE"))?;
        if number <= cookie_key.hello {
            return Err(ProtocolError::Sequence {
                expected: cookie_key.hello.saturating_add(1),
                got: number,
            }
            .into());
        }

        let (key, content) = take::<KEY>(&content)?;
        let (nonce, content) = take(content)?;
        let (vouch, properties) = take::<VOUCH>(content)?;
        let to_vouch = keys::agree(secret, key).ok_or_else(|| weak("INITIATE"))?;
        let vouched = boxes::open(&to_vouch, &Nonce::long(VOUCH_NONCE, nonce), vouch)
            .ok_or(ProtocolError::Cryptographic("the vouch of INITIATE"))?;
        let expected = [&transient[..], &self.own.public].concat();
        if !bool::from(vouched.ct_eq(&expected)) {
            return Err(ProtocolError::KeyExchange("a vouch for other keys than ours").into());
        }
        Ok(Client {
            key: keys::canonical_key(key),
            shared,
            number,
            properties: command::parse_properties(properties)?,
        })
    }

    /// Number, Box [properties](S'->C').
    fn ready(&self, client: &Client) -> Vec<u8> {
        let nonce = Nonce::short(READY_NONCE, FIRST);
        let content = boxes::seal(&client.shared, &nonce, &[&self.properties]);
        [command::READY, &FIRST.to_be_bytes(), &content].concat()
    }
}

/// Takes the first bytes of data whose length has been checked.
fn take<const SIZE: usize>(data: &[u8]) -> Result<(&[u8; SIZE], &[u8]), CloseReason> {
    data.split_first_chunk()
        .ok_or_else(|| malformed("INITIATE", "too short"))
}
