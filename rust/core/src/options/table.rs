//! All socket options, with one row each: the description, the allowed values, and where the value is stored.

use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::socket_type::SocketType;
use zeroxide_proto::socket_type::SocketType::{
    Dealer, Pub, Rep, Req, Router, Stream, Sub, Xpub, Xsub,
};

use super::pattern::PatternOption;
use super::security::SecurityMechanism::{Curve, Plain};
use super::{Kind, OptionRow, Options, Value};
use crate::access::{Key, key_text, parse_key};
use crate::error::Result;

/// The limits of a value.
#[derive(Debug)]
pub(super) enum Limits {
    /// The minimum and maximum of a number.
    Range(i64, i64),
    /// The minimum and maximum number of bytes.
    Length(usize, usize),
}

/// How the value is stored and read. It is written after its limits were checked.
#[derive(Debug, Default)]
pub(super) struct Access {
    read: Option<Read>,
    write: Option<Write>,
    pattern: Option<fn(&Value) -> PatternOption>,
    /// The types whose pattern is notified; empty = all that have the option.
    heeded_by: &'static [SocketType],
    /// The reason why a known option is not available.
    refused: Option<&'static str>,
}

#[derive(Debug)]
enum Read {
    Int(fn(&Options) -> i64),
    Bytes(fn(&Options) -> &[u8]),
    Key(fn(&Options) -> Option<&Key>),
    /// Provided by the socket itself.
    Socket,
}

#[derive(Debug)]
enum Write {
    Int(fn(&mut Options, i64)),
    Bytes(fn(&mut Options, &[u8])),
    Str(fn(&mut Options, &str)),
    CheckedStr(fn(&mut Options, &str) -> Result<()>),
    Key(fn(&mut Options, Key)),
}

impl Access {
    pub(super) fn read(&self, row: &OptionRow, options: &Options) -> Result<Value> {
        match &self.read {
            Some(Read::Int(read)) => Ok(Value::Int(read(options))),
            Some(Read::Bytes(read)) => Ok(Value::from(read(options))),
            Some(Read::Key(read)) => Ok(Value::Bytes(
                read(options).map_or(Vec::new(), |key| key_text(key).into_bytes()),
            )),
            Some(Read::Socket) => Err(row.invalid(format_args!("is known to the socket alone"))),
            None => Err(row.invalid(format_args!("{}", self.refused.unwrap_or("cannot be read")))),
        }
    }

    pub(super) fn write(
        &self,
        row: &OptionRow,
        options: &mut Options,
        value: &Value,
    ) -> Result<()> {
        match (&self.write, value) {
            (Some(Write::Int(write)), Value::Int(number)) => write(options, *number),
            (Some(Write::Bytes(write)), Value::Bytes(bytes)) => write(options, bytes),
            (Some(Write::Str(write)), Value::Bytes(bytes)) => write(options, text(row, bytes)?),
            (Some(Write::CheckedStr(write)), Value::Bytes(bytes)) => {
                write(options, text(row, bytes)?)?
            }
            (Some(Write::Key(write)), Value::Bytes(bytes)) => {
                let key = parse_key(bytes).map_err(|error| error.about(row.name))?;
                write(options, key);
            }
            (Some(_), _) => return Err(row.invalid(format_args!("takes another type of value"))),
            (None, _) if self.pattern.is_some() => {}
            (None, _) => {
                let why = self.refused.unwrap_or("cannot be written");
                return Err(row.invalid(format_args!("{why}")));
            }
        }
        Ok(())
    }

    /// Converts a value for the pattern of a socket of this type, if that needs it.
    pub(super) fn pattern(&self, socket: SocketType) -> Option<fn(&Value) -> PatternOption> {
        let heeds = self.heeded_by.is_empty() || self.heeded_by.contains(&socket);
        self.pattern.filter(|_| heeds)
    }
}

const INT: i64 = i32::MAX as i64;

/// Generates the table and the constants in [`ids`] from the rows.
macro_rules! options_table {
    ($($id:literal $name:ident: $kind:ident, $doc:literal $(.$set:ident($($arg:expr),*))*,)*) => {
        /// The numbers of the options, as in `zmq.h`.
        pub mod ids {
            $(#[doc = $doc] pub const $name: i32 = $id;)*
        }

        /// Every option, sorted by number.
        pub static SOCKET_OPTIONS: &[OptionRow] = &[
            $(row($id, stringify!($name), Kind::$kind, $doc)$(.$set($($arg),*))*,)*
        ];
    };
}

options_table! {
    4 AFFINITY: Uint64, "The I/O threads that may serve new connections, one bit each; 0 = all."
        .range(i64::MIN, i64::MAX)
        .int(|o| o.affinity as i64, |o, v| o.affinity = v as u64),
    5 ROUTING_ID: Bytes, "The name under which ROUTER peers address this socket."
        .aliases(&["IDENTITY"])
        .length(1, 255)
        .bytes(|o| &o.routing_id, |o, v| o.routing_id = Bytes::copy_from_slice(v)),
    6 SUBSCRIBE: Bytes, "Also receive messages that begin with these bytes; empty = all."
        .of(&[Sub, Xpub])
        .pattern(|v| PatternOption::Subscribe(octets(v))),
    7 UNSUBSCRIBE: Bytes, "Undo one SUBSCRIBE of the same bytes."
        .of(&[Sub, Xpub])
        .pattern(|v| PatternOption::Unsubscribe(octets(v))),
    8 RATE: Int, "The limit of multicast transports in kbit/s."
        .range(1, INT)
        .int(|o| o.rate.into(), |o, v| o.rate = v as u32),
    9 RECOVERY_IVL: Int, "How long a multicast receiver may be away without loss, in ms."
        .range(0, INT)
        .int(|o| millis(Some(o.recovery_ivl), 0), |o, v| o.recovery_ivl = span(v)),
    11 SNDBUF: Int, "The kernel's send buffer in bytes; -1 = the system's default."
        .range(-1, INT)
        .int(|o| optional(o.sndbuf), |o, v| o.sndbuf = usize::try_from(v).ok()),
    12 RCVBUF: Int, "The kernel's receive buffer in bytes; -1 = the system's default."
        .range(-1, INT)
        .int(|o| optional(o.rcvbuf), |o, v| o.rcvbuf = usize::try_from(v).ok()),
    13 RCVMORE: Bool, "Whether further parts follow the one received last." .socket(),
    14 FD: Fd, "A descriptor that is readable when the socket may have become ready." .socket(),
    15 EVENTS: Int, "What the socket is ready for: POLLIN, POLLOUT." .socket(),
    16 TYPE: Int, "The socket's type." .only_int(|o| o.socket_type.id().into()),
    17 LINGER: Int, "How long messages are still sent after closing, in ms; -1 = no limit."
        .live()
        .range(-1, INT)
        .int(|o| millis(o.linger, -1), |o, v| o.linger = duration(v, -1)),
    18 RECONNECT_IVL: Int, "The delay before the next connection attempt in ms; -1 = no further attempt."
        .range(-1, INT)
        .int(|o| millis(o.reconnect_ivl, -1), |o, v| o.reconnect_ivl = duration(v, -1)),
    19 BACKLOG: Int, "How many connections may wait to be accepted."
        .range(0, INT)
        .int(|o| o.backlog.into(), |o, v| o.backlog = v as i32),
    21 RECONNECT_IVL_MAX: Int, "Delays between attempts double up to this many ms; 0 = they do not."
        .range(0, INT)
        .int(|o| millis(o.reconnect_ivl_max, 0), |o, v| o.reconnect_ivl_max = duration(v, 0)),
    22 MAXMSGSIZE: Int64, "A larger message from a peer ends its connection; bytes, -1 = no limit."
        .range(-1, i64::MAX)
        .int(|o| o.max_msg_size.map_or(-1, |v| v as i64), |o, v| o.max_msg_size = u64::try_from(v).ok()),
    23 SNDHWM: Int, "How many messages queue per peer on the way out; 0 = no limit."
        .live()
        .range(0, INT)
        .int(|o| o.sndhwm as i64, |o, v| o.sndhwm = v as usize),
    24 RCVHWM: Int, "How many messages queue per peer on the way in; 0 = no limit."
        .live()
        .range(0, INT)
        .int(|o| o.rcvhwm as i64, |o, v| o.rcvhwm = v as usize),
    25 MULTICAST_HOPS: Int, "How many routers a multicast packet may pass."
        .range(1, INT)
        .int(|o| o.multicast_hops.into(), |o, v| o.multicast_hops = v as u32),
    27 RCVTIMEO: Int, "How long receiving waits, in ms; -1 = no limit."
        .live()
        .range(-1, INT)
        .int(|o| millis(o.rcvtimeo, -1), |o, v| o.rcvtimeo = duration(v, -1)),
    28 SNDTIMEO: Int, "How long sending waits, in ms; -1 = no limit."
        .live()
        .range(-1, INT)
        .int(|o| millis(o.sndtimeo, -1), |o, v| o.sndtimeo = duration(v, -1)),
    31 IPV4ONLY: Bool, "The opposite of IPV6, for old programs."
        .int(|o| (!o.ipv6).into(), |o, v| o.ipv6 = v == 0),
    32 LAST_ENDPOINT: Str, "The endpoint that was bound or connected last, with wildcards replaced."
        .socket(),
    33 ROUTER_MANDATORY: Bool, "A message to an unknown peer raises an error instead of being dropped."
        .aliases(&["ROUTER_BEHAVIOR", "FAIL_UNROUTABLE"])
        .of(&[Router, Rep])
        .pattern(|v| PatternOption::RouterMandatory(flag(v))),
    34 TCP_KEEPALIVE: Int, "Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s."
        .range(-1, 1)
        .int(|o| o.tcp_keepalive.map_or(-1, i64::from), |o, v| o.tcp_keepalive = (v >= 0).then_some(v == 1)),
    35 TCP_KEEPALIVE_CNT: Int, "How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's default."
        .range(-1, 127)
        .int(|o| o.tcp_keepalive_cnt.map_or(-1, i64::from), |o, v| o.tcp_keepalive_cnt = u32::try_from(v).ok()),
    36 TCP_KEEPALIVE_IDLE: Int, "Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default."
        .range(-1, 32767)
        .int(|o| seconds(o.tcp_keepalive_idle), |o, v| o.tcp_keepalive_idle = idle(v)),
    37 TCP_KEEPALIVE_INTVL: Int, "Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default."
        .range(-1, 32767)
        .int(|o| seconds(o.tcp_keepalive_intvl), |o, v| o.tcp_keepalive_intvl = idle(v)),
    38 TCP_ACCEPT_FILTER: Str, "One more network (CIDR) that may connect to endpoints bound later; empty = every network again."
        .write_only_str(|o, v| {
            match v {
                "" => o.tcp_accept_filters.clear(),
                network => o.tcp_accept_filters.push(network.parse()?),
            }
            Ok(())
        }),
    39 IMMEDIATE: Bool, "Queue messages only for connections that are up."
        .aliases(&["DELAY_ATTACH_ON_CONNECT"])
        .int(|o| o.immediate.into(), |o, v| o.immediate = v == 1),
    40 XPUB_VERBOSE: Bool, "Receive every subscription, not only the first for a topic."
        .of(&[Xpub, Pub])
        .pattern(|v| PatternOption::XpubVerbose(flag(v))),
    41 ROUTER_RAW: Bool, "Raw TCP on a ROUTER; a STREAM socket is the newer way."
        .of(&[Router])
        .pattern(|v| PatternOption::RouterRaw(flag(v)))
        .write_only_int(|o, v| o.router_raw = v != 0),
    42 IPV6: Bool, "Bind and connect over IPv6 as well as IPv4."
        .int(|o| o.ipv6.into(), |o, v| o.ipv6 = v == 1),
    43 MECHANISM: Int, "The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI."
        .only_int(|o| o.security.mechanism as i64),
    44 PLAIN_SERVER: Bool, "Act as server of the PLAIN mechanism."
        .int(|o| o.security.is_server(Plain).into(), |o, v| o.security.set_server(Plain, v == 1)),
    45 PLAIN_USERNAME: Str, "The user name of a PLAIN client."
        .length(1, 255)
        .bytes(|o| &o.security.username, |o, v| {
            o.security.username = v.to_vec().into();
            o.security.set_role(Plain, false);
        }),
    46 PLAIN_PASSWORD: Str, "The password of a PLAIN client."
        .length(1, 255)
        .bytes(|o| &o.security.password, |o, v| {
            o.security.password = v.to_vec().into();
            o.security.set_role(Plain, false);
        }),
    47 CURVE_SERVER: Bool, "Act as server of the CURVE mechanism; needs CURVE_SECRETKEY."
        .int(|o| o.security.is_server(Curve).into(), |o, v| o.security.set_server(Curve, v == 1)),
    48 CURVE_PUBLICKEY: Bytes, "The public key of this socket, 32 bytes or 40 characters of Z85."
        .key(|o| o.security.public_key.as_ref(), |o, v| {
            o.security.public_key = Some(v);
            o.security.mechanism = Curve;
        }),
    49 CURVE_SECRETKEY: Bytes, "The secret key of this socket, 32 bytes or 40 characters of Z85."
        .key(|o| o.security.secret_key.as_deref(), |o, v| {
            o.security.secret_key = Some(v.into());
            o.security.mechanism = Curve;
        }),
    50 CURVE_SERVERKEY: Bytes, "The public key of the server to connect to; makes this a CURVE client."
        .key(|o| o.security.server_key.as_ref(), |o, v| {
            o.security.server_key = Some(v);
            o.security.set_role(Curve, false);
        }),
    51 PROBE_ROUTER: Bool, "Send an empty message on each new connection."
        .of(&[Router, Dealer, Req, Rep])
        .pattern(|v| PatternOption::ProbeRouter(flag(v))),
    52 REQ_CORRELATE: Bool, "Number the requests and accept only matching replies."
        .of(&[Req])
        .pattern(|v| PatternOption::ReqCorrelate(flag(v))),
    53 REQ_RELAXED: Bool, "Allow a new request before the reply to the last."
        .of(&[Req])
        .pattern(|v| PatternOption::ReqRelaxed(flag(v))),
    54 CONFLATE: Bool, "Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER)."
        .int(|o| o.conflate.into(), |o, v| o.conflate = v == 1),
    55 ZAP_DOMAIN: Str, "The domain that authentication requests name."
        .length(0, 255)
        .str(|o| o.security.zap_domain.as_bytes(), |o, v| o.security.zap_domain = v.to_owned()),
    56 ROUTER_HANDOVER: Bool, "A new peer takes over the routing id of an older one."
        .of(&[Router, Rep])
        .pattern(|v| PatternOption::RouterHandover(flag(v))),
    57 TOS: Int, "The type-of-service byte of outgoing packets."
        .range(0, 255)
        .int(|o| o.tos.into(), |o, v| o.tos = v as u8),
    58 IPC_FILTER_PID: Int, "One more process that may connect to a bound ipc endpoint."
        .range(0, INT)
        .write_only_int(|o, v| o.ipc_filter.pids.push(v as i32)),
    59 IPC_FILTER_UID: Int, "One more user that may connect to a bound ipc endpoint."
        .range(0, INT)
        .write_only_int(|o, v| o.ipc_filter.uids.push(v as u32)),
    60 IPC_FILTER_GID: Int, "One more primary group that may connect to a bound ipc endpoint."
        .range(0, INT)
        .write_only_int(|o, v| o.ipc_filter.gids.push(v as u32)),
    61 CONNECT_ROUTING_ID: Bytes, "The name here of the peer that the next connect reaches."
        .aliases(&["CONNECT_RID"])
        .of(&[Router, Stream, Rep])
        .length(1, 255)
        .pattern(|v| PatternOption::ConnectRoutingId(octets(v))),
    62 GSSAPI_SERVER: Bool, "Act as server of the GSSAPI mechanism." .refused(NO_GSSAPI),
    63 GSSAPI_PRINCIPAL: Str, "The principal of this socket." .refused(NO_GSSAPI),
    64 GSSAPI_SERVICE_PRINCIPAL: Str, "The principal of the server." .refused(NO_GSSAPI),
    65 GSSAPI_PLAINTEXT: Bool, "Authenticate without encrypting." .refused(NO_GSSAPI),
    66 HANDSHAKE_IVL: Int, "The limit from the connection to the end of the handshake, in ms; 0 = none."
        .range(0, INT)
        .int(|o| millis(o.handshake_ivl, 0), |o, v| o.handshake_ivl = duration(v, 0)),
    68 SOCKS_PROXY: Str, "Connect through the SOCKS5 proxy at host:port; empty = directly."
        .length(0, 1024)
        .str(|o| o.socks_proxy.as_bytes(), |o, v| o.socks_proxy = v.to_owned()),
    69 XPUB_NODROP: Bool, "Wait instead of dropping when the queue to a subscriber is full."
        .of(&[Xpub, Pub])
        .pattern(|v| PatternOption::XpubNodrop(flag(v))),
    71 XPUB_MANUAL: Bool, "The program decides which subscriptions take effect."
        .of(&[Xpub])
        .pattern(|v| PatternOption::XpubManual(flag(v))),
    72 XPUB_WELCOME_MSG: Bytes, "The first message to each new subscriber; empty = none."
        .of(&[Xpub, Pub])
        .pattern(|v| PatternOption::XpubWelcomeMsg(octets(v))),
    73 STREAM_NOTIFY: Bool, "Deliver an empty message when a peer connects and when it disconnects."
        .of(&[Stream])
        .pattern(|v| PatternOption::StreamNotify(flag(v))),
    74 INVERT_MATCHING: Bool, "Match messages that do not begin with a subscription; set it at both ends. No effect on types without subscriptions."
        .heeded_by(&[Pub, Xpub, Sub])
        .pattern(|v| PatternOption::InvertMatching(flag(v)))
        .int(|o| o.invert_matching.into(), |o, v| o.invert_matching = v != 0),
    75 HEARTBEAT_IVL: Int, "How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent peers are probed."
        .range(0, INT)
        .int(|o| millis(o.heartbeat_ivl, 0), |o, v| o.heartbeat_ivl = Some(span(v))),
    // Sent and stored in tenths of a second.
    76 HEARTBEAT_TTL: Int, "The silence after which the peer may end the connection, in ms; 0 = not sent to the peer."
        .range(0, 6_553_599)
        .int(|o| millis(Some(o.heartbeat_ttl), 0), |o, v| o.heartbeat_ttl = span(v / 100 * 100)),
    77 HEARTBEAT_TIMEOUT: Int, "Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL."
        .range(0, INT)
        .int(|o| millis(o.heartbeat_timeout, -1), |o, v| o.heartbeat_timeout = Some(span(v))),
    78 XPUB_VERBOSER: Bool, "Receive every subscription and every unsubscription."
        .of(&[Xpub, Pub])
        .pattern(|v| PatternOption::XpubVerboser(flag(v))),
    79 CONNECT_TIMEOUT: Int, "The limit of one connection attempt, in ms; 0 = the system's."
        .range(0, INT)
        .int(|o| millis(o.connect_timeout, 0), |o, v| o.connect_timeout = duration(v, 0)),
    80 TCP_MAXRT: Int, "How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit."
        .range(0, INT)
        .int(|o| millis(o.tcp_maxrt, 0), |o, v| o.tcp_maxrt = duration(v, 0)),
    81 THREAD_SAFE: Bool, "1 for the socket types that libzmq calls thread-safe. Every zeroxide socket is, but these types read 0 as in libzmq."
        .only_int(|_| 0),
    84 MULTICAST_MAXTPDU: Int, "The largest multicast datagram, in bytes."
        .range(1, INT)
        .int(|o| o.multicast_maxtpdu.into(), |o, v| o.multicast_maxtpdu = v as u32),
    85 VMCI_BUFFER_SIZE: Uint64, "The buffer of a VMCI socket; 0 = the driver's."
        .range(i64::MIN, i64::MAX)
        .int(|o| o.vmci_buffers[0] as i64, |o, v| o.vmci_buffers[0] = v as u64),
    86 VMCI_BUFFER_MIN_SIZE: Uint64, "The smallest buffer of a VMCI socket; 0 = the driver's."
        .range(i64::MIN, i64::MAX)
        .int(|o| o.vmci_buffers[1] as i64, |o, v| o.vmci_buffers[1] = v as u64),
    87 VMCI_BUFFER_MAX_SIZE: Uint64, "The largest buffer of a VMCI socket; 0 = the driver's."
        .range(i64::MIN, i64::MAX)
        .int(|o| o.vmci_buffers[2] as i64, |o, v| o.vmci_buffers[2] = v as u64),
    88 VMCI_CONNECT_TIMEOUT: Int, "The limit of a VMCI connection attempt, in ms; -1 = the driver's."
        .range(-1, INT)
        .int(|o| millis(o.vmci_connect_timeout, -1), |o, v| o.vmci_connect_timeout = duration(v, -1)),
    89 USE_FD: Int, "A listening descriptor that the next bind takes over; -1 = none."
        .range(-1, INT)
        .int(|o| o.use_fd.map_or(-1, i64::from), |o, v| o.use_fd = (v >= 0).then_some(v as i32)),
    90 GSSAPI_PRINCIPAL_NAMETYPE: Int, "What kind of name GSSAPI_PRINCIPAL is." .refused(NO_GSSAPI),
    91 GSSAPI_SERVICE_PRINCIPAL_NAMETYPE: Int, "What kind of name GSSAPI_SERVICE_PRINCIPAL is." .refused(NO_GSSAPI),
    // The kernel accepts 15 bytes and a terminating zero.
    92 BINDTODEVICE: Str, "The only network interface to use (needs CAP_NET_RAW); empty = any."
        .length(0, 15)
        .str(|o| o.bind_to_device.as_bytes(), |o, v| o.bind_to_device = v.to_owned()),
    93 ZAP_ENFORCE_DOMAIN: Bool, "Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler."
        .int(|o| o.security.enforce_domain.into(), |o, v| o.security.enforce_domain = v == 1),
    94 LOOPBACK_FASTPATH: Bool, "A feature of Windows. Stored without effect."
        .int(|o| o.loopback_fastpath.into(), |o, v| o.loopback_fastpath = v != 0),
    95 METADATA: Str, "A property sent to peers in the handshake, as X-name:value; each call adds one."
        .write_only_str(Options::add_metadata),
    96 MULTICAST_LOOP: Bool, "Whether multicast returns to this host. Stored without effect."
        .int(|o| o.multicast_loop.into(), |o, v| o.multicast_loop = v != 0),
    97 ROUTER_NOTIFY: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    98 XPUB_MANUAL_LAST_VALUE: Bool, "Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that subscriber."
        .of(&[Xpub])
        .pattern(|v| PatternOption::XpubManualLastValue(flag(v))),
    99 SOCKS_USERNAME: Str, "The user name for the SOCKS5 proxy; empty = no login."
        .length(0, 255)
        .str(|o| o.socks_username.as_bytes(), |o, v| o.socks_username = v.to_owned()),
    100 SOCKS_PASSWORD: Str, "The password for SOCKS_USERNAME."
        .length(0, 255)
        .str(|o| o.socks_password.as_bytes(), |o, v| o.socks_password = v.to_owned()),
    101 IN_BATCH_SIZE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    102 OUT_BATCH_SIZE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    103 WSS_KEY_PEM: Str, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    104 WSS_CERT_PEM: Str, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    105 WSS_TRUST_PEM: Str, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    106 WSS_HOSTNAME: Str, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    107 WSS_TRUST_SYSTEM: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    108 ONLY_FIRST_SUBSCRIBE: Bool, "Stored without effect: a message that does not begin with a subscription never has one in a later part."
        .of(&[Xpub, Xsub, Pub])
        .range(0, INT)
        .write_only_int(|_, _| {}),
    109 RECONNECT_STOP: Int, "When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect(); add the numbers."
        .range(i32::MIN as i64, INT)
        .int(|o| o.reconnect_stop.into(), |o, v| o.reconnect_stop = v as i32),
    110 HELLO_MSG: Bytes, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    111 DISCONNECT_MSG: Bytes, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    112 PRIORITY: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    113 BUSY_POLL: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    114 HICCUP_MSG: Bytes, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    115 XSUB_VERBOSE_UNSUBSCRIBE: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    116 TOPICS_COUNT: Int, "The number of different topics that this socket or its peers subscribe to."
        .of(&[Pub, Sub, Xpub, Xsub])
        .socket(),
    117 NORM_MODE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    118 NORM_UNICAST_NACK: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    119 NORM_BUFFER_SIZE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    120 NORM_SEGMENT_SIZE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    121 NORM_BLOCK_SIZE: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    122 NORM_NUM_PARITY: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    123 NORM_NUM_AUTOPARITY: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    124 NORM_PUSH: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
    // From here on, options that libzmq does not have.
    1001 MAX_SUBSCRIPTIONS: Int, "How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit."
        .of(&[Pub, Xpub])
        .range(0, INT)
        .pattern(|v| PatternOption::MaxSubscriptions(count(v)))
        .int(|o| o.max_subscriptions as i64, |o, v| o.max_subscriptions = v as usize),
    1002 SNDHWM_BYTES: Int64, "How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit."
        .live()
        .range(0, i64::MAX)
        .int(|o| o.sndhwm_bytes as i64, |o, v| o.sndhwm_bytes = v as usize),
    1003 RCVHWM_BYTES: Int64, "How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit."
        .live()
        .range(0, i64::MAX)
        .int(|o| o.rcvhwm_bytes as i64, |o, v| o.rcvhwm_bytes = v as usize),
    1004 STALL_IVL: Int, "How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no limit."
        .range(0, INT)
        .int(|o| millis(o.stall_ivl, 0), |o, v| o.stall_ivl = duration(v, 0)),
    1010 MAX_SUBSCRIPTION_BYTES: Int64, "How many bytes the topics of each subscriber may have together; further ones are counted and ignored. 0 = no limit."
        .of(&[Pub, Xpub])
        .range(0, i64::MAX)
        .pattern(|v| PatternOption::MaxSubscriptionBytes(count(v)))
        .int(|o| o.max_subscription_bytes as i64, |o, v| o.max_subscription_bytes = v as usize),
}

const NO_DRAFT: &str = "is a draft option, not available here";
const NO_GSSAPI: &str = "needs GSSAPI, which is not built in";

const fn row(id: i32, name: &'static str, kind: Kind, doc: &'static str) -> OptionRow {
    let limits = match kind {
        Kind::Bool => Limits::Range(0, 1),
        Kind::Bytes | Kind::Str => Limits::Length(0, usize::MAX),
        Kind::Int | Kind::Int64 | Kind::Uint64 | Kind::Fd => Limits::Range(i64::MIN, i64::MAX),
    };
    OptionRow {
        name,
        aliases: &[],
        id,
        kind,
        readable: false,
        writable: false,
        live: false,
        sockets: &[],
        doc,
        limits,
        access: Access {
            read: None,
            write: None,
            pattern: None,
            heeded_by: &[],
            refused: None,
        },
    }
}

impl OptionRow {
    const fn aliases(mut self, aliases: &'static [&'static str]) -> OptionRow {
        self.aliases = aliases;
        self
    }

    const fn of(mut self, sockets: &'static [SocketType]) -> OptionRow {
        self.sockets = sockets;
        self
    }

    /// All types have it, but only these patterns are notified.
    const fn heeded_by(mut self, sockets: &'static [SocketType]) -> OptionRow {
        self.access.heeded_by = sockets;
        self
    }

    const fn live(mut self) -> OptionRow {
        self.live = true;
        self
    }

    const fn range(mut self, low: i64, high: i64) -> OptionRow {
        self.limits = Limits::Range(low, high);
        self
    }

    const fn length(mut self, low: usize, high: usize) -> OptionRow {
        self.limits = Limits::Length(low, high);
        self
    }

    const fn reads(mut self, read: Read) -> OptionRow {
        self.access.read = Some(read);
        self.readable = true;
        self
    }

    const fn writes(mut self, write: Write) -> OptionRow {
        self.access.write = Some(write);
        self.writable = true;
        self
    }

    const fn int(self, read: fn(&Options) -> i64, write: fn(&mut Options, i64)) -> OptionRow {
        self.reads(Read::Int(read)).writes(Write::Int(write))
    }

    const fn bytes(self, read: fn(&Options) -> &[u8], write: fn(&mut Options, &[u8])) -> OptionRow {
        self.reads(Read::Bytes(read)).writes(Write::Bytes(write))
    }

    const fn str(self, read: fn(&Options) -> &[u8], write: fn(&mut Options, &str)) -> OptionRow {
        self.reads(Read::Bytes(read)).writes(Write::Str(write))
    }

    const fn only_int(self, read: fn(&Options) -> i64) -> OptionRow {
        self.reads(Read::Int(read))
    }

    const fn write_only_int(self, write: fn(&mut Options, i64)) -> OptionRow {
        self.writes(Write::Int(write))
    }

    const fn write_only_str(self, write: fn(&mut Options, &str) -> Result<()>) -> OptionRow {
        self.writes(Write::CheckedStr(write))
    }

    /// Passed to the pattern, at any time.
    const fn pattern(mut self, make: fn(&Value) -> PatternOption) -> OptionRow {
        if matches!(self.kind, Kind::Bool) {
            // As in libzmq, these accept any nonzero number as true, while the flags of transports accept only 1.
            self.limits = Limits::Range(0, INT);
        }
        self.access.pattern = Some(make);
        self.writable = true;
        self.live = true;
        self
    }

    /// Provided by the socket.
    const fn socket(self) -> OptionRow {
        self.reads(Read::Socket)
    }

    /// A key, which is read as text; empty if not set.
    const fn key(
        self,
        read: fn(&Options) -> Option<&Key>,
        write: fn(&mut Options, Key),
    ) -> OptionRow {
        self.reads(Read::Key(read)).writes(Write::Key(write))
    }

    /// A known option that is not available, and why.
    const fn refused(mut self, why: &'static str) -> OptionRow {
        self.access.refused = Some(why);
        self
    }
}

fn text<'a>(row: &OptionRow, bytes: &'a [u8]) -> Result<&'a str> {
    match std::str::from_utf8(bytes) {
        Ok(text) if !text.contains('\0') => Ok(text),
        _ => Err(row.invalid(format_args!("takes UTF-8 without zero bytes"))),
    }
}

fn flag(value: &Value) -> bool {
    *value != Value::Int(0)
}

fn count(value: &Value) -> usize {
    match value {
        Value::Int(number) => usize::try_from(*number).unwrap_or(0),
        Value::Bytes(_) => 0,
    }
}

fn octets(value: &Value) -> Bytes {
    match value {
        Value::Bytes(bytes) => Bytes::copy_from_slice(bytes),
        Value::Int(_) => Bytes::new(),
    }
}

fn optional(value: Option<usize>) -> i64 {
    value.map_or(-1, |value| value as i64)
}

/// Milliseconds for reading, where `none` stands for `None`.
fn millis(span: Option<Duration>, none: i64) -> i64 {
    span.map_or(none, |span| span.as_millis() as i64)
}

/// Milliseconds from writing, where `none` stands for `None`.
fn duration(millis: i64, none: i64) -> Option<Duration> {
    (millis != none).then(|| span(millis))
}

fn span(millis: i64) -> Duration {
    Duration::from_millis(millis.max(0).unsigned_abs())
}

fn seconds(span: Option<Duration>) -> i64 {
    span.map_or(-1, |span| span.as_secs() as i64)
}

fn idle(seconds: i64) -> Option<Duration> {
    u64::try_from(seconds).ok().map(Duration::from_secs)
}
