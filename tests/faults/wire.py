"""A peer on a plain TCP connection, which can send any bytes."""

from __future__ import annotations

import contextlib
import socket
import struct
import time

from .row import Failed

# Flags of a ZMTP frame.
MORE, LONG, COMMAND = 1, 2, 4

# The longest wait for bytes that will arrive, in seconds.
ARRIVAL_S = 20


def greeting(mechanism: bytes = b"NULL", version: tuple[int, int] = (3, 1)) -> bytes:
    return b"\xff" + bytes(8) + b"\x7f" + bytes(version) + mechanism.ljust(20, b"\0") + bytes(32)


def frame(flags: int, body: bytes) -> bytes:
    if len(body) < 256:
        return bytes((flags, len(body))) + body
    return bytes((flags | LONG,)) + struct.pack(">Q", len(body)) + body


def command(name: bytes, body: bytes = b"") -> bytes:
    return frame(COMMAND, bytes((len(name),)) + name + body)


def properties(values: dict[bytes, bytes]) -> bytes:
    parts = [
        bytes((len(name),)) + name + struct.pack(">I", len(value)) + value
        for name, value in values.items()
    ]
    return b"".join(parts)


def ready(kind: bytes, name: bytes | None = None) -> bytes:
    values = {b"Socket-Type": kind}
    if name is not None:
        values[b"Identity"] = name
    return command(b"READY", properties(values))


def address(endpoint: str) -> tuple[str, int]:
    """The host and port of an endpoint with a scheme, and perhaps with a path."""
    host, port = endpoint.split("://", 1)[1].split("/", 1)[0].rsplit(":", 1)
    return host, int(port)


def dial(endpoint: str) -> socket.socket:
    """Connects, and sends nothing."""
    stream = socket.create_connection(address(endpoint), timeout=ARRIVAL_S)
    stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return stream


def join(endpoint: str, kind: bytes, name: bytes | None = None) -> socket.socket:
    """Connects and shakes hands as a peer of this type."""
    stream = dial(endpoint)
    stream.sendall(greeting() + ready(kind, name))
    finish(stream)
    return stream


def finish(stream: socket.socket) -> None:
    """Reads the greeting and the READY of the socket."""
    read(stream, 64)
    flags, body = read_frame(stream)
    if not (flags & COMMAND and body.startswith(b"\x05READY")):
        raise Failed(f"{body[:40]!r} instead of READY")


def read(stream: socket.socket, length: int) -> bytes:
    """Reads this many bytes.

    Raises:
        Failed: If they do not come.
    """
    data = b""
    try:
        while len(data) < length:
            chunk = stream.recv(length - len(data))
            if not chunk:
                raise Failed("the connection was closed")
            data += chunk
    except TimeoutError:
        raise Failed(f"the peer heard nothing for {ARRIVAL_S} s") from None
    except OSError as error:
        raise Failed(f"the connection broke: {error}") from None
    return data


def read_frame(stream: socket.socket) -> tuple[int, bytes]:
    """Returns the flags of a frame, without the one for its length, and its body."""
    flags = read(stream, 1)[0]
    length = struct.unpack(">Q", read(stream, 8))[0] if flags & LONG else read(stream, 1)[0]
    return flags & ~LONG, read(stream, length)


def shout(stream: socket.socket, data: bytes) -> bool:
    """Sends bytes to a socket that may hang up meanwhile. Returns whether it took all."""
    try:
        stream.sendall(data)
    except OSError:
        return False
    return True


def hang_up(stream: socket.socket) -> None:
    """Sends no more, and continues to read."""
    with contextlib.suppress(OSError):
        stream.shutdown(socket.SHUT_WR)


def closed(stream: socket.socket, seconds: float) -> bool:
    """Waits until the socket closes the connection, and ignores the bytes that it sends before."""
    deadline = time.monotonic() + seconds
    with contextlib.suppress(OSError):
        while (left := deadline - time.monotonic()) > 0:
            stream.settimeout(left)
            if not stream.recv(1 << 16):
                return True
        return False
    # A reset is an end too.
    return time.monotonic() < deadline


def reset(stream: socket.socket) -> None:
    """Ends a connection without the usual notice."""
    with contextlib.suppress(OSError):
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    stream.close()
