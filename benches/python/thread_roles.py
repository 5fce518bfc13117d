"""Threads of one process that share no socket, sending and receiving at the same time."""

from __future__ import annotations

import threading
import time
from typing import Any

from parts import WARM_UP_S, Figures, spin


def threads(zmq: Any, case: Any) -> Figures:
    """The total messages per second of all threads. Each sends to itself and receives, one message
    at a time."""
    context, count = zmq.Context(), int(case["threads"])
    together = threading.Barrier(count)
    rates: list[float] = []
    costs: list[float] = []

    def work(number: int) -> None:
        sender, receiver = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        receiver.bind(f"inproc://thread {number}")
        sender.connect(f"inproc://thread {number}")
        # Each thread has its own object: otherwise, the test would also measure the shared reference count.
        payload = b"x" * case["size"]
        send, recv = sender.send, receiver.recv

        def turn() -> None:
            send(payload)
            recv()

        together.wait()
        spin(turn, WARM_UP_S)
        together.wait()
        before = time.thread_time_ns()
        messages, elapsed = spin(turn, case["seconds"])
        rates.append(messages / elapsed)
        costs.append((time.thread_time_ns() - before) / 1e3 / messages)

    workers = [threading.Thread(target=work, args=(number,)) for number in range(count)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    return {"rate": sum(rates), "cpu_us": sum(costs) / count}
