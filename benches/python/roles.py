"""What runs inside the measured processes: `python roles.py MODULE PART CASE`, started by runner.py.

A case has two sockets: the one that measures (it binds) and its peer (it connects). PART is `measure` or `peer`, each
a process of its own, or `both`: inproc, with the peer in a thread. Every function below takes the module under test
as `zmq` and uses only what pyzmq and zeroxide share, `send_batch` and `recv_batch` aside.
"""

from __future__ import annotations

import json
import os
import select
import sys
import threading
import time
from array import array
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module
from itertools import repeat
from typing import Any

import aio_roles

WARM_UP_S = 0.15
BLOCK_NS = 3_000_000  # the clock is read once per so much work
IN_FLIGHT = 500
BATCH = 1000
SERVER_SECRET = b"zeroxide.bench.a.key.that.all.may.know.."  # Z85, 32 bytes


def say(**fields: Any) -> None:
    print(json.dumps(fields), flush=True)


def hear() -> str:
    return sys.stdin.readline().strip()


class Cpu:
    """Nanoseconds of CPU that this process, and its peer if there is one, have used: all threads, user and kernel."""

    def __init__(self, peer: int | None) -> None:
        # The kernel's number of another process's CPU clock: see clock_getcpuclockid(3).
        self.peer_clock = None if peer is None else (~peer << 3) | 2

    def now(self) -> int:
        own = time.process_time_ns()
        return own if self.peer_clock is None else own + time.clock_gettime_ns(self.peer_clock)


# ---------------------------------------------------------------- throughput


def measure_rate(
    call: Callable[[], object], seconds: float, cpu: Cpu, arrived: Callable[[], int] | None = None
) -> dict[str, float]:
    """Messages per second after the warm-up: one for each call, or as many as `arrived` says."""
    spin(call, WARM_UP_S)
    cpu_before, arrived_before = cpu.now(), arrived() if arrived else 0
    calls, elapsed = spin(call, seconds)
    messages = arrived() - arrived_before if arrived else calls
    return {"rate": messages / elapsed, "cpu_us": (cpu.now() - cpu_before) / 1e3 / messages}


def spin(call: Callable[[], object], seconds: float) -> tuple[int, float]:
    """Calls until the time is up, with nothing else in the inner loop; how often, and in what time."""
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


def pull(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    return measure_rate(socket.recv, case["seconds"], cpu)


def push(zmq: Any, socket: Any, case: Any) -> None:
    send, payload = socket.send, b"x" * case["size"]
    while True:
        send(payload)


def pull_multipart(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    return measure_rate(socket.recv_multipart, case["seconds"], cpu)


def push_multipart(zmq: Any, socket: Any, case: Any) -> None:
    send_multipart, frames = socket.send_multipart, [b"x" * case["size"]] * case["frames"]
    while True:
        send_multipart(frames)


def push_through_proxy(zmq: Any, socket: Any, case: Any) -> None:
    """The messages go to a proxy in a thread of this process, which hands them on to the measuring one."""
    front, sender = socket.context.socket(zmq.PULL), socket.context.socket(zmq.PUSH)
    front.bind("tcp://127.0.0.1:*")
    sender.connect(front.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
    threading.Thread(target=zmq.proxy, args=(front, socket), daemon=True).start()
    push(zmq, sender, case)


def pull_batch(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    if not hasattr(socket, "recv_batch"):
        return pull(zmq, socket, case, cpu)  # without batches a loop is what one writes
    recv_batch, arrived = socket.recv_batch, 0

    def turn() -> None:
        nonlocal arrived
        arrived += len(recv_batch(BATCH))

    return measure_rate(turn, case["seconds"], cpu, lambda: arrived)


def push_batch(zmq: Any, socket: Any, case: Any) -> None:
    if not hasattr(socket, "send_batch"):
        push(zmq, socket, case)
    send_batch, batch = socket.send_batch, [b"x" * case["size"]] * BATCH
    while True:
        send_batch(batch)


def dealer(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    """Round trips per second with IN_FLIGHT requests under way."""
    send, recv, payload = socket.send, socket.recv, b"x" * case["size"]
    for _ in range(IN_FLIGHT):
        send(payload)

    def turn() -> None:
        recv()
        send(payload)

    return measure_rate(turn, case["seconds"], cpu)


def router(zmq: Any, socket: Any, case: Any) -> None:
    recv_multipart, send_multipart = socket.recv_multipart, socket.send_multipart
    while True:
        send_multipart(recv_multipart())


# ---------------------------------------------------------------- latency


def req(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    """One-way times: half of each round trip."""
    send, recv, clock, payload = socket.send, socket.recv, time.perf_counter_ns, b"x" * case["size"]

    def turns(seconds: float) -> array[int]:
        times = array("q")
        before, end = clock(), clock() + int(seconds * 1e9)
        while before < end:
            send(payload)
            recv()
            now = clock()
            times.append(now - before)
            before = now
        return times

    turns(WARM_UP_S)
    cpu_before = cpu.now()
    times = sorted(turns(case["seconds"]))
    cpu_us = (cpu.now() - cpu_before) / 1e3 / len(times)
    one_way = [times[int(len(times) * part)] / 2e3 for part in (0.5, 0.99)]
    return {"p50_us": one_way[0], "p99_us": one_way[1], "cpu_us": cpu_us}


def rep(zmq: Any, socket: Any, case: Any) -> None:
    send, recv = socket.send, socket.recv
    while True:
        send(recv())


# ---------------------------------------------------------------- publish and subscribe: so many messages, all arrive


def sub(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> dict[str, float]:
    count, recv = case["count"], socket.recv
    recv()  # one of the empty messages that say that the subscription is in force
    cpu_before = cpu.now()
    say(ready=True)
    while not recv():
        pass
    start = time.perf_counter_ns()
    for _ in repeat(None, count - 1):
        recv()
    elapsed = (time.perf_counter_ns() - start) / 1e9
    return {"rate": (count - 1) / elapsed, "cpu_us": (cpu.now() - cpu_before) / 1e3 / count}


def pub(zmq: Any, socket: Any, case: Any) -> None:
    send, payload, count = socket.send, b"x" * case["size"], case["count"]
    while not select.select([sys.stdin], [], [], 0.005)[0]:
        send(b"")
    start = time.perf_counter_ns()
    for _ in repeat(None, count):
        send(payload)
    say(sender_rate=count / ((time.perf_counter_ns() - start) / 1e9))
    threading.Event().wait()  # the runner ends this process when everything has arrived


# ---------------------------------------------------------------- single calls


def calls(zmq: Any, case: Any) -> dict[str, float]:
    """Nanoseconds of one call on one thread where nothing blocks: the best of a few rounds."""
    context = zmq.Context()
    publisher, empty = context.socket(zmq.PUB), context.socket(zmq.PULL)
    empty.bind("inproc://empty")
    small, kilobyte, parts = b"x" * 64, b"x" * 1024, [b"x" * 64] * 5

    def again() -> None:
        try:  # noqa: SIM105  (contextlib.suppress would be measured too)
            empty.recv(zmq.NOBLOCK)
        except zmq.Again:
            pass

    results = {
        "send 64 B, no peer": best(lambda: publisher.send(small), case["seconds"]),
        "send 1 KiB, no peer": best(lambda: publisher.send(kilobyte), case["seconds"]),
        "send_multipart 5 x 64 B, no peer": best(
            lambda: publisher.send_multipart(parts), case["seconds"]
        ),
        "recv(NOBLOCK), nothing there": best(again, case["seconds"]),
        "poll(0), nothing there": best(lambda: empty.poll(0), case["seconds"]),
        "getsockopt(EVENTS)": best(lambda: empty.getsockopt(zmq.EVENTS), case["seconds"]),
    }
    for name, payload in (("64 B", small), ("1 KiB", kilobyte)):
        sender, receiver = queue(zmq, context, name)
        send, recv, count = sender.send, receiver.recv, 20_000
        sends, receives = [], []
        for _ in range(5):
            sends.append(timed(lambda: send(payload), count))  # noqa: B023
            receives.append(timed(recv, count))
        results[f"inproc send {name}, queue only"] = min(sends)
        results[f"inproc recv {name}, queue full"] = min(receives)
    return results


def queue(zmq: Any, context: Any, name: str) -> tuple[Any, Any]:
    sender, receiver = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    for socket in (sender, receiver):
        socket.sndhwm = socket.rcvhwm = 0
    endpoint = f"inproc://queue {name}"
    receiver.bind(endpoint)
    sender.connect(endpoint)
    return sender, receiver


def best(call: Callable[[], object], seconds: float) -> float:
    rounds = 5
    results = []
    for _ in range(rounds):
        count, elapsed = spin(call, seconds / rounds / 4)
        results.append(elapsed / count * 1e9)
    return min(results)


def timed(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in repeat(None, count):
        call()
    return (time.perf_counter_ns() - start) / count


# ---------------------------------------------------------------- the parts, by name


@dataclass(frozen=True)
class Role:
    measures: str  # socket type of the side that measures
    measure: Callable[[Any, Any, Any, Cpu], dict[str, float]]
    peers: str
    peer: Callable[[Any, Any, Any], None]
    contexts: str = ""  # the submodule whose contexts make the sockets


ROLES = {
    "push_pull": Role("PULL", pull, "PUSH", push),
    "multipart": Role("PULL", pull_multipart, "PUSH", push_multipart),
    "proxy": Role("PULL", pull, "PUSH", push_through_proxy),
    "batch": Role("PULL", pull_batch, "PUSH", push_batch),
    "req_rep": Role("REQ", req, "REP", rep),
    "dealer_router": Role("DEALER", dealer, "ROUTER", router),
    "pub_sub": Role("SUB", sub, "PUB", pub),
    "aio_push_pull": Role("PULL", aio_roles.pull, "PUSH", aio_roles.push, ".asyncio"),
    "aio_batch": Role("PULL", aio_roles.pull_batch, "PUSH", aio_roles.push_batch, ".asyncio"),
    "aio_req_rep": Role("REQ", aio_roles.req, "REP", aio_roles.rep, ".asyncio"),
}


def open_socket(zmq: Any, context: Any, kind: str, case: Any) -> Any:
    socket = context.socket(getattr(zmq, kind))
    if "hwm" in case:
        socket.sndhwm = socket.rcvhwm = case["hwm"]
    if case.get("curve"):
        secure(zmq, socket, as_server=kind == ROLES[case["role"]].measures)
    if kind == "SUB":
        socket.setsockopt(zmq.SUBSCRIBE, b"")
    return socket


def secure(zmq: Any, socket: Any, as_server: bool) -> None:
    if as_server:
        socket.curve_server = True
        socket.curve_secretkey = SERVER_SECRET
        return
    socket.curve_serverkey = zmq.curve_public(SERVER_SECRET)
    socket.curve_publickey, socket.curve_secretkey = zmq.curve_keypair()


def main() -> None:
    module, part, case = sys.argv[1], sys.argv[2], json.loads(sys.argv[3])
    zmq = import_module(module)
    if case["role"] == "calls":
        say(result=calls(zmq, case))
        os._exit(0)
    role = ROLES[case["role"]]
    context = import_module(module + role.contexts).Context()
    if part == "peer":
        socket = open_socket(zmq, context, role.peers, case)
        socket.connect(case["endpoint"])
        role.peer(zmq, socket, case)
        return
    socket = open_socket(zmq, context, role.measures, case)
    socket.bind(case["address"])
    endpoint = socket.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode()
    peer = None
    if part == "both":

        def run_peer() -> None:
            connected = open_socket(zmq, context, role.peers, case)
            connected.connect(endpoint)
            role.peer(zmq, connected, case)

        threading.Thread(target=run_peer, daemon=True).start()
    else:
        say(endpoint=endpoint)
        peer = int(hear())
    say(result=role.measure(zmq, socket, case, Cpu(peer)))
    # The peer still sends: an orderly end would have to agree with it first, and is not what is measured.
    os._exit(0)


if __name__ == "__main__":
    main()
