"""The sentence about each constant, with its type, unit and default.

Loaded when a `__doc__` is read. The sentences about options are in the core's table, the others in the docstrings of
the enums. `zeroxide.constants` has a stub, `constants.pyi`, which holds all of them for editors:
`tools/constants_stub.py` writes it. The page "Options" takes its defaults from here.
"""

import re
from collections.abc import Callable
from enum import Enum
from functools import cache

__all__ = [
    "CONTEXT_DEFAULTS",
    "DEFAULTS",
    "EMPTY",
    "context_default",
    "context_option_text",
    "default",
    "text_of",
]

# The default of each option, with its unit. tests/python/test_docs.py compares it with a new socket.
DEFAULTS: dict[str, tuple[int, str]] = {
    "AFFINITY": (0, ""),
    "BACKLOG": (100, "connections"),
    "CONFLATE": (0, ""),
    "CONNECT_TIMEOUT": (0, "ms"),
    "CURVE_SERVER": (0, ""),
    "HANDSHAKE_IVL": (30000, "ms"),
    "HEARTBEAT_IVL": (0, "ms"),
    "HEARTBEAT_TIMEOUT": (-1, "ms"),
    "HEARTBEAT_TTL": (0, "ms"),
    "IMMEDIATE": (0, ""),
    "INVERT_MATCHING": (0, ""),
    "IPV4ONLY": (1, ""),
    "IPV6": (0, ""),
    "LINGER": (-1, "ms"),
    "LOOPBACK_FASTPATH": (0, ""),
    "MAXMSGSIZE": (-1, "bytes"),
    "MAX_LAG": (0, "ms"),
    "MAX_SUBSCRIPTIONS": (4194304, "topics"),
    "MAX_SUBSCRIPTION_BYTES": (67108864, "bytes"),
    "MAX_TTL": (8, "sockets"),
    "MECHANISM": (0, ""),
    "MULTICAST_HOPS": (1, ""),
    "MULTICAST_LOOP": (1, ""),
    "MULTICAST_MAXTPDU": (1500, "bytes"),
    "PLAIN_SERVER": (0, ""),
    "PROBE_ROUTER": (0, ""),
    "RATE": (100, "kbit/s"),
    "RCVBUF": (-1, "bytes"),
    "RCVHWM": (1000, "messages"),
    "RCVHWM_BYTES": (0, "bytes"),
    "RCVPRIO": (8, ""),
    "RCVTIMEO": (-1, "ms"),
    "RECONNECT_IVL": (100, "ms"),
    "RECONNECT_IVL_MAX": (0, "ms"),
    "RECONNECT_STOP": (0, ""),
    "RECOVERY_IVL": (10000, "ms"),
    "REQ_CORRELATE": (0, ""),
    "REQ_RELAXED": (0, ""),
    "RESEND_IVL": (60000, "ms"),
    "ROUTER_HANDOVER": (0, ""),
    "ROUTER_MANDATORY": (0, ""),
    "ROUTER_NOTIFY": (0, ""),
    "ROUTER_RAW": (0, ""),
    "SLOW_SUBSCRIBER": (0, ""),
    "SNDBUF": (-1, "bytes"),
    "SNDHWM": (1000, "messages"),
    "SNDHWM_BYTES": (0, "bytes"),
    "SNDPRIO": (8, ""),
    "SNDTIMEO": (-1, "ms"),
    "SPILL_BYTES": (1073741824, "bytes"),
    "SPILL_KEEP": (0, ""),
    "STALL_IVL": (60000, "ms"),
    "STREAM_NOTIFY": (1, ""),
    "SURVEY_TIMEOUT": (1000, "ms"),
    "TCP_KEEPALIVE": (-1, ""),
    "TCP_KEEPALIVE_CNT": (-1, "probes"),
    "TCP_KEEPALIVE_IDLE": (-1, "s"),
    "TCP_KEEPALIVE_INTVL": (-1, "s"),
    "TCP_MAXRT": (0, "ms"),
    "THREAD_SAFE": (0, ""),
    "TLS_CLIENT_AUTH": (-1, ""),
    "TLS_TRUST_SYSTEM": (-1, ""),
    "TLS_VERIFY": (1, ""),
    "TOPICS_COUNT": (0, "topics"),
    "TOS": (0, ""),
    "USE_FD": (-1, ""),
    "VMCI_BUFFER_MAX_SIZE": (0, "bytes"),
    "VMCI_BUFFER_MIN_SIZE": (0, "bytes"),
    "VMCI_BUFFER_SIZE": (0, "bytes"),
    "VMCI_CONNECT_TIMEOUT": (-1, "ms"),
    "WIRE_PROTOCOL": (0, ""),
    "WSS_TRUST_SYSTEM": (0, ""),
    "XPUB_MANUAL": (0, ""),
    "XPUB_MANUAL_LAST_VALUE": (0, ""),
    "XPUB_NODROP": (0, ""),
    "XPUB_VERBOSE": (0, ""),
    "XPUB_VERBOSER": (0, ""),
    "ZAP_ENFORCE_DOMAIN": (0, ""),
}
EMPTY = {
    "BINDTODEVICE",
    "CONNECT_ROUTING_ID",
    "CURVE_PUBLICKEY",
    "CURVE_SECRETKEY",
    "CURVE_SERVERKEY",
    "DISCONNECT_MSG",
    "HELLO_MSG",
    "HICCUP_MSG",
    "LAST_ENDPOINT",
    "PLAIN_PASSWORD",
    "PLAIN_USERNAME",
    "ROUTING_ID",
    "SOCKS_PASSWORD",
    "SOCKS_PROXY",
    "SOCKS_USERNAME",
    "SPILL_DIR",
    "TLS_ALPN",
    "TLS_CA",
    "TLS_CERTIFICATE",
    "TLS_HOSTNAME",
    "TLS_KEY",
    "WSS_CERT_PEM",
    "WSS_HOSTNAME",
    "WSS_KEY_PEM",
    "WSS_TRUST_PEM",
    "XPUB_WELCOME_MSG",
    "ZAP_DOMAIN",
}
CONTEXT_DEFAULTS: dict[str, tuple[int, str]] = {
    "IO_THREADS": (1, "threads"),
    "MAX_SOCKETS": (1023, "sockets"),
    "SOCKET_LIMIT": (65535, "sockets"),
    "THREAD_SCHED_POLICY": (-1, ""),
    "MAX_MSGSZ": (2147483647, "bytes"),
    "MSG_T_SIZE": (64, "bytes"),
    "ZERO_COPY_RECV": (1, ""),
    "IPV6": (0, ""),
    "BLOCKY": (1, ""),
}

# The Python types of option values, by their type in the core's table.
TYPES = {
    "Bool": "int, 0 or 1",
    "Int": "int",
    "Int64": "int",
    "Uint64": "int",
    "Str": "bytes, text in UTF-8",
    "Bytes": "bytes",
    "Fd": "int, a file descriptor",
}

# Options of sockets that the core's table does not have.
OTHERS = {
    "HWM": "An option of ZeroMQ 2. Its number is not accepted: ``socket.hwm`` sets SNDHWM and RCVHWM.",
}

# Where a constant is specified: an RFC with the section, and a manual page of libzmq.
HERE = "zeroxide only"
HEARTBEATS = '37/ZMTP, section "Connection Heartbeating"'
PLAIN = '24/ZMTP-PLAIN, section "Implementation"'
CURVE = '25/ZMTP-CURVE, section "Implementation"'
SUBSCRIBERS = '29/PUBSUB, section "The SUB Socket Type"'
SOURCES = {
    "CURVE_PUBLICKEY": CURVE,
    "CURVE_SECRETKEY": CURVE,
    "CURVE_SERVER": CURVE,
    "CURVE_SERVERKEY": CURVE,
    "HEARTBEAT_IVL": HEARTBEATS,
    "HEARTBEAT_TIMEOUT": HEARTBEATS,
    "HEARTBEAT_TTL": HEARTBEATS,
    "MAX_LAG": HERE,
    "MAX_SUBSCRIPTIONS": HERE,
    "MAX_SUBSCRIPTION_BYTES": HERE,
    "MAX_TTL": HERE,
    "MECHANISM": '37/ZMTP, section "Authentication and Confidentiality"',
    "MEMORY_BUDGET": HERE,
    "METADATA": '37/ZMTP, section "Connection Metadata"',
    "PLAIN_PASSWORD": PLAIN,
    "PLAIN_SERVER": PLAIN,
    "PLAIN_USERNAME": PLAIN,
    "RCVHWM_BYTES": HERE,
    "RCVPRIO": "nn_setsockopt(3), ``NN_RCVPRIO``; zeroxide only",
    "RESEND_IVL": HERE,
    "ROUTING_ID": '37/ZMTP, section "The Identity Property"',
    "SLOW_SUBSCRIBER": HERE,
    "SNDHWM_BYTES": HERE,
    "SNDPRIO": "nn_setsockopt(3), ``NN_SNDPRIO``; zeroxide only",
    "SPILL_BYTES": HERE,
    "SPILL_DIR": HERE,
    "SPILL_KEEP": HERE,
    "STALL_IVL": HERE,
    "SUBSCRIBE": SUBSCRIBERS,
    "SURVEY_TIMEOUT": HERE,
    "TLS_ALPN": HERE,
    "TLS_CA": HERE,
    "TLS_CERTIFICATE": HERE,
    "TLS_CLIENT_AUTH": HERE,
    "TLS_HOSTNAME": HERE,
    "TLS_KEY": HERE,
    "TLS_TRUST_SYSTEM": HERE,
    "TLS_VERIFY": HERE,
    "UNSUBSCRIBE": SUBSCRIBERS,
    "WIRE_PROTOCOL": HERE,
    "ZAP_DOMAIN": '27/ZAP, section "Message Format"',
}
PATTERNS = {
    "28/REQREP": ("REQ", "REP", "DEALER", "ROUTER"),
    "29/PUBSUB": ("PUB", "XPUB", "SUB", "XSUB"),
    "30/PIPELINE": ("PUSH", "PULL"),
    "31/EXPAIR": ("PAIR",),
}
MECHANISMS = {
    "NULL": '37/ZMTP, section "The NULL Security Mechanism"; zmq_null(7)',
    "PLAIN": f"{PLAIN}; zmq_plain(7)",
    "CURVE": f"{CURVE}; zmq_curve(7)",
    "GSSAPI": "zmq_gssapi(7)",
}
# Enums other than those of options: the manual page, and how libzmq's names begin.
PAGES = {
    "SocketType": ("zmq_socket(3)", "ZMQ_"),
    "Event": ("zmq_socket_monitor(3)", "ZMQ_EVENT_"),
}
# Names that these manual pages do not have.
ELSEWHERE = {
    "BUS": "``NN_BUS`` of nn_bus(7)",
    "RESPONDENT": "``NN_RESPONDENT`` of nn_survey(7)",
    "SURVEYOR": "``NN_SURVEYOR`` of nn_survey(7)",
    "ALL_V1": "zmq_socket_monitor_versioned(3)",
    "ALL_V2": "zmq_socket_monitor_versioned(3)",
    "DGRAM": "zmq_udp(7)",
    "HWM": "pyzmq's ``Socket.hwm``",
    "LOOPBACK_FASTPATH": "libzmq's zmq.h",
    "PIPES_STATS": "``ZMQ_EVENT_PIPES_STATS`` of zmq_socket_monitor_versioned(3)",
    "WSS_CERT_PEM": "libzmq's zmq.h",
    "WSS_HOSTNAME": "libzmq's zmq.h",
    "WSS_KEY_PEM": "libzmq's zmq.h",
    "WSS_TRUST_PEM": "libzmq's zmq.h",
    "WSS_TRUST_SYSTEM": "libzmq's zmq.h",
}

ATTRIBUTE = re.compile(r"^        (\w+): (.+(?:\n            .+)*)", re.MULTILINE)


def text_of(member: Enum) -> str | None:
    """Returns the text about a member of an enum of constants, or None if there is none."""
    name = member._name_ or ""
    kind = type(member).__name__
    if kind == "SocketOption":
        return _socket_options().get(name)
    if kind == "ContextOption" and name == "SOCKET_LIMIT":
        # Two options share a number, and so a member of the enum: one is only read, the other only set.
        both = ("SOCKET_LIMIT", "THREAD_PRIORITY")
        return "\n\n".join(f"{name}: {context_option_text(name)}" for name in both)
    if kind == "ContextOption":
        return context_option_text(name)
    text = _attributes(type(member)).get(name)
    source = _source(kind, name) if text else None
    return f"{text}\n\nSource: {source}" if source else text


def _source(kind: str, name: str) -> str | None:
    """Where a member of an enum other than those of options is specified."""
    if kind == "SecurityMechanism":
        return MECHANISMS[name]
    if kind not in PAGES:
        return None
    page, prefix = PAGES[kind]
    if name.startswith("PROTOCOL_ERROR_"):
        prefix = "ZMQ_"
    manual = ELSEWHERE.get(name, f"``{prefix}{name}`` of {page}")
    for pattern, types in PATTERNS.items():
        if name in types:
            return f'{pattern}, section "The {name} Socket Type"; {manual}'
    return manual


def _source_of_option(name: str, page: str) -> str:
    """Where an option is specified, given the manual page that has it."""
    found = SOURCES.get(name)
    if found == HERE:
        return HERE
    manual = ELSEWHERE.get(name, f"``ZMQ_{name}`` of {page}")
    return f"{found}; {manual}" if found else manual


def default(name: str) -> str:
    """Returns the default of a socket option with its unit; empty if it has none."""
    if name == "LINGER":
        return "-1; 0 for SUB and XSUB"
    if name in EMPTY:
        return "empty"
    return with_unit(*DEFAULTS[name]) if name in DEFAULTS else ""


def context_default(name: str) -> str:
    """Returns the same for an option of contexts."""
    if name == "MEMORY_BUDGET":
        return "three quarters of the memory the process may have, in bytes"
    return with_unit(*CONTEXT_DEFAULTS[name]) if name in CONTEXT_DEFAULTS else ""


def with_unit(value: int, unit: str) -> str:
    # Negative numbers, and often 0, have a meaning of their own, which the text explains.
    return f"{value} {unit}" if unit and value > 0 else str(value)


def context_option_text(name: str) -> str | None:
    """Returns the text about an option of contexts; two are not members of `ContextOption`."""
    return _context_options().get(name)


@cache
def _socket_options() -> dict[str, str]:
    from ._native import socket_option_texts, socket_options

    blocky = f"An option of contexts. {_context_options()['BLOCKY']}"
    texts = _texts(socket_options(), socket_option_texts(), default, DEFAULTS, "sockopt")
    others = {name: f"{text}\n\nSource: {ELSEWHERE[name]}" for name, text in OTHERS.items()}
    return texts | others | {"BLOCKY": blocky}


@cache
def _context_options() -> dict[str, str]:
    from ._native import context_option_texts, context_options

    rows, told = context_options(), context_option_texts()
    return _texts(rows, told, context_default, CONTEXT_DEFAULTS, "ctx")


def _texts(
    rows: list[tuple[str, int, str, bool, bool]],
    told: list[tuple[str, str, list[str], str]],
    default: Callable[[str], str],
    units: dict[str, tuple[int, str]],
    pages: str,
) -> dict[str, str]:
    setting, getting = ("zmq_setsockopt(3)", "zmq_getsockopt(3)")
    if pages == "ctx":
        setting, getting = ("zmq_ctx_set(3)", "zmq_ctx_get(3)")
    access = {name: (readable, writable) for name, _, _, readable, writable in rows}
    texts = {}
    for name, takes, sockets, sentence in told:
        readable, writable = access[name]
        unit = units[name][1] if name in units else ""
        facts = [f"Type: {TYPES[takes]}{unit and f', in {unit}'}."]
        if standard := default(name):
            # The unit is already there.
            facts.append(f"Default: {standard.removesuffix(unit).rstrip() if unit else standard}.")
        if sockets:
            facts.append(f"Sockets: {', '.join(sockets)}.")
        if not (readable or writable):
            facts.append("Setting it raises an error.")
        elif not writable:
            facts.append("It can only be read.")
        elif not readable:
            facts.append("It can only be set.")
        source = _source_of_option(name, getting if readable and not writable else setting)
        texts[name] = f"{sentence}\n\n{' '.join(facts)}\n\nSource: {source}"
    return texts


@cache
def _attributes(kind: type[Enum]) -> dict[str, str]:
    """The section ``Attributes:`` of a class's docstring, by the names in it."""
    section = (kind.__doc__ or "").partition("Attributes:")[2].partition("\n\n")[0]
    return {name: " ".join(text.split()) for name, text in ATTRIBUTE.findall(section)}
