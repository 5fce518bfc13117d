"""A client of CURVE with any properties and messages, on the libsodium that pyzmq brings.

It shares no code with zeroxide, and opens nothing that the server sends after WELCOME.
"""

from __future__ import annotations

import ctypes
import itertools
import socket
import struct
from dataclasses import dataclass
from functools import cache
from pathlib import Path

GREETING = (b"\xff\0\0\0\0\0\0\0\x01\x7f\x03\x01CURVE" + bytes(64))[:64]
SERVER_SECRET, CLIENT_SECRET, SHORT_SECRET = (bytes([byte]) * 32 for byte in b"SCc")


class Missing(Exception):
    """There is no libsodium beside pyzmq."""


@cache
def sodium() -> ctypes.CDLL:
    """Loads libsodium.

    Raises:
        Missing: If pyzmq was not built with its own.
    """
    try:
        import zmq
    except ImportError as error:
        raise Missing("needs pyzmq") from error
    folder = Path(zmq.__file__).parents[1] / "pyzmq.libs"
    found = sorted(folder.glob("libsodium*.so*"))
    if not found:
        raise Missing("needs the libsodium of pyzmq's wheel")
    library = ctypes.CDLL(str(found[0]))
    library.sodium_init()
    return library


def public(secret: bytes) -> bytes:
    key = ctypes.create_string_buffer(32)
    sodium().crypto_scalarmult_base(key, secret)
    return key.raw


def seal(content: bytes, nonce: bytes, to: bytes, secret: bytes) -> bytes:
    box = ctypes.create_string_buffer(len(content) + 16)
    length = ctypes.c_ulonglong(len(content))
    sodium().crypto_box_easy(box, content, length, nonce, to, secret)
    return box.raw


def unseal(box: bytes, nonce: bytes, sender: bytes, secret: bytes) -> bytes:
    content = ctypes.create_string_buffer(len(box) - 16)
    length = ctypes.c_ulonglong(len(box))
    if sodium().crypto_box_open_easy(content, box, length, nonce, sender, secret):
        raise OSError("a box that cannot be opened")
    return content.raw


@dataclass(frozen=True)
class Conversation:
    """What an authenticated client sends: properties in INITIATE, then boxes, each with flags and the rest of its content.

    The flags outside the boxes are zero: libzmq takes MORE from there, too. The fault matrix has a row for that.
    """

    properties: bytes
    boxes: tuple[bytes, ...]

    @staticmethod
    def of(data: bytes) -> Conversation:
        """Reads an input of the target `curve` without its first byte."""
        length = int.from_bytes(data[:2], "little") % 1024
        properties, rest, boxes = data[2 : 2 + length], data[2 + length :], []
        while rest:
            flags, size = rest[0], rest[1] if len(rest) > 1 else 0
            inside = (flags & 1) << 1 | flags >> 1 & 1
            boxes.append(bytes([inside]) + rest[2 : 2 + size])
            rest = rest[2 + size :]
        return Conversation(properties, tuple(boxes))

    def send(self, stream: socket.socket) -> None:
        """Shakes hands and sends the boxes.

        Raises:
            OSError: If the server ends the connection.
        """
        server, ours, short = map(public, (SERVER_SECRET, CLIENT_SECRET, SHORT_SECRET))
        stream.sendall(GREETING)
        receive(stream, 64)
        numbers = (struct.pack(">Q", number) for number in itertools.count(1))
        number = next(numbers)
        box = seal(bytes(64), b"CurveZMQHELLO---" + number, server, SHORT_SECRET)
        stream.sendall(frame(4, b"\x05HELLO\x01\0" + bytes(72) + short + number + box))
        welcome = receive(stream, 2 + 168)[2:]
        opened = unseal(welcome[24:], b"WELCOME-" + welcome[8:24], server, SHORT_SECRET)
        theirs, cookie = opened[:32], opened[32:]
        vouch = bytes(16) + seal(short + server, b"VOUCH---" + bytes(16), theirs, CLIENT_SECRET)
        number = next(numbers)
        inside = ours + vouch + self.properties
        box = seal(inside, b"CurveZMQINITIATE" + number, theirs, SHORT_SECRET)
        stream.sendall(frame(4, b"\x08INITIATE" + cookie + number + box))
        # READY or ERROR; a part of it shows that the server has decided.
        receive(stream, 1)
        for content in self.boxes:
            number = next(numbers)
            box = seal(content, b"CurveZMQMESSAGEC" + number, theirs, SHORT_SECRET)
            stream.sendall(frame(0, b"\x07MESSAGE" + number + box))


def receive(stream: socket.socket, size: int) -> bytes:
    received = b""
    while len(received) < size:
        chunk = stream.recv(size - len(received))
        if not chunk:
            raise OSError("the server has ended the connection")
        received += chunk
    return received


def frame(flags: int, body: bytes) -> bytes:
    if len(body) > 255:
        return struct.pack(">BQ", flags | 2, len(body)) + body
    return bytes([flags, len(body)]) + body
