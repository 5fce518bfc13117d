"""A hook for mkdocs: fills in tables from the sources, so that they are not written twice.

`<!-- socket options -->` and similar marks become the rows of the core's tables (`rust/core/src/options`), and
`<!-- differences -->` the reasons of the tests that pass here and must fail on pyzmq (`tests/python/same`).
"""

import re
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
OPTIONS = ROOT / "rust" / "core" / "src" / "options"

TEXT = r'"((?:[^"\\]|\\.)*)"'
SOCKET_ROW = re.compile(
    rf"^    (\d+) ([A-Z0-9_]+): (\w+),\s*{TEXT}(.*?)(?=^    \d+ [A-Z]|^}})",
    re.DOTALL | re.MULTILINE,
)
CONTEXT_ROW = re.compile(rf'"([A-Z0-9_]+)",\s*"(r|w|rw)",\s*{TEXT}')

TYPES = {
    "Bool": "0 or 1",
    "Int": "number",
    "Int64": "number",
    "Uint64": "number",
    "Str": "text",
    "Bytes": "bytes",
    "Fd": "descriptor",
}

# What a new socket has, and in which unit. tests/python/test_docs.py compares it with one.
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
    "MAX_SUBSCRIPTIONS": (4194304, "topics"),
    "MAX_SUBSCRIPTION_BYTES": (67108864, "bytes"),
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
    "RCVTIMEO": (-1, "ms"),
    "RECONNECT_IVL": (100, "ms"),
    "RECONNECT_IVL_MAX": (0, "ms"),
    "RECONNECT_STOP": (0, ""),
    "RECOVERY_IVL": (10000, "ms"),
    "REQ_CORRELATE": (0, ""),
    "REQ_RELAXED": (0, ""),
    "ROUTER_HANDOVER": (0, ""),
    "ROUTER_MANDATORY": (0, ""),
    "ROUTER_RAW": (0, ""),
    "SNDBUF": (-1, "bytes"),
    "SNDHWM": (1000, "messages"),
    "SNDHWM_BYTES": (0, "bytes"),
    "SNDTIMEO": (-1, "ms"),
    "STALL_IVL": (60000, "ms"),
    "STREAM_NOTIFY": (1, ""),
    "TCP_KEEPALIVE": (-1, ""),
    "TCP_KEEPALIVE_CNT": (-1, "probes"),
    "TCP_KEEPALIVE_IDLE": (-1, "s"),
    "TCP_KEEPALIVE_INTVL": (-1, "s"),
    "TCP_MAXRT": (0, "ms"),
    "THREAD_SAFE": (0, ""),
    "TOPICS_COUNT": (0, "topics"),
    "TOS": (0, ""),
    "USE_FD": (-1, ""),
    "VMCI_BUFFER_MAX_SIZE": (0, "bytes"),
    "VMCI_BUFFER_MIN_SIZE": (0, "bytes"),
    "VMCI_BUFFER_SIZE": (0, "bytes"),
    "VMCI_CONNECT_TIMEOUT": (-1, "ms"),
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
    "LAST_ENDPOINT",
    "PLAIN_PASSWORD",
    "PLAIN_USERNAME",
    "ROUTING_ID",
    "SOCKS_PASSWORD",
    "SOCKS_PROXY",
    "SOCKS_USERNAME",
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


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Called by mkdocs for each page."""
    if "<!-- socket options -->" in markdown:
        there, absent = socket_options()
        markdown = markdown.replace("<!-- socket options -->", there)
        markdown = markdown.replace("<!-- absent options -->", absent)
        markdown = markdown.replace("<!-- context options -->", context_options())
    return re.sub("<!-- differences -->", lambda _: differences(), markdown)


def socket_options() -> tuple[str, str]:
    """The table of those that are there, and the names of those that are known and refused."""
    source = (OPTIONS / "table.rs").read_text()
    found = SOCKET_ROW.findall(source[source.index("options_table! {") :])
    if len(found) < 80:
        raise ValueError(f"{OPTIONS}/table.rs has another form now: {len(found)} rows understood")
    rows = ["| option | takes | default | for | |", "| --- | --- | --- | --- | --- |"]
    absent = []
    for _, name, kind, text, settings in sorted(found, key=lambda row: row[1]):
        if ".refused(" in settings:
            absent.append(f"`{name}`")
            continue
        limited = re.search(r"\.of\(&\[(.*?)\]\)", settings)
        sockets = limited[1].upper() if limited else "all"
        aliases = re.search(r"\.aliases\(&\[(.*?)\]\)", settings)
        also = " Also " + aliases[1].replace('"', "`") + "." if aliases else ""
        rows.append(f"| `{name}` | {TYPES[kind]} | {default(name)} | {sockets} | {text}{also} |")
    return "\n".join(rows), ", ".join(absent)


def context_options() -> str:
    found = CONTEXT_ROW.findall((OPTIONS / "context.rs").read_text())
    if len(found) < 10:
        raise ValueError(f"{OPTIONS}/context.rs has another form now: {len(found)} rows understood")
    rows = ["| option | | default | |", "| --- | --- | --- | --- |"]
    ways = {"r": "read", "w": "set", "rw": "read, set"}
    rows += [
        f"| `{name}` | {ways[way]} | {context_default(name)} | {text} |"
        for name, way, text in found
    ]
    return "\n".join(rows)


def default(name: str) -> str:
    """The default of a socket option with its unit; empty for what has none."""
    if name == "LINGER":
        return "-1; 0 for SUB and XSUB"
    if name in EMPTY:
        return "empty"
    return with_unit(*DEFAULTS[name]) if name in DEFAULTS else ""


def context_default(name: str) -> str:
    """The same for an option of contexts."""
    if name == "MEMORY_BUDGET":
        return "three quarters of the memory the process may have, in bytes"
    return with_unit(*CONTEXT_DEFAULTS[name]) if name in CONTEXT_DEFAULTS else ""


def with_unit(value: int, unit: str) -> str:
    # Below 0, and often at 0, a number has a meaning of its own, which the text tells.
    return f"{value} {unit}" if unit and value > 0 else str(value)


def differences() -> str:
    """The improvements over pyzmq that the tests name, once each."""
    reasons: dict[str, None] = {}
    for path in sorted((ROOT / "tests" / "python" / "same").glob("test_*.py")):
        reasons |= dict.fromkeys(re.findall(rf"\bdiffers\(\s*{TEXT}", path.read_text()))
    return "\n".join(f"* {reason}" for reason in reasons)
