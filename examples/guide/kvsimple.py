"""A key, a number and a value as one message of three parts. The programs of Clone's models one to four import this module."""

from __future__ import annotations

from typing import NamedTuple

import zeroxide as zmq


class KeyValue(NamedTuple):
    key: str
    sequence: int
    body: bytes

    @classmethod
    def receive(cls, socket: zmq.Socket) -> KeyValue:
        key, sequence, body = socket.recv_multipart()
        return cls(key.decode(), int.from_bytes(sequence, "big"), body)

    def send(self, socket: zmq.Socket, *envelope: bytes) -> None:
        """Sends it. A ROUTER needs the name of its peer as an envelope."""
        parts = self.key.encode(), self.sequence.to_bytes(8, "big"), self.body
        socket.send_multipart([*envelope, *parts])
