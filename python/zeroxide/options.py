"""Socket options as attributes.

Each option is a descriptor of the class rather than the work of ``__getattr__``: a
class with ``__getattr__`` makes every ``sock.send`` a slow attribute access, since the
interpreter's fast path for methods is then off.
"""

import inspect
import sys
from typing import Any, Generic, TypeVar, overload

from . import _native
from .constants import Errno, SocketOption
from .error import ZMQError

__all__ = ["OptionAttributes", "is_declared"]

if sys.version_info >= (3, 14):
    from annotationlib import Format, get_annotations

    def _annotations(cls: type) -> dict[str, Any]:
        # Names that only type checkers import must not be looked up.
        return get_annotations(cls, format=Format.FORWARDREF)

else:
    _annotations = inspect.get_annotations

_V = TypeVar("_V", int, bytes)


class _Option(Generic[_V]):
    """``sock.linger`` is ``sock.get(LINGER)``, ``sock.linger = 0`` is ``sock.set``."""

    __slots__ = ("option",)

    def __init__(self, option: SocketOption) -> None:
        self.option = option

    @overload
    def __get__(self, socket: None, owner: type) -> "_Option[_V]": ...
    @overload
    def __get__(self, socket: "OptionAttributes", owner: type) -> _V: ...
    def __get__(self, socket: "OptionAttributes | None", owner: type) -> "_Option[_V] | _V":
        if socket is None:
            return self
        try:
            value: _V = socket.get(self.option)
        except ZMQError as error:
            if error.errno in (Errno.EINVAL, Errno.EFAULT):
                raise AttributeError(
                    f"{self.option.name.lower()} cannot be read: {error}"
                ) from None
            raise
        return value

    def __set__(self, socket: "OptionAttributes", value: _V) -> None:
        socket.set(self.option, value)


def _int(name: str) -> _Option[int]:
    return _Option(SocketOption[name])


def _bytes(name: str) -> _Option[bytes]:
    return _Option(SocketOption[name])


class OptionAttributes(_native.Socket):
    """The native socket with its options as attributes, in lower and upper case."""

    affinity = AFFINITY = _int("AFFINITY")
    routing_id = ROUTING_ID = _bytes("ROUTING_ID")
    rate = RATE = _int("RATE")
    recovery_ivl = RECOVERY_IVL = _int("RECOVERY_IVL")
    sndbuf = SNDBUF = _int("SNDBUF")
    rcvbuf = RCVBUF = _int("RCVBUF")
    rcvmore = RCVMORE = _int("RCVMORE")
    fd = FD = _int("FD")
    events = EVENTS = _int("EVENTS")
    linger = LINGER = _int("LINGER")
    reconnect_ivl = RECONNECT_IVL = _int("RECONNECT_IVL")
    backlog = BACKLOG = _int("BACKLOG")
    reconnect_ivl_max = RECONNECT_IVL_MAX = _int("RECONNECT_IVL_MAX")
    maxmsgsize = MAXMSGSIZE = _int("MAXMSGSIZE")
    sndhwm = SNDHWM = _int("SNDHWM")
    rcvhwm = RCVHWM = _int("RCVHWM")
    multicast_hops = MULTICAST_HOPS = _int("MULTICAST_HOPS")
    rcvtimeo = RCVTIMEO = _int("RCVTIMEO")
    sndtimeo = SNDTIMEO = _int("SNDTIMEO")
    ipv4only = IPV4ONLY = _int("IPV4ONLY")
    last_endpoint = LAST_ENDPOINT = _bytes("LAST_ENDPOINT")
    router_mandatory = ROUTER_MANDATORY = _int("ROUTER_MANDATORY")
    tcp_keepalive = TCP_KEEPALIVE = _int("TCP_KEEPALIVE")
    tcp_keepalive_cnt = TCP_KEEPALIVE_CNT = _int("TCP_KEEPALIVE_CNT")
    tcp_keepalive_idle = TCP_KEEPALIVE_IDLE = _int("TCP_KEEPALIVE_IDLE")
    tcp_keepalive_intvl = TCP_KEEPALIVE_INTVL = _int("TCP_KEEPALIVE_INTVL")
    tcp_accept_filter = TCP_ACCEPT_FILTER = _bytes("TCP_ACCEPT_FILTER")
    immediate = IMMEDIATE = _int("IMMEDIATE")
    xpub_verbose = XPUB_VERBOSE = _int("XPUB_VERBOSE")
    router_raw = ROUTER_RAW = _int("ROUTER_RAW")
    ipv6 = IPV6 = _int("IPV6")
    mechanism = MECHANISM = _int("MECHANISM")
    plain_server = PLAIN_SERVER = _int("PLAIN_SERVER")
    plain_username = PLAIN_USERNAME = _bytes("PLAIN_USERNAME")
    plain_password = PLAIN_PASSWORD = _bytes("PLAIN_PASSWORD")
    curve_server = CURVE_SERVER = _int("CURVE_SERVER")
    curve_publickey = CURVE_PUBLICKEY = _bytes("CURVE_PUBLICKEY")
    curve_secretkey = CURVE_SECRETKEY = _bytes("CURVE_SECRETKEY")
    curve_serverkey = CURVE_SERVERKEY = _bytes("CURVE_SERVERKEY")
    probe_router = PROBE_ROUTER = _int("PROBE_ROUTER")
    req_correlate = REQ_CORRELATE = _int("REQ_CORRELATE")
    req_relaxed = REQ_RELAXED = _int("REQ_RELAXED")
    conflate = CONFLATE = _int("CONFLATE")
    zap_domain = ZAP_DOMAIN = _bytes("ZAP_DOMAIN")
    router_handover = ROUTER_HANDOVER = _int("ROUTER_HANDOVER")
    tos = TOS = _int("TOS")
    ipc_filter_pid = IPC_FILTER_PID = _int("IPC_FILTER_PID")
    ipc_filter_uid = IPC_FILTER_UID = _int("IPC_FILTER_UID")
    ipc_filter_gid = IPC_FILTER_GID = _int("IPC_FILTER_GID")
    connect_routing_id = CONNECT_ROUTING_ID = _bytes("CONNECT_ROUTING_ID")
    gssapi_server = GSSAPI_SERVER = _int("GSSAPI_SERVER")
    gssapi_principal = GSSAPI_PRINCIPAL = _bytes("GSSAPI_PRINCIPAL")
    gssapi_service_principal = GSSAPI_SERVICE_PRINCIPAL = _bytes("GSSAPI_SERVICE_PRINCIPAL")
    gssapi_plaintext = GSSAPI_PLAINTEXT = _int("GSSAPI_PLAINTEXT")
    handshake_ivl = HANDSHAKE_IVL = _int("HANDSHAKE_IVL")
    socks_proxy = SOCKS_PROXY = _bytes("SOCKS_PROXY")
    xpub_nodrop = XPUB_NODROP = _int("XPUB_NODROP")
    blocky = BLOCKY = _int("BLOCKY")
    xpub_manual = XPUB_MANUAL = _int("XPUB_MANUAL")
    xpub_welcome_msg = XPUB_WELCOME_MSG = _bytes("XPUB_WELCOME_MSG")
    stream_notify = STREAM_NOTIFY = _int("STREAM_NOTIFY")
    invert_matching = INVERT_MATCHING = _int("INVERT_MATCHING")
    heartbeat_ivl = HEARTBEAT_IVL = _int("HEARTBEAT_IVL")
    heartbeat_ttl = HEARTBEAT_TTL = _int("HEARTBEAT_TTL")
    heartbeat_timeout = HEARTBEAT_TIMEOUT = _int("HEARTBEAT_TIMEOUT")
    xpub_verboser = XPUB_VERBOSER = _int("XPUB_VERBOSER")
    connect_timeout = CONNECT_TIMEOUT = _int("CONNECT_TIMEOUT")
    tcp_maxrt = TCP_MAXRT = _int("TCP_MAXRT")
    thread_safe = THREAD_SAFE = _int("THREAD_SAFE")
    multicast_maxtpdu = MULTICAST_MAXTPDU = _int("MULTICAST_MAXTPDU")
    vmci_buffer_size = VMCI_BUFFER_SIZE = _int("VMCI_BUFFER_SIZE")
    vmci_buffer_min_size = VMCI_BUFFER_MIN_SIZE = _int("VMCI_BUFFER_MIN_SIZE")
    vmci_buffer_max_size = VMCI_BUFFER_MAX_SIZE = _int("VMCI_BUFFER_MAX_SIZE")
    vmci_connect_timeout = VMCI_CONNECT_TIMEOUT = _int("VMCI_CONNECT_TIMEOUT")
    use_fd = USE_FD = _int("USE_FD")
    gssapi_principal_nametype = GSSAPI_PRINCIPAL_NAMETYPE = _int("GSSAPI_PRINCIPAL_NAMETYPE")
    gssapi_service_principal_nametype = GSSAPI_SERVICE_PRINCIPAL_NAMETYPE = _int(
        "GSSAPI_SERVICE_PRINCIPAL_NAMETYPE"
    )
    bindtodevice = BINDTODEVICE = _bytes("BINDTODEVICE")
    identity = IDENTITY = _bytes("IDENTITY")
    connect_rid = CONNECT_RID = _bytes("CONNECT_RID")
    delay_attach_on_connect = DELAY_ATTACH_ON_CONNECT = _int("DELAY_ATTACH_ON_CONNECT")
    fail_unroutable = FAIL_UNROUTABLE = _int("FAIL_UNROUTABLE")
    router_behavior = ROUTER_BEHAVIOR = _int("ROUTER_BEHAVIOR")
    zap_enforce_domain = ZAP_ENFORCE_DOMAIN = _int("ZAP_ENFORCE_DOMAIN")
    loopback_fastpath = LOOPBACK_FASTPATH = _int("LOOPBACK_FASTPATH")
    metadata = METADATA = _bytes("METADATA")
    multicast_loop = MULTICAST_LOOP = _int("MULTICAST_LOOP")
    router_notify = ROUTER_NOTIFY = _int("ROUTER_NOTIFY")
    xpub_manual_last_value = XPUB_MANUAL_LAST_VALUE = _int("XPUB_MANUAL_LAST_VALUE")
    socks_username = SOCKS_USERNAME = _bytes("SOCKS_USERNAME")
    socks_password = SOCKS_PASSWORD = _bytes("SOCKS_PASSWORD")
    in_batch_size = IN_BATCH_SIZE = _int("IN_BATCH_SIZE")
    out_batch_size = OUT_BATCH_SIZE = _int("OUT_BATCH_SIZE")
    wss_key_pem = WSS_KEY_PEM = _bytes("WSS_KEY_PEM")
    wss_cert_pem = WSS_CERT_PEM = _bytes("WSS_CERT_PEM")
    wss_trust_pem = WSS_TRUST_PEM = _bytes("WSS_TRUST_PEM")
    wss_hostname = WSS_HOSTNAME = _bytes("WSS_HOSTNAME")
    wss_trust_system = WSS_TRUST_SYSTEM = _int("WSS_TRUST_SYSTEM")
    only_first_subscribe = ONLY_FIRST_SUBSCRIBE = _int("ONLY_FIRST_SUBSCRIBE")
    reconnect_stop = RECONNECT_STOP = _int("RECONNECT_STOP")
    hello_msg = HELLO_MSG = _bytes("HELLO_MSG")
    disconnect_msg = DISCONNECT_MSG = _bytes("DISCONNECT_MSG")
    priority = PRIORITY = _int("PRIORITY")
    busy_poll = BUSY_POLL = _int("BUSY_POLL")
    hiccup_msg = HICCUP_MSG = _bytes("HICCUP_MSG")
    xsub_verbose_unsubscribe = XSUB_VERBOSE_UNSUBSCRIBE = _int("XSUB_VERBOSE_UNSUBSCRIBE")
    topics_count = TOPICS_COUNT = _int("TOPICS_COUNT")
    norm_mode = NORM_MODE = _int("NORM_MODE")
    norm_unicast_nack = NORM_UNICAST_NACK = _int("NORM_UNICAST_NACK")
    norm_buffer_size = NORM_BUFFER_SIZE = _int("NORM_BUFFER_SIZE")
    norm_segment_size = NORM_SEGMENT_SIZE = _int("NORM_SEGMENT_SIZE")
    norm_block_size = NORM_BLOCK_SIZE = _int("NORM_BLOCK_SIZE")
    norm_num_parity = NORM_NUM_PARITY = _int("NORM_NUM_PARITY")
    norm_num_autoparity = NORM_NUM_AUTOPARITY = _int("NORM_NUM_AUTOPARITY")
    norm_push = NORM_PUSH = _int("NORM_PUSH")
    max_subscriptions = MAX_SUBSCRIPTIONS = _int("MAX_SUBSCRIPTIONS")
    sndhwm_bytes = SNDHWM_BYTES = _int("SNDHWM_BYTES")
    rcvhwm_bytes = RCVHWM_BYTES = _int("RCVHWM_BYTES")
    stall_ivl = STALL_IVL = _int("STALL_IVL")
    max_subscription_bytes = MAX_SUBSCRIPTION_BYTES = _int("MAX_SUBSCRIPTION_BYTES")

    def __setattr__(self, key: str, value: Any) -> None:
        if key.lower() in ("subscribe", "unsubscribe"):
            # Methods by these names exist, and assigning to them is customary too.
            if isinstance(value, str):
                value = value.encode()
            self.set(SocketOption[key.upper()], value)
        elif key in self.__dict__ or is_declared(type(self), key):
            object.__setattr__(self, key, value)
        elif key.upper() in SocketOption.__members__:
            self.set(SocketOption[key.upper()], value)
        else:
            # A misspelt option must not become an attribute that does nothing.
            raise AttributeError(f"{type(self).__name__} has no such option: {key!r}")


def is_declared(cls: type, key: str) -> bool:
    """Whether the class has `key`, so that setting it is not setting an option."""
    # In a loop, and annotations last: every assignment to a socket's attribute passes here.
    for base in cls.__mro__:
        if key in base.__dict__:
            return True
    return any(key in _annotations(base) for base in cls.__mro__)
