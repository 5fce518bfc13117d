"""Requests that wait for a handler, with bounds: their number, and their bytes."""

from collections import deque
from collections.abc import Iterable
from typing import Generic, TypeVar

__all__ = ["MAX_REQUESTS", "MAX_REQUEST_BYTES", "Waiting", "weight"]

T = TypeVar("T")

# No further request is taken while this many wait.
MAX_REQUESTS = 1000

# Nor while they have this many bytes. The last one may go beyond them, so that a large request has a chance.
MAX_REQUEST_BYTES = 64 << 20

# The memory of a part beside its bytes: thousands of empty parts fit into a small message.
_PART = 72


def weight(parts: Iterable[bytes]) -> int:
    """Returns how much memory the parts of a message take, about."""
    return sum(len(part) + _PART for part in parts)


class Waiting(Generic[T]):
    """Such requests, in the order of their arrival."""

    def __init__(self) -> None:
        self._items: deque[tuple[T, int]] = deque()
        self._bytes = 0

    @property
    def has_room(self) -> bool:
        return len(self._items) < MAX_REQUESTS and self._bytes < MAX_REQUEST_BYTES

    def push(self, item: T, size: int) -> None:
        self._items.append((item, size))
        self._bytes += size

    def pop(self) -> T | None:
        if not self._items:
            return None
        item, size = self._items.popleft()
        self._bytes -= size
        return item

    def clear(self) -> None:
        self._items.clear()
        self._bytes = 0
