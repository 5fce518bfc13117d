"""The names of the options that sockets have as attributes.

The stub `_option_names.pyi` tells editors what each option does. `tools/constants_stub.py` writes it.
"""

__all__ = [
    "CONTEXT_READ_ONLY",
    "READ_ONLY",
    "ContextOptions",
    "ReadOnlyOptions",
    "SocketOptions",
    "UpperCaseOptions",
]


class SocketOptions:
    """The options that can be set, and most of them read, as type checkers and editors know them.

    Options of transports and mechanisms that are not built in are not among them: programs
    may use their names, but completion need not offer them.
    """

    affinity: int
    routing_id: bytes
    sndbuf: int
    rcvbuf: int
    linger: int
    reconnect_ivl: int
    backlog: int
    reconnect_ivl_max: int
    maxmsgsize: int
    sndhwm: int
    rcvhwm: int
    rcvtimeo: int
    sndtimeo: int
    ipv4only: int
    router_mandatory: int
    tcp_keepalive: int
    tcp_keepalive_cnt: int
    tcp_keepalive_idle: int
    tcp_keepalive_intvl: int
    tcp_accept_filter: bytes
    immediate: int
    xpub_verbose: int
    router_raw: int
    ipv6: int
    plain_server: int
    plain_username: bytes
    plain_password: bytes
    curve_server: int
    curve_publickey: bytes
    curve_secretkey: bytes
    curve_serverkey: bytes
    probe_router: int
    req_correlate: int
    req_relaxed: int
    conflate: int
    zap_domain: bytes
    router_handover: int
    tos: int
    ipc_filter_pid: int
    ipc_filter_uid: int
    ipc_filter_gid: int
    connect_routing_id: bytes
    handshake_ivl: int
    socks_proxy: bytes
    xpub_nodrop: int
    xpub_manual: int
    xpub_welcome_msg: bytes
    stream_notify: int
    invert_matching: int
    heartbeat_ivl: int
    heartbeat_ttl: int
    heartbeat_timeout: int
    xpub_verboser: int
    connect_timeout: int
    tcp_maxrt: int
    use_fd: int
    bindtodevice: bytes
    identity: bytes
    connect_rid: bytes
    delay_attach_on_connect: int
    fail_unroutable: int
    router_behavior: int
    zap_enforce_domain: int
    metadata: bytes
    router_notify: int
    xpub_manual_last_value: int
    socks_username: bytes
    socks_password: bytes
    wss_key_pem: bytes
    wss_cert_pem: bytes
    wss_trust_pem: bytes
    wss_hostname: bytes
    wss_trust_system: int
    only_first_subscribe: int
    reconnect_stop: int
    hello_msg: bytes
    disconnect_msg: bytes
    hiccup_msg: bytes
    max_subscriptions: int
    sndhwm_bytes: int
    rcvhwm_bytes: int
    stall_ivl: int
    max_subscription_bytes: int
    tls_certificate: bytes
    tls_key: bytes
    tls_ca: bytes
    tls_trust_system: int
    tls_hostname: bytes
    tls_verify: int
    tls_client_auth: int
    tls_alpn: bytes
    wire_protocol: int
    resend_ivl: int
    survey_timeout: int
    max_ttl: int
    sndprio: int
    rcvprio: int
    slow_subscriber: int
    max_lag: int
    spill_dir: bytes
    spill_bytes: int
    spill_keep: int


class UpperCaseOptions:
    """The same options in upper case, as many programs written for pyzmq use them."""

    AFFINITY: int
    ROUTING_ID: bytes
    SNDBUF: int
    RCVBUF: int
    LINGER: int
    RECONNECT_IVL: int
    BACKLOG: int
    RECONNECT_IVL_MAX: int
    MAXMSGSIZE: int
    SNDHWM: int
    RCVHWM: int
    RCVTIMEO: int
    SNDTIMEO: int
    IPV4ONLY: int
    ROUTER_MANDATORY: int
    TCP_KEEPALIVE: int
    TCP_KEEPALIVE_CNT: int
    TCP_KEEPALIVE_IDLE: int
    TCP_KEEPALIVE_INTVL: int
    TCP_ACCEPT_FILTER: bytes
    IMMEDIATE: int
    XPUB_VERBOSE: int
    ROUTER_RAW: int
    IPV6: int
    PLAIN_SERVER: int
    PLAIN_USERNAME: bytes
    PLAIN_PASSWORD: bytes
    CURVE_SERVER: int
    CURVE_PUBLICKEY: bytes
    CURVE_SECRETKEY: bytes
    CURVE_SERVERKEY: bytes
    PROBE_ROUTER: int
    REQ_CORRELATE: int
    REQ_RELAXED: int
    CONFLATE: int
    ZAP_DOMAIN: bytes
    ROUTER_HANDOVER: int
    TOS: int
    IPC_FILTER_PID: int
    IPC_FILTER_UID: int
    IPC_FILTER_GID: int
    CONNECT_ROUTING_ID: bytes
    HANDSHAKE_IVL: int
    SOCKS_PROXY: bytes
    XPUB_NODROP: int
    XPUB_MANUAL: int
    XPUB_WELCOME_MSG: bytes
    STREAM_NOTIFY: int
    INVERT_MATCHING: int
    HEARTBEAT_IVL: int
    HEARTBEAT_TTL: int
    HEARTBEAT_TIMEOUT: int
    XPUB_VERBOSER: int
    CONNECT_TIMEOUT: int
    TCP_MAXRT: int
    USE_FD: int
    BINDTODEVICE: bytes
    IDENTITY: bytes
    CONNECT_RID: bytes
    DELAY_ATTACH_ON_CONNECT: int
    FAIL_UNROUTABLE: int
    ROUTER_BEHAVIOR: int
    ZAP_ENFORCE_DOMAIN: int
    METADATA: bytes
    ROUTER_NOTIFY: int
    XPUB_MANUAL_LAST_VALUE: int
    SOCKS_USERNAME: bytes
    SOCKS_PASSWORD: bytes
    WSS_KEY_PEM: bytes
    WSS_CERT_PEM: bytes
    WSS_TRUST_PEM: bytes
    WSS_HOSTNAME: bytes
    WSS_TRUST_SYSTEM: int
    ONLY_FIRST_SUBSCRIBE: int
    RECONNECT_STOP: int
    HELLO_MSG: bytes
    DISCONNECT_MSG: bytes
    HICCUP_MSG: bytes
    MAX_SUBSCRIPTIONS: int
    SNDHWM_BYTES: int
    RCVHWM_BYTES: int
    STALL_IVL: int
    MAX_SUBSCRIPTION_BYTES: int
    TLS_CERTIFICATE: bytes
    TLS_KEY: bytes
    TLS_CA: bytes
    TLS_TRUST_SYSTEM: int
    TLS_HOSTNAME: bytes
    TLS_VERIFY: int
    TLS_CLIENT_AUTH: int
    TLS_ALPN: bytes
    WIRE_PROTOCOL: int
    RESEND_IVL: int
    SURVEY_TIMEOUT: int
    MAX_TTL: int
    SNDPRIO: int
    RCVPRIO: int
    SLOW_SUBSCRIBER: int
    MAX_LAG: int
    SPILL_DIR: bytes
    SPILL_BYTES: int
    SPILL_KEEP: int


# Those that can only be read.
READ_ONLY = (
    "rcvmore",
    "fd",
    "events",
    "last_endpoint",
    "mechanism",
    "thread_safe",
    "topics_count",
)


class ReadOnlyOptions:
    """The options that can only be read: properties, for type checkers and editors."""


class ContextOptions:
    """The options of contexts. Two more can only be read."""

    io_threads: int
    max_sockets: int
    thread_sched_policy: int
    thread_priority: int
    thread_affinity_cpu_add: int
    thread_affinity_cpu_remove: int
    thread_name_prefix: int | str | bytes
    max_msgsz: int
    zero_copy_recv: int
    memory_budget: int
    blocky: int


CONTEXT_READ_ONLY = ("socket_limit", "msg_t_size")
