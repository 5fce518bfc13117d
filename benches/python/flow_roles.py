"""Streams of messages: the rate of arrival, and the CPU time per message of both sides."""

from __future__ import annotations

import asyncio
import select
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from importlib import import_module
from itertools import repeat
from typing import Any

from parts import Cpu, Figures, hear_peer, measure_rate, open_socket, say, tell_peer

IN_FLIGHT = 500
BATCH = 1000


def pull(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    recv = socket.recv if case.get("copy", True) else partial(socket.recv, copy=False)
    return measure_rate(recv, case["seconds"], cpu)


def push(zmq: Any, socket: Any, case: Any) -> None:
    send, payload = socket.send, b"x" * case["size"]
    if not case.get("copy", True):
        send = partial(send, copy=False)
    while True:
        send(payload)


def pull_multipart(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    return measure_rate(socket.recv_multipart, case["seconds"], cpu)


def push_multipart(zmq: Any, socket: Any, case: Any) -> None:
    send_multipart, frames = socket.send_multipart, [b"x" * case["size"]] * case["frames"]
    while True:
        send_multipart(frames)


def push_through_proxy(zmq: Any, socket: Any, case: Any) -> None:
    """The messages go to a proxy in a thread of this process, which forwards them to the measuring
    process."""
    front, sender = socket.context.socket(zmq.PULL), socket.context.socket(zmq.PUSH)
    front.bind("tcp://127.0.0.1:*")
    sender.connect(front.getsockopt(zmq.LAST_ENDPOINT).rstrip(b"\0").decode())
    threading.Thread(target=zmq.proxy, args=(front, socket), daemon=True).start()
    push(zmq, sender, case)


def pull_batch(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
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


def dealer(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
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


def server(zmq: Any, socket: Any, case: Any) -> None:
    recv, send = socket.recv, socket.send
    while True:
        # A partial with a keyword would cost a tenth of the round trip.
        send(recv(copy=False))


def pull_with_many(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Several PULL sockets of one process share the messages of one PUSH, and are read in turn."""
    sockets = [socket, *further(zmq, socket, "PULL", case)]
    receives, run, arrived = [each.recv for each in sockets], 16, 0

    def turn() -> None:
        nonlocal arrived
        for recv in receives:
            for _ in repeat(None, run):
                recv()
        arrived += run * len(receives)

    return measure_rate(turn, case["seconds"], cpu, lambda: arrived)


def survey(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Answers per second, each survey answered by all respondents before the next one."""
    send, recv, payload, count = socket.send, socket.recv, b"x" * case["size"], case["sockets"]
    hear_peer()

    def turn() -> None:
        nonlocal arrived
        send(payload)
        for _ in repeat(None, count):
            recv()
        arrived += count

    arrived = 0
    return measure_rate(turn, case["seconds"], cpu, lambda: arrived)


def respond(zmq: Any, socket: Any, case: Any) -> None:
    """Each respondent answers in a task of its own; their sockets are in one thread."""
    asyncio.run(respond_all(zmq, case))


async def respond_all(zmq: Any, case: Any) -> None:
    async def answer(socket: Any) -> None:
        while True:
            await socket.send(await socket.recv())

    context = import_module(f"{zmq.__name__}.asyncio" if zmq.__name__ != "nng" else "nng").Context()
    tasks = []
    for _ in range(case["sockets"]):
        socket = open_socket(zmq, context, "RESPONDENT", case)
        socket.connect(case["endpoint"])
        tasks.append(asyncio.create_task(answer(socket)))
    await asyncio.sleep(0.5)  # the last connections come about
    say(ready=True)
    await asyncio.gather(*tasks)


# ---------------------------------------------------------------- publish and subscribe: all messages arrive


def sub(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    count, recv = case["count"], socket.recv
    recv()  # one of the empty messages that show that the subscription is in force
    cpu_before, arrived = cpu.now(), 1
    tell_peer("go")
    while not recv():
        pass
    start = last = time.perf_counter_ns()
    try:
        while arrived < count:
            for _ in repeat(None, min(1000, count - arrived)):
                recv()
            last = time.perf_counter_ns()
            arrived += min(1000, count - arrived)
    except zmq.Again:  # messages that have not arrived by the timeout are lost
        pass
    cpu_us = (cpu.now() - cpu_before) / 1e3 / arrived
    rate = (arrived - 1) / max(1, last - start) * 1e9
    return {"rate": rate, "cpu_us": cpu_us, "lost": count - arrived, **hear_peer()}


def pub(zmq: Any, socket: Any, case: Any) -> None:
    publish(socket, socket.send, case)


def radio(zmq: Any, socket: Any, case: Any) -> None:
    send = socket.send
    # A partial with a keyword costs a third of the call.
    publish(socket, lambda payload: send(payload, group="g"), case)


def publish(socket: Any, send: Any, case: Any) -> None:
    payload, count = b"x" * case["size"], case["count"]
    publish_until_told(send)
    start = time.perf_counter_ns()
    for _ in repeat(None, count):
        send(payload)
    say(sender_rate=count / ((time.perf_counter_ns() - start) / 1e9))
    threading.Event().wait()  # the runner ends this process when everything has arrived


def publish_until_told(send: Any, message: bytes = b"", every_s: float = 0.005) -> str:
    while not select.select([sys.stdin], [], [], every_s)[0]:
        send(message)
    return sys.stdin.readline().strip()


def sub_with_many(zmq: Any, socket: Any, case: Any, cpu: Cpu) -> Figures:
    """Deliveries per second to many subscribers in one process; if none are dropped, each
    subscriber is read until it is empty."""
    receives = [each.recv for each in (socket, *further(zmq, socket, "SUB", case))]
    count, subscribers = case["count"], len(receives)
    for recv in receives:
        recv()  # the subscription is in force
    cpu_before = cpu.now()
    tell_peer("go")
    for recv in receives:
        with suppress(zmq.Again):
            while not recv():
                pass
    arrived, silence_ns, left, flags = 0, 0, count - 1, 0
    start = time.perf_counter_ns()
    while left and receives:
        run = min(100, left)
        for recv in tuple(receives):
            try:
                for _ in repeat(None, run):
                    recv(flags)
                    arrived += 1
            except zmq.Again:  # the other messages of this subscriber are lost; those of the others have arrived by now
                if not flags:
                    silence_ns, flags = case["silence_ms"] * 1_000_000, zmq.NOBLOCK
                receives.remove(recv)
        left -= run
    elapsed = (time.perf_counter_ns() - start - silence_ns) / 1e9
    return {
        "rate": arrived / elapsed,
        "cpu_us": (cpu.now() - cpu_before) / 1e3 / max(1, arrived),
        "lost": (count - 1) * subscribers - arrived,
        **hear_peer(),
    }


def further(zmq: Any, socket: Any, kind: str, case: Any) -> list[Any]:
    """Creates the further sockets of a side that has several."""
    others = [open_socket(zmq, socket.context, kind, case) for _ in range(int(case["sockets"]) - 1)]
    for other in others:
        other.connect(case["endpoint"])
    return others
