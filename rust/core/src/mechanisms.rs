//! Security mechanisms: the exchange between the greeting of two peers and their first message.
//!
//! NULL, PLAIN and CURVE are built in. A mechanism of another crate is added to a context with
//! [`Context::add_mechanism`](crate::Context::add_mechanism). Sockets select it with its own options, and everything else
//! applies to it as well: ZAP handlers, monitors, the time limit of the handshake, and the `User-Id` of messages.
//!
//! # A mechanism of your own
//!
//! Each connection has one [`Mechanism`], a state machine without I/O: it takes the commands of the peer and returns its
//! own. The client of this one shows a ticket. The server knows no tickets: it asks the ZAP handler about each client, and
//! without a handler it admits none ([`Inquiry::Required`], the default).
//!
//! ```
//! use bytes::Bytes;
//! use zeroxide::mechanisms::{
//!     CloseReason, Local, Mechanism, MechanismConfig, MechanismSpec, Peer, Setting, SettingKind,
//!     Started, command,
//! };
//! use zeroxide::{Context, Result, SocketType, Value};
//!
//! const TICKET_SERVER: i32 = 2100;
//! const TICKET: i32 = 2101;
//!
//! static SPEC: MechanismSpec = MechanismSpec {
//!     settings: &[
//!         Setting {
//!             number: TICKET_SERVER,
//!             name: "TICKET_SERVER",
//!             kind: SettingKind::Server,
//!             of_client: false,
//!             doc: "Act as server of the TICKET mechanism.",
//!         },
//!         Setting {
//!             number: TICKET,
//!             name: "TICKET",
//!             kind: SettingKind::Text("ticket"),
//!             of_client: true,
//!             doc: "The ticket of a TICKET client.",
//!         },
//!     ],
//!     remote_warning: Some("the ticket crossed the network in clear"),
//!     ..MechanismSpec::new("TICKET", 100, start)
//! };
//!
//! const HELLO: &[u8] = b"\x05HELLO";
//!
//! fn start(config: &MechanismConfig, local: Local<'_>) -> Started {
//!     let ready = [command::READY, local.properties].concat();
//!     Ok(Box::new(Ticket {
//!         is_server: local.as_server,
//!         hello: match config.parameter("ticket") {
//!             Some(ticket) if !local.as_server => Some([HELLO, ticket].concat()),
//!             _ => None,
//!         },
//!         shown: None,
//!         ready: (!local.as_server).then(|| ready.clone()),
//!         answer: local.as_server.then_some(ready),
//!         peer: None,
//!     }))
//! }
//!
//! struct Ticket {
//!     is_server: bool,
//!     hello: Option<Vec<u8>>,
//!     shown: Option<Bytes>,
//!     ready: Option<Vec<u8>>,
//!     answer: Option<Vec<u8>>,
//!     peer: Option<Vec<(String, Bytes)>>,
//! }
//!
//! impl Mechanism for Ticket {
//!     fn handle_command(&mut self, body: &[u8]) -> std::result::Result<(), CloseReason> {
//!         let (name, data) = command::split(body)?;
//!         match name {
//!             HELLO if self.is_server => self.shown = Some(Bytes::copy_from_slice(data)),
//!             command::READY => self.peer = Some(command::parse_properties(data)?),
//!             command::ERROR if !self.is_server => return Err(command::refusal(data)?),
//!             name => return Err(command::unexpected("HELLO or READY", name).into()),
//!         }
//!         Ok(())
//!     }
//!
//!     fn poll_command(&mut self) -> Option<Vec<u8>> {
//!         self.hello.take().or_else(|| self.ready.take())
//!     }
//!
//!     fn poll_credentials(&mut self) -> Option<Vec<Bytes>> {
//!         self.shown.take().map(|ticket| vec![ticket])
//!     }
//!
//!     fn accept(&mut self) {
//!         self.ready = self.answer.take();
//!     }
//!
//!     fn poll_peer(&mut self) -> Option<Peer> {
//!         // A server that has not answered yet has not been told to accept the client.
//!         let properties = self.peer.take_if(|_| self.answer.is_none())?;
//!         Some(Peer { properties, user_id: None, key: None, cipher: None })
//!     }
//! }
//!
//! # fn main() -> Result<()> {
//! let context = Context::new();
//! context.add_mechanism(&SPEC)?;
//! assert!(context.has("ticket"));
//! let server = context.socket(SocketType::Rep)?;
//! server.set_option(TICKET_SERVER, &Value::from(true))?;
//! let client = context.socket(SocketType::Req)?;
//! client.set_option(TICKET, &Value::from("row 5, seat 7"))?;
//! # Ok(())
//! # }
//! ```
//!
//! # Rules
//!
//! * A peer may send anything, in any order. A command that is malformed or not allowed now is an error, which ends the
//!   connection; it never panics, and nothing grows because of it.
//! * A server that asks an authenticator ([`Local::authenticate`]) returns neither a command nor a peer before
//!   [`Mechanism::accept`].
//! * Secrets are compared in constant time, and nonces come from [`Local::random`].
//! * If messages must be hidden or protected from changes, the [`Peer`] has a [`Cipher`].
//! * A mechanism runs in I/O threads, under the lock of its connection. It must not block.
//! * Numbers of mechanisms below 4 and of options below 1000 are ZeroMQ's. The library itself uses options from 1000 to
//!   1999.
//!
//! The methods of [`Mechanism`] and the fields of [`MechanismSpec`] say more.

pub use zeroxide_proto::command;
pub use zeroxide_proto::error::{CloseReason, ProtocolError};
pub use zeroxide_proto::mechanisms::{
    Cipher, Content, Greeted, Inquiry, Local, Mechanism, MechanismConfig, MechanismSpec, Opened,
    Parameter, Peer, Random, Setting, SettingKind, Shows, Started,
};
