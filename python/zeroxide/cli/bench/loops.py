"""What is measured: calls of one socket in a row, as a script makes them.

Nothing else happens in these loops, apart from a look at the clock for each round trip. Both
sides of a measurement use the same loops.
"""

from itertools import islice, repeat
from time import perf_counter_ns
from typing import Any

from ...socket import Socket

__all__ = ["answer", "ask", "ask_ahead", "receive", "route_back", "send"]


def send(socket: Socket[Any], body: bytes, count: int) -> None:
    """Sends a message a number of times."""
    send = socket.send
    for _ in repeat(None, count):
        send(body)


def receive(socket: Socket[Any], warm_up: int, count: int) -> tuple[int, int]:
    """Receives messages. Returns the nanoseconds for those after the warm-up, and the size of the last one."""
    recv = socket.recv
    body = b""
    for _ in repeat(None, warm_up):
        body = recv()
    start = perf_counter_ns()
    for _ in repeat(None, count):
        body = recv()
    return perf_counter_ns() - start, len(body)


def ask(socket: Socket[Any], body: bytes, count: int) -> tuple[list[int], int]:
    """Sends each request after the reply to the one before.

    Returns the nanoseconds of each round trip, and the size of the last reply.
    """
    send, recv, now = socket.send, socket.recv, perf_counter_ns
    times = [now()]
    keep = times.append
    reply = b""
    for _ in repeat(None, count):
        send(body)
        reply = recv()
        keep(now())
    return _differences(times, 1), len(reply)


def ask_ahead(socket: Socket[Any], body: bytes, count: int, window: int) -> tuple[list[int], int]:
    """Keeps a number of requests in transit, and sends one for each reply.

    Returns the nanoseconds of each round trip but the first ones, and those of the loop.
    """
    send, recv, now = socket.send, socket.recv, perf_counter_ns
    for _ in repeat(None, window):
        send(body)
    start = now()
    times: list[int] = []
    keep = times.append
    for _ in repeat(None, count):
        recv()
        keep(now())
        send(body)
    end = now()
    for _ in repeat(None, window):
        recv()
        keep(now())
    return _differences(times, window), end - start


def answer(socket: Socket[Any], count: int) -> int:
    """Sends each message back, as REP does. Returns the size of the last one."""
    send, recv = socket.send, socket.recv
    body = b""
    for _ in repeat(None, count):
        body = recv()
        send(body)
    return len(body)


def route_back(socket: Socket[Any], count: int) -> None:
    """Sends each message of several parts back, as ROUTER does."""
    send, recv = socket.send_multipart, socket.recv_multipart
    for _ in repeat(None, count):
        send(recv())


def _differences(times: list[int], apart: int) -> list[int]:
    return [end - start for start, end in zip(times, islice(times, apart, None), strict=False)]
