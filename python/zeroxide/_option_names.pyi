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

    Source: ``ZMQ_AFFINITY`` of zmq_setsockopt(3)
    """
    routing_id: bytes
    """The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    sndbuf: int
    """The kernel's send buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_SNDBUF`` of zmq_setsockopt(3)
    """
    rcvbuf: int
    """The kernel's receive buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_RCVBUF`` of zmq_setsockopt(3)
    """
    linger: int
    """How long messages are still sent after closing, in ms; -1 = no limit.

    Type: int, in ms. Default: -1; 0 for SUB and XSUB.

    Source: ``ZMQ_LINGER`` of zmq_setsockopt(3)
    """
    reconnect_ivl: int
    """The delay before the next connection attempt in ms; -1 = no further attempt.

    Type: int, in ms. Default: 100.

    Source: ``ZMQ_RECONNECT_IVL`` of zmq_setsockopt(3)
    """
    backlog: int
    """How many connections may wait to be accepted.

    Type: int, in connections. Default: 100.

    Source: ``ZMQ_BACKLOG`` of zmq_setsockopt(3)
    """
    reconnect_ivl_max: int
    """Delays between attempts double up to this many ms; 0 = they do not.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_RECONNECT_IVL_MAX`` of zmq_setsockopt(3)
    """
    maxmsgsize: int
    """A larger message from a peer ends its connection; bytes, -1 = no limit.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_MAXMSGSIZE`` of zmq_setsockopt(3)
    """
    sndhwm: int
    """How many messages queue per peer on the way out; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_SNDHWM`` of zmq_setsockopt(3)
    """
    rcvhwm: int
    """How many messages queue per peer on the way in; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_RCVHWM`` of zmq_setsockopt(3)
    """
    rcvtimeo: int
    """How long receiving waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_RCVTIMEO`` of zmq_setsockopt(3)
    """
    sndtimeo: int
    """How long sending waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_SNDTIMEO`` of zmq_setsockopt(3)
    """
    ipv4only: int
    """The opposite of IPV6, for old programs.

    Type: int, 0 or 1. Default: 1.

    Source: ``ZMQ_IPV4ONLY`` of zmq_setsockopt(3)
    """
    router_mandatory: int
    """A message to an unknown peer raises an error instead of being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    tcp_keepalive: int
    """Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

    Type: int. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE`` of zmq_setsockopt(3)
    """
    tcp_keepalive_cnt: int
    """How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in probes. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_CNT`` of zmq_setsockopt(3)
    """
    tcp_keepalive_idle: int
    """Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_IDLE`` of zmq_setsockopt(3)
    """
    tcp_keepalive_intvl: int
    """Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_INTVL`` of zmq_setsockopt(3)
    """
    tcp_accept_filter: bytes
    """One more network (CIDR) that may connect to endpoints bound later; empty = every network
    again.

    Type: bytes, text in UTF-8. It can only be set.

    Source: ``ZMQ_TCP_ACCEPT_FILTER`` of zmq_setsockopt(3)
    """
    immediate: int
    """Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    xpub_verbose: int
    """Receive every subscription, not only the first for a topic.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSE`` of zmq_setsockopt(3)
    """
    router_raw: int
    """Raw TCP on a ROUTER; a STREAM socket is the newer way.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_RAW`` of zmq_setsockopt(3)
    """
    ipv6: int
    """Bind and connect over IPv6 as well as IPv4.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IPV6`` of zmq_setsockopt(3)
    """
    plain_server: int
    """Act as server of the PLAIN mechanism.

    Type: int, 0 or 1. Default: 0.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_SERVER`` of zmq_setsockopt(3)
    """
    plain_username: bytes
    """The user name of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_USERNAME`` of zmq_setsockopt(3)
    """
    plain_password: bytes
    """The password of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_PASSWORD`` of zmq_setsockopt(3)
    """
    curve_server: int
    """Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

    Type: int, 0 or 1. Default: 0.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVER`` of zmq_setsockopt(3)
    """
    curve_publickey: bytes
    """The public key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_PUBLICKEY`` of zmq_setsockopt(3)
    """
    curve_secretkey: bytes
    """The secret key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SECRETKEY`` of zmq_setsockopt(3)
    """
    curve_serverkey: bytes
    """The public key of the server to connect to; makes this a CURVE client.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVERKEY`` of zmq_setsockopt(3)
    """
    probe_router: int
    """Send an empty message on each new connection, before all others.

    Type: int, 0 or 1. Default: 0. Sockets: REQ, REP, DEALER, ROUTER. It can only be set.

    Source: ``ZMQ_PROBE_ROUTER`` of zmq_setsockopt(3)
    """
    req_correlate: int
    """Number the requests and accept only matching replies.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_CORRELATE`` of zmq_setsockopt(3)
    """
    req_relaxed: int
    """Allow a new request before the reply to the last.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_RELAXED`` of zmq_setsockopt(3)
    """
    conflate: int
    """Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_CONFLATE`` of zmq_setsockopt(3)
    """
    zap_domain: bytes
    """The domain that authentication requests name.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 27/ZAP, section "Message Format"; ``ZMQ_ZAP_DOMAIN`` of zmq_setsockopt(3)
    """
    router_handover: int
    """A new peer takes over the routing id of an older one.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_HANDOVER`` of zmq_setsockopt(3)
    """
    tos: int
    """The type-of-service byte of outgoing packets.

    Type: int. Default: 0.

    Source: ``ZMQ_TOS`` of zmq_setsockopt(3)
    """
    ipc_filter_pid: int
    """One more process that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_PID`` of zmq_setsockopt(3)
    """
    ipc_filter_uid: int
    """One more user that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_UID`` of zmq_setsockopt(3)
    """
    ipc_filter_gid: int
    """One more primary group that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_GID`` of zmq_setsockopt(3)
    """
    connect_routing_id: bytes
    """The name here of the peer that the next connect reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    handshake_ivl: int
    """The limit from the connection to the end of the handshake, in ms; 0 = none.

    Type: int, in ms. Default: 30000.

    Source: ``ZMQ_HANDSHAKE_IVL`` of zmq_setsockopt(3)
    """
    socks_proxy: bytes
    """Connect through the SOCKS5 proxy at host:port; empty = directly.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PROXY`` of zmq_setsockopt(3)
    """
    xpub_nodrop: int
    """Wait instead of dropping when the queue to a subscriber is full.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB, RADIO. It can only be set.

    Source: ``ZMQ_XPUB_NODROP`` of zmq_setsockopt(3)
    """
    xpub_manual: int
    """The program decides which subscriptions take effect.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL`` of zmq_setsockopt(3)
    """
    xpub_welcome_msg: bytes
    """The first message to each new subscriber; empty = none.

    Type: bytes. Default: empty. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_WELCOME_MSG`` of zmq_setsockopt(3)
    """
    stream_notify: int
    """Deliver an empty message when a peer connects and when it disconnects.

    Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.

    Source: ``ZMQ_STREAM_NOTIFY`` of zmq_setsockopt(3)
    """
    invert_matching: int
    """Match messages that do not begin with a subscription; set it at both ends. No effect on types
    without subscriptions.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_INVERT_MATCHING`` of zmq_setsockopt(3)
    """
    heartbeat_ivl: int
    """How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent
    peers are probed.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_IVL`` of
    zmq_setsockopt(3)
    """
    heartbeat_ttl: int
    """The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TTL`` of
    zmq_setsockopt(3)
    """
    heartbeat_timeout: int
    """Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

    Type: int, in ms. Default: -1.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TIMEOUT`` of
    zmq_setsockopt(3)
    """
    xpub_verboser: int
    """Receive every subscription and every unsubscription.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSER`` of zmq_setsockopt(3)
    """
    connect_timeout: int
    """The limit of one connection attempt, in ms; 0 = 10 s, or 3 s while the name has another
    address.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
    """
    tcp_maxrt: int
    """How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_TCP_MAXRT`` of zmq_setsockopt(3)
    """
    use_fd: int
    """A listening descriptor that the next bind takes over; -1 = none.

    Type: int. Default: -1.

    Source: ``ZMQ_USE_FD`` of zmq_setsockopt(3)
    """
    bindtodevice: bytes
    """The only network interface to use (needs CAP_NET_RAW); empty = any.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_BINDTODEVICE`` of zmq_setsockopt(3)
    """
    identity: bytes
    """Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    connect_rid: bytes
    """Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect
    reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    delay_attach_on_connect: int
    """Another name of `IMMEDIATE`. Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    fail_unroutable: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    router_behavior: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    zap_enforce_domain: int
    """Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_ZAP_ENFORCE_DOMAIN`` of zmq_setsockopt(3)
    """
    metadata: bytes
    """A property sent to peers in the handshake, as X-name:value; each call adds one.

    Type: bytes. It can only be set.

    Source: 37/ZMTP, section "Connection Metadata"; ``ZMQ_METADATA`` of zmq_setsockopt(3)
    """
    router_notify: int
    """Receive an empty message from a peer that has connected (1), disconnected (2), or both (3); 0
    = neither.

    Type: int. Default: 0. Sockets: ROUTER.

    Source: ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
    """
    xpub_manual_last_value: int
    """Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that
    subscriber.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL_LAST_VALUE`` of zmq_setsockopt(3)
    """
    socks_username: bytes
    """The user name for the SOCKS5 proxy; empty = no login.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_USERNAME`` of zmq_setsockopt(3)
    """
    socks_password: bytes
    """The password for SOCKS_USERNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PASSWORD`` of zmq_setsockopt(3)
    """
    wss_key_pem: bytes
    """libzmq's name of TLS_KEY.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    wss_cert_pem: bytes
    """libzmq's name of TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    wss_trust_pem: bytes
    """libzmq's name of TLS_CA.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    wss_hostname: bytes
    """libzmq's name of TLS_HOSTNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    wss_trust_system: int
    """libzmq's name of TLS_TRUST_SYSTEM. It reads 0 if that is not set.

    Type: int, 0 or 1. Default: 0.

    Source: libzmq's zmq.h
    """
    only_first_subscribe: int
    """Stored without effect: a message that does not begin with a subscription never has one in a
    later part.

    Type: int, 0 or 1. Sockets: PUB, XPUB, XSUB. It can only be set.

    Source: ``ZMQ_ONLY_FIRST_SUBSCRIBE`` of zmq_setsockopt(3)
    """
    reconnect_stop: int
    """When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect();
    add the numbers.

    Type: int. Default: 0.

    Source: ``ZMQ_RECONNECT_STOP`` of zmq_setsockopt(3)
    """
    hello_msg: bytes
    """The first message to each peer, sent again on each new connection; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, ROUTER, SERVER, CLIENT, PEER.

    Source: ``ZMQ_HELLO_MSG`` of zmq_setsockopt(3)
    """
    disconnect_msg: bytes
    """The message received from a peer that has connected to this socket, once it has left; empty =
    none.

    Type: bytes. Default: empty. Sockets: ROUTER, SERVER, PEER.

    Source: ``ZMQ_DISCONNECT_MSG`` of zmq_setsockopt(3)
    """
    hiccup_msg: bytes
    """The message received when a connection that this socket has made is lost, before it connects
    again; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, CLIENT, PEER.

    Source: ``ZMQ_HICCUP_MSG`` of zmq_setsockopt(3)
    """
    max_subscriptions: int
    """How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

    Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    sndhwm_bytes: int
    """How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    rcvhwm_bytes: int
    """How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    stall_ivl: int
    """How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no
    limit.

    Type: int, in ms. Default: 60000.

    Source: zeroxide only
    """
    max_subscription_bytes: int
    """How many bytes the topics of each subscriber may have together; further ones are counted and
    ignored. 0 = no limit.

    Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    tls_certificate: bytes
    """The TLS certificate of this socket, followed by those between it and its CA: PEM, or the path
    of a file.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    tls_key: bytes
    """The key of TLS_CERTIFICATE, without a password: PEM, or the path of a file; empty = it is in
    TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    tls_ca: bytes
    """The CAs whose certificates TLS peers must have: PEM, or the path of a file; empty = those of
    the system.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    tls_trust_system: int
    """Whether TLS peers may have a certificate of a CA that the system trusts: 1 yes, 0 no, -1 = if
    TLS_CA is empty.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    tls_hostname: bytes
    """The name or IP address that a TLS server's certificate must have; empty = the host in the
    endpoint.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    tls_verify: int
    """Whether the certificate of a TLS server is checked. With 0, an attacker on the network can
    pose as the server.

    Type: int, 0 or 1. Default: 1.

    Source: zeroxide only
    """
    tls_client_auth: int
    """The certificates of TLS clients: 0 not asked for, 1 checked if a client has one, 2 required,
    -1 = 2 if TLS_CA is set, otherwise 0.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    tls_alpn: bytes
    """The protocols that TLS peers negotiate with ALPN, separated by commas; empty = none.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    wire_protocol: int
    """What the socket speaks with its peers: 0 ZMTP, 1 the scalability protocols of nanomsg and
    nng. Set it before all else; PAIR, PUB, SUB, REQ, REP, PUSH and PULL speak either.

    Type: int. Default: 0.

    Source: zeroxide only
    """
    resend_ivl: int
    """When a request over the scalability protocols is sent again, to the next peer, if no reply
    has come, in ms; 0 = never.

    Type: int, in ms. Default: 60000. Sockets: REQ.

    Source: zeroxide only
    """
    survey_timeout: int
    """How long the answers to a survey are received, in ms; 0 = no limit.

    Type: int, in ms. Default: 1000. Sockets: SURVEYOR.

    Source: zeroxide only
    """
    max_ttl: int
    """How many sockets a request or a survey may have passed; one that has passed more is dropped,
    because it may travel in a circle.

    Type: int, in sockets. Default: 8. Sockets: REP, RESPONDENT.

    Source: zeroxide only
    """
    sndprio: int
    """The priority of the peers of later binds and connects for what is sent, 1 to 16: peers with
    the lowest number get messages as long as they have room.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_SNDPRIO``; zeroxide only; ``ZMQ_SNDPRIO`` of zmq_setsockopt(3)
    """
    rcvprio: int
    """The priority of the peers of later binds and connects for what is received, 1 to 16: messages
    of peers with the lowest number are received first.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_RCVPRIO``; zeroxide only; ``ZMQ_RCVPRIO`` of zmq_setsockopt(3)
    """
    slow_subscriber: int
    """When the queue to a subscriber is full: 0 the subscriber misses messages, 1 sending waits (as
    with XPUB_NODROP), 2 the subscriber is disconnected and loses its queue.

    Type: int. Default: 0. Sockets: PUB, XPUB.

    Source: zeroxide only
    """
    max_lag: int
    """How long a message may wait to be received, in ms (up to 1.5 times that). If one has waited
    longer, receiving fails once, the queue is dropped, and the socket joins its publishers anew;
    0 = no limit.

    Type: int, in ms. Default: 0. Sockets: SUB.

    Source: zeroxide only
    """
    spill_dir: bytes
    """The folder of this socket, and of no other, for messages beyond the high-water mark, from the
    next bind or connect on; empty = none, and the usual rule of the socket type applies to them.

    Type: bytes, text in UTF-8. Default: empty. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    spill_bytes: int
    """How many bytes of messages may wait in SPILL_DIR; 0 = no limit.

    Type: int, in bytes. Default: 1073741824. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    spill_keep: int
    """Whether messages in SPILL_DIR stay there when the socket closes or its process ends, for the
    next socket with that folder.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """

class UpperCaseOptions:
    """The same options in upper case, as many programs written for pyzmq use them."""

    AFFINITY: int
    """The I/O threads that may serve new connections, one bit each; 0 = all.

    Type: int. Default: 0.

    Source: ``ZMQ_AFFINITY`` of zmq_setsockopt(3)
    """
    ROUTING_ID: bytes
    """The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    SNDBUF: int
    """The kernel's send buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_SNDBUF`` of zmq_setsockopt(3)
    """
    RCVBUF: int
    """The kernel's receive buffer in bytes; -1 = the system's default.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_RCVBUF`` of zmq_setsockopt(3)
    """
    LINGER: int
    """How long messages are still sent after closing, in ms; -1 = no limit.

    Type: int, in ms. Default: -1; 0 for SUB and XSUB.

    Source: ``ZMQ_LINGER`` of zmq_setsockopt(3)
    """
    RECONNECT_IVL: int
    """The delay before the next connection attempt in ms; -1 = no further attempt.

    Type: int, in ms. Default: 100.

    Source: ``ZMQ_RECONNECT_IVL`` of zmq_setsockopt(3)
    """
    BACKLOG: int
    """How many connections may wait to be accepted.

    Type: int, in connections. Default: 100.

    Source: ``ZMQ_BACKLOG`` of zmq_setsockopt(3)
    """
    RECONNECT_IVL_MAX: int
    """Delays between attempts double up to this many ms; 0 = they do not.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_RECONNECT_IVL_MAX`` of zmq_setsockopt(3)
    """
    MAXMSGSIZE: int
    """A larger message from a peer ends its connection; bytes, -1 = no limit.

    Type: int, in bytes. Default: -1.

    Source: ``ZMQ_MAXMSGSIZE`` of zmq_setsockopt(3)
    """
    SNDHWM: int
    """How many messages queue per peer on the way out; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_SNDHWM`` of zmq_setsockopt(3)
    """
    RCVHWM: int
    """How many messages queue per peer on the way in; 0 = no limit.

    Type: int, in messages. Default: 1000.

    Source: ``ZMQ_RCVHWM`` of zmq_setsockopt(3)
    """
    RCVTIMEO: int
    """How long receiving waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_RCVTIMEO`` of zmq_setsockopt(3)
    """
    SNDTIMEO: int
    """How long sending waits, in ms; -1 = no limit.

    Type: int, in ms. Default: -1.

    Source: ``ZMQ_SNDTIMEO`` of zmq_setsockopt(3)
    """
    IPV4ONLY: int
    """The opposite of IPV6, for old programs.

    Type: int, 0 or 1. Default: 1.

    Source: ``ZMQ_IPV4ONLY`` of zmq_setsockopt(3)
    """
    ROUTER_MANDATORY: int
    """A message to an unknown peer raises an error instead of being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE: int
    """Keepalive probes: 1 on, 0 off, -1 = on with limits that find a dead machine within 15 s.

    Type: int. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_CNT: int
    """How many unanswered probes end a connection; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in probes. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_CNT`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_IDLE: int
    """Silence before the first probe, in seconds; -1 = as TCP_KEEPALIVE says, or the system's
    default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_IDLE`` of zmq_setsockopt(3)
    """
    TCP_KEEPALIVE_INTVL: int
    """Time between probes, in seconds; -1 = as TCP_KEEPALIVE says, or the system's default.

    Type: int, in s. Default: -1.

    Source: ``ZMQ_TCP_KEEPALIVE_INTVL`` of zmq_setsockopt(3)
    """
    TCP_ACCEPT_FILTER: bytes
    """One more network (CIDR) that may connect to endpoints bound later; empty = every network
    again.

    Type: bytes, text in UTF-8. It can only be set.

    Source: ``ZMQ_TCP_ACCEPT_FILTER`` of zmq_setsockopt(3)
    """
    IMMEDIATE: int
    """Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    XPUB_VERBOSE: int
    """Receive every subscription, not only the first for a topic.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSE`` of zmq_setsockopt(3)
    """
    ROUTER_RAW: int
    """Raw TCP on a ROUTER; a STREAM socket is the newer way.

    Type: int, 0 or 1. Default: 0. Sockets: ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_RAW`` of zmq_setsockopt(3)
    """
    IPV6: int
    """Bind and connect over IPv6 as well as IPv4.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IPV6`` of zmq_setsockopt(3)
    """
    PLAIN_SERVER: int
    """Act as server of the PLAIN mechanism.

    Type: int, 0 or 1. Default: 0.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_SERVER`` of zmq_setsockopt(3)
    """
    PLAIN_USERNAME: bytes
    """The user name of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_USERNAME`` of zmq_setsockopt(3)
    """
    PLAIN_PASSWORD: bytes
    """The password of a PLAIN client.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 24/ZMTP-PLAIN, section "Implementation"; ``ZMQ_PLAIN_PASSWORD`` of zmq_setsockopt(3)
    """
    CURVE_SERVER: int
    """Act as server of the CURVE mechanism; needs CURVE_SECRETKEY.

    Type: int, 0 or 1. Default: 0.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVER`` of zmq_setsockopt(3)
    """
    CURVE_PUBLICKEY: bytes
    """The public key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_PUBLICKEY`` of zmq_setsockopt(3)
    """
    CURVE_SECRETKEY: bytes
    """The secret key of this socket, 32 bytes or 40 characters of Z85.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SECRETKEY`` of zmq_setsockopt(3)
    """
    CURVE_SERVERKEY: bytes
    """The public key of the server to connect to; makes this a CURVE client.

    Type: bytes. Default: empty.

    Source: 25/ZMTP-CURVE, section "Implementation"; ``ZMQ_CURVE_SERVERKEY`` of zmq_setsockopt(3)
    """
    PROBE_ROUTER: int
    """Send an empty message on each new connection, before all others.

    Type: int, 0 or 1. Default: 0. Sockets: REQ, REP, DEALER, ROUTER. It can only be set.

    Source: ``ZMQ_PROBE_ROUTER`` of zmq_setsockopt(3)
    """
    REQ_CORRELATE: int
    """Number the requests and accept only matching replies.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_CORRELATE`` of zmq_setsockopt(3)
    """
    REQ_RELAXED: int
    """Allow a new request before the reply to the last.

    Type: int, 0 or 1. Default: 0. Sockets: REQ. It can only be set.

    Source: ``ZMQ_REQ_RELAXED`` of zmq_setsockopt(3)
    """
    CONFLATE: int
    """Keep only the newest message (PULL, PUSH, SUB, PUB, DEALER).

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_CONFLATE`` of zmq_setsockopt(3)
    """
    ZAP_DOMAIN: bytes
    """The domain that authentication requests name.

    Type: bytes, text in UTF-8. Default: empty.

    Source: 27/ZAP, section "Message Format"; ``ZMQ_ZAP_DOMAIN`` of zmq_setsockopt(3)
    """
    ROUTER_HANDOVER: int
    """A new peer takes over the routing id of an older one.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_HANDOVER`` of zmq_setsockopt(3)
    """
    TOS: int
    """The type-of-service byte of outgoing packets.

    Type: int. Default: 0.

    Source: ``ZMQ_TOS`` of zmq_setsockopt(3)
    """
    IPC_FILTER_PID: int
    """One more process that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_PID`` of zmq_setsockopt(3)
    """
    IPC_FILTER_UID: int
    """One more user that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_UID`` of zmq_setsockopt(3)
    """
    IPC_FILTER_GID: int
    """One more primary group that may connect to a bound ipc endpoint.

    Type: int. It can only be set.

    Source: ``ZMQ_IPC_FILTER_GID`` of zmq_setsockopt(3)
    """
    CONNECT_ROUTING_ID: bytes
    """The name here of the peer that the next connect reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    HANDSHAKE_IVL: int
    """The limit from the connection to the end of the handshake, in ms; 0 = none.

    Type: int, in ms. Default: 30000.

    Source: ``ZMQ_HANDSHAKE_IVL`` of zmq_setsockopt(3)
    """
    SOCKS_PROXY: bytes
    """Connect through the SOCKS5 proxy at host:port; empty = directly.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PROXY`` of zmq_setsockopt(3)
    """
    XPUB_NODROP: int
    """Wait instead of dropping when the queue to a subscriber is full.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB, RADIO. It can only be set.

    Source: ``ZMQ_XPUB_NODROP`` of zmq_setsockopt(3)
    """
    XPUB_MANUAL: int
    """The program decides which subscriptions take effect.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL`` of zmq_setsockopt(3)
    """
    XPUB_WELCOME_MSG: bytes
    """The first message to each new subscriber; empty = none.

    Type: bytes. Default: empty. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_WELCOME_MSG`` of zmq_setsockopt(3)
    """
    STREAM_NOTIFY: int
    """Deliver an empty message when a peer connects and when it disconnects.

    Type: int, 0 or 1. Default: 1. Sockets: STREAM. It can only be set.

    Source: ``ZMQ_STREAM_NOTIFY`` of zmq_setsockopt(3)
    """
    INVERT_MATCHING: int
    """Match messages that do not begin with a subscription; set it at both ends. No effect on types
    without subscriptions.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_INVERT_MATCHING`` of zmq_setsockopt(3)
    """
    HEARTBEAT_IVL: int
    """How often to ping the peer, in ms; 0 = never. If it is not set, it also reads 0, and silent
    peers are probed.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_IVL`` of
    zmq_setsockopt(3)
    """
    HEARTBEAT_TTL: int
    """The silence after which the peer may end the connection, in ms; 0 = not sent to the peer.

    Type: int, in ms. Default: 0.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TTL`` of
    zmq_setsockopt(3)
    """
    HEARTBEAT_TIMEOUT: int
    """Silence after a ping that ends the connection, in ms; the default is HEARTBEAT_IVL.

    Type: int, in ms. Default: -1.

    Source: 37/ZMTP, section "Connection Heartbeating"; ``ZMQ_HEARTBEAT_TIMEOUT`` of
    zmq_setsockopt(3)
    """
    XPUB_VERBOSER: int
    """Receive every subscription and every unsubscription.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, XPUB. It can only be set.

    Source: ``ZMQ_XPUB_VERBOSER`` of zmq_setsockopt(3)
    """
    CONNECT_TIMEOUT: int
    """The limit of one connection attempt, in ms; 0 = 10 s, or 3 s while the name has another
    address.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_CONNECT_TIMEOUT`` of zmq_setsockopt(3)
    """
    TCP_MAXRT: int
    """How long sent bytes may stay unacknowledged, in ms; 0 = the system's limit.

    Type: int, in ms. Default: 0.

    Source: ``ZMQ_TCP_MAXRT`` of zmq_setsockopt(3)
    """
    USE_FD: int
    """A listening descriptor that the next bind takes over; -1 = none.

    Type: int. Default: -1.

    Source: ``ZMQ_USE_FD`` of zmq_setsockopt(3)
    """
    BINDTODEVICE: bytes
    """The only network interface to use (needs CAP_NET_RAW); empty = any.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_BINDTODEVICE`` of zmq_setsockopt(3)
    """
    IDENTITY: bytes
    """Another name of `ROUTING_ID`. The name under which ROUTER peers address this socket.

    Type: bytes. Default: empty.

    Source: 37/ZMTP, section "The Identity Property"; ``ZMQ_ROUTING_ID`` of zmq_setsockopt(3)
    """
    CONNECT_RID: bytes
    """Another name of `CONNECT_ROUTING_ID`. The name here of the peer that the next connect
    reaches.

    Type: bytes. Default: empty. Sockets: REP, ROUTER, STREAM. It can only be set.

    Source: ``ZMQ_CONNECT_ROUTING_ID`` of zmq_setsockopt(3)
    """
    DELAY_ATTACH_ON_CONNECT: int
    """Another name of `IMMEDIATE`. Queue messages only for connections that are up.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_IMMEDIATE`` of zmq_setsockopt(3)
    """
    FAIL_UNROUTABLE: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    ROUTER_BEHAVIOR: int
    """Another name of `ROUTER_MANDATORY`. A message to an unknown peer raises an error instead of
    being dropped.

    Type: int, 0 or 1. Default: 0. Sockets: REP, ROUTER. It can only be set.

    Source: ``ZMQ_ROUTER_MANDATORY`` of zmq_setsockopt(3)
    """
    ZAP_ENFORCE_DOMAIN: int
    """Ask a ZAP handler only if ZAP_DOMAIN is set, and reject every peer if there is no handler.

    Type: int, 0 or 1. Default: 0.

    Source: ``ZMQ_ZAP_ENFORCE_DOMAIN`` of zmq_setsockopt(3)
    """
    METADATA: bytes
    """A property sent to peers in the handshake, as X-name:value; each call adds one.

    Type: bytes. It can only be set.

    Source: 37/ZMTP, section "Connection Metadata"; ``ZMQ_METADATA`` of zmq_setsockopt(3)
    """
    ROUTER_NOTIFY: int
    """Receive an empty message from a peer that has connected (1), disconnected (2), or both (3); 0
    = neither.

    Type: int. Default: 0. Sockets: ROUTER.

    Source: ``ZMQ_ROUTER_NOTIFY`` of zmq_setsockopt(3)
    """
    XPUB_MANUAL_LAST_VALUE: int
    """Like XPUB_MANUAL, and a message sent after receiving a subscription goes only to that
    subscriber.

    Type: int, 0 or 1. Default: 0. Sockets: XPUB. It can only be set.

    Source: ``ZMQ_XPUB_MANUAL_LAST_VALUE`` of zmq_setsockopt(3)
    """
    SOCKS_USERNAME: bytes
    """The user name for the SOCKS5 proxy; empty = no login.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_USERNAME`` of zmq_setsockopt(3)
    """
    SOCKS_PASSWORD: bytes
    """The password for SOCKS_USERNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: ``ZMQ_SOCKS_PASSWORD`` of zmq_setsockopt(3)
    """
    WSS_KEY_PEM: bytes
    """libzmq's name of TLS_KEY.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_CERT_PEM: bytes
    """libzmq's name of TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_TRUST_PEM: bytes
    """libzmq's name of TLS_CA.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_HOSTNAME: bytes
    """libzmq's name of TLS_HOSTNAME.

    Type: bytes, text in UTF-8. Default: empty.

    Source: libzmq's zmq.h
    """
    WSS_TRUST_SYSTEM: int
    """libzmq's name of TLS_TRUST_SYSTEM. It reads 0 if that is not set.

    Type: int, 0 or 1. Default: 0.

    Source: libzmq's zmq.h
    """
    ONLY_FIRST_SUBSCRIBE: int
    """Stored without effect: a message that does not begin with a subscription never has one in a
    later part.

    Type: int, 0 or 1. Sockets: PUB, XPUB, XSUB. It can only be set.

    Source: ``ZMQ_ONLY_FIRST_SUBSCRIBE`` of zmq_setsockopt(3)
    """
    RECONNECT_STOP: int
    """When to stop reconnecting: 1 connection refused, 2 handshake failed, 4 after disconnect();
    add the numbers.

    Type: int. Default: 0.

    Source: ``ZMQ_RECONNECT_STOP`` of zmq_setsockopt(3)
    """
    HELLO_MSG: bytes
    """The first message to each peer, sent again on each new connection; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, ROUTER, SERVER, CLIENT, PEER.

    Source: ``ZMQ_HELLO_MSG`` of zmq_setsockopt(3)
    """
    DISCONNECT_MSG: bytes
    """The message received from a peer that has connected to this socket, once it has left; empty =
    none.

    Type: bytes. Default: empty. Sockets: ROUTER, SERVER, PEER.

    Source: ``ZMQ_DISCONNECT_MSG`` of zmq_setsockopt(3)
    """
    HICCUP_MSG: bytes
    """The message received when a connection that this socket has made is lost, before it connects
    again; empty = none.

    Type: bytes. Default: empty. Sockets: DEALER, CLIENT, PEER.

    Source: ``ZMQ_HICCUP_MSG`` of zmq_setsockopt(3)
    """
    MAX_SUBSCRIPTIONS: int
    """How many topics each subscriber may have; further ones are counted and ignored. 0 = no limit.

    Type: int, in topics. Default: 4194304. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    SNDHWM_BYTES: int
    """How many bytes queue per peer on the way out, in addition to SNDHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    RCVHWM_BYTES: int
    """How many bytes queue per peer on the way in, in addition to RCVHWM; 0 = no limit.

    Type: int, in bytes. Default: 0.

    Source: zeroxide only
    """
    STALL_IVL: int
    """How long a peer may be silent in the middle of a message, in ms (up to twice that); 0 = no
    limit.

    Type: int, in ms. Default: 60000.

    Source: zeroxide only
    """
    MAX_SUBSCRIPTION_BYTES: int
    """How many bytes the topics of each subscriber may have together; further ones are counted and
    ignored. 0 = no limit.

    Type: int, in bytes. Default: 67108864. Sockets: PUB, XPUB, RADIO.

    Source: zeroxide only
    """
    TLS_CERTIFICATE: bytes
    """The TLS certificate of this socket, followed by those between it and its CA: PEM, or the path
    of a file.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_KEY: bytes
    """The key of TLS_CERTIFICATE, without a password: PEM, or the path of a file; empty = it is in
    TLS_CERTIFICATE.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_CA: bytes
    """The CAs whose certificates TLS peers must have: PEM, or the path of a file; empty = those of
    the system.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_TRUST_SYSTEM: int
    """Whether TLS peers may have a certificate of a CA that the system trusts: 1 yes, 0 no, -1 = if
    TLS_CA is empty.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    TLS_HOSTNAME: bytes
    """The name or IP address that a TLS server's certificate must have; empty = the host in the
    endpoint.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    TLS_VERIFY: int
    """Whether the certificate of a TLS server is checked. With 0, an attacker on the network can
    pose as the server.

    Type: int, 0 or 1. Default: 1.

    Source: zeroxide only
    """
    TLS_CLIENT_AUTH: int
    """The certificates of TLS clients: 0 not asked for, 1 checked if a client has one, 2 required,
    -1 = 2 if TLS_CA is set, otherwise 0.

    Type: int. Default: -1.

    Source: zeroxide only
    """
    TLS_ALPN: bytes
    """The protocols that TLS peers negotiate with ALPN, separated by commas; empty = none.

    Type: bytes, text in UTF-8. Default: empty.

    Source: zeroxide only
    """
    WIRE_PROTOCOL: int
    """What the socket speaks with its peers: 0 ZMTP, 1 the scalability protocols of nanomsg and
    nng. Set it before all else; PAIR, PUB, SUB, REQ, REP, PUSH and PULL speak either.

    Type: int. Default: 0.

    Source: zeroxide only
    """
    RESEND_IVL: int
    """When a request over the scalability protocols is sent again, to the next peer, if no reply
    has come, in ms; 0 = never.

    Type: int, in ms. Default: 60000. Sockets: REQ.

    Source: zeroxide only
    """
    SURVEY_TIMEOUT: int
    """How long the answers to a survey are received, in ms; 0 = no limit.

    Type: int, in ms. Default: 1000. Sockets: SURVEYOR.

    Source: zeroxide only
    """
    MAX_TTL: int
    """How many sockets a request or a survey may have passed; one that has passed more is dropped,
    because it may travel in a circle.

    Type: int, in sockets. Default: 8. Sockets: REP, RESPONDENT.

    Source: zeroxide only
    """
    SNDPRIO: int
    """The priority of the peers of later binds and connects for what is sent, 1 to 16: peers with
    the lowest number get messages as long as they have room.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_SNDPRIO``; zeroxide only; ``ZMQ_SNDPRIO`` of zmq_setsockopt(3)
    """
    RCVPRIO: int
    """The priority of the peers of later binds and connects for what is received, 1 to 16: messages
    of peers with the lowest number are received first.

    Type: int. Default: 8.

    Source: nn_setsockopt(3), ``NN_RCVPRIO``; zeroxide only; ``ZMQ_RCVPRIO`` of zmq_setsockopt(3)
    """
    SLOW_SUBSCRIBER: int
    """When the queue to a subscriber is full: 0 the subscriber misses messages, 1 sending waits (as
    with XPUB_NODROP), 2 the subscriber is disconnected and loses its queue.

    Type: int. Default: 0. Sockets: PUB, XPUB.

    Source: zeroxide only
    """
    MAX_LAG: int
    """How long a message may wait to be received, in ms (up to 1.5 times that). If one has waited
    longer, receiving fails once, the queue is dropped, and the socket joins its publishers anew;
    0 = no limit.

    Type: int, in ms. Default: 0. Sockets: SUB.

    Source: zeroxide only
    """
    SPILL_DIR: bytes
    """The folder of this socket, and of no other, for messages beyond the high-water mark, from the
    next bind or connect on; empty = none, and the usual rule of the socket type applies to them.

    Type: bytes, text in UTF-8. Default: empty. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    SPILL_BYTES: int
    """How many bytes of messages may wait in SPILL_DIR; 0 = no limit.

    Type: int, in bytes. Default: 1073741824. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """
    SPILL_KEEP: int
    """Whether messages in SPILL_DIR stay there when the socket closes or its process ends, for the
    next socket with that folder.

    Type: int, 0 or 1. Default: 0. Sockets: PUB, DEALER, ROUTER, PUSH, XPUB.

    Source: zeroxide only
    """

class ReadOnlyOptions:
    """The options that can only be read: properties, for type checkers and editors."""

    @property
    def rcvmore(self) -> int:
        """Whether further parts follow the one received last.

        Type: int, 0 or 1. It can only be read.

        Source: ``ZMQ_RCVMORE`` of zmq_getsockopt(3)
        """
    @property
    def fd(self) -> int:
        """A descriptor that is readable when the socket may have become ready.

        Type: int, a file descriptor. It can only be read.

        Source: ``ZMQ_FD`` of zmq_getsockopt(3)
        """
    @property
    def events(self) -> int:
        """What the socket is ready for: POLLIN, POLLOUT.

        Type: int. It can only be read.

        Source: ``ZMQ_EVENTS`` of zmq_getsockopt(3)
        """
    @property
    def last_endpoint(self) -> bytes:
        """The endpoint that was bound or connected last, with wildcards replaced.

        Type: bytes, text in UTF-8. Default: empty. It can only be read.

        Source: ``ZMQ_LAST_ENDPOINT`` of zmq_getsockopt(3)
        """
    @property
    def mechanism(self) -> int:
        """The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

        Type: int. Default: 0. It can only be read.

        Source: 37/ZMTP, section "Authentication and Confidentiality"; ``ZMQ_MECHANISM`` of
        zmq_getsockopt(3)
        """
    @property
    def thread_safe(self) -> int:
        """1 for the socket types that libzmq calls thread-safe, which are those from SERVER on
        except DGRAM, and for the types that libzmq does not have. Every zeroxide socket is
        thread-safe, but the others read 0 as in libzmq.

        Type: int, 0 or 1. Default: 0. It can only be read.

        Source: ``ZMQ_THREAD_SAFE`` of zmq_getsockopt(3)
        """
    @property
    def topics_count(self) -> int:
        """The number of different topics that this socket or its peers subscribe to.

        Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.

        Source: ``ZMQ_TOPICS_COUNT`` of zmq_getsockopt(3)
        """
    @property
    def RCVMORE(self) -> int:
        """Whether further parts follow the one received last.

        Type: int, 0 or 1. It can only be read.

        Source: ``ZMQ_RCVMORE`` of zmq_getsockopt(3)
        """
    @property
    def FD(self) -> int:
        """A descriptor that is readable when the socket may have become ready.

        Type: int, a file descriptor. It can only be read.

        Source: ``ZMQ_FD`` of zmq_getsockopt(3)
        """
    @property
    def EVENTS(self) -> int:
        """What the socket is ready for: POLLIN, POLLOUT.

        Type: int. It can only be read.

        Source: ``ZMQ_EVENTS`` of zmq_getsockopt(3)
        """
    @property
    def LAST_ENDPOINT(self) -> bytes:
        """The endpoint that was bound or connected last, with wildcards replaced.

        Type: bytes, text in UTF-8. Default: empty. It can only be read.

        Source: ``ZMQ_LAST_ENDPOINT`` of zmq_getsockopt(3)
        """
    @property
    def MECHANISM(self) -> int:
        """The security mechanism: 0 NULL, 1 PLAIN, 2 CURVE, 3 GSSAPI.

        Type: int. Default: 0. It can only be read.

        Source: 37/ZMTP, section "Authentication and Confidentiality"; ``ZMQ_MECHANISM`` of
        zmq_getsockopt(3)
        """
    @property
    def THREAD_SAFE(self) -> int:
        """1 for the socket types that libzmq calls thread-safe, which are those from SERVER on
        except DGRAM, and for the types that libzmq does not have. Every zeroxide socket is
        thread-safe, but the others read 0 as in libzmq.

        Type: int, 0 or 1. Default: 0. It can only be read.

        Source: ``ZMQ_THREAD_SAFE`` of zmq_getsockopt(3)
        """
    @property
    def TOPICS_COUNT(self) -> int:
        """The number of different topics that this socket or its peers subscribe to.

        Type: int, in topics. Default: 0. Sockets: PUB, SUB, XPUB, XSUB. It can only be read.

        Source: ``ZMQ_TOPICS_COUNT`` of zmq_getsockopt(3)
        """

class ContextOptions:
    """The options of contexts. Two more can only be read."""

    io_threads: int
    """How many I/O threads serve the sockets; fixed when the first socket is created. 0 is enough
    for inproc.

    Type: int, in threads. Default: 1.

    Source: ``ZMQ_IO_THREADS`` of zmq_ctx_set(3)
    """
    max_sockets: int
    """How many sockets may be open at a time.

    Type: int, in sockets. Default: 1023.

    Source: ``ZMQ_MAX_SOCKETS`` of zmq_ctx_set(3)
    """
    thread_sched_policy: int
    """The scheduling policy of the I/O threads (SCHED_*); -1, the system's, can only be read.

    Type: int. Default: -1.

    Source: ``ZMQ_THREAD_SCHED_POLICY`` of zmq_ctx_set(3)
    """
    thread_priority: int
    """The scheduling priority of the I/O threads; the default is the system's.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_PRIORITY`` of zmq_ctx_set(3)
    """
    thread_affinity_cpu_add: int
    """One more CPU for the I/O threads to run on.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_AFFINITY_CPU_ADD`` of zmq_ctx_set(3)
    """
    thread_affinity_cpu_remove: int
    """One CPU less for the I/O threads to run on.

    Type: int. It can only be set.

    Source: ``ZMQ_THREAD_AFFINITY_CPU_REMOVE`` of zmq_ctx_set(3)
    """
    thread_name_prefix: int | str | bytes
    """The prefix of the I/O threads' names; a number or up to 16 bytes.

    Type: int.

    Source: ``ZMQ_THREAD_NAME_PREFIX`` of zmq_ctx_set(3)
    """
    max_msgsz: int
    """Stored without effect, for programs that read it back; the socket option MAXMSGSIZE is the
    limit.

    Type: int, in bytes. Default: 2147483647.

    Source: ``ZMQ_MAX_MSGSZ`` of zmq_ctx_set(3)
    """
    zero_copy_recv: int
    """Stored without effect, for programs that read it back; large messages are always received
    without a copy.

    Type: int. Default: 1.

    Source: ``ZMQ_ZERO_COPY_RECV`` of zmq_ctx_set(3)
    """
    memory_budget: int
    """How many bytes the messages and topics of all peers together may take: incomplete messages,
    those not received yet, and topics that peers have subscribed to. 0 = no limit.

    Type: int. Default: three quarters of the memory the process may have, in bytes.

    Source: zeroxide only
    """
    blocky: int
    """0 makes LINGER 0 the default of new sockets, so that terminating never waits for peers.

    Type: int. Default: 1.

    Source: ``ZMQ_BLOCKY`` of zmq_ctx_set(3)
    """
    @property
    def socket_limit(self) -> int:
        """libzmq's maximum number of sockets; MAX_SOCKETS may be larger.

        Type: int, in sockets. Default: 65535. It can only be read.

        Source: ``ZMQ_SOCKET_LIMIT`` of zmq_ctx_get(3)
        """
    @property
    def msg_t_size(self) -> int:
        """The size of libzmq's message structure, 64; zeroxide does not use it.

        Type: int, in bytes. Default: 64. It can only be read.

        Source: ``ZMQ_MSG_T_SIZE`` of zmq_ctx_get(3)
        """
