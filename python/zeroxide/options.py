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

    affinity = _int("AFFINITY")
    routing_id = _bytes("ROUTING_ID")
    rate = _int("RATE")
    recovery_ivl = _int("RECOVERY_IVL")
    sndbuf = _int("SNDBUF")
    rcvbuf = _int("RCVBUF")
    rcvmore = _int("RCVMORE")
    fd = _int("FD")
    events = _int("EVENTS")
    linger = _int("LINGER")
    reconnect_ivl = _int("RECONNECT_IVL")
    backlog = _int("BACKLOG")
    reconnect_ivl_max = _int("RECONNECT_IVL_MAX")
    maxmsgsize = _int("MAXMSGSIZE")
    sndhwm = _int("SNDHWM")
    rcvhwm = _int("RCVHWM")
    multicast_hops = _int("MULTICAST_HOPS")
    rcvtimeo = _int("RCVTIMEO")
    sndtimeo = _int("SNDTIMEO")
    ipv4only = _int("IPV4ONLY")
    last_endpoint = _bytes("LAST_ENDPOINT")
    router_mandatory = _int("ROUTER_MANDATORY")
    tcp_keepalive = _int("TCP_KEEPALIVE")
    tcp_keepalive_cnt = _int("TCP_KEEPALIVE_CNT")
    tcp_keepalive_idle = _int("TCP_KEEPALIVE_IDLE")
    tcp_keepalive_intvl = _int("TCP_KEEPALIVE_INTVL")
    tcp_accept_filter = _bytes("TCP_ACCEPT_FILTER")
    immediate = _int("IMMEDIATE")
    xpub_verbose = _int("XPUB_VERBOSE")
    router_raw = _int("ROUTER_RAW")
    ipv6 = _int("IPV6")
    mechanism = _int("MECHANISM")
    plain_server = _int("PLAIN_SERVER")
    plain_username = _bytes("PLAIN_USERNAME")
    plain_password = _bytes("PLAIN_PASSWORD")
    curve_server = _int("CURVE_SERVER")
    curve_publickey = _bytes("CURVE_PUBLICKEY")
    curve_secretkey = _bytes("CURVE_SECRETKEY")
    curve_serverkey = _bytes("CURVE_SERVERKEY")
    probe_router = _int("PROBE_ROUTER")
    req_correlate = _int("REQ_CORRELATE")
    req_relaxed = _int("REQ_RELAXED")
    conflate = _int("CONFLATE")
    zap_domain = _bytes("ZAP_DOMAIN")
    router_handover = _int("ROUTER_HANDOVER")
    tos = _int("TOS")
    ipc_filter_pid = _int("IPC_FILTER_PID")
    ipc_filter_uid = _int("IPC_FILTER_UID")
    ipc_filter_gid = _int("IPC_FILTER_GID")
    connect_routing_id = _bytes("CONNECT_ROUTING_ID")
    gssapi_server = _int("GSSAPI_SERVER")
    gssapi_principal = _bytes("GSSAPI_PRINCIPAL")
    gssapi_service_principal = _bytes("GSSAPI_SERVICE_PRINCIPAL")
    gssapi_plaintext = _int("GSSAPI_PLAINTEXT")
    handshake_ivl = _int("HANDSHAKE_IVL")
    socks_proxy = _bytes("SOCKS_PROXY")
    xpub_nodrop = _int("XPUB_NODROP")
    blocky = _int("BLOCKY")
    xpub_manual = _int("XPUB_MANUAL")
    xpub_welcome_msg = _bytes("XPUB_WELCOME_MSG")
    stream_notify = _int("STREAM_NOTIFY")
    invert_matching = _int("INVERT_MATCHING")
    heartbeat_ivl = _int("HEARTBEAT_IVL")
    heartbeat_ttl = _int("HEARTBEAT_TTL")
    heartbeat_timeout = _int("HEARTBEAT_TIMEOUT")
    xpub_verboser = _int("XPUB_VERBOSER")
    connect_timeout = _int("CONNECT_TIMEOUT")
    tcp_maxrt = _int("TCP_MAXRT")
    thread_safe = _int("THREAD_SAFE")
    multicast_maxtpdu = _int("MULTICAST_MAXTPDU")
    vmci_buffer_size = _int("VMCI_BUFFER_SIZE")
    vmci_buffer_min_size = _int("VMCI_BUFFER_MIN_SIZE")
    vmci_buffer_max_size = _int("VMCI_BUFFER_MAX_SIZE")
    vmci_connect_timeout = _int("VMCI_CONNECT_TIMEOUT")
    use_fd = _int("USE_FD")
    gssapi_principal_nametype = _int("GSSAPI_PRINCIPAL_NAMETYPE")
    gssapi_service_principal_nametype = _int("GSSAPI_SERVICE_PRINCIPAL_NAMETYPE")
    bindtodevice = _bytes("BINDTODEVICE")
    identity = _bytes("IDENTITY")
    connect_rid = _bytes("CONNECT_RID")
    delay_attach_on_connect = _int("DELAY_ATTACH_ON_CONNECT")
    fail_unroutable = _int("FAIL_UNROUTABLE")
    router_behavior = _int("ROUTER_BEHAVIOR")
    zap_enforce_domain = _int("ZAP_ENFORCE_DOMAIN")
    loopback_fastpath = _int("LOOPBACK_FASTPATH")
    metadata = _bytes("METADATA")
    multicast_loop = _int("MULTICAST_LOOP")
    router_notify = _int("ROUTER_NOTIFY")
    xpub_manual_last_value = _int("XPUB_MANUAL_LAST_VALUE")
    socks_username = _bytes("SOCKS_USERNAME")
    socks_password = _bytes("SOCKS_PASSWORD")
    in_batch_size = _int("IN_BATCH_SIZE")
    out_batch_size = _int("OUT_BATCH_SIZE")
    wss_key_pem = _bytes("WSS_KEY_PEM")
    wss_cert_pem = _bytes("WSS_CERT_PEM")
    wss_trust_pem = _bytes("WSS_TRUST_PEM")
    wss_hostname = _bytes("WSS_HOSTNAME")
    wss_trust_system = _int("WSS_TRUST_SYSTEM")
    only_first_subscribe = _int("ONLY_FIRST_SUBSCRIBE")
    reconnect_stop = _int("RECONNECT_STOP")
    hello_msg = _bytes("HELLO_MSG")
    disconnect_msg = _bytes("DISCONNECT_MSG")
    priority = _int("PRIORITY")
    busy_poll = _int("BUSY_POLL")
    hiccup_msg = _bytes("HICCUP_MSG")
    xsub_verbose_unsubscribe = _int("XSUB_VERBOSE_UNSUBSCRIBE")
    topics_count = _int("TOPICS_COUNT")
    norm_mode = _int("NORM_MODE")
    norm_unicast_nack = _int("NORM_UNICAST_NACK")
    norm_buffer_size = _int("NORM_BUFFER_SIZE")
    norm_segment_size = _int("NORM_SEGMENT_SIZE")
    norm_block_size = _int("NORM_BLOCK_SIZE")
    norm_num_parity = _int("NORM_NUM_PARITY")
    norm_num_autoparity = _int("NORM_NUM_AUTOPARITY")
    norm_push = _int("NORM_PUSH")
    max_subscriptions = _int("MAX_SUBSCRIPTIONS")
    sndhwm_bytes = _int("SNDHWM_BYTES")
    rcvhwm_bytes = _int("RCVHWM_BYTES")
    stall_ivl = _int("STALL_IVL")

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
    return any(key in base.__dict__ or key in _annotations(base) for base in cls.__mro__)


for _name, _member in list(OptionAttributes.__dict__.items()):
    if isinstance(_member, _Option):
        setattr(OptionAttributes, _name.upper(), _member)
