//! All socket options, with one row each: the description, the allowed values, and where the value is stored.

use std::sync::LazyLock;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use zeroxide_proto::mechanisms::{MECHANISMS, MechanismSpec, Setting, SettingKind};
use zeroxide_proto::wires::WIRES;

use super::pattern::{PatternOption, SlowSubscriber};
use super::{ClientAuth, OptionKind, OptionRow, Options, Security, Value};
use crate::access::{key_text, parse_key};
use crate::error::Result;

/// The limits of a value.
#[derive(Clone, Debug)]
pub(super) enum Limits {
    /// The minimum and maximum of a number.
    Range(i64, i64),
    /// The minimum and maximum number of bytes.
    Length(usize, usize),
}

/// How the value is stored and read. It is written after its limits were checked.
#[derive(Clone, Debug, Default)]
pub(super) struct Access {
    read: Option<Read>,
    write: Option<Write>,
    pattern: Option<fn(&Value) -> PatternOption>,
    /// The reason why a known option is not available.
    refused: Option<&'static str>,
}

#[derive(Clone, Debug)]
enum Read {
    Int(fn(&Options) -> i64),
    Bytes(fn(&Options) -> &[u8]),
    Mechanism(&'static MechanismSpec, &'static Setting),
    /// Provided by the socket itself.
    Socket,
}

#[derive(Clone, Debug)]
enum Write {
    Int(fn(&mut Options, i64)),
    Bytes(fn(&mut Options, &[u8])),
    Str(fn(&mut Options, &str)),
    CheckedBytes(fn(&mut Options, &[u8]) -> Result<()>),
    CheckedStr(fn(&mut Options, &str) -> Result<()>),
    Mechanism(&'static MechanismSpec, &'static Setting),
}

impl Access {
    pub(super) fn read(&self, row: &OptionRow, options: &Options) -> Result<Value> {
        match &self.read {
            Some(Read::Int(read)) => Ok(Value::Int(read(options))),
            Some(Read::Bytes(read)) => Ok(Value::from(read(options))),
            Some(Read::Mechanism(spec, setting)) => Ok(setting_value(spec, setting, options)),
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
            (Some(Write::CheckedBytes(write)), Value::Bytes(bytes)) => write(options, bytes)?,
            (Some(Write::CheckedStr(write)), Value::Bytes(bytes)) => {
                write(options, text(row, bytes)?)?
            }
            (Some(Write::Mechanism(spec, setting)), value) => {
                return write_setting(row, spec, setting, &mut options.security, value);
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

    /// How a value is converted for a pattern, if patterns are notified.
    pub(super) fn pattern(&self) -> Option<fn(&Value) -> PatternOption> {
        self.pattern
    }
}

/// Every built-in option, sorted by number.
pub static SOCKET_OPTIONS: LazyLock<Vec<OptionRow>> = LazyLock::new(|| {
    let mut rows = ROWS.to_vec();
    rows.extend(MECHANISMS.iter().flat_map(|spec| rows_of(spec)));
    rows.sort_by_key(|row| row.id);
    rows
});

/// The row of each number. Numbers are small, and every option call looks one up.
pub(super) static BY_NUMBER: LazyLock<Vec<Option<&'static OptionRow>>> = LazyLock::new(|| {
    let mut rows = Vec::new();
    for row in SOCKET_OPTIONS.iter() {
        // The table is sorted, and no number in it is negative.
        rows.resize(row.id as usize, None);
        rows.push(Some(row));
    }
    rows
});

/// Makes the tables of the options, which would be made at their first use otherwise.
pub(crate) fn make_tables() {
    LazyLock::force(&BY_NUMBER);
}

/// The options of a mechanism.
fn rows_of(spec: &'static MechanismSpec) -> impl Iterator<Item = OptionRow> {
    let settings = spec.settings.iter();
    settings.map(move |setting| OptionRow::of_mechanism(spec, setting))
}

const INT: i64 = i32::MAX as i64;

/// The longest certificates and keys in an option.
const PEM_MAX: usize = 1 << 20;

/// Passes the rows to a macro. In brackets are the methods of `Socket` for an option, and the type of its value there: see
/// [`typed_option`](super::typed::typed_option).
macro_rules! socket_options {
    ($then:ident) => {
        $then! {
            4 AFFINITY [affinity, set_affinity: u64]: Uint64, "The I/O threads that may serve new connections, one bit each; 0 = all."
                .range(i64::MIN, i64::MAX)
                .int(|o| o.affinity as i64, |o, v| o.affinity = v as u64),
            5 ROUTING_ID [routing_id, set_routing_id: bytes]: Bytes, "The name under which ROUTER peers address this socket."
                .aliases(&["IDENTITY"])
                .of_standard()
                .length(1, 255)
                .bytes(|o| &o.routing_id, |o, v| o.routing_id = Bytes::copy_from_slice(v)),
            6 SUBSCRIBE []: Bytes, "Also receive messages that begin with these bytes; empty = all."
                .of_patterns()
                .pattern(|v| PatternOption::Subscribe(octets(v))),
            7 UNSUBSCRIBE []: Bytes, "Undo one SUBSCRIBE of the same bytes."
                .of_patterns()
                .pattern(|v| PatternOption::Unsubscribe(octets(v))),
            8 RATE [rate, set_rate: u32]: Int, "The limit of multicast transports in kbit/s."
                .range(1, INT)
                .int(|o| o.rate.into(), |o, v| o.rate = v as u32),
            9 RECOVERY_IVL [recovery_ivl, set_recovery_ivl: ms]: Int, "How long a multicast receiver may be away without loss, in ms."
                .range(0, INT)
                .int(|o| millis(Some(o.recovery_ivl), 0), |o, v| o.recovery_ivl = span(v)),
            11 SNDBUF [sndbuf, set_sndbuf: option usize(-1)]: Int, "The kernel's send buffer in bytes; -1 = the system's default."
                .range(-1, INT)
                .int(|o| optional(o.sndbuf), |o, v| o.sndbuf = usize::try_from(v).ok()),
            12 RCVBUF [rcvbuf, set_rcvbuf: option usize(-1)]: Int, "The kernel's receive buffer in bytes; -1 = the system's default."
                .range(-1, INT)
                .int(|o| optional(o.rcvbuf), |o, v| o.rcvbuf = usize::try_from(v).ok()),
            13 RCVMORE []: Bool, "Whether further parts follow the one received last." .socket(),
            14 FD []: Fd, "A descriptor that is readable when the socket may have become ready." .socket(),
            15 EVENTS []: Int, "What the socket is ready for: POLLIN, POLLOUT." .socket(),
            16 TYPE []: Int, "The socket's type." .only_int(|o| o.socket_type.id().into()),
            17 LINGER [linger, set_linger: ms(-1)]: Int, "How long messages are still sent after closing, in ms; -1 = no limit."
                .live()
                .range(-1, INT)
                .int(|o| millis(o.linger, -1), |o, v| o.linger = duration(v, -1)),
            18 RECONNECT_IVL [reconnect_ivl, set_reconnect_ivl: ms(-1)]: Int, "The delay before the next connection attempt in ms; -1 = no further attempt."
                .range(-1, INT)
                .int(|o| millis(o.reconnect_ivl, -1), |o, v| o.reconnect_ivl = duration(v, -1)),
            19 BACKLOG [backlog, set_backlog: u32]: Int, "How many connections may wait to be accepted."
                .range(0, INT)
                .int(|o| o.backlog.into(), |o, v| o.backlog = v as i32),
            21 RECONNECT_IVL_MAX [reconnect_ivl_max, set_reconnect_ivl_max: ms(0)]: Int, "Delays between attempts double up to this many ms; 0 = they do not."
                .range(0, INT)
                .int(|o| millis(o.reconnect_ivl_max, 0), |o, v| o.reconnect_ivl_max = duration(v, 0)),
            22 MAXMSGSIZE [maxmsgsize, set_maxmsgsize: option usize(-1)]: Int64, "A larger message from a peer ends its connection; bytes, -1 = no limit."
                .range(-1, i64::MAX)
                .int(|o| o.max_msg_size.map_or(-1, |v| v as i64), |o, v| o.max_msg_size = u64::try_from(v).ok()),
            23 SNDHWM [sndhwm, set_sndhwm: usize]: Int, "How many messages queue per peer on the way out; 0 = no limit."
                .live()
                .range(0, INT)
                .int(|o| o.sndhwm as i64, |o, v| o.sndhwm = v as usize),
            24 RCVHWM [rcvhwm, set_rcvhwm: usize]: Int, "How many messages queue per peer on the way in; 0 = no limit."
                .live()
                .range(0, INT)
                .int(|o| o.rcvhwm as i64, |o, v| o.rcvhwm = v as usize),
            25 MULTICAST_HOPS [multicast_hops, set_multicast_hops: u32]: Int, "How many networks a multicast packet may cross: 1 = only the local network."
                .range(1, 255)
                .int(|o| o.multicast_hops.into(), |o, v| o.multicast_hops = v as u32),
            27 RCVTIMEO [rcvtimeo, set_rcvtimeo: ms(-1)]: Int, "How long receiving waits, in ms; -1 = no limit."
                .live()
                .range(-1, INT)
                .int(|o| millis(o.rcvtimeo, -1), |o, v| o.rcvtimeo = duration(v, -1)),
            28 SNDTIMEO [sndtimeo, set_sndtimeo: ms(-1)]: Int, "How long sending waits, in ms; -1 = no limit."
                .live()
                .range(-1, INT)
                .int(|o| millis(o.sndtimeo, -1), |o, v| o.sndtimeo = duration(v, -1)),
            31 IPV4ONLY []: Bool, "The opposite of IPV6, for old programs."
                .int(|o| (!o.ipv6).into(), |o, v| o.ipv6 = v == 0),
            32 LAST_ENDPOINT [last_endpoint: text]: Str, "The endpoint that was bound or connected last, with wildcards replaced."
                .socket(),
            33 ROUTER_MANDATORY [=> set_router_mandatory: bool]: Bool, "A message to an unknown peer raises an error instead of being dropped."
                .aliases(&["ROUTER_BEHAVIOR", "FAIL_UNROUTABLE"])
                .of_patterns()
                .pattern(|v| PatternOption::RouterMandatory(flag(v))),
            34 TCP_KEEPALIVE [tcp_keepalive, set_tcp_keepalive: option bool(-1)]: Int, "Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s."
                .range(-1, 1)
                .int(|o| o.tcp_keepalive.map_or(-1, i64::from), |o, v| o.tcp_keepalive = (v >= 0).then_some(v == 1)),
            35 TCP_KEEPALIVE_CNT [tcp_keepalive_cnt, set_tcp_keepalive_cnt: option u32(-1)]: Int, "How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's default."
                .range(-1, 127)
                .int(|o| o.tcp_keepalive_cnt.map_or(-1, i64::from), |o, v| o.tcp_keepalive_cnt = u32::try_from(v).ok()),
            36 TCP_KEEPALIVE_IDLE [tcp_keepalive_idle, set_tcp_keepalive_idle: s(-1)]: Int, "Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default."
                .range(-1, 32767)
                .int(|o| seconds(o.tcp_keepalive_idle), |o, v| o.tcp_keepalive_idle = idle(v)),
            37 TCP_KEEPALIVE_INTVL [tcp_keepalive_intvl, set_tcp_keepalive_intvl: s(-1)]: Int, "Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default."
                .range(-1, 32767)
                .int(|o| seconds(o.tcp_keepalive_intvl), |o, v| o.tcp_keepalive_intvl = idle(v)),
            38 TCP_ACCEPT_FILTER [=> set_tcp_accept_filter: text]: Str, "One more network (CIDR) that may connect to endpoints bound later; empty = every network again."
                .write_only_str(|o, v| {
                    match v {
                        "" => o.tcp_accept_filters.clear(),
                        network => o.tcp_accept_filters.push(network.parse()?),
                    }
                    Ok(())
                }),
            39 IMMEDIATE [immediate, set_immediate: bool]: Bool, "Queue messages only for connections that are up."
                .aliases(&["DELAY_ATTACH_ON_CONNECT"])
                .int(|o| o.immediate.into(), |o, v| o.immediate = v == 1),
            40 XPUB_VERBOSE [=> set_xpub_verbose: bool]: Bool, "Receive every subscription, not only the first for a topic."
                .of_patterns()
                .pattern(|v| PatternOption::XpubVerbose(flag(v))),
            41 ROUTER_RAW [=> set_router_raw: bool]: Bool, "Raw TCP on a ROUTER; a STREAM socket is the newer way."
                .of_patterns()
                .pattern(|v| PatternOption::RouterRaw(flag(v)))
                .write_only_int(|o, v| o.router_raw = v != 0),
            42 IPV6 [ipv6, set_ipv6: bool]: Bool, "Bind and connect over IPv6 as well as IPv4."
                .int(|o| o.ipv6.into(), |o, v| o.ipv6 = v == 1),
            43 MECHANISM [mechanism: i32]: Int, "The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI."
                .only_int(|o| o.security.mechanism.number.into()),
            51 PROBE_ROUTER [=> set_probe_router: bool]: Bool, "Send an empty message on each new connection, before all others."
                .of_patterns()
                .write_only_int(|o, v| o.probe_router.store(v == 1, Ordering::Relaxed)),
            52 REQ_CORRELATE [=> set_req_correlate: bool]: Bool, "Number the requests and accept only matching replies."
                .of_patterns()
                .pattern(|v| PatternOption::ReqCorrelate(flag(v))),
            53 REQ_RELAXED [=> set_req_relaxed: bool]: Bool, "Allow a new request before the reply to the last."
                .of_patterns()
                .pattern(|v| PatternOption::ReqRelaxed(flag(v))),
            54 CONFLATE [conflate, set_conflate: bool]: Bool, "Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER)."
                .int(|o| o.conflate.into(), |o, v| o.conflate = v == 1),
            55 ZAP_DOMAIN [zap_domain, set_zap_domain: text]: Str, "The domain that authentication requests name."
                .length(0, 255)
                .str(|o| o.security.zap_domain.as_bytes(), |o, v| o.security.zap_domain = v.to_owned()),
            56 ROUTER_HANDOVER [=> set_router_handover: bool]: Bool, "A new peer takes over the routing id of an older one."
                .of_patterns()
                .pattern(|v| PatternOption::RouterHandover(flag(v))),
            57 TOS [tos, set_tos: u8]: Int, "The type-of-service byte of outgoing packets."
                .range(0, 255)
                .int(|o| o.tos.into(), |o, v| o.tos = v as u8),
            58 IPC_FILTER_PID [=> set_ipc_filter_pid: i32]: Int, "One more process that may connect to a bound ipc endpoint."
                .range(0, INT)
                .write_only_int(|o, v| o.ipc_filter.pids.push(v as i32)),
            59 IPC_FILTER_UID [=> set_ipc_filter_uid: u32]: Int, "One more user that may connect to a bound ipc endpoint."
                .range(0, INT)
                .write_only_int(|o, v| o.ipc_filter.uids.push(v as u32)),
            60 IPC_FILTER_GID [=> set_ipc_filter_gid: u32]: Int, "One more primary group that may connect to a bound ipc endpoint."
                .range(0, INT)
                .write_only_int(|o, v| o.ipc_filter.gids.push(v as u32)),
            61 CONNECT_ROUTING_ID [=> set_connect_routing_id: bytes]: Bytes, "The name here of the peer that the next connect reaches."
                .aliases(&["CONNECT_RID"])
                .of_patterns()
                .length(1, 255)
                .pattern(|v| PatternOption::ConnectRoutingId(octets(v))),
            62 GSSAPI_SERVER []: Bool, "Act as server of the GSSAPI mechanism." .refused(NO_GSSAPI),
            63 GSSAPI_PRINCIPAL []: Str, "The principal of this socket." .refused(NO_GSSAPI),
            64 GSSAPI_SERVICE_PRINCIPAL []: Str, "The principal of the server." .refused(NO_GSSAPI),
            65 GSSAPI_PLAINTEXT []: Bool, "Authenticate without encrypting." .refused(NO_GSSAPI),
            66 HANDSHAKE_IVL [handshake_ivl, set_handshake_ivl: ms(0)]: Int, "The limit from the connection to the end of the handshake, in ms; 0 = none."
                .range(0, INT)
                .int(|o| millis(o.handshake_ivl, 0), |o, v| o.handshake_ivl = duration(v, 0)),
            68 SOCKS_PROXY [socks_proxy, set_socks_proxy: text]: Str, "Connect through the SOCKS5 proxy at host:port; empty = directly."
                .length(0, 1024)
                .str(|o| o.socks_proxy.as_bytes(), |o, v| o.socks_proxy = v.to_owned()),
            69 XPUB_NODROP [=> set_xpub_nodrop: bool]: Bool, "Wait instead of dropping when the queue to a subscriber is full."
                .of_patterns()
                .pattern(|v| PatternOption::SlowSubscriber(SlowSubscriber::from_number(flag(v).into())))
                .write_only_int(|o, v| o.slow_subscriber = (v != 0).into()),
            71 XPUB_MANUAL [=> set_xpub_manual: bool]: Bool, "The program decides which subscriptions take effect."
                .of_patterns()
                .pattern(|v| PatternOption::XpubManual(flag(v))),
            72 XPUB_WELCOME_MSG [=> set_xpub_welcome_msg: bytes]: Bytes, "The first message to each new subscriber; empty = none."
                .of_patterns()
                .pattern(|v| PatternOption::XpubWelcomeMsg(octets(v))),
            73 STREAM_NOTIFY [=> set_stream_notify: bool]: Bool, "Deliver an empty message when a peer connects and when it disconnects."
                .of_patterns()
                .pattern(|v| PatternOption::StreamNotify(flag(v))),
            74 INVERT_MATCHING [invert_matching, set_invert_matching: bool]: Bool, "Match messages that do not begin with a subscription; set it at both ends. No effect on types without subscriptions."
                .of_standard()
                .pattern(|v| PatternOption::InvertMatching(flag(v)))
                .int(|o| o.invert_matching.into(), |o, v| o.invert_matching = v != 0),
            75 HEARTBEAT_IVL [heartbeat_ivl, set_heartbeat_ivl: ms(0)]: Int, "How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent peers are probed."
                .range(0, INT)
                .int(|o| millis(o.heartbeat_ivl, 0), |o, v| o.heartbeat_ivl = Some(span(v))),
            // Sent and stored in tenths of a second.
            76 HEARTBEAT_TTL [heartbeat_ttl, set_heartbeat_ttl: ms(0)]: Int, "The silence after which the peer may end the connection, in ms; 0 = not sent to the peer."
                .range(0, 6_553_599)
                .int(|o| millis(Some(o.heartbeat_ttl), 0), |o, v| o.heartbeat_ttl = span(v / 100 * 100)),
            77 HEARTBEAT_TIMEOUT [heartbeat_timeout, set_heartbeat_timeout: ms(-1)]: Int, "Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL."
                .range(0, INT)
                .int(|o| millis(o.heartbeat_timeout, -1), |o, v| o.heartbeat_timeout = Some(span(v))),
            78 XPUB_VERBOSER [=> set_xpub_verboser: bool]: Bool, "Receive every subscription and every unsubscription."
                .of_patterns()
                .pattern(|v| PatternOption::XpubVerboser(flag(v))),
            79 CONNECT_TIMEOUT [connect_timeout, set_connect_timeout: ms(0)]: Int, "The limit of one connection attempt, in ms; 0 = 10 s, or 3 s while the name has another address."
                .range(0, INT)
                .int(|o| millis(o.connect_timeout, 0), |o, v| o.connect_timeout = duration(v, 0)),
            80 TCP_MAXRT [tcp_maxrt, set_tcp_maxrt: ms(0)]: Int, "How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit."
                .range(0, INT)
                .int(|o| millis(o.tcp_maxrt, 0), |o, v| o.tcp_maxrt = duration(v, 0)),
            81 THREAD_SAFE [thread_safe: bool]: Bool, "1 for the socket types that libzmq calls thread-safe, which are those from SERVER on except DGRAM, and for the types that libzmq does not have. Every zeroxide socket is thread-safe, but the others read 0 as in libzmq."
                .only_int(|o| i64::from(o.socket_type.id() >= 12 && !o.socket_type.is_datagram())),
            84 MULTICAST_MAXTPDU [multicast_maxtpdu, set_multicast_maxtpdu: u32]: Int, "The largest packet that is sent to a multicast group, in bytes, with the headers of IP and UDP."
                .range(1, INT)
                .int(|o| o.multicast_maxtpdu.unwrap_or(1500).into(), |o, v| o.multicast_maxtpdu = Some(v as u32)),
            85 VMCI_BUFFER_SIZE [vmci_buffer_size, set_vmci_buffer_size: u64]: Uint64, "The buffer of a VMCI socket; 0 = the driver's."
                .range(i64::MIN, i64::MAX)
                .int(|o| o.vmci_buffers[0] as i64, |o, v| o.vmci_buffers[0] = v as u64),
            86 VMCI_BUFFER_MIN_SIZE [vmci_buffer_min_size, set_vmci_buffer_min_size: u64]: Uint64, "The smallest buffer of a VMCI socket; 0 = the driver's."
                .range(i64::MIN, i64::MAX)
                .int(|o| o.vmci_buffers[1] as i64, |o, v| o.vmci_buffers[1] = v as u64),
            87 VMCI_BUFFER_MAX_SIZE [vmci_buffer_max_size, set_vmci_buffer_max_size: u64]: Uint64, "The largest buffer of a VMCI socket; 0 = the driver's."
                .range(i64::MIN, i64::MAX)
                .int(|o| o.vmci_buffers[2] as i64, |o, v| o.vmci_buffers[2] = v as u64),
            88 VMCI_CONNECT_TIMEOUT [vmci_connect_timeout, set_vmci_connect_timeout: ms(-1)]: Int, "The limit of a VMCI connection attempt, in ms; -1 = the driver's."
                .range(-1, INT)
                .int(|o| millis(o.vmci_connect_timeout, -1), |o, v| o.vmci_connect_timeout = duration(v, -1)),
            89 USE_FD [use_fd, set_use_fd: option i32(-1)]: Int, "A listening descriptor that the next bind takes over; -1 = none."
                .range(-1, INT)
                .int(|o| o.use_fd.map_or(-1, i64::from), |o, v| o.use_fd = (v >= 0).then_some(v as i32)),
            90 GSSAPI_PRINCIPAL_NAMETYPE []: Int, "What kind of name GSSAPI_PRINCIPAL is." .refused(NO_GSSAPI),
            91 GSSAPI_SERVICE_PRINCIPAL_NAMETYPE []: Int, "What kind of name GSSAPI_SERVICE_PRINCIPAL is." .refused(NO_GSSAPI),
            // The kernel accepts 15 bytes and a terminating zero.
            92 BINDTODEVICE [bindtodevice, set_bindtodevice: text]: Str, "The only network interface to use (needs CAP_NET_RAW); empty = any."
                .length(0, 15)
                .str(|o| o.bind_to_device.as_bytes(), |o, v| o.bind_to_device = v.to_owned()),
            93 ZAP_ENFORCE_DOMAIN [zap_enforce_domain, set_zap_enforce_domain: bool]: Bool, "Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler."
                .int(|o| o.security.enforce_domain.into(), |o, v| o.security.enforce_domain = v == 1),
            94 LOOPBACK_FASTPATH [loopback_fastpath, set_loopback_fastpath: bool]: Bool, "A feature of Windows. Stored without effect."
                .int(|o| o.loopback_fastpath.into(), |o, v| o.loopback_fastpath = v != 0),
            95 METADATA [=> set_metadata: bytes]: Bytes, "A property sent to peers in the handshake, as X-name:value; each call adds one."
                .of_standard()
                .write_only_bytes(Options::add_metadata),
            96 MULTICAST_LOOP [multicast_loop, set_multicast_loop: bool]: Bool, "Whether what is sent to a multicast group also reaches the members on this machine."
                .int(|o| o.multicast_loop.into(), |o, v| o.multicast_loop = v != 0),
            97 ROUTER_NOTIFY [router_notify, set_router_notify: i32]: Int, "Receive an empty message from a peer that has connected (1), disconnected (2), or both (3); 0 = neither."
                .of_patterns()
                .range(0, 3)
                .pattern(|v| PatternOption::RouterNotify(count(v) as u8))
                .int(|o| o.router_notify.into(), |o, v| o.router_notify = v as i32),
            98 XPUB_MANUAL_LAST_VALUE [=> set_xpub_manual_last_value: bool]: Bool, "Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that subscriber."
                .of_patterns()
                .pattern(|v| PatternOption::XpubManualLastValue(flag(v))),
            99 SOCKS_USERNAME [socks_username, set_socks_username: text]: Str, "The user name for the SOCKS5 proxy; empty = no login."
                .length(0, 255)
                .str(|o| o.socks_username.as_bytes(), |o, v| o.socks_username = v.to_owned()),
            100 SOCKS_PASSWORD [socks_password, set_socks_password: text]: Str, "The password for SOCKS_USERNAME."
                .length(0, 255)
                .str(|o| o.socks_password.as_bytes(), |o, v| o.socks_password = v.to_owned()),
            101 IN_BATCH_SIZE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            102 OUT_BATCH_SIZE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            103 WSS_KEY_PEM [wss_key_pem, set_wss_key_pem: text]: Str, "libzmq's name of TLS_KEY."
                .length(0, PEM_MAX)
                .str(|o| o.tls.key.as_bytes(), |o, v| o.tls_mut().key = v.to_owned().into()),
            104 WSS_CERT_PEM [wss_cert_pem, set_wss_cert_pem: text]: Str, "libzmq's name of TLS_CERTIFICATE."
                .length(0, PEM_MAX)
                .str(|o| o.tls.certificate.as_bytes(), |o, v| o.tls_mut().certificate = v.to_owned()),
            105 WSS_TRUST_PEM [wss_trust_pem, set_wss_trust_pem: text]: Str, "libzmq's name of TLS_CA."
                .length(0, PEM_MAX)
                .str(|o| o.tls.ca.as_bytes(), |o, v| o.tls_mut().ca = v.to_owned()),
            106 WSS_HOSTNAME [wss_hostname, set_wss_hostname: text]: Str, "libzmq's name of TLS_HOSTNAME."
                .length(0, 255)
                .str(|o| o.tls.hostname.as_bytes(), |o, v| o.tls_mut().hostname = v.to_owned()),
            107 WSS_TRUST_SYSTEM [wss_trust_system, set_wss_trust_system: bool]: Bool, "libzmq's name of TLS_TRUST_SYSTEM. It reads 0 if that is not set."
                .int(|o| i64::from(o.tls.trust_system == Some(true)), |o, v| o.tls_mut().trust_system = Some(v == 1)),
            108 ONLY_FIRST_SUBSCRIBE [=> set_only_first_subscribe: bool]: Bool, "Stored without effect: a message that does not begin with a subscription never has one in a later part."
                .of_patterns()
                .range(0, INT)
                .write_only_int(|_, _| {}),
            109 RECONNECT_STOP [reconnect_stop, set_reconnect_stop: i32]: Int, "When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect(); add the numbers."
                .range(i32::MIN as i64, INT)
                .int(|o| o.reconnect_stop.into(), |o, v| o.reconnect_stop = v as i32),
            110 HELLO_MSG [hello_msg, set_hello_msg: bytes]: Bytes, "The first message to each peer, sent again on each new connection; empty = none."
                .of_patterns()
                .bytes(|o| &o.hello_msg, |o, v| o.hello_msg = Bytes::copy_from_slice(v)),
            111 DISCONNECT_MSG [disconnect_msg, set_disconnect_msg: bytes]: Bytes, "The message received from a peer that has connected to this socket, once it has left; empty = none."
                .of_patterns()
                .bytes(|o| &o.disconnect_msg, |o, v| o.disconnect_msg = Bytes::copy_from_slice(v)),
            112 PRIORITY []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            113 BUSY_POLL []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            114 HICCUP_MSG [hiccup_msg, set_hiccup_msg: bytes]: Bytes, "The message received when a connection that this socket has made is lost, before it connects again; empty = none."
                .of_patterns()
                .bytes(|o| &o.hiccup_msg, |o, v| o.hiccup_msg = Bytes::copy_from_slice(v)),
            115 XSUB_VERBOSE_UNSUBSCRIBE []: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            116 TOPICS_COUNT [topics_count: usize]: Int, "The number of different topics that this socket or its peers subscribe to."
                .of_patterns()
                .socket(),
            117 NORM_MODE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            118 NORM_UNICAST_NACK []: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            119 NORM_BUFFER_SIZE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            120 NORM_SEGMENT_SIZE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            121 NORM_BLOCK_SIZE []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            122 NORM_NUM_PARITY []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            123 NORM_NUM_AUTOPARITY []: Int, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            124 NORM_PUSH []: Bool, "A draft in libzmq; not available here." .refused(NO_DRAFT),
            // From here on, options that libzmq does not have.
            1001 MAX_SUBSCRIPTIONS [max_subscriptions, set_max_subscriptions: usize]: Int, "How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit."
                .of_patterns()
                .range(0, INT)
                .pattern(|v| PatternOption::MaxSubscriptions(count(v)))
                .int(|o| o.max_subscriptions as i64, |o, v| o.max_subscriptions = v as usize),
            1002 SNDHWM_BYTES [sndhwm_bytes, set_sndhwm_bytes: usize]: Int64, "How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit."
                .live()
                .range(0, i64::MAX)
                .int(|o| o.sndhwm_bytes as i64, |o, v| o.sndhwm_bytes = v as usize),
            1003 RCVHWM_BYTES [rcvhwm_bytes, set_rcvhwm_bytes: usize]: Int64, "How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit."
                .live()
                .range(0, i64::MAX)
                .int(|o| o.rcvhwm_bytes as i64, |o, v| o.rcvhwm_bytes = v as usize),
            1004 STALL_IVL [stall_ivl, set_stall_ivl: ms(0)]: Int, "How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no limit."
                .range(0, INT)
                .int(|o| millis(o.stall_ivl, 0), |o, v| o.stall_ivl = duration(v, 0)),
            1040 SNDPRIO [sndprio, set_sndprio: u8]: Int, "The priority of the peers of later binds and connects for what is sent, 1 to 16: peers with the lowest number get messages as long as they have room."
                .range(1, 16)
                .int(|o| o.sndprio.into(), |o, v| o.sndprio = v as u8),
            1041 RCVPRIO [rcvprio, set_rcvprio: u8]: Int, "The priority of the peers of later binds and connects for what is received, 1 to 16: messages of peers with the lowest number are received first."
                .range(1, 16)
                .int(|o| o.rcvprio.into(), |o, v| o.rcvprio = v as u8),
            1060 SLOW_SUBSCRIBER [slow_subscriber, set_slow_subscriber: i32]: Int, "When the queue to a subscriber is full: 0 the subscriber misses messages, 1 sending waits (as with XPUB_NODROP), 2 the subscriber is disconnected and loses its queue."
                .of_patterns()
                .range(0, 2)
                .pattern(|v| PatternOption::SlowSubscriber(SlowSubscriber::from_number(count(v))))
                .int(|o| o.slow_subscriber.into(), |o, v| o.slow_subscriber = v as i32),
            1061 MAX_LAG [max_lag, set_max_lag: ms(0)]: Int, "How long a message may wait to be received, in ms (up to 1.5 times that). If one has waited longer, receiving fails once, the queue is dropped, and the socket joins its publishers anew; 0 = no limit."
                .of_patterns()
                .range(0, INT)
                .pattern(|v| PatternOption::MaxLag(duration(count(v) as i64, 0)))
                .int(|o| millis(o.max_lag, 0), |o, v| o.max_lag = duration(v, 0)),
            1010 MAX_SUBSCRIPTION_BYTES [max_subscription_bytes, set_max_subscription_bytes: usize]: Int64, "How many bytes the topics of each subscriber may have together; further ones are counted and ignored. 0 = no limit."
                .of_patterns()
                .range(0, i64::MAX)
                .pattern(|v| PatternOption::MaxSubscriptionBytes(count(v)))
                .int(|o| o.max_subscription_bytes as i64, |o, v| o.max_subscription_bytes = v as usize),
            1020 TLS_CERTIFICATE [tls_certificate, set_tls_certificate: text]: Str, "The TLS certificate of this socket, followed by those between it and its CA: PEM, or the path of a file."
                .length(0, PEM_MAX)
                .str(|o| o.tls.certificate.as_bytes(), |o, v| o.tls_mut().certificate = v.to_owned()),
            1021 TLS_KEY [tls_key, set_tls_key: text]: Str, "The key of TLS_CERTIFICATE, without a password: PEM, or the path of a file; empty = it is in TLS_CERTIFICATE."
                .length(0, PEM_MAX)
                .str(|o| o.tls.key.as_bytes(), |o, v| o.tls_mut().key = v.to_owned().into()),
            1022 TLS_CA [tls_ca, set_tls_ca: text]: Str, "The CAs whose certificates TLS peers must have: PEM, or the path of a file; empty = those of the system."
                .length(0, PEM_MAX)
                .str(|o| o.tls.ca.as_bytes(), |o, v| o.tls_mut().ca = v.to_owned()),
            1023 TLS_TRUST_SYSTEM [tls_trust_system, set_tls_trust_system: option bool(-1)]: Int, "Whether TLS peers may have a certificate of a CA that the system trusts: 1 yes, 0 no, -1 = if TLS_CA is empty."
                .range(-1, 1)
                .int(|o| o.tls.trust_system.map_or(-1, i64::from), |o, v| o.tls_mut().trust_system = (v >= 0).then_some(v == 1)),
            1024 TLS_HOSTNAME [tls_hostname, set_tls_hostname: text]: Str, "The name or IP address that a TLS server's certificate must have; empty = the host in the endpoint."
                .length(0, 255)
                .str(|o| o.tls.hostname.as_bytes(), |o, v| o.tls_mut().hostname = v.to_owned()),
            1025 TLS_VERIFY [tls_verify, set_tls_verify: bool]: Bool, "Whether the certificate of a TLS server is checked. With 0, an attacker on the network can pose as the server."
                .int(|o| (!o.tls.unverified).into(), |o, v| o.tls_mut().unverified = v == 0),
            1026 TLS_CLIENT_AUTH [tls_client_auth, set_tls_client_auth: i32]: Int, "The certificates of TLS clients: 0 not asked for, 1 checked if a client has one, 2 required, -1 = 2 if TLS_CA is set, otherwise 0."
                .range(-1, 2)
                .int(|o| o.tls.client_auth.map_or(-1, |auth| auth as i64), |o, v| o.tls_mut().client_auth = ClientAuth::from_number(v)),
            1027 TLS_ALPN [tls_alpn, set_tls_alpn: text]: Str, "The protocols that TLS peers negotiate with ALPN, separated by commas; empty = none."
                .length(0, 1024)
                .str(|o| o.tls.alpn.as_bytes(), |o, v| o.tls_mut().alpn = v.to_owned()),
            1030 WIRE_PROTOCOL [wire_protocol, set_wire_protocol: i32]: Int, "What the socket speaks with its peers: 0 ZMTP, 1 the scalability protocols of nanomsg and nng. Set it before all else; PAIR, PUB, SUB, REQ, REP, PUSH and PULL speak either."
                .range(0, WIRES.len() as i64 - 1)
                .int(|o| o.wire_protocol.into(), |o, v| o.wire_protocol = v as i32),
            1031 RESEND_IVL [resend_ivl, set_resend_ivl: ms(0)]: Int, "When a request over the scalability protocols is sent again, to the next peer, if no reply has come, in ms; 0 = never."
                .of_patterns()
                .range(0, INT)
                .pattern(|v| PatternOption::ResendIvl(duration(count(v) as i64, 0)))
                .int(|o| millis(o.resend_ivl, 0), |o, v| o.resend_ivl = duration(v, 0)),
            1032 SURVEY_TIMEOUT [survey_timeout, set_survey_timeout: ms(0)]: Int, "How long the answers to a survey are received, in ms; 0 = no limit."
                .of_patterns()
                .range(0, INT)
                .pattern(|v| PatternOption::SurveyTimeout(duration(count(v) as i64, 0)))
                .int(|o| millis(o.survey_timeout, 0), |o, v| o.survey_timeout = duration(v, 0)),
            1033 MAX_TTL [max_ttl, set_max_ttl: u8]: Int, "How many sockets a request or a survey may have passed; one that has passed more is dropped, because it may travel in a circle."
                .of_patterns()
                .range(1, 255)
                .pattern(|v| PatternOption::MaxTtl(count(v) as u8))
                .int(|o| o.max_ttl.into(), |o, v| o.max_ttl = v as u8),
            1050 SPILL_DIR [spill_dir, set_spill_dir: text]: Str, "The folder of this socket, and of no other, for messages beyond the high-water mark, from the next bind or connect on; empty = none, and the usual rule of the socket type applies to them."
                .of_patterns()
                .length(0, 4096)
                .str(|o| o.spill_dir.as_bytes(), |o, v| o.spill_dir = v.to_owned()),
            1051 SPILL_BYTES [spill_bytes, set_spill_bytes: usize]: Int64, "How many bytes of messages may wait in SPILL_DIR; 0 = no limit."
                .of_patterns()
                .live()
                .range(0, i64::MAX)
                .int(|o| o.spill_bytes as i64, |o, v| o.spill_bytes = v as u64),
            1052 SPILL_KEEP [spill_keep, set_spill_keep: bool]: Bool, "Whether messages in SPILL_DIR stay there when the socket closes or its process ends, for the next socket with that folder."
                .of_patterns()
                .int(|o| o.spill_keep.into(), |o, v| o.spill_keep = v == 1),
        }
    };
}

pub(crate) use socket_options;

/// The same for options of mechanisms, whose own files have the rest of each row.
macro_rules! mechanism_options {
    ($then:ident) => {
        $then! {
            PLAIN_SERVER [plain_server, set_plain_server: bool]: "Act as server of the PLAIN mechanism.",
            PLAIN_USERNAME [plain_username, set_plain_username: text]: "The user name of a PLAIN client.",
            PLAIN_PASSWORD [plain_password, set_plain_password: text]: "The password of a PLAIN client.",
            CURVE_SERVER [curve_server, set_curve_server: bool]: "Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.",
            CURVE_PUBLICKEY [curve_publickey, set_curve_publickey: key]: "The public key of this socket, 32 bytes or 40 characters of Z85.",
            CURVE_SECRETKEY [curve_secretkey, set_curve_secretkey: key]: "The secret key of this socket, 32 bytes or 40 characters of Z85.",
            CURVE_SERVERKEY [curve_serverkey, set_curve_serverkey: key]: "The public key of the server to connect to; makes this a CURVE client.",
        }
    };
}

pub(crate) use mechanism_options;

/// Generates the table and the constants in [`ids`] from the rows.
macro_rules! options_table {
    ($($id:literal $name:ident [$($typed:tt)*]: $kind:ident, $doc:literal $(.$set:ident($($arg:expr),*))*,)*) => {
        /// The numbers of the options, as in `zmq.h`.
        pub mod ids {
            $(#[doc = $doc] pub const $name: i32 = $id;)*
            pub use zeroxide_proto::mechanisms::ids::*;
        }

        /// The options that do not belong to a mechanism.
        static ROWS: &[OptionRow] = &[
            $(row($id, stringify!($name), OptionKind::$kind, $doc)$(.$set($($arg),*))*,)*
        ];

        /// Their methods.
        #[cfg(test)]
        pub(super) const METHODS: &[(&str, &str)] = &[
            $((stringify!($name), stringify!($($typed)*)),)*
        ];
    };
}

socket_options!(options_table);

const NO_DRAFT: &str = "is a draft option, not available here";
const NO_GSSAPI: &str = "needs GSSAPI, which is not built in";

const fn row(id: i32, name: &'static str, kind: OptionKind, doc: &'static str) -> OptionRow {
    let limits = match kind {
        OptionKind::Bool => Limits::Range(0, 1),
        OptionKind::Bytes | OptionKind::Str => Limits::Length(0, usize::MAX),
        OptionKind::Int | OptionKind::Int64 | OptionKind::Uint64 | OptionKind::Fd => {
            Limits::Range(i64::MIN, i64::MAX)
        }
    };
    OptionRow {
        name,
        aliases: &[],
        id,
        kind,
        readable: false,
        writable: false,
        live: false,
        of_patterns: false,
        of_standard: false,
        doc,
        limits,
        access: Access {
            read: None,
            write: None,
            pattern: None,
            refused: None,
        },
    }
}

impl OptionRow {
    const fn aliases(mut self, aliases: &'static [&'static str]) -> OptionRow {
        self.aliases = aliases;
        self
    }

    /// Only the types whose pattern lists it have it.
    const fn of_patterns(mut self) -> OptionRow {
        self.of_patterns = true;
        self
    }

    /// Only ZMTP carries it to peers.
    const fn of_standard(mut self) -> OptionRow {
        self.of_standard = true;
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

    const fn write_only_bytes(self, write: fn(&mut Options, &[u8]) -> Result<()>) -> OptionRow {
        self.writes(Write::CheckedBytes(write))
    }

    const fn write_only_str(self, write: fn(&mut Options, &str) -> Result<()>) -> OptionRow {
        self.writes(Write::CheckedStr(write))
    }

    /// Passed to the pattern, at any time.
    const fn pattern(mut self, make: fn(&Value) -> PatternOption) -> OptionRow {
        if matches!(self.kind, OptionKind::Bool) {
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

    /// The row of a mechanism's option.
    pub(super) fn of_mechanism(
        spec: &'static MechanismSpec,
        setting: &'static Setting,
    ) -> OptionRow {
        let row = |kind| row(setting.number, setting.name, kind, setting.doc);
        let row = match setting.kind {
            SettingKind::Server => row(OptionKind::Bool),
            SettingKind::Text(_) => row(OptionKind::Str).length(1, 255),
            SettingKind::Key(_) => row(OptionKind::Bytes),
        };
        row.reads(Read::Mechanism(spec, setting))
            .writes(Write::Mechanism(spec, setting))
    }

    /// A known option that is not available, and why.
    const fn refused(mut self, why: &'static str) -> OptionRow {
        self.access.refused = Some(why);
        self
    }
}

/// The value of a mechanism's option. Keys are read as text.
fn setting_value(spec: &MechanismSpec, setting: &Setting, options: &Options) -> Value {
    let security = &options.security;
    match (setting.kind, security.value(setting.number)) {
        (SettingKind::Server, _) => Value::from(security.is_server(spec)),
        (SettingKind::Key(_), key) => {
            Value::from(&key.try_into().map_or(String::new(), key_text)[..])
        }
        (SettingKind::Text(_), text) => Value::from(text),
    }
}

fn write_setting(
    row: &OptionRow,
    spec: &'static MechanismSpec,
    setting: &Setting,
    security: &mut Security,
    value: &Value,
) -> Result<()> {
    let bytes = match (setting.kind, value) {
        (SettingKind::Server, value) => {
            security.set_server(spec, *value == Value::Int(1));
            return Ok(());
        }
        (SettingKind::Text(_), Value::Bytes(text)) => text.clone(),
        (SettingKind::Key(_), Value::Bytes(key)) => {
            let key = parse_key(key).map_err(|error| error.about(row.name))?;
            key.to_vec()
        }
        (_, Value::Int(_)) => return Err(row.invalid(format_args!("takes another type of value"))),
    };
    security.store(setting.number, bytes);
    security.mechanism = spec;
    if setting.of_client {
        security.as_server = false;
    }
    Ok(())
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
