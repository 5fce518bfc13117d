"""Socket options as attributes.

Each option is a descriptor of the class rather than the work of ``__getattr__``: a
class with ``__getattr__`` makes every ``sock.send`` a slow attribute access, since the
interpreter's fast path for methods is then off.
"""

import sys
from typing import TYPE_CHECKING, Any

from . import _native
from .constants import ContextOption, Errno, SocketOption
from .error import ZMQError

__all__ = ["HIDDEN", "OptionAttributes", "SocketOptions", "is_declared", "no_option"]


def _annotations(cls: type) -> dict[str, Any]:
    if sys.version_info >= (3, 14):
        # Names that only type checkers import must not be looked up.
        from annotationlib import Format, get_annotations

        return get_annotations(cls, format=Format.FORWARDREF)
    # `inspect` would do the same, and takes a third of the package's import time.
    annotations: dict[str, Any] = cls.__dict__.get("__annotations__", {})  # noqa: RUF063
    return annotations


class _Option:
    """``sock.linger`` is ``sock.get(LINGER)``, ``sock.linger = 0`` is ``sock.set``."""

    __slots__ = ("option",)

    def __init__(self, option: SocketOption) -> None:
        self.option = option

    def __get__(self, socket: "OptionAttributes | None", owner: type) -> Any:
        if socket is None:
            return self
        try:
            return socket.get(self.option)
        except ZMQError as error:
            if error.errno in (Errno.EINVAL, Errno.EFAULT):
                raise AttributeError(
                    f"{self.option.name.lower()} cannot be read: {error}"
                ) from None
            raise

    def __set__(self, socket: "OptionAttributes", value: Any) -> None:
        socket.set(self.option, value)


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
    xpub_manual_last_value: int
    socks_username: bytes
    socks_password: bytes
    only_first_subscribe: int
    reconnect_stop: int
    max_subscriptions: int
    sndhwm_bytes: int
    rcvhwm_bytes: int
    stall_ivl: int
    max_subscription_bytes: int


class UpperCaseOptions:
    """The same in upper case, as many programs written for pyzmq have them."""

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
    XPUB_MANUAL_LAST_VALUE: int
    SOCKS_USERNAME: bytes
    SOCKS_PASSWORD: bytes
    ONLY_FIRST_SUBSCRIBE: int
    RECONNECT_STOP: int
    MAX_SUBSCRIPTIONS: int
    SNDHWM_BYTES: int
    RCVHWM_BYTES: int
    STALL_IVL: int
    MAX_SUBSCRIPTION_BYTES: int


class OptionAttributes(_native.Socket, SocketOptions, UpperCaseOptions):
    """The native socket with its options as attributes, in lower and upper case."""

    if TYPE_CHECKING:
        # Those that can only be read.

        @property
        def rcvmore(self) -> int: ...
        @property
        def fd(self) -> int: ...
        @property
        def events(self) -> int: ...
        @property
        def last_endpoint(self) -> bytes: ...
        @property
        def mechanism(self) -> int: ...
        @property
        def thread_safe(self) -> int: ...
        @property
        def topics_count(self) -> int: ...
        @property
        def RCVMORE(self) -> int: ...
        @property
        def FD(self) -> int: ...
        @property
        def EVENTS(self) -> int: ...
        @property
        def LAST_ENDPOINT(self) -> bytes: ...
        @property
        def MECHANISM(self) -> int: ...
        @property
        def THREAD_SAFE(self) -> int: ...
        @property
        def TOPICS_COUNT(self) -> int: ...

    else:
        # To type checkers, an attribute that is not declared is a mistake.

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
                raise no_option(self, key)


# As properties in `OptionAttributes`, for type checkers.
_READ_ONLY = [
    "rcvmore",
    "fd",
    "events",
    "last_endpoint",
    "mechanism",
    "thread_safe",
    "topics_count",
]


def _install_options() -> frozenset[str]:
    """Makes every option an attribute; returns the names that completion need not offer."""
    offered = {*SocketOptions.__annotations__, *_READ_ONLY}
    names: set[str] = set()
    for name, option in SocketOption.__members__.items():
        # Methods and properties of `Socket` go by the names of these four.
        if name not in ("HWM", "SUBSCRIBE", "UNSUBSCRIBE", "TYPE"):
            attribute = _Option(option)
            setattr(OptionAttributes, name, attribute)
            setattr(OptionAttributes, name.lower(), attribute)
            names |= {name, name.lower()}
    return frozenset(names - offered)


# What `dir` leaves out of a socket's attributes.
HIDDEN = _install_options()


class _Misspelled:
    """The text of an error about an unknown name, built when the error is shown."""

    def __init__(self, kind: type, key: str) -> None:
        self._kind = kind
        self._key = key

    def __str__(self) -> str:
        import difflib

        kind, key = self._kind, self._key
        known = {name for name in dir(kind) if name.islower() and not name.startswith("_")}
        if issubclass(kind, OptionAttributes):
            known -= HIDDEN
        else:
            known |= {*map(str.lower, ContextOption.__members__), *_annotations(SocketOptions)}
        close = difflib.get_close_matches(key.lower(), sorted(known), n=1, cutoff=0.7)
        hint = f": did you mean {close[0]!r}?" if close else ""
        return f"{kind.__name__!r} has no option or attribute {key!r}{hint}"

    def __repr__(self) -> str:
        return repr(str(self))


def no_option(owner: object, key: str) -> AttributeError:
    """The error for a name that `owner`, a socket or a context, does not have."""
    # Without `obj`, because a traceback would then repeat the suggestion.
    return AttributeError(_Misspelled(type(owner), key), name=key)


def is_declared(cls: type, key: str) -> bool:
    """Whether the class has `key`, so that setting it is not setting an option."""
    # In a loop, and annotations last: every assignment to a socket's attribute passes here.
    for base in cls.__mro__:
        if key in base.__dict__:
            return True
    return any(key in _annotations(base) for base in cls.__mro__)
