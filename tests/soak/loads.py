"""What `sockets.py` makes sockets do: each function is one round of a pattern, a fault or a kind of churn.

A load opens its own sockets, checks what it receives, and leaves nothing behind. It raises `Wrong` if a message is
missing, repeated, out of order or changed.
"""

from __future__ import annotations

import asyncio
import os
import random
import signal
import socket as tcp
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import zeroxide as zmq
import zeroxide.asyncio as zaio

# A program that does nothing.
TRUE = "/bin/true"

TRANSPORTS = ("tcp", "ipc", "inproc")

_KILLED_PEER = """
import sys, zeroxide as zmq
with zmq.Context() as context, context.socket(zmq.PUSH) as push:
    push.connect(sys.argv[1])
    while True:
        push.send(b"x" * 1000)
"""


class Wrong(Exception):
    """A message is missing, repeated, out of order or changed."""


@dataclass
class Bench:
    """What a load works with."""

    context: zmq.Context
    random: random.Random
    folder: Path
    patience_s: float = 60
    """The longest wait for something that will happen."""
    signal_ms: float = 2
    """The interval of signals. On a slow machine, a short one leaves no time for anything else."""
    numbers: Iterator[int] = field(default_factory=count)

    @property
    def patience_ms(self) -> int:
        return round(self.patience_s * 1000)

    def endpoint(self, transport: str) -> str:
        """A new endpoint to bind."""
        if transport == "tcp":
            return "tcp://127.0.0.1:*"
        name = f"{next(self.numbers)}"
        return f"ipc://{self.folder}/{name}" if transport == "ipc" else f"inproc://{name}"

    @contextmanager
    def sockets(self, *kinds: int, transport: str | None = None, **options: Any) -> Iterator[Any]:
        """The first socket bound, and the others connected to it."""
        transport = transport or self.random.choice(TRANSPORTS)
        opened = [self.context.socket(kind) for kind in kinds]
        try:
            for socket in opened:
                socket.linger = 0
                socket.rcvtimeo = socket.sndtimeo = self.patience_ms
                for name, value in options.items():
                    setattr(socket, name, value)
            opened[0].bind(self.endpoint(transport))
            for socket in opened[1:]:
                socket.connect(opened[0].last_endpoint.decode())
            yield opened
        finally:
            for socket in opened:
                socket.close()

    def body(self, number: int) -> bytes:
        """A body with a number, of a random size."""
        size = self.random.choice((0, 10, 60, 200, 2000, 20_000))
        return number.to_bytes(8, "big") + b"x" * size


def expect(got: object, wanted: object) -> None:
    if got != wanted:
        raise Wrong(f"{str(got)[:100]} instead of {str(wanted)[:100]}")


def pipeline(bench: Bench) -> None:
    """Many messages in one direction, from another thread."""
    with bench.sockets(zmq.PULL, zmq.PUSH) as (pull, push):
        bodies = [bench.body(number) for number in range(bench.random.randrange(2000))]
        sender = threading.Thread(target=lambda: [push.send(body) for body in bodies])
        sender.start()
        for body in bodies:
            expect(pull.recv(), body)
        sender.join()


def lent_memory(bench: Bench) -> None:
    """Large messages without a copy."""
    with bench.sockets(zmq.PULL, zmq.PUSH) as (pull, push):
        for number in range(5):
            body = number.to_bytes(1, "big") * 1_000_000
            tracker = push.send(body, copy=False, track=True)
            expect(pull.recv(), body)
            tracker.wait(bench.patience_s)


def requests(bench: Bench) -> None:
    """Requests and replies in turns."""
    with bench.sockets(zmq.REP, zmq.REQ) as (rep, req):
        for number in range(200):
            req.send(bench.body(number))
            request = rep.recv()
            rep.send(request)
            expect(req.recv(), request)


def names(bench: Bench) -> None:
    """A ROUTER and several named peers, with messages of several parts."""
    with bench.sockets(zmq.ROUTER, *[zmq.DEALER] * 4, transport="tcp") as (router, *dealers):
        for number, dealer in enumerate(dealers):
            dealer.send_multipart([b"hello", bench.body(number)])
        for _ in dealers:
            router.send_multipart(router.recv_multipart())
        for number, dealer in enumerate(dealers):
            hello, body = dealer.recv_multipart()
            expect((hello, body[:8]), (b"hello", number.to_bytes(8, "big")))


def topics(bench: Bench) -> None:
    """Subscriptions that come and go."""
    with bench.sockets(zmq.PUB, zmq.SUB, zmq.SUB) as (pub, *subs):
        for sub in subs:
            for number in range(100):
                sub.subscribe(f"{number}/")
            for number in range(0, 100, 2):
                sub.unsubscribe(f"{number}/")
            sub.subscribe("end")
        pub.wait_subscribed("end", count=2, timeout=bench.patience_ms)
        for number in range(100):
            pub.send_string(f"{number}/")
        pub.send(b"end")
        for sub in subs:
            for number in range(1, 100, 2):
                expect(sub.recv(), f"{number}/".encode())
            expect(sub.recv(), b"end")


def drafts(bench: Bench) -> None:
    """CLIENT and SERVER, with routing ids."""
    with bench.sockets(zmq.SERVER, *[zmq.CLIENT] * 3) as (server, *clients):
        for number, client in enumerate(clients):
            client.send(bench.body(number))
        for _ in clients:
            request = server.recv(copy=False)
            server.send(request.bytes, routing_id=request.routing_id)
        for number, client in enumerate(clients):
            expect(client.recv()[:8], number.to_bytes(8, "big"))


def secured(bench: Bench) -> None:
    """CURVE, and a stranger who does not have the server's key."""
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    with bench.context.socket(zmq.REP) as rep, bench.context.socket(zmq.REQ) as req:
        rep.linger = req.linger = 0
        rep.rcvtimeo = req.rcvtimeo = bench.patience_ms
        rep.curve_server, rep.curve_secretkey = True, secret
        rep.bind(bench.endpoint("tcp"))
        req.curve_serverkey, req.curve_publickey, req.curve_secretkey = public, mine, my_secret
        req.connect(rep.last_endpoint.decode())
        with bench.context.socket(zmq.REQ) as stranger:
            stranger.linger = 0
            stranger.connect(rep.last_endpoint.decode())
            stranger.send(b"not encrypted")
            for number in range(20):
                req.send(bench.body(number))
                rep.send(rep.recv())
                expect(req.recv()[:8], number.to_bytes(8, "big"))


def churn(bench: Bench) -> None:
    """Sockets that connect, send one message and close; endpoints that are bound and unbound."""
    with bench.sockets(zmq.PULL) as (pull,):
        endpoint = pull.last_endpoint.decode()
        for number in range(30):
            with bench.context.socket(zmq.PUSH) as push:
                push.linger = bench.patience_ms
                push.connect(endpoint)
                push.send(number.to_bytes(8, "big"))
        expect(sorted(pull.recv()[7] for _ in range(30)), list(range(30)))
        for _ in range(10):
            pull.bind(bench.endpoint("tcp"))
            pull.unbind(pull.last_endpoint)


def contexts(bench: Bench) -> None:
    """A context of its own, with its threads."""
    with zmq.Context() as context, context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as two:
        one.bind(bench.endpoint("ipc"))
        two.connect(one.last_endpoint.decode())
        one.send(b"x")
        expect(two.recv(), b"x")


def monitors(bench: Bench) -> None:
    """A monitor that sees a connection come and go."""
    with bench.sockets(zmq.PULL, transport="tcp") as (pull,):
        monitor = pull.get_monitor_socket()
        monitor.rcvtimeo = bench.patience_ms
        with bench.context.socket(zmq.PUSH) as push:
            push.connect(pull.last_endpoint.decode())
            push.send(b"x")
            expect(pull.recv(), b"x")
        while monitor.recv_multipart()[0][:2] != zmq.Event.DISCONNECTED.to_bytes(2, sys.byteorder):
            pass
        pull.disable_monitor()


def strangers(bench: Bench) -> None:
    """Peers that send garbage, half a greeting or nothing, and go."""
    greeting = bytes.fromhex("ff00000000000000017f03")
    with bench.sockets(zmq.PULL, zmq.PUSH, transport="tcp") as (pull, push):
        port = int(pull.last_endpoint.decode().rsplit(":", 1)[1])
        for _ in range(10):
            with tcp.create_connection(("127.0.0.1", port)) as stranger:
                stranger.sendall(
                    bench.random.choice(
                        (bench.random.randbytes(100), greeting[: bench.random.randrange(11)])
                    )
                )
        push.send(b"x")
        expect(pull.recv(), b"x")


def event_loop(bench: Bench) -> None:
    """asyncio: tasks that wait, and some that are cancelled."""

    async def echo(socket: Any) -> None:
        while True:
            await socket.send_multipart(await socket.recv_multipart())

    async def work() -> None:
        with zaio.Context() as context:
            router, dealer = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
            with router, dealer:
                router.linger = dealer.linger = 0
                router.bind(bench.endpoint("ipc"))
                dealer.connect(router.last_endpoint.decode())
                server = asyncio.create_task(echo(router))
                for number in range(100):
                    impatient = asyncio.create_task(dealer.recv())
                    await asyncio.sleep(0)
                    impatient.cancel()
                    await dealer.send(bench.body(number))
                    expect((await dealer.recv())[:8], number.to_bytes(8, "big"))
                server.cancel()

    asyncio.run(work())


def signals(bench: Bench) -> None:
    """A blocked call that signals interrupt."""
    # The handler stays, because a signal that is late would end the process.
    signal.signal(signal.SIGALRM, lambda *_: None)
    signal.setitimer(signal.ITIMER_REAL, bench.signal_ms / 1000, bench.signal_ms / 1000)
    try:
        with bench.sockets(zmq.PULL, zmq.PUSH) as (pull, push):
            sender = threading.Timer(0.05, push.send, (b"x",))
            sender.start()
            expect(pull.recv(), b"x")
            sender.join()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)


def forks(bench: Bench) -> None:
    """A child process that inherits the sockets, and uses its own."""
    with bench.sockets(zmq.PULL, transport="ipc") as (pull,), warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python advises against forks beside threads
        endpoint = pull.last_endpoint.decode()
        child = os.fork()
        if child == 0:
            try:
                with zmq.Context() as context, context.socket(zmq.PUSH) as push:
                    push.connect(endpoint)
                    push.send(b"from the child")
                # Another program ends the child. Memcheck would count what the fork has cut off as leaks, and change its status.
                os.execv(TRUE, [TRUE])
            finally:
                os._exit(1)
        expect(pull.recv(), b"from the child")
        expect(os.waitpid(child, 0)[1], 0)


def killed_peers(bench: Bench) -> None:
    """A process that is killed while it sends."""
    with bench.sockets(zmq.PULL, transport=bench.random.choice(("tcp", "ipc"))) as (pull,):
        peer = subprocess.Popen([sys.executable, "-c", _KILLED_PEER, pull.last_endpoint.decode()])
        for _ in range(100):
            expect(pull.recv(), b"x" * 1000)
        peer.kill()
        peer.wait()
        limit = time.monotonic() + bench.patience_s
        while pull.poll(100) and time.monotonic() < limit:
            expect(pull.recv(), b"x" * 1000)


LOADS: tuple[Callable[[Bench], None], ...] = (
    pipeline,
    lent_memory,
    requests,
    names,
    topics,
    drafts,
    secured,
    churn,
    contexts,
    monitors,
    strangers,
    event_loop,
    signals,
    forks,
    killed_peers,
)
