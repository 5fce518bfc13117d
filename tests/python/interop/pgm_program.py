"""Sends or receives over epgm or pgm, with zeroxide or with libzmq's library, as a program of its own.

    pgm_program.py send|receive zeroxide|PATH ENDPOINT RATE COUNT

A sender says hello until it reads a line, and then sends its messages. It goes on repairing until its stdin ends. A
receiver prints a line when it has heard the sender, and another one with its results.
"""

import ctypes
import hashlib
import json
import select
import sys

PUB, SUB = 1, 2
SUBSCRIBE, RATE, RCVTIMEO, SNDHWM, RCVHWM = 6, 8, 27, 23, 24
PATIENCE_MS = 60_000
HELLO, END = b"hello", b"end"


def message(number: int) -> bytes:
    return b"%d " % number + b"x" * (number * 37 % 700)


class Library:
    """A socket of libzmq."""

    def __init__(self, path: str, kind: int) -> None:
        self.library = library = ctypes.CDLL(path)
        for name in ("zmq_ctx_new", "zmq_socket"):
            getattr(library, name).restype = ctypes.c_void_p
        library.zmq_socket.argtypes = [ctypes.c_void_p, ctypes.c_int]
        self.context = library.zmq_ctx_new()
        self.socket = ctypes.c_void_p(library.zmq_socket(self.context, kind))

    def set(self, option: int, value: int) -> None:
        number = ctypes.c_int(value)
        assert not self.library.zmq_setsockopt(self.socket, option, ctypes.byref(number), 4)

    def subscribe(self) -> None:
        assert not self.library.zmq_setsockopt(self.socket, SUBSCRIBE, b"", 0)

    def meet(self, endpoint: str) -> None:
        assert not self.library.zmq_connect(self.socket, endpoint.encode())

    def send(self, body: bytes) -> None:
        assert self.library.zmq_send(self.socket, body, len(body), 0) == len(body)

    def recv(self) -> bytes:
        room = ctypes.create_string_buffer(1 << 16)
        size = self.library.zmq_recv(self.socket, room, len(room), 0)
        assert size >= 0, "nothing arrives any more"
        return room.raw[:size]

    def lost(self) -> int:
        return 0


class Ours:
    """A socket of zeroxide."""

    def __init__(self, kind: int) -> None:
        import zeroxide

        self.socket = zeroxide.Context().socket(kind)
        self.set = self.socket.setsockopt
        self.meet = self.socket.bind
        self.send = self.socket.send
        self.recv = self.socket.recv

    def subscribe(self) -> None:
        self.socket.subscribe(b"")

    def lost(self) -> int:
        dropped: dict[str, int] = dict(self.socket.stats()["dropped"])
        assert dropped.pop("gap") == sum(dropped.values()) == 0, self.socket.stats()["dropped"]
        return 0


def main(role: str, library: str, endpoint: str, rate: str, count: str) -> None:
    kind = PUB if role == "send" else SUB
    socket = Ours(kind) if library == "zeroxide" else Library(library, kind)
    socket.set(RATE, int(rate))
    socket.set(SNDHWM, 0)
    socket.set(RCVHWM, 0)
    socket.set(RCVTIMEO, PATIENCE_MS)
    if role == "send":
        send(socket, endpoint, int(count))
    else:
        receive(socket, endpoint, int(count))


def send(socket, endpoint: str, count: int) -> None:
    socket.meet(endpoint)
    while not select.select([sys.stdin], [], [], 0.05)[0]:
        socket.send(HELLO)
    sys.stdin.readline()
    for number in range(count):
        socket.send(message(number))
    socket.send(END)
    sys.stdin.read()


def receive(socket, endpoint: str, count: int) -> None:
    socket.subscribe()
    socket.meet(endpoint)
    print("ready", flush=True)
    assert socket.recv() == HELLO
    print("joined", flush=True)
    expected, heard = hashlib.sha256(), hashlib.sha256()
    received = 0
    while (body := socket.recv()) != END:
        if body != HELLO:
            heard.update(body)
            received += 1
    for number in range(count):
        expected.update(message(number))
    same = heard.digest() == expected.digest()
    print(json.dumps({"received": received, "same": same, "lost": socket.lost()}), flush=True)


main(*sys.argv[1:])
