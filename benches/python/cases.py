"""The rows of the bench: the cases, their figures, and their targets."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from typing import Any

GIL = getattr(sys, "_is_gil_enabled", lambda: True)()
NO_LESS = 0.95  # this share of the rival's median still counts as no less


@dataclass(frozen=True)
class Metric:
    key: str  # the key in the role's report
    unit: str
    label: str = ""  # distinguishes it from its case's other figures
    higher_is_better: bool = True
    # The target for the ratio of zeroxide's figure to the rival's: a minimum, or a maximum if less is
    # better. Default: NO_LESS.
    targets: dict[str, float] = field(default_factory=dict)
    bound: float | None = None  # the same for zeroxide's figure alone


@dataclass(frozen=True)
class Case:
    group: str
    name: str
    role: str  # a key of roles.ROLES or roles.ALONE
    transport: str = "tcp"
    size: int = 64
    metrics: tuple[Metric, ...] = (Metric("rate", "msgs/s"),)
    options: dict[str, Any] = field(default_factory=dict)
    scaled: dict[str, int] = field(default_factory=dict)  # counts; smaller in a smoke run
    told: dict[str, str] = field(default_factory=dict)  # figures of the first rival, for others
    rival: str = ""  # the only module with which to compare; the others cannot run the case
    not_for: tuple[str, ...] = ()  # rivals that cannot run the case; a comment gives the reason
    issue: bool = False  # has a target of its own; its runs are not shortened
    smoke: bool = False  # one of the few cases that show that the harness works

    @property
    def in_one_process(self) -> bool:
        return self.transport == "inproc"

    def parameters(self, seconds: float, scale: float) -> dict[str, Any]:
        """The settings for the measured processes."""
        own = {
            "role": self.role,
            "transport": self.transport,
            "size": self.size,
            "seconds": seconds,
        }
        counts = {name: max(10, int(count * scale)) for name, count in self.scaled.items()}
        return own | counts | self.options


@dataclass(frozen=True)
class Share:
    """A row computed from two others: a module's figure as a share of another one."""

    group: str
    name: str
    part: str  # "group: name" of a row
    whole: str
    bound: float


PUSH_PULL = "PUSH/PULL, messages per second at the receiver"
LATENCY = "REQ/REP, 1 B, one way (half a round trip)"
LOADED = "PUSH/PULL over tcp, 64 B with a time stamp, one way under load"
PUB_SUB = "PUB/SUB, 1 KiB, HWM 0, all messages arrive"
MORE = "More flows"
CURVE = "PUSH/PULL over tcp with CURVE, messages per second at the receiver"
AIO = "asyncio: messages per second at the receiver"
AIO_LATENCY = "asyncio: REQ/REP, 1 B, one way"
CALLS = "One call, one thread, nothing blocks"
THREADS = "Threads of one process, each with a PUSH and a PULL of its own, inproc 64 B"
MANY = "Many of something"
SHARES = "Of itself"
DRAFTS = "The types that are drafts in libzmq"
# The others have no such types.
NO_RIVALS = ("pyzmq", "pyomq")
SP = "The scalability protocols, next to nng"

SIZES = {
    8: "8 B",
    64: "64 B",
    1024: "1 KiB",
    16384: "16 KiB",
    65536: "64 KiB",
    262144: "256 KiB",
}
PLAIN_SIZES = (8, 64, 1024, 16384, 262144)
TRANSPORTS = ("tcp", "ipc", "inproc")


def rate(pyzmq: float = NO_LESS, pyomq: float = NO_LESS, *, label: str = "") -> tuple[Metric, ...]:
    return (Metric("rate", "msgs/s", label, targets={"pyzmq": pyzmq, "pyomq": pyomq}),)


def less(
    key: str, unit: str, label: str, pyzmq: float = 1 / NO_LESS, pyomq: float = 1 / NO_LESS
) -> Metric:
    """A figure for which less is better: a time, memory, CPU."""
    targets = {"pyzmq": pyzmq, "pyomq": pyomq}
    return Metric(key, unit, label, higher_is_better=False, targets=targets)


def at_most(key: str, unit: str, label: str, bound: float) -> Metric:
    return Metric(key, unit, label, higher_is_better=False, bound=bound)


PUSH_PULL_TARGETS = {
    ("tcp", 64): (2.5, 1.5),
    ("tcp", 1024): (2.5, 1.5),
    ("tcp", 16384): (3, 1.5),
    ("tcp", 262144): (1.2, NO_LESS),
    ("ipc", 64): (2, 1.5),
    ("inproc", 64): (2.5, 1.5),
}
LATENCY_TARGETS = {"tcp": (0.75, 0.75, 0.8), "inproc": (0.5, 1 / NO_LESS, 0.6)}


def one_way(p50: float = 1.05, tail: float = 1.05, pyomq: float = 1.05) -> tuple[Metric, ...]:
    return (
        less("p50_us", "us", "p50", p50, pyomq),
        less("p99_us", "us", "p99", tail, pyomq),
        less("p999_us", "us", "p99.9", tail, pyomq),
        less("cpu_us", "us", "CPU per round trip"),
    )


def push_pull(transport: str, size: int) -> Case:
    targets = PUSH_PULL_TARGETS.get((transport, size))
    name = f"{transport} {SIZES[size]}"
    return Case(
        PUSH_PULL,
        name,
        "push_pull",
        transport,
        size,
        rate(*targets or ()),
        issue=targets is not None,
        smoke=size == 64,
    )


def copy_false(transport: str, size: int, *targets: float) -> Case:
    name = f"{transport} {SIZES[size]}, copy=False"
    options = {"copy": False}
    return Case(
        PUSH_PULL, name, "push_pull", transport, size, rate(*targets), options, issue=bool(targets)
    )


SINGLE_CALLS = tuple(
    less(name, "ns", name, *targets)
    for name, *targets in (
        ("send 64 B, no peer", 0.4),
        ("send 1 KiB, no peer",),
        ("send_multipart 5 x 64 B, no peer",),
        ("recv(NOBLOCK), nothing there", 0.3),
        ("poll(0), nothing there", 0.15),
        ("getsockopt(EVENTS)", 0.15),
        ("inproc send 64 B, queue only",),
        ("inproc recv 64 B, queue full", 0.75),
        ("inproc send and recv 64 B in turns",),
        ("inproc send 1 KiB, queue only",),
        ("inproc recv 1 KiB, queue full",),
        ("inproc send and recv 1 KiB in turns",),
    )
)

# Shares of the sender's own peak rate, and rates that are the same for all modules.
LOADS = {
    "shares": [0.01, 0.5, 0.9],
    "rival_shares": [0.5, 0.9],
    "rates": [10_000, 100_000, 300_000],
}
ONE_WAY_UNDER_LOAD = (
    Metric("peak", "msgs/s", "its own peak rate"),
    less("1% p99_us", "us", "p99 at 1 % of its own peak rate"),
    less("50% p50_us", "us", "p50 at 50 % of its own peak rate"),
    less("50% p99_us", "us", "p99 at 50 % of its own peak rate", 0.5),
    less("90% p99_us", "us", "p99 at 90 % of its own peak rate", 0.5),
    Metric("90% reached", "x", "what it reached of 90 % of its own peak rate", bound=0.95),
    less("50% of rival p99_us", "us", "p99 at 50 % of the first column's peak rate", 0.5),
    less("90% of rival p99_us", "us", "p99 at 90 % of the first column's peak rate", 0.5),
    less("10000/s p99_us", "us", "p99 at 10,000 msgs/s"),
    less("100000/s p99_us", "us", "p99 at 100,000 msgs/s", 0.5),
    less("300000/s p99_us", "us", "p99 at 300,000 msgs/s", 0.5),
)
NONE_LOST = at_most("lost", "msgs", "lost", 0)
BOTH_ENDS = (
    Metric("sender_rate", "msgs/s", "sender"),
    *rate(2.5, 1.5, label="receiver"),
    NONE_LOST,
)
MILLION = 1_000_000

CASES: tuple[Case, ...] = (
    *(push_pull(transport, size) for transport in TRANSPORTS for size in PLAIN_SIZES),
    copy_false("tcp", 64),
    copy_false("tcp", 1024),
    copy_false("tcp", 16384),
    copy_false("tcp", 262144, 1.5, NO_LESS),
    copy_false("inproc", 262144),
    *(
        Case(
            LATENCY,
            transport,
            "req_rep",
            transport,
            1,
            one_way(*LATENCY_TARGETS.get(transport, ())),
            issue=transport in LATENCY_TARGETS,
            smoke=True,
        )
        for transport in TRANSPORTS
    ),
    *(
        Case(
            LATENCY,
            f"{transport}, all on one core",
            "req_rep",
            transport,
            1,
            one_way(*targets),
            {"cores": [0]},
            issue=transport == "tcp",
        )
        for transport, *targets in (("tcp", 0.5, 0.75, 0.8), ("inproc",))
    ),
    Case(
        LATENCY,
        "tcp, beside two spinning processes",
        "req_rep",
        "tcp",
        1,
        one_way(1.0, 1.0),
        {"spinning": 2},
        issue=True,
    ),
    Case(
        LOADED,
        "",
        "paced",
        metrics=ONE_WAY_UNDER_LOAD,
        options=LOADS,
        told={"rival_peak": "peak"},
        issue=True,
        smoke=True,
    ),
    *(
        Case(
            PUB_SUB,
            transport,
            "pub_sub",
            transport,
            1024,
            BOTH_ENDS,
            {"hwm": 0, "silence_ms": 2000},
            {"count": MILLION},
            issue=transport == "tcp",
            smoke=True,
        )
        for transport in ("tcp", "ipc")
    ),
    *(
        Case(
            CURVE,
            SIZES[size],
            "push_pull",
            size=size,
            metrics=rate(*targets),
            options={"curve": True},
            issue=bool(targets),
            smoke=size == 64,
        )
        for size, *targets in ((64, 1.5), (1024,), (65536, 1.3))
    ),
    Case(MORE, "PUSH/PULL multipart 2 x 64 B tcp", "multipart", options={"frames": 2}),
    Case(
        MORE,
        "PUSH/PULL multipart 5 x 64 B tcp",
        "multipart",
        metrics=rate(8, 2),
        options={"frames": 5},
        issue=True,
        smoke=True,
    ),
    Case(
        MORE,
        "DEALER/ROUTER echo 64 B tcp, 500 in flight",
        "dealer_router",
        metrics=rate(4, 1.5),
        issue=True,
        smoke=True,
    ),
    Case(
        MORE,
        "send_batch, recv_batch 64 B tcp (pyzmq: a loop)",
        "batch",
        metrics=rate(5, 3),
        issue=True,
        smoke=True,
    ),
    Case(DRAFTS, "SCATTER/GATHER 64 B tcp", "scatter_gather", not_for=NO_RIVALS, smoke=True),
    Case(
        DRAFTS,
        "CLIENT/SERVER echo 64 B tcp, 500 in flight",
        "client_server",
        not_for=NO_RIVALS,
        smoke=True,
    ),
    Case(
        DRAFTS,
        "RADIO/DISH 1 KiB tcp",
        "radio_dish",
        size=1024,
        options={"hwm": 0, "silence_ms": 2000},
        scaled={"count": MILLION},
        not_for=NO_RIVALS,
        smoke=True,
    ),
    Case(MORE, "PUSH/PULL 64 B tcp through a proxy", "proxy", smoke=True),
    Case(MORE, "PUSH to 4 PULL 64 B tcp", "spread", options={"sockets": 4}, smoke=True),
    *(
        Case(
            MORE,
            f"PUB to {subscribers} SUBs {SIZES[size]} tcp, deliveries",
            "fan_out",
            size=size,
            metrics=(*rate(*targets), NONE_LOST),
            options={"sockets": subscribers, "hwm": 0, "silence_ms": 2000},
            scaled={"count": count},
            issue=bool(targets),
            smoke=subscribers == 10 and size == 64,
        )
        for subscribers, size, count, *targets in (
            (10, 64, 100_000),
            (10, 1024, 50_000),
            (100, 64, 10_000, 2),
            (100, 1024, 5_000, 2),
        )
    ),
    *(
        Case(
            AIO,
            f"{transport} {SIZES[size]}",
            "aio_push_pull",
            transport,
            size,
            rate(10 if size == 64 else 5, 1.5),
            issue=(transport, size) == ("tcp", 64),
            smoke=size == 64,
        )
        for transport, size in (("tcp", 64), ("tcp", 1024), ("ipc", 64), ("inproc", 64))
    ),
    Case(
        AIO,
        "tcp 64 B, uvloop",
        "aio_push_pull",
        metrics=rate(5),
        options={"loop": "uvloop"},
    ),
    Case(
        AIO,
        "send_batch, recv_batch 64 B tcp (pyzmq: a loop)",
        "aio_batch",
        metrics=rate(5),
        smoke=True,
    ),
    *(
        Case(
            AIO_LATENCY,
            transport,
            "aio_req_rep",
            transport,
            1,
            one_way(),
            smoke=transport == "tcp",
        )
        for transport in ("tcp", "ipc")
    ),
    Case(AIO_LATENCY, "tcp, uvloop", "aio_req_rep", "tcp", 1, one_way(), {"loop": "uvloop"}),
    Case(CALLS, "", "calls", "inproc", metrics=SINGLE_CALLS, issue=True, smoke=True),
    *(
        Case(
            THREADS,
            f"{count} thread{'s' * (count > 1)}",
            "threads",
            "inproc",
            metrics=rate(),
            options={"threads": count},
            smoke=True,
        )
        for count in (1, 2)
    ),
    Case(
        MANY,
        "two connected sockets, idle",
        "idle",
        metrics=(at_most("idle_us", "us/s", "CPU", 100),),
        issue=True,
        smoke=True,
    ),
    Case(
        MANY,
        "1,000,000 subscriptions of one SUB",
        "topics",
        metrics=(
            less("memory", "B", "publisher's memory each", 0.3),
            less("message_us", "us", "publisher's CPU per message", 0.4),
            less("effective_s", "s", "until in effect", 0.5),
        ),
        options={"hwm": 0},
        scaled={"topics": MILLION, "count": 200_000},
        issue=True,
        smoke=True,
    ),
    Case(
        MANY,
        "200,000 x 1 KiB queued",
        "backlog",
        size=1024,
        metrics=(
            at_most("over_payload", "x", "memory of both sides over payload", 1.2),
            at_most("left", "x", "more than at the start after the drain", 0.2),
        ),
        options={"hwm": 0},
        scaled={"count": 200_000},
        not_for=("pyomq",),  # its queues end at 2048 messages, so the sender waits forever
        issue=True,
        smoke=True,
    ),
    Case(
        MANY,
        "1,000 connections",
        "connections",
        metrics=(
            less("bound_kib", "KiB", "memory each, bound side", 0.5),
            less("connecting_kib", "KiB", "memory each, a socket that connects", 0.5),
            less("up_s", "s", "until a message of each is here", 0.7),
        ),
        scaled={"connections": 1000},
        options={"backlog": 1000},
        issue=True,
        smoke=True,
    ),
    Case(
        MANY,
        "10,000 connections",
        "crowd",
        metrics=(
            at_most("up_s", "s", "until all are up", 3),
            at_most("each_kib", "KiB", "memory each", 12),
            at_most("message_ms", "ms", "one message to all", 50),
        ),
        scaled={"connections": 10_000},
        options={"backlog": 1000, "hwm": 0},
        issue=True,
        smoke=True,
    ),
    Case(
        MANY,
        "connect, send one message, close",
        "churn",
        metrics=(Metric("rate", "1/s", targets={"pyzmq": 2.0}),),
        scaled={"connections": 4000},
        options={"backlog": 1000},
        issue=True,
        smoke=True,
    ),
)

# `--modules nng zeroxide` runs these.
OF_SP = (
    *(
        Case(
            SP,
            f"PUSH/PULL {transport} 64 B",
            "push_pull",
            transport,
            metrics=(Metric("rate", "msgs/s", targets={"nng": 5.0}),),
            options={"sp": True},
            rival="nng",
        )
        for transport in ("tcp", "ipc")
    ),
    Case(
        SP,
        "PUSH/PULL tls+tcp 16 KiB",
        "push_pull",
        "tls+tcp",
        16384,
        metrics=(Metric("rate", "msgs/s", targets={"nng": 1.5}),),
        options={"sp": True},
        rival="nng",
    ),
    Case(
        SP,
        "SURVEYOR and 100 RESPONDENTs tcp 64 B, answers",
        "survey",
        metrics=(Metric("rate", "msgs/s", targets={"nng": 3.0}),),
        options={"sp": True, "sockets": 100},
        rival="nng",
    ),
    *(
        Case(
            SP,
            f"REQ/REP {transport} 1 B",
            "req_rep",
            transport,
            1,
            metrics=(
                Metric("p50_us", "us", "p50", higher_is_better=False, targets={"nng": 0.2}),
                Metric("p99_us", "us", "p99", higher_is_better=False, targets={"nng": 1.05}),
            ),
            options={"sp": True},
            rival="nng",
        )
        for transport in ("tcp", "ipc")
    ),
)

OF_ITSELF = (
    Share(
        SHARES,
        "asyncio PUSH/PULL tcp 64 B, of the blocking rate",
        f"{AIO}: tcp 64 B",
        f"{PUSH_PULL}: tcp 64 B",
        0.6,
    ),
    Share(
        SHARES,
        "inproc 64 B between threads, of send and recv in turns in one",
        f"{PUSH_PULL}: inproc 64 B",
        f"{CALLS}: inproc send and recv 64 B in turns",
        0.75,
    ),
    Share(
        SHARES,
        "SCATTER/GATHER tcp 64 B, of PUSH/PULL",
        f"{DRAFTS}: SCATTER/GATHER 64 B tcp",
        f"{PUSH_PULL}: tcp 64 B",
        NO_LESS,
    ),
    Share(
        SHARES,
        "CLIENT/SERVER echo tcp 64 B, of DEALER/ROUTER",
        f"{DRAFTS}: CLIENT/SERVER echo 64 B tcp, 500 in flight",
        f"{MORE}: DEALER/ROUTER echo 64 B tcp, 500 in flight",
        NO_LESS,
    ),
    Share(
        SHARES,
        "RADIO/DISH tcp 1 KiB, of PUB/SUB",
        f"{DRAFTS}: RADIO/DISH 1 KiB tcp",
        f"{PUB_SUB}: tcp: receiver",
        NO_LESS,
    ),
    # With the GIL, two threads take turns; without it, each has a core of its own.
    Share(
        SHARES,
        "two threads, of the rate of one",
        f"{THREADS}: 2 threads",
        f"{THREADS}: 1 thread",
        0.9 if GIL else 1.6,
    ),
)
