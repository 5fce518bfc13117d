//! CURVE: encryption, with both sides known by their keys. ZeroMQ RFC 25 and 26.
//!
//! Both sides have a long-term pair of keys, C and S, and create another pair, C' and S', for each connection.
//! `Box [X](A->B)` is X encrypted so that only the owner of b can open it, and can verify that the owner of a sealed it.
//!
//! ```text
//! client, knows S                                    server
//! HELLO    C', Box [zeros](C'->S)          ------->
//!                                          <-------  WELCOME  Box [S' + cookie](S->C')
//! INITIATE cookie, Box [C + vouch +        ------->  opens the cookie, asks the authenticator
//!          properties](C'->S')             <-------  READY    Box [properties](S'->C'), or ERROR
//! MESSAGE  Box [flags + body](C'->S')      <------>  MESSAGE  Box [flags + body](S'->C')
//! ```
//!
//! The cookie holds C' and s', encrypted with a key of the server's. It is all that the server stores about the
//! connection until the client has shown that it can open the WELCOME. The vouch is Box [C' + S](C->S'), with which the
//! client proves that it owns c.
//!
//! Without an authenticator, a server admits every client that knows S.

mod boxes;
mod cipher;
mod client;
mod keys;
#[cfg(test)]
mod known_answers;
mod limbs;
mod poly1305;
mod salsa20;
mod server;
#[cfg(target_arch = "x86_64")]
mod wide_poly1305;

pub use keys::{KEY, KeyPair, canonical_key, keypair, public_key};

use super::{Local, MechanismConfig, MechanismSpec, Started};
use crate::error::{CloseReason, ProtocolError};
use zeroize::Zeroizing;

/// The CURVE mechanism.
pub static CURVE: MechanismSpec = MechanismSpec {
    name: "CURVE",
    start,
};

/// A parameter of both sides: the own secret key, 32 bytes.
pub const SECRET_KEY: &str = "secret key";
/// An optional parameter of both sides: the own public key, 32 bytes. If present, it must belong to the secret key.
pub const PUBLIC_KEY: &str = "public key";
/// A parameter of the client: the server's public key, 32 bytes.
pub const SERVER_KEY: &str = "server key";

const HELLO: &[u8] = b"\x05HELLO";
const WELCOME: &[u8] = b"\x07WELCOME";
const INITIATE: &[u8] = b"\x08INITIATE";

const HELLO_NONCE: &[u8; 16] = b"CurveZMQHELLO---";
const WELCOME_NONCE: &[u8; 8] = b"WELCOME-";
const COOKIE_NONCE: &[u8; 8] = b"COOKIE--";
const INITIATE_NONCE: &[u8; 16] = b"CurveZMQINITIATE";
const VOUCH_NONCE: &[u8; 8] = b"VOUCH---";
const READY_NONCE: &[u8; 16] = b"CurveZMQREADY---";

/// Bytes in a cookie: nonce, tag, two keys.
const COOKIE: usize = 16 + boxes::OVERHEAD + 2 * KEY;

fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
    if local.as_server {
        server::start(config, local)
    } else {
        client::start(config, local)
    }
}

fn own_keys(config: &MechanismConfig) -> Result<KeyPair, CloseReason> {
    let secret = Zeroizing::new(key(config, SECRET_KEY, "no secret key of 32 bytes")?);
    let pair = KeyPair::from_secret(*secret);
    match config.parameter(PUBLIC_KEY) {
        Some(public) if is_other(public, &pair.public) => Err(misconfigured(
            "the public key does not belong to the secret key",
        )),
        _ => Ok(pair),
    }
}

/// Whether `given` is another key than `own`.
fn is_other(given: &[u8], own: &[u8; KEY]) -> bool {
    given
        .try_into()
        .map_or(true, |given| canonical_key(given) != *own)
}

fn key(
    config: &MechanismConfig,
    name: &str,
    problem: &'static str,
) -> Result<[u8; KEY], CloseReason> {
    config
        .parameter(name)
        .and_then(|key| key[..].try_into().ok())
        .ok_or_else(|| misconfigured(problem))
}

fn misconfigured(problem: &'static str) -> CloseReason {
    CloseReason::Misconfigured {
        mechanism: CURVE.name,
        problem,
    }
}

fn no_random() -> CloseReason {
    misconfigured("the system has no random bytes")
}

fn malformed(command: &'static str, problem: &'static str) -> CloseReason {
    ProtocolError::Malformed { command, problem }.into()
}

/// The error for a box that cannot be opened.
fn broken(command: &'static str) -> CloseReason {
    ProtocolError::Cryptographic(command).into()
}

/// The error for a public key that gives the same result with every secret key.
fn weak(command: &'static str) -> CloseReason {
    malformed(command, "a weak key")
}
