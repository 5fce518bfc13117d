"""Sends the same bytes to zeroxide and to libzmq, and compares what the sockets receive.

The inputs are those of the target `engine` of `rust/fuzz`, from its corpora, and changes of them. For each, a socket of
each library listens over ipc, and its peer sends the bytes and hangs up. Whether the handshake succeeds must be the
same, and the messages, too. libzmq runs in a process of its own, because some inputs end it.

    python tests/fuzz/differential.py --seconds 300 --seed 1 [--corpus build/fuzz/engine.corpus]
"""

from __future__ import annotations

import argparse
import fcntl
import importlib
import itertools
import multiprocessing
import random
import socket
import sys
import tempfile
import termios
import time
from collections import Counter
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from web import change  # the neighbour of this file

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "rust" / "fuzz" / "corpus" / "engine.corpus"

# The types in the order of the target `engine`, as far as libzmq has them without drafts, and what they receive counts.
TYPES = ["PAIR", "PUB", "SUB", "REQ", "REP", "DEALER", "ROUTER", "PULL", "PUSH", "XPUB", "XSUB"]
RECEIVING = {"PAIR", "SUB", "REP", "DEALER", "ROUTER", "PULL", "XPUB", "XSUB"}
# How long an event may take, in milliseconds.
PATIENCE = 2000


def observe(
    zmq: Any, context: Any, path: str, kind: str, data: bytes
) -> tuple[bool, list[list[bytes]]]:
    """What a socket of one library makes of the bytes."""
    server = context.socket(getattr(zmq, kind))
    server.linger = 0
    if kind == "SUB":
        server.subscribe(b"")
    monitor = server.get_monitor_socket()
    monitor.rcvtimeo = PATIENCE
    try:
        server.bind(f"ipc://{path}")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(PATIENCE / 1000)
            peer.connect(path)
            try:
                for piece in pieces(data):
                    peer.sendall(piece)
                    wait_until_read(peer)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except OSError:
                pass
        succeeded = wait_for_end(zmq, monitor)
        messages = []
        while True:
            try:
                parts = server.recv_multipart(zmq.DONTWAIT)
            except zmq.ZMQError:
                return succeeded, messages
            if kind == "ROUTER" and parts[0][:1] == b"\0":
                parts[0] = b"made up"
            messages.append(parts)
            if kind == "REP":
                return succeeded, messages
    finally:
        server.disable_monitor()
        monitor.close()
        server.close()


def pieces(data: bytes) -> list[bytes]:
    """The greeting, the first command, and the rest: libzmq closes connections whose peer does not wait in between."""
    command = 66 + (data[65] if len(data) > 65 else 0)
    ends = [0, 10, 12, 64, command, max(command, len(data))]
    return [data[start:end] for start, end in itertools.pairwise(ends) if data[start:end]]


def wait_until_read(peer: socket.socket) -> None:
    """Waits until the other side has read everything: libzmq forgets messages that come with the end of the stream."""
    for _ in range(200):
        unread = fcntl.ioctl(peer, termios.TIOCOUTQ, bytes(4))
        if unread == bytes(4):
            break
        time.sleep(0.001)
    time.sleep(0.002)


def wait_for_end(zmq: Any, monitor: Any) -> bool:
    """Waits until the connection is over; returns whether its handshake succeeded."""
    succeeded = False
    over = zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    over |= zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    while True:
        event = int.from_bytes(monitor.recv_multipart()[0][:2], sys.byteorder)
        succeeded |= bool(event & zmq.EVENT_HANDSHAKE_SUCCEEDED)
        if event & over:
            return succeeded


def serve(name: str, pipe: Connection) -> None:
    """Observes with one library, as long as inputs come."""
    zmq = importlib.import_module(name)
    context = zmq.Context()
    with tempfile.TemporaryDirectory() as folder:
        count = 0
        while True:
            kind, data = pipe.recv()
            count += 1
            try:
                pipe.send(observe(zmq, context, f"{folder}/{count}", kind, data))
            except zmq.ZMQError as error:
                pipe.send(error.errno)


class Library:
    """One library in a process, which is started again if an input ends it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self._start()

    def _start(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self._pipe, theirs = spawn.Pipe()
        self._process = spawn.Process(target=serve, args=(self.name, theirs), daemon=True)
        self._process.start()
        theirs.close()

    def observe(self, kind: str, data: bytes) -> Any:
        """Returns the result; the exit code if the process has ended; an errno if no event came."""
        self._pipe.send((kind, data))
        try:
            return self._pipe.recv()
        except EOFError:
            self._process.join()
            code = self._process.exitcode
            self._start()
            return f"ended with {code}"

    def close(self) -> None:
        self._process.kill()
        self._process.join()


def inputs(paths: list[Path]) -> list[bytes]:
    """The inputs of a corpus whose settings both libraries have: NULL, and no option."""
    lines = [line for path in paths if path.exists() for line in path.read_text().splitlines()]
    found = (line.encode().decode("unicode_escape").encode("latin-1") for line in lines)
    return [data for data in found if len(data) > 3 and data[1] % 6 < 2]


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--corpus", type=Path, action="append", default=[CORPUS])
    arguments = parser.parse_args()
    chance = random.Random(arguments.seed)
    corpus, end, seen = (
        inputs(arguments.corpus),
        time.monotonic() + arguments.seconds,
        Counter[str](),
    )
    ours, theirs = Library("zeroxide"), Library("zmq")
    try:
        while time.monotonic() < end:
            count = sum(seen.values())
            data = (
                corpus[count]
                if count < len(corpus)
                else change(chance.choice(corpus), chance.choice(corpus), chance)
            )
            if len(data) < 3:
                continue
            kind = TYPES[data[0] % len(TYPES)]
            results = [library.observe(kind, data[3:]) for library in (ours, theirs)]
            verdict = judge(kind, data[3:], *results)
            seen[verdict] += 1
            if verdict not in ("same", "stricter") and seen[verdict] <= 20:
                print(
                    f"{verdict}: {kind} {data[3:]!r}\n  zeroxide {results[0]}\n  libzmq   {results[1]}"
                )
    finally:
        ours.close()
        theirs.close()
    print(dict(seen))


def judge(kind: str, data: bytes, ours: Any, theirs: Any) -> str:
    """Compares two results. zeroxide may be stricter, but must not accept more, or anything else."""
    for name, result in (("libzmq", theirs), ("zeroxide", ours)):
        if isinstance(result, str):
            return f"{name} {result}"
        if isinstance(result, int):
            return f"{name} does not report the end"
    # libzmq has events of handshakes for ZMTP 3 only.
    is_current = data[:1] == b"\xff" and data[9:11] == b"\x7f\x03"
    accepted = [result[0] if is_current else True for result in (ours, theirs)]
    messages = [result[1] if kind in RECEIVING else [] for result in (ours, theirs)]
    if kind == "XPUB":
        # The end of a connection ends its subscriptions, which is seen before or after the last look.
        messages = [[parts for parts in one if parts[0][:1] != b"\0"] for one in messages]
    if accepted[0] == accepted[1] and messages[0] == messages[1]:
        return "same"
    if accepted[0] <= accepted[1] and messages[0] == messages[1][: len(messages[0])]:
        return "stricter"
    if accepted[1] <= accepted[0] and messages[1] == messages[0][: len(messages[1])]:
        return "laxer"
    return "different"


if __name__ == "__main__":
    main()
