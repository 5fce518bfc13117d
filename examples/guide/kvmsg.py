"""A key, a number, properties and a value as one message of five parts. The programs of Clone's model five import this module."""

from __future__ import annotations

import uuid
from dataclasses import dataclass, field


@dataclass
class KeyValue:
    key: str
    sequence: int
    body: bytes
    properties: dict[str, str] = field(default_factory=dict)
    uuid: bytes = field(default_factory=lambda: uuid.uuid4().bytes)

    @classmethod
    def of_parts(cls, parts: list[bytes]) -> KeyValue:
        key, sequence, name, properties, body = parts
        pairs = (line.split("=", 1) for line in properties.decode().splitlines())
        return cls(key.decode(), int.from_bytes(sequence, "big"), body, dict(pairs), name)

    def parts(self) -> list[bytes]:
        properties = "".join(f"{name}={value}\n" for name, value in self.properties.items())
        sequence = self.sequence.to_bytes(8, "big")
        return [self.key.encode(), sequence, self.uuid, properties.encode(), self.body]

    def store(self, values: dict[str, KeyValue]) -> None:
        """Puts it into a map. An empty value deletes its key."""
        if self.body:
            values[self.key] = self
        else:
            values.pop(self.key, None)
