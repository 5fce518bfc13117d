//! A security mechanism in a crate of its own: both sides know a token, and prove it without showing it.
//!
//! ```
//! use zeroxide::{Context, SocketType, Value, Wait};
//! use zeroxide_token::{MECHANISM, TOKEN_NAME, TOKEN_SECRET, TOKEN_SERVER};
//!
//! # fn main() -> zeroxide::Result<()> {
//! let context = Context::new();
//! context.add_mechanism(&MECHANISM)?;
//! let secret = Value::from("at least sixteen random bytes");
//!
//! let server = context.socket(SocketType::Pull)?;
//! server.set_option(TOKEN_SERVER, &Value::from(true))?;
//! server.set_option(TOKEN_SECRET, &secret)?;
//! let endpoint = server.bind("tcp://127.0.0.1:*")?;
//!
//! let client = context.socket(SocketType::Push)?;
//! client.set_option(TOKEN_NAME, &Value::from("sensor 7"))?;
//! client.set_option(TOKEN_SECRET, &secret)?;
//! client.connect(&endpoint)?;
//!
//! client.send("21 degrees", Wait::Forever)?;
//! let (message, peer) = server.recv_from(Wait::Forever)?;
//! assert_eq!(message.head().as_slice(), b"21 degrees");
//! assert_eq!(peer.unwrap().user_id.as_deref(), Some("sensor 7"));
//! # Ok(())
//! # }
//! ```
//!
//! The token proves that the peer is one of those that know it, and nothing more: messages are neither encrypted nor
//! protected from changes on their way, and every client can take the name of another. Where that matters, use CURVE. A
//! ZAP handler may refuse clients by their names.
//!
//! ```text
//! client                                  server
//! HELLO nonce, name            ------->
//!                              <-------   CHALLENGE nonce
//! INITIATE proof, properties   ------->   asks the ZAP handler, if there is one
//!                              <-------   READY proof, properties, or ERROR
//! ```
//!
//! A proof is an HMAC-SHA256 with the token as key, over the side that proves, both nonces, the name, and the properties of
//! that side. So it is good for one connection, one side, and these properties only.

mod exchange;
mod proof;

use zeroxide::mechanisms::{
    Inquiry, MechanismConfig, MechanismSpec, Parameter, Setting, SettingKind,
};

/// The option that makes a socket the server, the side that accepts or refuses its peers.
pub const TOKEN_SERVER: i32 = 2000;
/// The option for the name of a client, which is the `User-Id` of its messages.
pub const TOKEN_NAME: i32 = 2001;
/// The option for the token, at least 16 bytes.
pub const TOKEN_SECRET: i32 = 2002;

/// The value of the option MECHANISM.
pub const NUMBER: i32 = 100;

/// The mechanism, for [`Context::add_mechanism`](zeroxide::Context::add_mechanism).
pub static MECHANISM: MechanismSpec = MechanismSpec {
    settings: &[
        Setting {
            number: TOKEN_SERVER,
            name: "TOKEN_SERVER",
            kind: SettingKind::Server,
            of_client: false,
            doc: "Act as server of the TOKEN mechanism; needs TOKEN_SECRET.",
        },
        Setting {
            number: TOKEN_NAME,
            name: "TOKEN_NAME",
            kind: SettingKind::Text(NAME),
            of_client: true,
            doc: "The name of a TOKEN client.",
        },
        Setting {
            number: TOKEN_SECRET,
            name: "TOKEN_SECRET",
            kind: SettingKind::Text(SECRET),
            of_client: false,
            doc: "The token that both sides know.",
        },
    ],
    check,
    inquiry: Inquiry::Optional,
    proves_server: true,
    remote_warning: Some("TOKEN does not encrypt: messages cross the network in clear"),
    silence_hint: Some("its TOKEN_SECRET may be another one"),
    ..MechanismSpec::new("TOKEN", NUMBER, exchange::start)
};

/// The parameters, as the settings call them.
const NAME: &str = "name";
const SECRET: &str = "secret";

/// A shorter token could be guessed by a program that has recorded a handshake.
const SECRET_MIN: usize = 16;

fn check(config: &MechanismConfig, as_server: bool) -> Result<Vec<Parameter>, &'static str> {
    match config.parameter(SECRET) {
        None => Err("TOKEN needs TOKEN_SECRET"),
        Some(secret) if secret.len() < SECRET_MIN => Err("TOKEN_SECRET has at least 16 bytes"),
        Some(_) if as_server => Ok(Vec::new()),
        Some(_) => match config.parameter(NAME) {
            None => Err("a TOKEN client needs TOKEN_NAME"),
            Some(name) if std::str::from_utf8(name).is_err() => Err("TOKEN_NAME is text in UTF-8"),
            Some(_) => Ok(Vec::new()),
        },
    }
}
