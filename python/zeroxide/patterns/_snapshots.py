"""The snapshots that a server of Clone sends: one after the other, and each in slices between other work."""

from collections import OrderedDict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice

from ._chp import Entry, kthxbai

__all__ = ["Snapshots"]

# Entries that are looked at before other work has its turn: about a millisecond.
_SLICE = 200

# How many clients wait at most, and how long their subtrees are.
_MOST = 10_000
_LONGEST = 4096


@dataclass(slots=True)
class _Snapshot:
    client: bytes
    subtree: bytes | None
    entries: Iterator[Entry]
    sequence: int


class Snapshots:
    """Clients that want a snapshot, of which each has one place, and the snapshot that is being sent."""

    def __init__(self) -> None:
        self._asking: OrderedDict[bytes, bytes | None] = OrderedDict()
        self._sending: _Snapshot | None = None

    @property
    def is_busy(self) -> bool:
        return self._sending is not None or bool(self._asking)

    def ask(self, client: bytes, subtree: bytes | None) -> bool:
        """Takes a request, or returns False. It replaces an earlier one of the client that still waits.

        Without a subtree, the client is a server that wants the whole map with UUIDs and properties.
        """
        if client not in self._asking and len(self._asking) >= _MOST:
            return False
        if subtree is not None and len(subtree) > _LONGEST:
            return False
        self._asking[client] = subtree
        return True

    def clear(self) -> None:
        self._asking.clear()
        self._sending = None

    def send(self, entries: Iterable[Entry], sequence: int) -> Iterator[list[bytes]]:
        """Returns the next messages, as of a map with this number if a snapshot begins."""
        if self._sending is None:
            if not self._asking:
                return
            client, subtree = self._asking.popitem(last=False)
            # A copy, because updates are applied meanwhile. There is only one at a time.
            copy = iter(list(entries))
            self._sending = _Snapshot(client, subtree, copy, sequence if subtree is None else 0)
        snapshot = self._sending
        looked_at = list(islice(snapshot.entries, _SLICE))
        for entry in looked_at:
            if snapshot.subtree is None:
                yield [snapshot.client, *entry.frames()]
            elif entry.key.startswith(snapshot.subtree):
                snapshot.sequence = max(snapshot.sequence, entry.sequence)
                yield [snapshot.client, *entry.synced().frames()]
        if len(looked_at) < _SLICE:
            self._sending = None
            yield [snapshot.client, *kthxbai(snapshot.sequence, snapshot.subtree or b"")]
