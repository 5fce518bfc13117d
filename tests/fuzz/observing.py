"""What a socket of one library makes of the bytes of a peer."""

from __future__ import annotations

import fcntl
import importlib
import itertools
import socket
import sys
import tempfile
import termios
import threading
import time
from dataclasses import dataclass, field
from multiprocessing.connection import Connection
from typing import Any

from curve_peer import CLIENT_SECRET, SERVER_SECRET, Conversation, public

# How long an event may take, in milliseconds.
PATIENCE = 5000
USER, PASSWORD = b"user", b"word"


@dataclass(frozen=True)
class Input:
    """The type and the mechanism of a socket, as the numbers of `rust/fuzz` say, and what its peer sends."""

    kind: str
    mechanism: int
    sent: bytes | Conversation


@dataclass
class Seen:
    """Whether the handshake succeeded, the messages, and why zeroxide ended the connection."""

    succeeded: bool
    messages: list[list[bytes]]
    reasons: list[str] = field(default_factory=list)


def observe(zmq: Any, context: Any, path: str, given: Input) -> Seen:
    server = context.socket(getattr(zmq, given.kind))
    server.linger = 0
    if given.kind == "SUB":
        server.subscribe(b"")
    secure(server, given.mechanism)
    monitor = server.get_monitor_socket()
    monitor.rcvtimeo = PATIENCE
    # libzmq has no reasons in words.
    events = server.monitor_events(timeout=0) if hasattr(server, "monitor_events") else []
    try:
        server.bind(f"ipc://{path}")
        with socket.socket(socket.AF_UNIX) as peer:
            peer.settimeout(PATIENCE / 1000)
            peer.connect(path)
            try:
                send(peer, given.sent)
                peer.shutdown(socket.SHUT_WR)
                while peer.recv(65536):
                    pass
            except OSError:
                pass
        succeeded = wait_for_end(zmq, monitor)
        reasons = [event.reason for event in events if event.reason]
        return Seen(succeeded, messages(zmq, server, given.kind), reasons)
    finally:
        server.disable_monitor()
        monitor.close()
        server.close()


def secure(server: Any, mechanism: int) -> None:
    match mechanism:
        case 2:
            server.plain_username, server.plain_password = USER, PASSWORD
        case 3:
            server.plain_server = True
        case 4:
            server.curve_secretkey = CLIENT_SECRET
            server.curve_publickey = public(CLIENT_SECRET)
            server.curve_serverkey = public(SERVER_SECRET)
        case 5:
            server.curve_server = True
            server.curve_secretkey = SERVER_SECRET
            server.curve_publickey = public(SERVER_SECRET)


def send(peer: socket.socket, sent: bytes | Conversation) -> None:
    if isinstance(sent, Conversation):
        sent.send(peer)
        wait_until_read(peer)
        return
    for piece in pieces(sent):
        peer.sendall(piece)
        wait_until_read(peer)


def pieces(data: bytes) -> list[bytes]:
    """The greeting, the commands of the handshake, and the rest: libzmq closes connections whose peer does not wait in
    between."""
    ends = [0, 10, 12, 64]
    for _ in range(3):
        at = ends[-1]
        if len(data) < at + 2 or data[at] != 4:
            break
        ends.append(at + 2 + data[at + 1])
    ends.append(max(ends[-1], len(data)))
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


def messages(zmq: Any, server: Any, kind: str) -> list[list[bytes]]:
    """All messages that have arrived."""
    found: list[list[bytes]] = []
    while True:
        try:
            parts = server.recv_multipart(zmq.DONTWAIT)
        except zmq.ZMQError:
            break
        if kind in ("ROUTER", "STREAM") and parts[0][:1] == b"\0":
            parts[0] = b"made up"
        found.append(parts)
        if kind == "REP":
            break
    if kind == "STREAM":
        # Raw bytes arrive in pieces of any size.
        return [[b"".join(parts[1] for parts in found)]]
    return found


def authenticate(zmq: Any, context: Any) -> None:
    """Answers requests of ZAP: any key is right, and one password."""
    handler = context.socket(zmq.REP)
    handler.bind("inproc://zeromq.zap.01")

    def answer() -> None:
        while True:
            request = handler.recv_multipart()
            mechanism, credentials = request[5], request[6:]
            is_right = mechanism != b"PLAIN" or credentials == [USER, PASSWORD]
            status = b"200" if is_right else b"400"
            handler.send_multipart([b"1.0", request[1], status, b"", b"", b""])

    threading.Thread(target=answer, daemon=True).start()


def serve(name: str, pipe: Connection) -> None:
    """Observes with one library, as long as inputs come."""
    zmq = importlib.import_module(name)
    context = zmq.Context()
    authenticate(zmq, context)
    with tempfile.TemporaryDirectory() as folder:
        for count in itertools.count():
            given = pipe.recv()
            try:
                pipe.send(observe(zmq, context, f"{folder}/{count}", given))
            except zmq.ZMQError as error:
                pipe.send(f"does not report the end: {error}")
