"""A text that several endpoints edit at the same time: a CRDT of pycrdt, which is Yjs in Rust.

Fragments may arrive in any order and more than once. The result is the same everywhere.
"""

import threading
from collections import deque
from dataclasses import dataclass
from typing import Any, Self

from pycrdt import Doc, Text, TransactionEvent

# Yjs' update without content, and the state vector of an empty replica.
EMPTY_UPDATE, EMPTY_VECTOR = b"\x00\x00", b"\x00"

# The most fragments that wait for others. Fragments that are dropped come again with a snapshot.
MAX_HELD = 10_000


@dataclass(frozen=True, slots=True)
class Splice:
    """A part of a text that is replaced. Several are applied one after the other."""

    at: int
    remove: int
    insert: str

    def apply(self, text: str) -> str:
        return text[: self.at] + self.insert + text[self.at + self.remove :]


@dataclass(frozen=True, slots=True)
class DocumentFragment:
    """A delta: an update of the CRDT, and the state vector of the replica in which it was made."""

    before: bytes
    update: bytes

    def encode(self) -> bytes:
        return len(self.before).to_bytes(4, "big") + self.before + self.update

    @classmethod
    def decode(cls, body: bytes) -> Self:
        end = 4 + int.from_bytes(body[:4], "big")
        return cls(body[4:end], body[end:])


@dataclass(frozen=True, slots=True)
class Merged:
    """The changes of a replica by a fragment.

    `news` is a fragment with all that was new, empty if nothing was. `is_held` says that the fragment waits for another
    one. `has_released` says that others had waited for it, and are a part of the news.
    """

    news: bytes = b""
    splices: tuple[Splice, ...] = ()
    is_held: bool = False
    has_released: bool = False


class Document:
    """A replica of the text. Positions are counted in code points; any thread may call any method.

    pycrdt is given an update only when it has everything that the update depends on. It would also take the update
    earlier, but then replicas do not always become equal (seen in 0.14.13).
    """

    def __init__(self, content: bytes = b"", *, client_id: int | None = None) -> None:
        self._lock = threading.RLock()
        self._doc: Doc[Text] = Doc(client_id=client_id, allow_multithreading=True)
        self._text = self._doc.get("text", type=Text)
        self._held: deque[DocumentFragment] = deque(maxlen=MAX_HELD)
        # The changes of the last transaction.
        self._update = b""
        self._delta: list[dict[str, Any]] = []
        self._subscriptions = [
            self._doc.observe(self._on_update),
            self._text.observe(self._on_delta),
        ]
        if content:
            self.merge(content)

    @property
    def text(self) -> str:
        with self._lock:
            return str(self._text)

    def splice(self, splice: Splice) -> bytes:
        """Replaces a part of the text, and returns the fragment for the other replicas; empty if nothing changed."""
        with self._lock:
            before, text = self._begin()
            with self._doc.transaction():
                # pycrdt counts bytes.
                at = len(text[: splice.at].encode())
                remove = len(text[splice.at : splice.at + splice.remove].encode())
                if remove:
                    del self._text[at : at + remove]
                if splice.insert:
                    self._text.insert(at, splice.insert)
            return DocumentFragment(before, self._update).encode() if self._update else b""

    def merge(self, body: bytes) -> Merged:
        """Merges a fragment, unless it is empty. Raises ValueError if it is none."""
        if not body:
            return Merged()
        fragment = DocumentFragment.decode(body)
        with self._lock:
            if not self._is_ready(fragment):
                self._held.append(fragment)
                return Merged(is_held=True)
            vector = self._doc.get_state()
            update, splices = self._apply(fragment)
            has_released = False
            while ready := next(filter(self._is_ready, self._held), None):
                self._held.remove(ready)
                released, more = self._apply(ready)
                splices += more
                has_released |= bool(released)
            if has_released:
                return Merged(self.missing(vector), tuple(splices), has_released=True)
            news = DocumentFragment(vector, update).encode() if update else b""
            return Merged(news, tuple(splices))

    def vector(self) -> bytes:
        """Returns the state vector, which says how much of each replica's edits this one has."""
        with self._lock:
            return self._doc.get_state()

    def missing(self, vector: bytes = EMPTY_VECTOR) -> bytes:
        """Returns a fragment with everything that a replica with this state vector lacks; empty if it lacks nothing.

        State vectors do not count deletions, so the fragment has all of them.
        """
        with self._lock:
            update = self._doc.get_update(vector)
        return b"" if update == EMPTY_UPDATE else DocumentFragment(vector, update).encode()

    def _is_ready(self, fragment: DocumentFragment) -> bool:
        own = _clocks(self._doc.get_state())
        return all(own.get(id, 0) >= clock for id, clock in _clocks(fragment.before).items())

    def _apply(self, fragment: DocumentFragment) -> tuple[bytes, list[Splice]]:
        _, text = self._begin()
        self._doc.apply_update(fragment.update)
        return self._update, _splices(text.encode(), self._delta)

    def _begin(self) -> tuple[bytes, str]:
        self._update, self._delta = b"", []
        return self._doc.get_state(), str(self._text)

    def _on_update(self, event: TransactionEvent) -> None:
        self._update = event.update

    def _on_delta(self, event: Any) -> None:
        self._delta = event.delta


def _clocks(vector: bytes) -> dict[int, int]:
    """Reads a state vector: a count, and that many pairs of a replica and its clock."""
    numbers = []
    number = shift = 0
    for byte in vector:
        number |= (byte & 0x7F) << shift
        shift += 7
        if byte < 0x80:
            numbers.append(number)
            number = shift = 0
    if not numbers or len(numbers) != 1 + 2 * numbers[0]:
        raise ValueError("no state vector")
    return dict(zip(numbers[1::2], numbers[2::2], strict=True))


def _splices(before: bytes, delta: list[dict[str, Any]]) -> list[Splice]:
    """Returns the splices of a delta, which counts bytes, and retains, inserts and deletes."""
    splices = []
    at = read = 0
    for step in delta:
        kept = before[read : read + step.get("retain", 0)]
        removed = before[read + len(kept) : read + len(kept) + step.get("delete", 0)]
        insert = step.get("insert", "")
        read += len(kept) + len(removed)
        at += len(kept.decode())
        if removed or insert:
            splices.append(Splice(at, len(removed.decode()), insert))
        at += len(insert)
    return splices
