"""Measures nanoseconds per call on one thread, if nothing blocks."""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import repeat
from typing import Any

from parts import Figures, spin

ROUNDS = 5


def calls(zmq: Any, case: Any) -> Figures:
    """Returns the best of a few rounds for each call."""
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
        send, recv, sends, receives = sender.send, receiver.recv, [], []
        count = room(zmq, sender, receiver, payload)
        for _ in range(ROUNDS):
            sends.append(timed(lambda: send(payload), count))  # noqa: B023
            receives.append(timed(recv, count))
        results[f"inproc send {name}, queue only"] = min(sends)
        results[f"inproc recv {name}, queue full"] = min(receives)
        results[f"inproc send and recv {name} in turns"] = best(
            lambda: (send(payload), recv()),  # noqa: B023
            case["seconds"],
        )
    return results


def queue(zmq: Any, context: Any, name: str) -> tuple[Any, Any]:
    sender, receiver = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    for socket in (sender, receiver):
        socket.setsockopt(zmq.SNDHWM, 0)
        socket.setsockopt(zmq.RCVHWM, 0)
    endpoint = f"inproc://queue {name}"
    receiver.bind(endpoint)
    sender.connect(endpoint)
    return sender, receiver


def room(zmq: Any, sender: Any, receiver: Any, payload: bytes) -> int:
    """Returns the number of messages that fit into the queue, up to a limit. pyomq's queue holds about 2000 without an
    HWM."""
    sender.setsockopt(zmq.SNDTIMEO, 200)
    queued = 0
    try:
        while queued < 20_000:
            sender.send(payload)
            queued += 1
    except zmq.Again:
        pass
    for _ in repeat(None, queued):
        receiver.recv()
    return queued


def best(call: Callable[[], object], seconds: float) -> float:
    results = []
    for _ in range(ROUNDS):
        count, elapsed = spin(call, seconds / ROUNDS / 4)
        results.append(elapsed / count * 1e9)
    return min(results)


def timed(call: Callable[[], object], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in repeat(None, count):
        call()
    return (time.perf_counter_ns() - start) / count
