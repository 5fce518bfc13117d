# Written by tools/constants_stub.py. A docstring below a name is what editors show for it.

__all__ = [
    "CONTEXT_READ_ONLY",
    "READ_ONLY",
    "ContextOptions",
    "ReadOnlyOptions",
    "SocketOptions",
    "UpperCaseOptions",
]

READ_ONLY: tuple[str, ...]
CONTEXT_READ_ONLY: tuple[str, ...]

class SocketOptions:
    """The options that can be set, and most of them read, as type checkers and editors know them.

    Options of transports and mechanisms that are not built in are not among them: programs
    may use their names, but completion need not offer them.
    """

    affinity: int
    """The I/O threads that may serve new connections, one bit each; 0 = all.

    Type: int. Default: 0.
    """
    routing_id: bytes
    """The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"
    """
    sndbuf: int
    """The kernel's send buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.
    """
    rcvbuf: int
    """The kernel's receive buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.
    """
    linger: int
    """How long messages are still sent after closing, in ms; -1 = no limit.

    Type: int, in ms. Default: -1; 0 for SUB and XSUB.
    """
    reconnect_ivl: int
    """The delay before the next connection attempt in ms; -1 = no further attempt.

    Type: int, in ms. Default: 100.
    """
    backlog: int
    """How many connections may wait to be accepted.

    Type: int, in connections. Default: 100.
    """
    reconnect_ivl_max: int
    """Delays between attempts double up to this many ms; 0 = they do not.

    Type: int, in ms. Default: 0.
    """
    maxmsgsize: int
    """A larger message from a peer ends its connection; bytes, -1 = no limit.

    Type: int, in bytes. Default: -1.
    """
    sndhwm: int
    """How many messages queue per peer on the way out; 0 = no limit.

    Type: int, in messages. Default: 1000.
    """
    rcvhwm: int
    """How many messages queue per peer on the way in; 0 = no limit.

    Type: int, in messages. Default: 1000.
    """
    rcvtimeo: int
    """How long receiving waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.
    """
    sndtimeo: int
    """How long sending waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.
    """
    ipv4only: int
    """The opposite of IPV6, for old programs.

    Type: int, 0 or 1. Default: 1.
    """
    router_mandatory: int
    """A message to an unknown peer raises an error instead of being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    tcp_keepalive: int
    """Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

    Type: int. Default: -1.
    """
    tcp_keepalive_cnt: int
    """How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in probes. Default: -1.
    """
    tcp_keepalive_idle: int
    """Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in s. Default: -1.
    """
    tcp_keepalive_intvl: int
    """Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

    Type: int, in s. Default: -1.
    """
    tcp_accept_filter: bytes
    """One more network (CIDR) that may connect to endpoints bound later; empty = every network
    again.

    Type: bytes, text in UTF-8. It can only be set.
    """
    immediate: int
    """Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.
    """
    xpub_verbose: int
    """Receive every subscription, not only the first for a topic.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    router_raw: int
    """Raw TCP on a ROUTER; a STREAM socket is the newer way.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.
    """
    ipv6: int
    """Bind and connect over IPv6 as well as IPv4.

    Type: int, 0 or 1. Default: 0.
    """
    plain_server: int
    """Act as server of the PLAIN mechanism.

    Type: int, 0 or 1. Default: 0.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    plain_username: bytes
    """The user name of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    plain_password: bytes
    """The password of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    curve_server: int
    """Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

    Type: int, 0 or 1. Default: 0.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    curve_publickey: bytes
    """The public key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    curve_secretkey: bytes
    """The secret key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    curve_serverkey: bytes
    """The public key of the server to connect to; makes this a CURVE client.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    probe_router: int
    """Send an empty message on each new connection.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, DEALER, REQ, REP. It can only be set.
    """
    req_correlate: int
    """Number the requests and accept only matching replies.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.
    """
    req_relaxed: int
    """Allow a new request before the reply to the last.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.
    """
    conflate: int
    """Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

    Type: int, 0 or 1. Default: 0.
    """
    zap_domain: bytes
    """The domain that authentication requests name.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 27/ZAP, section "Message Format"
    """
    router_handover: int
    """A new peer takes over the routing id of an older one.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    tos: int
    """The type-of-service byte of outgoing packets.

    Type: int. Default: 0.
    """
    ipc_filter_pid: int
    """One more process that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    ipc_filter_uid: int
    """One more user that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    ipc_filter_gid: int
    """One more primary group that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    connect_routing_id: bytes
    """The name here of the peer that the next connect reaches.

    Type: bytes. Default: empty. Sockets: ROUTER, STREAM, REP. It can only be set.
    """
    handshake_ivl: int
    """The limit from the connection to the end of the handshake, in ms; 0 = none.

    Type: int, in ms. Default: 30000.
    """
    socks_proxy: bytes
    """Connect through the SOCKS5 proxy at host:port; empty = directly.

    Type: bytes, text in UTF-8. Default: empty.
    """
    xpub_nodrop: int
    """Wait instead of dropping when the queue to a subscriber is full.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    xpub_manual: int
    """The program decides which subscriptions take effect.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.
    """
    xpub_welcome_msg: bytes
    """The first message to each new subscriber; empty = none.

    Type: bytes. Default: empty. Sockets: XPUB, PUB. It can only be set.
    """
    stream_notify: int
    """Deliver an empty message when a peer connects and when it disconnects.

    Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.
    """
    invert_matching: int
    """Match messages that do not begin with a subscription; set it at both ends. No effect on types
    without subscriptions.

    Type: int, 0 or 1. Default: 0.
    """
    heartbeat_ivl: int
    """How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent
    peers are probed.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    heartbeat_ttl: int
    """The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    heartbeat_timeout: int
    """Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

    Type: int, in ms. Default: -1.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    xpub_verboser: int
    """Receive every subscription and every unsubscription.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    connect_timeout: int
    """The limit of one connection attempt, in ms; 0 = the system's.

    Type: int, in ms. Default: 0.
    """
    tcp_maxrt: int
    """How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

    Type: int, in ms. Default: 0.
    """
    use_fd: int
    """A listening descriptor that the next bind takes over; -1 = none.

    Type: int. Default: -1.
    """
    bindtodevice: bytes
    """The only network interface to use (needs CAP_NET_RAW); empty = any.

    Type: bytes, text in UTF-8. Default: empty.
    """
    identity: bytes
    """Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"
    """
    connect_rid: bytes
    """Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect
    reaches.

    Type: bytes. Default: empty. Sockets: ROUTER, STREAM, REP. It can only be set.
    """
    delay_attach_on_connect: int
    """Another name of `IMMEDIATE`. Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.
    """
    fail_unroutable: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    router_behavior: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    zap_enforce_domain: int
    """Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

    Type: int, 0 or 1. Default: 0.
    """
    metadata: bytes
    """A property sent to peers in the handshake, as X-name:value; each call adds one.

    Type: bytes, text in UTF-8. It can only be set.

    Source: 37/ZMTP, section "Connection Metadata"
    """
    xpub_manual_last_value: int
    """Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that
    subscriber.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.
    """
    socks_username: bytes
    """The user name for the SOCKS5 proxy; empty = no login.

    Type: bytes, text in UTF-8. Default: empty.
    """
    socks_password: bytes
    """The password for SOCKS_USERNAME.

    Type: bytes, text in UTF-8. Default: empty.
    """
    only_first_subscribe: int
    """Stored without effect: a message that does not begin with a subscription never has one in a
    later part.

    Type: int, 0 or 1. Sockets: XPUB, XSUB, PUB. It can only be set.
    """
    reconnect_stop: int
    """When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect();
    add the numbers.

    Type: int. Default: 0.
    """
    max_subscriptions: int
    """How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

    Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB.
    """
    sndhwm_bytes: int
    """How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.
    """
    rcvhwm_bytes: int
    """How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.
    """
    stall_ivl: int
    """How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no
    limit.

    Type: int, in ms. Default: 60000.
    """
    max_subscription_bytes: int
    """How many bytes the topics of each subscriber may have together; further ones are counted and
    ignored. 0 = no limit.

    Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB.
    """

class UpperCaseOptions:
    """The same in upper case, as many programs written for pyzmq have them."""

    AFFINITY: int
    """The I/O threads that may serve new connections, one bit each; 0 = all.

    Type: int. Default: 0.
    """
    ROUTING_ID: bytes
    """The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"
    """
    SNDBUF: int
    """The kernel's send buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.
    """
    RCVBUF: int
    """The kernel's receive buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.
    """
    LINGER: int
    """How long messages are still sent after closing, in ms; -1 = no limit.

    Type: int, in ms. Default: -1; 0 for SUB and XSUB.
    """
    RECONNECT_IVL: int
    """The delay before the next connection attempt in ms; -1 = no further attempt.

    Type: int, in ms. Default: 100.
    """
    BACKLOG: int
    """How many connections may wait to be accepted.

    Type: int, in connections. Default: 100.
    """
    RECONNECT_IVL_MAX: int
    """Delays between attempts double up to this many ms; 0 = they do not.

    Type: int, in ms. Default: 0.
    """
    MAXMSGSIZE: int
    """A larger message from a peer ends its connection; bytes, -1 = no limit.

    Type: int, in bytes. Default: -1.
    """
    SNDHWM: int
    """How many messages queue per peer on the way out; 0 = no limit.

    Type: int, in messages. Default: 1000.
    """
    RCVHWM: int
    """How many messages queue per peer on the way in; 0 = no limit.

    Type: int, in messages. Default: 1000.
    """
    RCVTIMEO: int
    """How long receiving waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.
    """
    SNDTIMEO: int
    """How long sending waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.
    """
    IPV4ONLY: int
    """The opposite of IPV6, for old programs.

    Type: int, 0 or 1. Default: 1.
    """
    ROUTER_MANDATORY: int
    """A message to an unknown peer raises an error instead of being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    TCP_KEEPALIVE: int
    """Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

    Type: int. Default: -1.
    """
    TCP_KEEPALIVE_CNT: int
    """How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in probes. Default: -1.
    """
    TCP_KEEPALIVE_IDLE: int
    """Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in s. Default: -1.
    """
    TCP_KEEPALIVE_INTVL: int
    """Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

    Type: int, in s. Default: -1.
    """
    TCP_ACCEPT_FILTER: bytes
    """One more network (CIDR) that may connect to endpoints bound later; empty = every network
    again.

    Type: bytes, text in UTF-8. It can only be set.
    """
    IMMEDIATE: int
    """Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.
    """
    XPUB_VERBOSE: int
    """Receive every subscription, not only the first for a topic.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    ROUTER_RAW: int
    """Raw TCP on a ROUTER; a STREAM socket is the newer way.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.
    """
    IPV6: int
    """Bind and connect over IPv6 as well as IPv4.

    Type: int, 0 or 1. Default: 0.
    """
    PLAIN_SERVER: int
    """Act as server of the PLAIN mechanism.

    Type: int, 0 or 1. Default: 0.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    PLAIN_USERNAME: bytes
    """The user name of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    PLAIN_PASSWORD: bytes
    """The password of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"
    """
    CURVE_SERVER: int
    """Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

    Type: int, 0 or 1. Default: 0.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    CURVE_PUBLICKEY: bytes
    """The public key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    CURVE_SECRETKEY: bytes
    """The secret key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    CURVE_SERVERKEY: bytes
    """The public key of the server to connect to; makes this a CURVE client.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"
    """
    PROBE_ROUTER: int
    """Send an empty message on each new connection.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, DEALER, REQ, REP. It can only be set.
    """
    REQ_CORRELATE: int
    """Number the requests and accept only matching replies.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.
    """
    REQ_RELAXED: int
    """Allow a new request before the reply to the last.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.
    """
    CONFLATE: int
    """Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

    Type: int, 0 or 1. Default: 0.
    """
    ZAP_DOMAIN: bytes
    """The domain that authentication requests name.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 27/ZAP, section "Message Format"
    """
    ROUTER_HANDOVER: int
    """A new peer takes over the routing id of an older one.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    TOS: int
    """The type-of-service byte of outgoing packets.

    Type: int. Default: 0.
    """
    IPC_FILTER_PID: int
    """One more process that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    IPC_FILTER_UID: int
    """One more user that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    IPC_FILTER_GID: int
    """One more primary group that may connect to a bound ipc endpoint.

    Type: int. It can only be set.
    """
    CONNECT_ROUTING_ID: bytes
    """The name here of the peer that the next connect reaches.

    Type: bytes. Default: empty. Sockets: ROUTER, STREAM, REP. It can only be set.
    """
    HANDSHAKE_IVL: int
    """The limit from the connection to the end of the handshake, in ms; 0 = none.

    Type: int, in ms. Default: 30000.
    """
    SOCKS_PROXY: bytes
    """Connect through the SOCKS5 proxy at host:port; empty = directly.

    Type: bytes, text in UTF-8. Default: empty.
    """
    XPUB_NODROP: int
    """Wait instead of dropping when the queue to a subscriber is full.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    XPUB_MANUAL: int
    """The program decides which subscriptions take effect.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.
    """
    XPUB_WELCOME_MSG: bytes
    """The first message to each new subscriber; empty = none.

    Type: bytes. Default: empty. Sockets: XPUB, PUB. It can only be set.
    """
    STREAM_NOTIFY: int
    """Deliver an empty message when a peer connects and when it disconnects.

    Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.
    """
    INVERT_MATCHING: int
    """Match messages that do not begin with a subscription; set it at both ends. No effect on types
    without subscriptions.

    Type: int, 0 or 1. Default: 0.
    """
    HEARTBEAT_IVL: int
    """How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent
    peers are probed.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    HEARTBEAT_TTL: int
    """The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    HEARTBEAT_TIMEOUT: int
    """Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

    Type: int, in ms. Default: -1.

    Source: 37/ZMTP, section "Connection Heartbeating"
    """
    XPUB_VERBOSER: int
    """Receive every subscription and every unsubscription.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB, PUB. It can only be set.
    """
    CONNECT_TIMEOUT: int
    """The limit of one connection attempt, in ms; 0 = the system's.

    Type: int, in ms. Default: 0.
    """
    TCP_MAXRT: int
    """How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

    Type: int, in ms. Default: 0.
    """
    USE_FD: int
    """A listening descriptor that the next bind takes over; -1 = none.

    Type: int. Default: -1.
    """
    BINDTODEVICE: bytes
    """The only network interface to use (needs CAP_NET_RAW); empty = any.

    Type: bytes, text in UTF-8. Default: empty.
    """
    IDENTITY: bytes
    """Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"
    """
    CONNECT_RID: bytes
    """Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect
    reaches.

    Type: bytes. Default: empty. Sockets: ROUTER, STREAM, REP. It can only be set.
    """
    DELAY_ATTACH_ON_CONNECT: int
    """Another name of `IMMEDIATE`. Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.
    """
    FAIL_UNROUTABLE: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    ROUTER_BEHAVIOR: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER, REP. It can only be set.
    """
    ZAP_ENFORCE_DOMAIN: int
    """Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

    Type: int, 0 or 1. Default: 0.
    """
    METADATA: bytes
    """A property sent to peers in the handshake, as X-name:value; each call adds one.

    Type: bytes, text in UTF-8. It can only be set.

    Source: 37/ZMTP, section "Connection Metadata"
    """
    XPUB_MANUAL_LAST_VALUE: int
    """Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that
    subscriber.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.
    """
    SOCKS_USERNAME: bytes
    """The user name for the SOCKS5 proxy; empty = no login.

    Type: bytes, text in UTF-8. Default: empty.
    """
    SOCKS_PASSWORD: bytes
    """The password for SOCKS_USERNAME.

    Type: bytes, text in UTF-8. Default: empty.
    """
    ONLY_FIRST_SUBSCRIBE: int
    """Stored without effect: a message that does not begin with a subscription never has one in a
    later part.

    Type: int, 0 or 1. Sockets: XPUB, XSUB, PUB. It can only be set.
    """
    RECONNECT_STOP: int
    """When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect();
    add the numbers.

    Type: int. Default: 0.
    """
    MAX_SUBSCRIPTIONS: int
    """How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

    Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB.
    """
    SNDHWM_BYTES: int
    """How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.
    """
    RCVHWM_BYTES: int
    """How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.
    """
    STALL_IVL: int
    """How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no
    limit.

    Type: int, in ms. Default: 60000.
    """
    MAX_SUBSCRIPTION_BYTES: int
    """How many bytes the topics of each subscriber may have together; further ones are counted and
    ignored. 0 = no limit.

    Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB.
    """

class ReadOnlyOptions:
    """The options that can only be read: properties, for type checkers and editors."""

    @property
    def rcvmore(self) -> int:
        """Whether further parts follow the one received last.

        Type: int, 0 or 1. It can only be read.
        """
    @property
    def fd(self) -> int:
        """A descriptor that is readable when the socket may have become ready.

        Type: int, a file descriptor. It can only be read.
        """
    @property
    def events(self) -> int:
        """What the socket is ready for: POLLIN, POLLOUT.

        Type: int. It can only be read.
        """
    @property
    def last_endpoint(self) -> bytes:
        """The endpoint that was bound or connected last, with wildcards replaced.

        Type: bytes, text in UTF-8. Default: empty. It can only be read.
        """
    @property
    def mechanism(self) -> int:
        """The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

        Type: int. Default: 0. It can only be read.

        Source: 37/ZMTP, section "Authentication and Confidentiality"
        """
    @property
    def thread_safe(self) -> int:
        """1 for the socket types that libzmq calls thread-safe. Every zeroxide socket is, but these
        types read 0 as in libzmq.

        Type: int, 0 or 1. Default: 0. It can only be read.
        """
    @property
    def topics_count(self) -> int:
        """The number of different topics that this socket or its peers subscribe to.

        Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.
        """
    @property
    def RCVMORE(self) -> int:
        """Whether further parts follow the one received last.

        Type: int, 0 or 1. It can only be read.
        """
    @property
    def FD(self) -> int:
        """A descriptor that is readable when the socket may have become ready.

        Type: int, a file descriptor. It can only be read.
        """
    @property
    def EVENTS(self) -> int:
        """What the socket is ready for: POLLIN, POLLOUT.

        Type: int. It can only be read.
        """
    @property
    def LAST_ENDPOINT(self) -> bytes:
        """The endpoint that was bound or connected last, with wildcards replaced.

        Type: bytes, text in UTF-8. Default: empty. It can only be read.
        """
    @property
    def MECHANISM(self) -> int:
        """The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

        Type: int. Default: 0. It can only be read.

        Source: 37/ZMTP, section "Authentication and Confidentiality"
        """
    @property
    def THREAD_SAFE(self) -> int:
        """1 for the socket types that libzmq calls thread-safe. Every zeroxide socket is, but these
        types read 0 as in libzmq.

        Type: int, 0 or 1. Default: 0. It can only be read.
        """
    @property
    def TOPICS_COUNT(self) -> int:
        """The number of different topics that this socket or its peers subscribe to.

        Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.
        """

class ContextOptions:
    """The options of contexts. Two more can only be read."""

    io_threads: int
    """How many I/O threads serve the sockets; fixed when the first socket is created. 0 is enough
    for inproc.

    Type: int, in threads. Default: 1.
    """
    max_sockets: int
    """How many sockets may be open at a time.

    Type: int, in sockets. Default: 1023.
    """
    thread_sched_policy: int
    """The scheduling policy of the I/O threads (SCHED_*); -1, the system's, can only be read.

    Type: int. Default: -1.
    """
    thread_priority: int
    """The scheduling priority of the I/O threads; the default is the system's.

    Type: int. It can only be set.
    """
    thread_affinity_cpu_add: int
    """One more CPU for the I/O threads to run on.

    Type: int. It can only be set.
    """
    thread_affinity_cpu_remove: int
    """One CPU less for the I/O threads to run on.

    Type: int. It can only be set.
    """
    thread_name_prefix: int | str | bytes
    """The prefix of the I/O threads' names; a number or up to 16 bytes.

    Type: int.
    """
    max_msgsz: int
    """Stored without effect, for programs that read it back; the socket option MAXMSGSIZE is the
    limit.

    Type: int, in bytes. Default: 2147483647.
    """
    zero_copy_recv: int
    """Stored without effect, for programs that read it back; large messages are always received
    without a copy.

    Type: int. Default: 1.
    """
    memory_budget: int
    """How many bytes the messages of all peers together may take: incomplete ones and those not
    received yet. 0 = no limit.

    Type: int. Default: three quarters of the memory the process may have, in bytes.
    """
    blocky: int
    """0 makes LINGER 0 the default of new sockets, so that terminating never waits for peers.

    Type: int. Default: 1.
    """
    @property
    def socket_limit(self) -> int:
        """libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

        Type: int, in sockets. Default: 65535. It can only be read.
        """
    @property
    def msg_t_size(self) -> int:
        """The size of libzmq's message structure, 64; zeroxide does not use it.

        Type: int, in bytes. Default: 64. It can only be read.
        """
