"""The guide's four programs for measuring: local_thr, remote_thr, local_lat and remote_lat.

They measure with each other, and with those of libzmq.
"""

from typing import Any

from ...constants import PULL, PUSH, REP, REQ
from ...context import Context
from ...socket import Socket
from .loops import answer, ask, receive, send
from .patterns import Configure, Failed

__all__ = ["PROGRAMS", "run_program"]


def _local_thr(socket: Socket[Any], size: int, count: int) -> None:
    elapsed, got = receive(socket, 1, count - 1)
    _check(got, size)
    rate = count / max(elapsed / 1e9, 1e-6)
    print(f"message size: {size} [B]")
    print(f"message count: {count}")
    print(f"mean throughput: {rate:.0f} [msg/s]")
    print(f"mean throughput: {rate * size * 8 / 1e6:.3f} [Mb/s]")


def _remote_thr(socket: Socket[Any], size: int, count: int) -> None:
    send(socket, bytes(size), count)


def _local_lat(socket: Socket[Any], size: int, count: int) -> None:
    _check(answer(socket, count), size)


def _remote_lat(socket: Socket[Any], size: int, count: int) -> None:
    trips, got = ask(socket, bytes(size), count)
    _check(got, size)
    print(f"message size: {size} [B]")
    print(f"roundtrip count: {count}")
    print(f"average latency: {sum(trips) / count / 2 / 1000:.3f} [us]")


def _check(got: int, size: int) -> None:
    if got != size:
        raise Failed(f"a message of {got} bytes arrived instead of one of {size}")


PROGRAMS = {
    "local_thr": (PULL, Socket.bind, _local_thr),
    "remote_thr": (PUSH, Socket.connect, _remote_thr),
    "local_lat": (REP, Socket.bind, _local_lat),
    "remote_lat": (REQ, Socket.connect, _remote_lat),
}


def run_program(name: str, endpoint: str, size: int, count: int, configure: Configure) -> None:
    """Does what the program of this name does."""
    kind, attach, measure = PROGRAMS[name]
    context: Context[Any] = Context()
    try:
        socket: Socket[Any] = context.socket(kind)
        configure(socket)
        attach(socket, endpoint)
        measure(socket, size, count)
        socket.close(linger=-1)
        context.term()
    except BaseException:
        context.destroy(linger=0)
        raise
