"""The rows of the bench: what is run, and which figures it yields."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

NO_LESS = 0.95  # of the rival's median counts as no less


@dataclass(frozen=True)
class Metric:
    key: str  # as the role reports it
    unit: str
    label: str = ""  # what sets it apart from its case's other figures
    higher_is_better: bool = True
    least: float = NO_LESS  # what the ratio should be


@dataclass(frozen=True)
class Case:
    group: str
    name: str
    role: str  # a key of roles.ROLES, or "calls"
    transport: str = "tcp"
    size: int = 64
    metrics: tuple[Metric, ...] = (Metric("rate", "msgs/s"),)
    options: dict[str, Any] = field(default_factory=dict)
    smoke: bool = False  # one of the few that say that the harness works

    @property
    def in_one_process(self) -> bool:
        return self.transport == "inproc" or self.role == "calls"

    def parameters(self, seconds: float, count: int) -> dict[str, Any]:
        """What the measured processes are told."""
        own = {
            "role": self.role,
            "transport": self.transport,
            "size": self.size,
            "seconds": seconds,
        }
        return own | ({"count": count} if self.role == "pub_sub" else {}) | self.options


PUSH_PULL = "PUSH/PULL, messages per second at the receiver"
LATENCY = "REQ/REP, 1 B, one way (half a round trip)"
PUB_SUB = "PUB/SUB, 1 KiB, HWM 0, all messages arrive"
MORE = "More flows"
CURVE = "PUSH/PULL over tcp with CURVE, messages per second at the receiver"
AIO = "asyncio: messages per second at the receiver"
AIO_LATENCY = "asyncio: REQ/REP, 1 B, one way"
CALLS = "One call, one thread, nothing blocks"

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

ONE_WAY = (
    Metric("p50_us", "us", "p50", higher_is_better=False),
    Metric("p99_us", "us", "p99", higher_is_better=False),
)
FIVE_TIMES = (Metric("rate", "msgs/s", least=5),)
BOTH_ENDS = (
    Metric("sender_rate", "msgs/s", "sender"),
    Metric("rate", "msgs/s", "receiver"),
)
SINGLE_CALLS = tuple(
    Metric(name, "ns", name, higher_is_better=False)
    for name in (
        "send 64 B, no peer",
        "send 1 KiB, no peer",
        "send_multipart 5 x 64 B, no peer",
        "recv(NOBLOCK), nothing there",
        "poll(0), nothing there",
        "getsockopt(EVENTS)",
        "inproc send 64 B, queue only",
        "inproc recv 64 B, queue full",
        "inproc send 1 KiB, queue only",
        "inproc recv 1 KiB, queue full",
    )
)

CASES: tuple[Case, ...] = (
    *(
        Case(
            PUSH_PULL,
            f"{transport} {SIZES[size]}",
            "push_pull",
            transport,
            size,
            smoke=size == 64,
        )
        for transport in TRANSPORTS
        for size in PLAIN_SIZES
    ),
    *(
        Case(LATENCY, transport, "req_rep", transport, 1, ONE_WAY, smoke=True)
        for transport in TRANSPORTS
    ),
    *(
        Case(PUB_SUB, transport, "pub_sub", transport, 1024, BOTH_ENDS, {"hwm": 0}, smoke=True)
        for transport in ("tcp", "ipc")
    ),
    *(
        Case(CURVE, SIZES[size], "push_pull", size=size, options={"curve": True}, smoke=size == 64)
        for size in (64, 1024, 65536)
    ),
    Case(MORE, "PUSH/PULL multipart 2 x 64 B tcp", "multipart", options={"frames": 2}),
    Case(MORE, "PUSH/PULL multipart 5 x 64 B tcp", "multipart", options={"frames": 5}, smoke=True),
    Case(MORE, "DEALER/ROUTER echo 64 B tcp, 500 in flight", "dealer_router", smoke=True),
    Case(MORE, "PUSH/PULL 64 B tcp through a proxy", "proxy", smoke=True),
    Case(MORE, "send_batch, recv_batch 64 B tcp (pyzmq: a loop)", "batch", smoke=True),
    *(
        Case(
            AIO,
            f"{transport} {SIZES[size]}",
            "aio_push_pull",
            transport,
            size,
            FIVE_TIMES,
            smoke=size == 64,
        )
        for transport, size in (("tcp", 64), ("tcp", 1024), ("ipc", 64), ("inproc", 64))
    ),
    Case(AIO, "tcp 64 B, uvloop", "aio_push_pull", metrics=FIVE_TIMES, options={"loop": "uvloop"}),
    Case(
        AIO,
        "send_batch, recv_batch 64 B tcp (pyzmq: a loop)",
        "aio_batch",
        metrics=FIVE_TIMES,
        smoke=True,
    ),
    *(
        Case(AIO_LATENCY, transport, "aio_req_rep", transport, 1, ONE_WAY, smoke=transport == "tcp")
        for transport in ("tcp", "ipc")
    ),
    Case(AIO_LATENCY, "tcp, uvloop", "aio_req_rep", "tcp", 1, ONE_WAY, {"loop": "uvloop"}),
    Case(CALLS, "", "calls", "inproc", metrics=SINGLE_CALLS, smoke=True),
)
