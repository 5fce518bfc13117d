"""Speed, with thresholds that hold on any machine: each run also measures how long the interpreter and the kernel take
for simple operations. The bench's code does the measuring."""

import os
import socket
import statistics
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benches" / "python"))

from cases import Case
from runner import run

SECONDS, ROUNDS = 0.3, 3


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if "perf" in config.getoption("-m"):
        return
    for item in items:
        if item.get_closest_marker("perf"):
            item.add_marker(pytest.mark.skip(reason="pytest -m perf runs it"))


@dataclass(frozen=True)
class Calibration:
    call_ns: float  # a Python method that does nothing
    raw_us: float  # a byte one way over a bare tcp connection, everything on one core
    copy_us: float  # CPU for 256 KiB through a bare tcp connection


@pytest.fixture(scope="session")
def machine() -> Calibration:
    found = Calibration(call_ns(), raw_us(), copy_us())
    print(f"\n{found}")
    return found


@pytest.fixture(scope="session")
def figures() -> Callable[..., dict[str, float]]:
    """The medians of a few short runs of a role of the bench."""

    def measure(
        role: str, transport: str = "tcp", size: int = 64, **options: Any
    ) -> dict[str, float]:
        case = Case("", "", role, transport, size, options=options)
        runs = [run("zeroxide", case, case.parameters(SECONDS, 1)) for _ in range(ROUNDS)]
        return {name: statistics.median(each[name] for each in runs) for name in runs[0]}

    return measure


# ---------------------------------------------------------------- the calibration


class Nothing:
    def method(self, argument: bytes) -> None:
        pass


def call_ns() -> float:
    call, count, times = Nothing().method, 50_000, []
    for _ in range(7):
        start = time.perf_counter_ns()
        for _ in range(count):
            call(b"")
        times.append((time.perf_counter_ns() - start) / count)
    return min(times)


def joined() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    for each in (one, other):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return one, other


def raw_us() -> float:
    """Another process replies, because the peer of a socket would be another process."""
    one, other = joined()
    before = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(before)})
    child = os.fork()
    if child == 0:
        one.close()
        while body := other.recv(1):
            other.send(body)
        os._exit(0)
    other.close()
    times = []
    for _ in range(5000):
        start = time.perf_counter_ns()
        one.send(b"x")
        one.recv(1)
        times.append(time.perf_counter_ns() - start)
    one.close()
    os.waitpid(child, 0)
    os.sched_setaffinity(0, before)
    return statistics.median(times) / 2e3


def copy_us() -> float:
    one, other = joined()
    body, count = b"x" * 262144, 500

    def send() -> None:
        for _ in range(count):
            one.sendall(body)

    sender = threading.Thread(target=send)
    before = time.process_time_ns()
    sender.start()
    left, buffer = count * len(body), bytearray(len(body))
    while left:
        left -= other.recv_into(buffer)
    sender.join()
    one.close()
    other.close()
    return (time.process_time_ns() - before) / 1e3 / count
