"""A proxy for streams that does to them what bad networks and enemies do. A seed makes every run the same.

    with Proxy(endpoint, up=Path(piece=1), down=Path(latency=0.01)) as proxy:
        socket.connect(proxy.endpoint)
        proxy.stall("up")

`up` is the direction towards the endpoint, `down` the one back.
"""

from __future__ import annotations

import contextlib
import random
import socket
import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

# Replaces bytes. Its arguments are the number of bytes that went this way before, and the next ones.
Rewrite = Callable[[int, bytes], bytes]


@dataclass(frozen=True)
class Path:
    """What happens to the bytes of one direction.

    Attributes:
        latency: Seconds that each chunk is held.
        jitter: Seconds, at most, that are added to the latency.
        piece: The most bytes of one write; 0 is no limit. With 1, the stream is split at every byte.
        ragged: Splits each chunk at random places, into writes of at most this many bytes.
        pause: Seconds between the writes of a chunk.
        garbage: Bytes that come before the first.
        flip: The positions of the bytes in which the lowest bit is turned over.
        cut: The number of bytes after which both sides are reset.
        stall: The number of bytes after which no more pass, until `resume`.
        half_close: The number of bytes after which this direction ends, and the other one goes on.
        rewrite: Replaces bytes.
    """

    latency: float = 0
    jitter: float = 0
    piece: int = 0
    ragged: int = 0
    pause: float = 0
    garbage: bytes = b""
    flip: frozenset[int] = frozenset()
    cut: int | None = None
    stall: int | None = None
    half_close: int | None = None
    rewrite: Rewrite | None = None


CLEAN = Path()


@dataclass
class _Direction:
    path: Path
    random: random.Random
    # Set while bytes may pass.
    open: threading.Event = field(default_factory=threading.Event)
    stalled_once: bool = False


class Proxy:
    """Forwards connections to a TCP endpoint.

    Args:
        endpoint: Where the connections go.
        up: What happens to the bytes towards the endpoint.
        down: What happens to the bytes back.
        seed: Decides what is random.
        window: The most bytes that wait in the kernel to be read by the proxy.

    Attributes:
        endpoint: Where to connect instead.
        connections: The number of connections that were accepted.
        passed: The number of bytes that were sent on, for each direction, over all connections.
        flipped: The number of bytes in which a bit was turned over, over all connections.
        ended: The number of directions that have ended, two for each connection that is over.
    """

    def __init__(
        self,
        endpoint: str,
        up: Path = CLEAN,
        down: Path = CLEAN,
        seed: int = 0,
        window: int | None = None,
    ) -> None:
        host, port = endpoint.removeprefix("tcp://").rsplit(":", 1)
        self._far = (host, int(port))
        self._directions = {
            name: _Direction(path, random.Random(f"{seed} {name}"))
            for name, path in (("up", up), ("down", down))
        }
        for direction in self._directions.values():
            direction.open.set()
        self.connections = 0
        self.passed = {"up": 0, "down": 0}
        self.flipped = 0
        self.ended = 0
        self._refusing = False
        # Directions count at the same time.
        self._lock = threading.Lock()
        self._streams: list[tuple[socket.socket, socket.socket]] = []
        self._listener = socket.create_server(("127.0.0.1", 0), backlog=1024)
        if window is not None:
            self._listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, window)
        self.endpoint = "tcp://{}:{}".format(*self._listener.getsockname())
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Proxy:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def stall(self, name: str) -> None:
        """Lets no more bytes pass in a direction."""
        self._directions[name].open.clear()

    def resume(self, name: str) -> None:
        self._directions[name].open.set()

    def refuse(self, refusing: bool = True) -> None:
        """Resets new connections."""
        self._refusing = refusing

    def reset(self) -> None:
        """Resets all connections."""
        streams, self._streams = self._streams, []
        for pair in streams:
            _reset(*pair)

    def end(self, name: str) -> None:
        """Ends one direction of all connections; the other one goes on."""
        for near, far in self._streams:
            with contextlib.suppress(OSError):
                (far if name == "up" else near).shutdown(socket.SHUT_WR)

    def close(self) -> None:
        # accept() returns only after a shutdown.
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for direction in self._directions.values():
            direction.open.set()
        self.reset()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if not self._join(near):
                    _reset(near)
                # Last, so that all of the above is done when the number is seen.
                self.connections += 1

    def _join(self, near: socket.socket) -> bool:
        """Connects a stream with the endpoint. Returns false if the stream is refused."""
        if self._refusing:
            return False
        try:
            far = socket.create_connection(self._far)
        except OSError:
            return False
        for stream in (near, far):
            stream.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self._streams.append((near, far))
        for source, sink, name in ((near, far, "up"), (far, near, "down")):
            arguments = (source, sink, name)
            threading.Thread(target=self._carry, args=arguments, daemon=True).start()
        return True

    def _carry(self, source: socket.socket, sink: socket.socket, name: str) -> None:
        try:
            self._pass_on(source, sink, name)
        finally:
            with self._lock:
                self.ended += 1

    def _pass_on(self, source: socket.socket, sink: socket.socket, name: str) -> None:
        direction = self._directions[name]
        path = direction.path
        gone = 0
        with contextlib.suppress(OSError):
            if path.garbage:
                sink.sendall(path.garbage)
            while chunk := source.recv(1 << 16):
                for data in self._pieces(chunk, direction):
                    if path.cut is not None and gone + len(data) > path.cut:
                        sink.sendall(self._changed(data[: path.cut - gone], gone, path))
                        _reset(source, sink)
                        return
                    if path.half_close is not None and gone + len(data) > path.half_close:
                        sink.sendall(self._changed(data[: path.half_close - gone], gone, path))
                        break
                    late = path.stall is not None and gone + len(data) > path.stall
                    if late and not direction.stalled_once:
                        direction.stalled_once = True
                        direction.open.clear()
                    direction.open.wait()
                    sink.sendall(self._changed(data, gone, path))
                    gone += len(data)
                    self.passed[name] += len(data)
                    if path.pause:
                        time.sleep(path.pause)
                else:
                    continue
                break
            sink.shutdown(socket.SHUT_WR)

    @staticmethod
    def _pieces(chunk: bytes, direction: _Direction) -> list[bytes]:
        path = direction.path
        if path.latency or path.jitter:
            time.sleep(path.latency + direction.random.uniform(0, path.jitter))
        pieces = []
        while chunk:
            length = path.piece or len(chunk)
            if path.ragged:
                length = direction.random.randint(1, path.ragged)
            pieces.append(chunk[:length])
            chunk = chunk[length:]
        return pieces

    def _changed(self, data: bytes, gone: int, path: Path) -> bytes:
        for place in path.flip:
            if gone <= place < gone + len(data):
                changed = bytearray(data)
                changed[place - gone] ^= 1
                data = bytes(changed)
                with self._lock:
                    self.flipped += 1
        return path.rewrite(gone, data) if path.rewrite else data


def _reset(*streams: socket.socket) -> None:
    """Closes streams without the usual end, also those that a thread reads."""
    for stream in streams:
        with contextlib.suppress(OSError):
            stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        with contextlib.suppress(OSError):
            # A shutdown for reading wakes the thread that reads, and sends nothing.
            stream.shutdown(socket.SHUT_RD)
        stream.close()
