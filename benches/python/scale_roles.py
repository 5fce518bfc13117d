"""Large numbers of subscriptions, queued messages and connections."""

from __future__ import annotations

import contextlib
import resource
import select
import socket as sockets
import struct
import threading
import time
from itertools import repeat
from typing import Any

from flow_roles import publish_until_told
from parts import Cpu, Figures, hear, hear_peer, open_socket, resident, say, settled, tell_peer

# ---------------------------------------------------------------- subscriptions


def topic(number: int) -> bytes:
    return b"topic/%07d/" % number


def sub_topics(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """One SUB subscribes to many topics: the publisher's memory, and its CPU for messages that match one each."""
    topics = [topic(number) for number in range(case["topics"])]
    subscribe = socket.subscribe
    hear_peer()
    before, start = resident(cpu.pid or 0), time.perf_counter()
    tell_peer("probe")
    for each in topics:
        subscribe(each)
    socket.recv()
    effective = time.perf_counter() - start
    memory = settled(lambda: resident(cpu.pid or 0)) - before
    tell_peer("enough")
    while len(socket.recv()) < case["size"]:
        pass
    cpu_before, count = cpu.of_peer(), case["count"]
    tell_peer("go")
    for _ in repeat(None, count):
        socket.recv()
    return {
        "memory": memory / len(topics),
        "effective_s": effective,
        "message_us": (cpu.of_peer() - cpu_before) / 1e3 / count,
    }


def pub_topics(zmq: Any, socket: Any, case: Any) -> None:
    topics, count, size = case["topics"], case["count"], case["size"]
    # A prime step visits the topics out of order, as real traffic does.
    bodies = [
        topic(number * 7919 % topics).ljust(size, b"x") for number in range(min(topics, 20_000))
    ]
    say(ready=True)
    hear()
    publish_until_told(socket.send, topic(topics - 1), every_s=0.001)
    socket.send(topic(topics - 1).ljust(size, b"x"))
    hear()
    sent = 0
    while sent < count:
        for body in bodies[: count - sent]:
            socket.send(body)
        sent += min(len(bodies), count - sent)
    threading.Event().wait()


# ---------------------------------------------------------------- messages in queues


def pull_backlog(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Measures the memory of both sides relative to the messages' bytes, before any and after all were received."""

    def both() -> int:
        return resident() + resident(cpu.pid or 0)

    socket.recv()
    before, payload = settled(both), case["count"] * case["size"]
    tell_peer("go")
    hear_peer()
    queued = settled(both) - before
    for _ in repeat(None, case["count"]):
        socket.recv()
    return {"over_payload": queued / payload, "left": settled(both) / before - 1}


def push_backlog(zmq: Any, socket: Any, case: Any) -> None:
    body = b"x" * (case["size"] - 8)
    socket.send(b"")
    hear()
    for number in range(case["count"]):
        socket.send(body + number.to_bytes(8, "big"))  # each an object of its own
    say(sent=True)
    hear()


# ---------------------------------------------------------------- connections


def pull_from_many(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Time until the first message of every peer has arrived; memory per connection, at this side and at the other."""
    socket.recv()
    before = (resident(), resident(cpu.pid or 0))
    start, count = time.perf_counter(), case["connections"]
    tell_peer("connect")
    for _ in repeat(None, count):
        socket.recv()
    elapsed = time.perf_counter() - start
    return {
        "up_s": elapsed,
        "bound_kib": (settled(resident) - before[0]) / 1024 / count,
        "connecting_kib": (settled(lambda: resident(cpu.pid or 0)) - before[1]) / 1024 / count,
    }


def push_many(zmq: Any, socket: Any, case: Any) -> None:
    socket.send(b"first")
    hear()
    kept = []
    for _ in range(case["connections"]):
        kept.append(open_socket(zmq, socket.context, "PUSH", case))
        kept[-1].connect(case["endpoint"])
        kept[-1].send(b"x")
    hear()


def pull_churn(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """How many sockets per second connect, send one message and close; the messages that arrive count."""
    count = case["connections"]
    socket.recv()
    cpu_before, start = cpu.now(), time.perf_counter()
    for _ in repeat(None, count - 1):
        socket.recv()
    elapsed = time.perf_counter() - start
    return {"rate": (count - 1) / elapsed, "cpu_us": (cpu.now() - cpu_before) / 1e3 / count}


def push_churn(zmq: Any, socket: Any, case: Any) -> None:
    context = socket.context
    for _ in range(case["connections"]):
        one = context.socket(zmq.PUSH)
        one.setsockopt(zmq.LINGER, 20_000)  # without this, pyomq drops unsent messages
        one.connect(case["endpoint"])
        one.send(b"x")
        one.close()
    hear()


# ---------------------------------------------------------------- more connections than one process has sockets


def pub_to_many(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """The other side consists of plain tcp connections, so that only this socket's time and memory
    are measured."""
    before, count = resident(), case["connections"]
    tell_peer("connect")
    up_s = hear_peer()["up_s"]
    memory = settled(resident) - before
    times = []
    for _ in range(5):
        tell_peer("watch")
        hear_peer()
        start = time.perf_counter_ns()
        socket.send(b"x" * case["size"])
        times.append((hear_peer()["at_ns"] - start) / 1e6)
    return {"up_s": up_s, "each_kib": memory / 1024 / count, "message_ms": sorted(times)[2]}


IP_BIND_ADDRESS_NO_PORT = (
    24  # the port is chosen when the peer is known, so it need not be free for every peer
)
GREETING = b"\xff" + bytes(8) + b"\x7f\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)
READY = b"\x05READY" + b"\x0bSocket-Type" + b"\0\0\0\x03SUB"
HELLO = GREETING + b"\x04" + bytes([len(READY)]) + READY
SUBSCRIBE = b"\x00\x01\x01"  # a subscription to everything; libzmq ends a connection on which it arrives together with the greeting
HANDSHAKES = 200  # at once


def raw_subscribers(zmq: Any, socket: Any, case: Any) -> None:
    port, count, size = int(case["endpoint"].rpartition(":")[2]), case["connections"], case["size"]
    everybody: dict[int, sockets.socket] = {}
    greeted: dict[int, int] = {}
    poll = select.epoll()

    def take_greetings(most: int) -> None:
        while len(greeted) > most:
            for number, _ in poll.poll(1):
                greeted[number] += len(everybody[number].recv(4096))
                if (
                    greeted[number] > len(GREETING) + 8
                ):  # the greeting and the READY, which arrives in one piece
                    everybody[number].sendall(SUBSCRIBE)
                    del greeted[number]
                    poll.unregister(number)

    hear()
    start = time.perf_counter()
    for number in range(count):
        one = sockets.socket()
        one.setsockopt(
            sockets.SOL_SOCKET, sockets.SO_LINGER, struct.pack("ii", 1, 0)
        )  # no TIME_WAIT
        one.setsockopt(sockets.IPPROTO_IP, IP_BIND_ADDRESS_NO_PORT, 1)
        one.bind((f"127.0.1.{1 + number // 2500}", 0))
        one.connect(("127.0.0.1", port))
        one.sendall(HELLO)
        everybody[one.fileno()], greeted[one.fileno()] = one, 0
        poll.register(one, select.EPOLLIN)
        take_greetings(HANDSHAKES)
    take_greetings(0)
    say(up_s=time.perf_counter() - start)
    for number in everybody:
        poll.register(number, select.EPOLLIN)
    while hear():
        say(watching=True)
        left = len(everybody) * (size + 2)  # flags and length precede each body
        while left > 0:
            for number, _ in poll.poll(1):
                left -= len(everybody[number].recv(4096))
        say(at_ns=time.perf_counter_ns())


def raise_limits() -> None:
    """Raises the limit of descriptors as far as the system allows."""
    with contextlib.suppress(OSError, ValueError):
        most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
