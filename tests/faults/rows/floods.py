"""Peers that send more than a program has time for."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from .. import wire
from ..bench import Bench
from ..row import check, row

PEERS = 6
CHUNK = 1 << 18

SOCKET = """
context = zmq.Context()
flooded = context.socket(zmq.{kind})
flooded.linger = 0
{options}
flooded.bind("tcp://127.0.0.1:*")
flooded.last_endpoint.decode()
"""

# Each of these calls ends although nothing that arrives is for the program.
CALLS = """
for _ in range(20):
    flooded.poll(0)
    try:
        flooded.recv(zmq.NOBLOCK)
    except zmq.Again:
        pass
flooded.poll(50)
flooded.rcvtimeo = 50
try:
    flooded.recv()
    outcome = "something was received"
except zmq.Again:
    outcome = None
outcome
"""

INTERRUPTED = """
class Interruption(Exception):
    pass

def interrupt(*_):
    raise Interruption

signal.signal(signal.SIGALRM, interrupt)
signal.setitimer(signal.ITIMER_REAL, 0.2)
flooded.rcvtimeo = -1
try:
    {call}
except Interruption:
    pass
"""


@contextmanager
def flood(endpoint: str, kind: bytes, message: bytes) -> Iterator[None]:
    """Peers of this type send the message as fast as they can."""
    streams = [wire.join(endpoint, kind) for _ in range(PEERS)]
    many = message * (CHUNK // len(message))

    def send(number: int) -> None:
        while wire.shout(streams[number], many):
            pass

    threads = [threading.Thread(target=send, args=(number,)) for number in range(PEERS)]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        for stream in streams:
            wire.hang_up(stream)
        for thread in threads:
            thread.join()
        for stream in streams:
            stream.close()


def request() -> bytes:
    """A message of 1000 parts without the empty one that a REP expects, which is expensive to drop."""
    parts = (wire.frame(wire.MORE if number else 0, b"x") for number in reversed(range(1000)))
    return b"".join(parts)


@row()
def flood_of_useless_messages(bench: Bench) -> None:
    """Six peers send a REP messages without an envelope, and a SUB messages of other topics, as fast as they can: poll(0), poll(50),
    recv with NOBLOCK and with a limit of 50 ms end meanwhile, and a signal ends recv and poll. A good message arrives afterwards."""
    topics = "".join(f"flooded.subscribe({b'x' * length + b'y'!r})\n" for length in range(100))
    cases = {
        "REP": ("", b"REQ", request()),
        "SUB": (topics, b"PUB", wire.frame(0, b"x" * 120)),
    }
    for kind, (options, peer, message) in cases.items():
        subject = bench.subject()
        endpoint = subject.run(SOCKET.format(kind=kind, options=options))
        with flood(endpoint, peer, message):
            for _ in range(bench.amount(1, 20)):
                check(
                    subject.run(CALLS) is None, "a message was received that is not for the program"
                )
                for call in ("flooded.recv()", "flooded.poll()"):
                    subject.run(INTERRUPTED.format(call=call))
        subject.run("flooded.rcvtimeo = -1")
        subject.begin("flooded.recv()")
        good = {
            "REP": wire.frame(wire.MORE, b"") + wire.frame(0, b"y"),
            "SUB": wire.frame(0, b"y"),
        }
        stream = wire.join(endpoint, peer)
        wire.shout(stream, good[kind])
        check(subject.answer() == b"y", "a message was not received after the flood")
        stream.close()
        subject.run("flooded.close()\ncontext.term()")
        subject.end()


@row()
def flood_of_subscriptions(bench: Bench) -> None:
    """Six peers subscribe to a PUB and cancel that, as fast as they can: poll(0) and send end meanwhile, and a subscriber that was
    there before receives every message."""
    subject = bench.subject()
    endpoint = subject.run(SOCKET.format(kind="PUB", options=""))
    sub = bench.context.socket(bench.zmq.SUB)
    sub.subscribe(b"")
    sub.connect(endpoint)
    numbers = itertools.count()

    def arrives() -> bool:
        subject.run(f"flooded.send({b'%d' % next(numbers)!r})")
        return bool(sub.poll(20))

    bench.until(arrives, "a subscriber receives nothing")
    while sub.poll(100):
        sub.recv()
    requests = wire.frame(0, b"\1topic") + wire.frame(0, b"\0topic")
    with flood(endpoint, b"SUB", requests):
        for number in range(bench.amount(200, 2000)):
            body = b"news %d" % number
            subject.run(f"flooded.poll(0)\nflooded.send({body!r})")
            check(sub.recv() == body, "a message is missing")
    subject.run("flooded.close()\ncontext.term()")
    subject.end()
