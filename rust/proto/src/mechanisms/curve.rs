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

use super::SettingKind::{Key, Server};
use super::spec::settings;
use super::{Inquiry, Local, MechanismConfig, MechanismSpec, Parameter, Shows, Started};
use crate::error::{CloseReason, ProtocolError};
use bytes::Bytes;
use zeroize::Zeroizing;

/// The CURVE mechanism.
pub static CURVE: MechanismSpec = MechanismSpec {
    settings: SETTINGS,
    check,
    inquiry: Inquiry::Optional,
    shows: Shows::Key,
    proves_server: true,
    unchecked_warning: Some(
        "the keys of clients are not checked: there is no ZAP handler and no allow-list",
    ),
    // A server that cannot open the client's HELLO has no key to answer with.
    silence_hint: Some("CURVE_SERVERKEY may not be its public key"),
    ..MechanismSpec::new("CURVE", 2, start)
};

settings! {
    47 CURVE_SERVER: Server, false, "Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.";
    48 CURVE_PUBLICKEY: Key(PUBLIC_KEY), false, "The public key of this socket, 32 bytes or 40 characters of Z85.";
    49 CURVE_SECRETKEY: Key(SECRET_KEY), false, "The secret key of this socket, 32 bytes or 40 characters of Z85.";
    50 CURVE_SERVERKEY: Key(SERVER_KEY), true, "The public key of the server to connect to; makes this a CURVE client.";
}

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

/// Returns the public key of the secret key, unless this is a client with another one.
fn check(config: &MechanismConfig, as_server: bool) -> Result<Vec<Parameter>, &'static str> {
    let Some(secret) = config
        .parameter(SECRET_KEY)
        .and_then(|key| key[..].try_into().ok())
    else {
        return Err("CURVE needs a secret key of this socket: set CURVE_SECRETKEY");
    };
    if !as_server && config.parameter(SERVER_KEY).is_none() {
        return Err(
            "CURVE needs to know its role: set CURVE_SERVER, or CURVE_SERVERKEY to connect to a server",
        );
    }
    let public = public_key(secret);
    match config.parameter(PUBLIC_KEY) {
        // A server does not send its public key, so a wrong one has no effect. A client's handshakes fail with the
        // reason, as with libzmq.
        Some(said) if is_other(said, &public) && !as_server => Ok(Vec::new()),
        _ => Ok(vec![(PUBLIC_KEY, Bytes::copy_from_slice(&public))]),
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
