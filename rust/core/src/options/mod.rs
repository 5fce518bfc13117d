//! Socket and context options: [`SOCKET_OPTIONS`] lists them, and [`Options`] has their values in the types that the
//! rest of the crate uses.
//!
//! A new option is one row in `table.rs` and, if its value is stored, one field here. Options that concern routing are
//! not stored but passed to the socket's pattern, whose spec lists them.

mod context;
mod filter;
mod mechanisms;
mod pattern;
mod security;
mod table;
mod tls;
pub(crate) mod typed;
mod words;

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::wires;

use crate::error::{Error, ErrorKind, Result};

pub(crate) use context::context_options;
pub use context::{CONTEXT_OPTIONS, ContextOptions, ContextRow, context_ids};
pub use filter::{AddressFilter, CredentialFilter};
pub(crate) use mechanisms::Mechanisms;
pub(crate) use pattern::PatternFacts;
pub use pattern::{PatternOption, SlowSubscriber};
pub(crate) use security::Authority;
pub use security::Security;
pub use table::{SOCKET_OPTIONS, ids};
pub(crate) use table::{make_tables, mechanism_options, socket_options};
pub use tls::{ClientAuth, Tls};

/// The default of MAX_SUBSCRIPTIONS, the maximum number of topics per subscriber: more than any program needs, but
/// finite.
pub(crate) const MAX_SUBSCRIPTIONS: usize = 1 << 22;

/// The default of MAX_SUBSCRIPTION_BYTES, the maximum total size of these topics.
pub(crate) const MAX_SUBSCRIPTION_BYTES: usize = 64 << 20;

/// The default of RESEND_IVL, the time after which a request over SP is sent again: nanomsg's.
pub(crate) const RESEND_IVL: Duration = Duration::from_secs(60);

/// The default of SURVEY_TIMEOUT, the time in which the answers to a survey are received: nanomsg's.
pub(crate) const SURVEY_TIMEOUT: Duration = Duration::from_secs(1);

/// The default of MAX_TTL, the maximum number of sockets that a message may have passed: nanomsg's.
pub(crate) const MAX_TTL: u8 = 8;

/// The default of SPILL_BYTES, the maximum size of the messages of a socket that wait on disk.
pub(crate) const SPILL_BYTES: u64 = 1 << 30;

/// The value of an option, as it is set or read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Value {
    /// A number, a flag (0 or 1) or a descriptor. Unsigned 64-bit options are passed as their bit pattern.
    Int(i64),
    /// Bytes, or a string in UTF-8 without a terminating zero.
    Bytes(Vec<u8>),
}

/// The type of an option's value at the interface.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OptionKind {
    /// A 32-bit number.
    Int,
    /// 0 or 1.
    Bool,
    /// A signed 64-bit number.
    Int64,
    /// An unsigned 64-bit number.
    Uint64,
    /// Bytes.
    Bytes,
    /// A string.
    Str,
    /// A descriptor.
    Fd,
}

/// The description of an option.
#[derive(Clone, Debug)]
pub struct OptionRow {
    /// As in `zmq.h`, without the prefix.
    pub name: &'static str,
    /// Older names of the same number.
    pub aliases: &'static [&'static str],
    /// The number in `zmq.h`.
    pub id: i32,
    /// The type of its value.
    pub kind: OptionKind,
    /// Whether it can be read.
    pub readable: bool,
    /// Whether it can be written.
    pub writable: bool,
    /// Whether a change affects existing binds and connections.
    pub live: bool,
    /// Whether only the socket types have it whose pattern lists it: see [`OptionRow::sockets`].
    pub of_patterns: bool,
    /// Whether only ZMTP can carry it to peers. Patterns over other wire protocols may list it nevertheless.
    pub(crate) of_standard: bool,
    /// Its effect, in a sentence.
    pub doc: &'static str,
    limits: table::Limits,
    access: table::Access,
}

/// The maximum size of METADATA: peers accept 64 KiB and 256 properties in a handshake, including other properties.
const METADATA_BYTES: usize = 32 << 10;
const METADATA_COUNT: usize = 128;

/// The options of one socket. Transports and sessions get a copy at bind or connect, and are notified of changes of the
/// options that are marked live in the table.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Options {
    /// TYPE
    pub socket_type: SocketType,
    /// The facts about the pattern of this type that its connections need.
    pub(crate) pattern: PatternFacts,
    /// AFFINITY: the I/O threads that may serve new connections, one bit each; 0 = all.
    pub affinity: u64,
    /// ROUTING_ID: sent to the peer; may be empty.
    pub routing_id: Bytes,
    /// LINGER: how long messages are sent after close; `None` = without limit.
    pub linger: Option<Duration>,
    /// SNDHWM: messages queued per pipe on the way out; 0 = no limit.
    pub sndhwm: usize,
    /// RCVHWM: messages queued per pipe on the way in; 0 = no limit.
    pub rcvhwm: usize,
    /// SNDHWM_BYTES: bytes queued per pipe on the way out; 0 = no limit.
    pub sndhwm_bytes: usize,
    /// RCVHWM_BYTES: bytes queued per pipe on the way in; 0 = no limit.
    pub rcvhwm_bytes: usize,
    /// SPILL_DIR: where messages beyond the high-water mark wait; empty = nowhere.
    pub spill_dir: String,
    /// SPILL_BYTES: how many bytes of messages may wait there; 0 = no limit.
    pub spill_bytes: u64,
    /// SPILL_KEEP: whether they stay when the socket closes.
    pub spill_keep: bool,
    /// SNDPRIO: the priority of the peers of later binds and connects for what is sent, 1 (first) to 16 (last).
    pub sndprio: u8,
    /// RCVPRIO: the same for what is received.
    pub rcvprio: u8,
    /// SNDTIMEO: `None` = no limit.
    pub sndtimeo: Option<Duration>,
    /// RCVTIMEO: `None` = no limit.
    pub rcvtimeo: Option<Duration>,
    /// IMMEDIATE: queue only to connections that are up.
    pub immediate: bool,
    /// CONFLATE: keep only the newest message.
    pub conflate: bool,
    /// RECONNECT_STOP: the events that end reconnecting, as a sum: 1 for a refused connection, 2 for a failed
    /// handshake, 4 for a disconnect.
    pub reconnect_stop: i32,
    /// Whether the socket type carries plain bytes, without ZMTP.
    pub raw: bool,
    /// ROUTER_RAW: bytes instead of ZMTP on a ROUTER.
    pub router_raw: bool,
    /// ROUTER_NOTIFY
    pub router_notify: i32,
    /// PROBE_ROUTER: each connection begins with an empty message. Shared with the connections of earlier binds and
    /// connects, for which it counts, too.
    pub probe_router: Arc<AtomicBool>,
    /// HELLO_MSG: the first message of each connection; empty = none.
    pub hello_msg: Bytes,
    /// DISCONNECT_MSG: received when a peer leaves that has connected to this socket; empty = none.
    pub disconnect_msg: Bytes,
    /// HICCUP_MSG: received when a connection of this socket is lost; empty = none.
    pub hiccup_msg: Bytes,
    /// METADATA: properties that are sent to peers.
    pub metadata: Vec<(String, Bytes)>,
    /// INVERT_MATCHING: match messages that do not have the prefix.
    pub invert_matching: bool,
    /// MAX_SUBSCRIPTIONS
    pub max_subscriptions: usize,
    /// MAX_SUBSCRIPTION_BYTES
    pub max_subscription_bytes: usize,
    /// SLOW_SUBSCRIBER: 0 = a subscriber misses messages when its pipe is full, 1 = the publisher waits, 2 = the subscriber
    /// is disconnected.
    pub slow_subscriber: i32,
    /// MAX_LAG: how long a message may wait for the application; `None` = no limit.
    pub max_lag: Option<Duration>,
    /// MAXMSGSIZE: `None` = no limit.
    pub max_msg_size: Option<u64>,
    /// WIRE_PROTOCOL: the number of a [`WireSpec`](zeroxide_proto::wires::WireSpec).
    pub wire_protocol: i32,
    /// The options that were set although only the standard wire protocol may carry them.
    pub(crate) of_standard: Vec<i32>,
    /// RESEND_IVL: the time after which a request over SP is sent again; `None` = never.
    pub resend_ivl: Option<Duration>,
    /// SURVEY_TIMEOUT: the time in which the answers to a survey are received; `None` = no limit.
    pub survey_timeout: Option<Duration>,
    /// MAX_TTL: the maximum number of sockets that a message may have passed.
    pub max_ttl: u8,

    /// RECONNECT_IVL: the delay before the next attempt; `None` = no further attempt.
    pub reconnect_ivl: Option<Duration>,
    /// RECONNECT_IVL_MAX: delays double up to this value; `None` = constant delays.
    pub reconnect_ivl_max: Option<Duration>,
    /// CONNECT_TIMEOUT: the limit of one attempt; `None` = that of the session.
    pub connect_timeout: Option<Duration>,
    /// HANDSHAKE_IVL: the limit from the connection to the end of the handshake; `None` = no limit.
    pub handshake_ivl: Option<Duration>,
    /// HEARTBEAT_IVL: the interval of pings, zero = never; `None` = only when a peer has been silent, which does not
    /// end the connection by itself.
    pub heartbeat_ivl: Option<Duration>,
    /// HEARTBEAT_TTL: when the peer may give up on us; zero = not announced.
    pub heartbeat_ttl: Duration,
    /// HEARTBEAT_TIMEOUT: the silence after a ping that ends the connection; `None` = HEARTBEAT_IVL, zero = no limit.
    pub heartbeat_timeout: Option<Duration>,
    /// STALL_IVL: the silence in the middle of a message that ends the connection; `None` = no limit.
    pub stall_ivl: Option<Duration>,

    /// SNDBUF: `None` = the system's.
    pub sndbuf: Option<usize>,
    /// RCVBUF: `None` = the system's.
    pub rcvbuf: Option<usize>,
    /// BACKLOG: the number of connections that may wait to be accepted.
    pub backlog: i32,
    /// IPV6: both families instead of IPv4 only.
    pub ipv6: bool,
    /// TCP_KEEPALIVE: `None` = on, so that a machine that has died is detected.
    pub tcp_keepalive: Option<bool>,
    /// TCP_KEEPALIVE_CNT: `None` = the system's.
    pub tcp_keepalive_cnt: Option<u32>,
    /// TCP_KEEPALIVE_IDLE: `None` = the system's.
    pub tcp_keepalive_idle: Option<Duration>,
    /// TCP_KEEPALIVE_INTVL: `None` = the system's.
    pub tcp_keepalive_intvl: Option<Duration>,
    /// TCP_MAXRT: how long sent bytes may go unacknowledged; `None` = the system's.
    pub tcp_maxrt: Option<Duration>,
    /// TCP_ACCEPT_FILTER: the networks from which clients may connect; empty = all.
    pub tcp_accept_filters: Vec<AddressFilter>,
    /// IPC_FILTER_*: the clients that may connect.
    pub ipc_filter: CredentialFilter,
    /// TOS: type of service of outgoing packets.
    pub tos: u8,
    /// BINDTODEVICE: the only interface to use; empty = any.
    pub bind_to_device: String,
    /// SOCKS_PROXY: `host:port`; empty = none.
    pub socks_proxy: String,
    /// SOCKS_USERNAME: empty = none.
    pub socks_username: String,
    /// SOCKS_PASSWORD
    pub socks_password: String,
    /// USE_FD: a listening descriptor that the next bind takes over.
    pub use_fd: Option<i32>,

    /// PLAIN_*, CURVE_*, ZAP_*: this side's credentials, and the access control for its peers.
    pub security: Security,
    /// TLS_*: certificates, keys and rules of transports with TLS.
    pub tls: Arc<Tls>,
    /// LOOPBACK_FASTPATH
    pub loopback_fastpath: bool,
    /// MULTICAST_LOOP
    pub multicast_loop: bool,
    /// RATE in kbit/s
    pub rate: u32,
    /// RECOVERY_IVL
    pub recovery_ivl: Duration,
    /// MULTICAST_HOPS
    pub multicast_hops: u32,
    /// MULTICAST_MAXTPDU, if it was set.
    pub multicast_maxtpdu: Option<u32>,
    /// VMCI_BUFFER_SIZE, _MIN_SIZE, _MAX_SIZE; 0 = the driver's.
    pub vmci_buffers: [u64; 3],
    /// VMCI_CONNECT_TIMEOUT: `None` = the driver's.
    pub vmci_connect_timeout: Option<Duration>,
    /// Whether what the socket connects to is the choice of peers. Its connections leave the last descriptors of the
    /// process to the program then, as accepted ones do.
    pub(crate) is_led_by_peers: bool,
}

impl Options {
    /// The defaults of a socket type in a context.
    pub fn new(socket_type: SocketType, context: &ContextOptions) -> Options {
        Options {
            socket_type,
            pattern: PatternFacts::default(),
            affinity: 0,
            routing_id: Bytes::new(),
            linger: (!context.blocky).then_some(Duration::ZERO),
            sndhwm: 1000,
            rcvhwm: 1000,
            sndhwm_bytes: 0,
            rcvhwm_bytes: 0,
            sndtimeo: None,
            rcvtimeo: None,
            immediate: false,
            conflate: false,
            raw: socket_type.is_raw(),
            router_raw: false,
            router_notify: 0,
            probe_router: Arc::default(),
            hello_msg: Bytes::new(),
            disconnect_msg: Bytes::new(),
            hiccup_msg: Bytes::new(),
            metadata: Vec::new(),
            invert_matching: false,
            max_subscriptions: MAX_SUBSCRIPTIONS,
            max_subscription_bytes: MAX_SUBSCRIPTION_BYTES,
            slow_subscriber: 0,
            max_lag: None,
            max_msg_size: None,
            wire_protocol: socket_type.wire(),
            of_standard: Vec::new(),
            resend_ivl: Some(RESEND_IVL),
            survey_timeout: Some(SURVEY_TIMEOUT),
            max_ttl: MAX_TTL,
            reconnect_ivl: Some(Duration::from_millis(100)),
            reconnect_ivl_max: None,
            reconnect_stop: 0,
            connect_timeout: None,
            handshake_ivl: Some(Duration::from_secs(30)),
            heartbeat_ivl: None,
            heartbeat_ttl: Duration::ZERO,
            heartbeat_timeout: None,
            spill_dir: String::new(),
            spill_bytes: SPILL_BYTES,
            spill_keep: false,
            sndprio: 8,
            rcvprio: 8,
            stall_ivl: Some(Duration::from_secs(60)),
            sndbuf: None,
            rcvbuf: None,
            backlog: 100,
            ipv6: context.ipv6,
            tcp_keepalive: None,
            tcp_keepalive_cnt: None,
            tcp_keepalive_idle: None,
            tcp_keepalive_intvl: None,
            tcp_maxrt: None,
            tcp_accept_filters: Vec::new(),
            ipc_filter: CredentialFilter::default(),
            tos: 0,
            bind_to_device: String::new(),
            socks_proxy: String::new(),
            socks_username: String::new(),
            socks_password: String::new(),
            use_fd: None,
            security: Security::default(),
            tls: Arc::default(),
            loopback_fastpath: false,
            multicast_loop: true,
            rate: 100,
            recovery_ivl: Duration::from_secs(10),
            multicast_hops: 1,
            multicast_maxtpdu: None,
            vmci_buffers: [0; 3],
            vmci_connect_timeout: None,
            is_led_by_peers: false,
        }
    }

    /// Checks and stores a value. Options that concern routing are only checked; [`OptionRow::for_pattern`] converts
    /// them for the pattern.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, it cannot be written, or the value is not allowed.
    #[cfg(test)]
    pub(crate) fn set(&mut self, id: i32, value: &Value) -> Result<()> {
        self.set_row(OptionRow::find(id)?, value)
    }

    /// Like [`set`](Self::set), for the option of this row.
    ///
    /// # Errors
    /// `Invalid` if it cannot be written, or the value is not allowed.
    pub(crate) fn set_row(&mut self, row: &OptionRow, value: &Value) -> Result<()> {
        row.check(value)?;
        row.access.write(row, self, value)?;
        if row.of_standard && !self.of_standard.contains(&row.id) {
            self.of_standard.push(row.id);
        }
        Ok(())
    }

    /// Whether CONFLATE has an effect on the messages that the socket sends, and on those that it receives. The other
    /// direction, for example subscriptions, is never conflated.
    pub(crate) fn conflation(&self) -> (bool, bool) {
        let (sends, receives) = self.pattern.conflates;
        (self.conflate && sends, self.conflate && receives)
    }

    /// Whether the next connection to a peer uses the pipe of the one before.
    pub(crate) fn keeps_pipes(&self) -> bool {
        !self.immediate && self.reconnect_ivl.is_some()
    }

    /// Whether its connections carry plain bytes, without ZMTP.
    pub(crate) fn is_raw(&self) -> bool {
        self.raw || self.router_raw
    }

    /// Adds a property for the handshake. The first value of a name stays.
    fn add_metadata(&mut self, property: &[u8]) -> Result<()> {
        let invalid = |why: &str| Err(Error::with(ErrorKind::Invalid, format!("METADATA {why}")));
        let colon = property.iter().position(|byte| *byte == b':');
        let Some((name, value)) = colon
            .map(|colon| (&property[..colon], &property[colon + 1..]))
            .filter(|(name, value)| name.starts_with(b"X-") && name.len() > 2 && !value.is_empty())
        else {
            return invalid("is X-name:value, with a name and a value");
        };
        let Some(name) = std::str::from_utf8(name)
            .ok()
            .filter(|name| !name.contains('\0'))
        else {
            return invalid("takes names in UTF-8 without zero bytes");
        };
        if name.len() > 255 {
            return invalid("takes names of at most 255 bytes");
        }
        let size = |(name, value): &(String, Bytes)| name.len() + value.len();
        let before: usize = self.metadata.iter().map(size).sum();
        if before + property.len() > METADATA_BYTES || self.metadata.len() >= METADATA_COUNT {
            return invalid("is more than a handshake has room for");
        }
        if !self.metadata.iter().any(|(known, _)| known == name) {
            let value = Bytes::copy_from_slice(value);
            self.metadata.push((name.to_owned(), value));
        }
        Ok(())
    }

    /// The options for a bind or connect: these, and the settings of the security mechanism that follow from them. They
    /// are shared until the next change, because most sockets of a program have the same ones.
    ///
    /// # Errors
    /// `Invalid`, naming the mechanism's missing or wrong setting.
    pub(crate) fn complete(self: &Arc<Options>) -> Result<Arc<Options>> {
        if let Some(own) = self.pattern.other {
            self.security.check_other(wires::of(own))?;
        }
        let mut complete = self.clone();
        for (option, value) in self.security.check(self.is_raw())? {
            let security = &mut Arc::make_mut(&mut complete).security;
            security.store(option, value.to_vec());
        }
        Ok(complete)
    }

    /// The value of an option. The socket itself provides EVENTS, FD, LAST_ENDPOINT and RCVMORE.
    ///
    /// # Errors
    /// `Invalid` if there is no such option, or it cannot be read.
    pub fn get(&self, id: i32) -> Result<Value> {
        self.get_row(OptionRow::find(id)?)
    }

    /// Like [`get`](Self::get), for the option of this row.
    ///
    /// # Errors
    /// `Invalid` if it cannot be read.
    pub(crate) fn get_row(&self, row: &OptionRow) -> Result<Value> {
        row.access.read(row, self)
    }
}

impl OptionRow {
    /// The row of an option's number.
    ///
    /// # Errors
    /// `Invalid` if there is none.
    pub fn find(id: i32) -> Result<&'static OptionRow> {
        let row = usize::try_from(id)
            .ok()
            .and_then(|id| *table::BY_NUMBER.get(id)?);
        row.ok_or_else(|| {
            let text = format!("there is no socket option {id}");
            Error::with(ErrorKind::Invalid, text)
        })
    }

    /// The unit of its value, if it is a time.
    pub fn unit(&self) -> Option<&'static str> {
        let mut words = self.doc.split(|letter: char| !letter.is_alphanumeric());
        words.find_map(|word| match word {
            "ms" => Some("milliseconds"),
            "seconds" => Some("seconds"),
            _ => None,
        })
    }

    fn check(&self, value: &Value) -> Result<()> {
        match (&self.limits, value) {
            (table::Limits::Range(low, high), Value::Int(number)) => {
                if (low..=high).contains(&number) {
                    return Ok(());
                }
                Err(self.invalid(format_args!("takes {low} to {high}, not {number}")))
            }
            (table::Limits::Length(low, high), Value::Bytes(bytes)) => {
                if (low..=high).contains(&&bytes.len()) {
                    return Ok(());
                }
                Err(self.invalid(format_args!(
                    "takes {low} to {high} bytes, not {}",
                    bytes.len()
                )))
            }
            (table::Limits::Range(..), Value::Bytes(_)) => {
                Err(self.invalid(format_args!("takes a number, not bytes")))
            }
            (table::Limits::Length(..), Value::Int(_)) => {
                Err(self.invalid(format_args!("takes bytes, not a number")))
            }
        }
    }

    fn invalid(&self, why: fmt::Arguments<'_>) -> Error {
        Error::with(ErrorKind::Invalid, format!("{} {why}", self.name))
    }
}

impl From<bool> for Value {
    fn from(flag: bool) -> Value {
        Value::Int(i64::from(flag))
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Bytes(text.as_bytes().to_vec())
    }
}

impl From<&[u8]> for Value {
    fn from(bytes: &[u8]) -> Value {
        Value::Bytes(bytes.to_vec())
    }
}

#[cfg(test)]
mod tests;
