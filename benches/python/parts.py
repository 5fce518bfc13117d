"""The common part of the roles: talking to the runner, measuring CPU and memory, and repeating
calls until the time is up."""

from __future__ import annotations

import gc
import json
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import repeat
from pathlib import Path
from typing import Any

WARM_UP_S = 0.15
BLOCK_NS = 3_000_000  # the clock is read once per block of this length
SERVER_SECRET = b"zeroxide.bench.a.key.that.all.may.know.."  # Z85, 32 bytes

Figures = dict[str, float]


# ---------------------------------------------------------------- talking, in lines of JSON


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def hear() -> str:
    return sys.stdin.readline().strip()


def tell_peer(text: str) -> None:
    """The runner forwards the text to the peer, which `hear`s it."""
    say(tell=text)


def hear_peer() -> dict[str, Any]:
    """Returns the next text that the peer `say`s."""
    say(hear=True)
    answer: dict[str, Any] = json.loads(hear())
    return answer


# ---------------------------------------------------------------- CPU and memory


class Cpu:
    """Nanoseconds of CPU that this process, and its peer if there is one, have used: all threads, user and kernel."""

    def __init__(self, peer: int | None) -> None:
        self.pid = peer
        # The kernel's number of another process's CPU clock: see clock_getcpuclockid(3).
        self.peer_clock = None if peer is None else (~peer << 3) | 2

    def now(self) -> int:
        return time.process_time_ns() + self.of_peer()

    def of_peer(self) -> int:
        return 0 if self.peer_clock is None else time.clock_gettime_ns(self.peer_clock)


def resident(pid: int | str = "self") -> int:
    """Bytes of memory that a process has in use; exact, unlike statm."""
    with open(f"/proc/{pid}/smaps_rollup") as rollup:
        for line in rollup:
            if line.startswith("Rss:"):
                return int(line.split()[1]) * 1024
    raise ValueError(f"process {pid} has no Rss")


def settled(read: Callable[[], int], limit_s: float = 3.0) -> int:
    """Returns the value at which a figure settles: three readings in a row within half a percent."""
    gc.collect()
    looks = [read()]
    end = time.monotonic() + limit_s
    while time.monotonic() < end:
        time.sleep(0.1)
        looks = [*looks[-2:], read()]
        if len(looks) == 3 and max(looks) - min(looks) <= 0.005 * max(looks):
            break
    return looks[-1]


# ---------------------------------------------------------------- rates


def measure_rate(
    call: Callable[[], object], seconds: float, cpu: Cpu, arrived: Callable[[], int] | None = None
) -> Figures:
    """Returns messages per second after the warm-up: one for each call, or as many as `arrived` returns."""
    spin(call, WARM_UP_S)
    cpu_before, arrived_before = cpu.now(), arrived() if arrived else 0
    calls, elapsed = spin(call, seconds)
    messages = arrived() - arrived_before if arrived else calls
    return {"rate": messages / elapsed, "cpu_us": (cpu.now() - cpu_before) / 1e3 / messages}


def spin(call: Callable[[], object], seconds: float) -> tuple[int, float]:
    """Calls until the time is up, with nothing else in the inner loop; returns the number of calls
    and the time."""
    calls, block = 0, 1
    start = last = time.perf_counter_ns()
    end = start + int(seconds * 1e9)
    while last < end:
        for _ in repeat(None, block):
            call()
        calls += block
        now = time.perf_counter_ns()
        if now - last < BLOCK_NS:
            block *= 2
        last = now
    return calls, (last - start) / 1e9


def percentiles(times: list[int], per: float) -> Figures:
    """Returns percentiles of sorted times in nanoseconds, in units of `per` nanoseconds."""
    return {
        f"p{name}_us": times[min(len(times) - 1, int(len(times) * share))] / per
        for name, share in (("50", 0.5), ("99", 0.99), ("999", 0.999))
    }


# ---------------------------------------------------------------- sockets


def open_socket(zmq: Any, context: Any, kind: str, case: Any, *, as_server: bool = False) -> Any:
    socket = context.socket(getattr(zmq, kind))
    if case.get("sp") and hasattr(zmq, "WIRE_PROTOCOL"):
        socket.setsockopt(zmq.WIRE_PROTOCOL, 1)
    if "hwm" in case:
        socket.setsockopt(zmq.SNDHWM, case["hwm"])
        socket.setsockopt(zmq.RCVHWM, case["hwm"])
    if "backlog" in case:
        with suppress(Exception):  # pyomq has no such option
            socket.setsockopt(zmq.BACKLOG, case["backlog"])
    if "silence_ms" in case:
        socket.setsockopt(zmq.RCVTIMEO, case["silence_ms"])
    if case.get("curve"):
        secure(zmq, socket, as_server)
    if "certificates" in case:
        use_certificates(zmq, socket, Path(case["certificates"]), as_server)
    if kind == "SUB" and "topics" not in case:
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    if kind == "DISH":
        socket.join("g")
    return socket


def use_certificates(zmq: Any, socket: Any, folder: Path, as_server: bool) -> None:
    certificate, key, authority = (
        str(folder / name) for name in ("server.pem", "server.key", "ca.pem")
    )
    if not hasattr(zmq, "TLS_CA"):
        socket.use_certificates(certificate, key, authority, as_server)
    elif as_server:
        socket.setsockopt_string(zmq.TLS_CERTIFICATE, certificate)
        socket.setsockopt_string(zmq.TLS_KEY, key)
    else:
        socket.setsockopt_string(zmq.TLS_CA, authority)


def secure(zmq: Any, socket: Any, as_server: bool) -> None:
    if as_server:
        socket.curve_server = True
        socket.curve_secretkey = SERVER_SECRET
        return
    socket.curve_serverkey = zmq.curve_public(SERVER_SECRET)
    socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()
