"""The segments of a log as files: their headers, frames and indexes."""

import json
import os
from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple
from zlib import crc32

from .. import _native
from ._errors import CollectorError

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

__all__ = ["HEADER", "INDEX", "SEGMENT", "Frame", "Index", "Segment"]

SEGMENT = ".zlog"
INDEX = ".index"

# The field of an index with the CRC-32 of the others.
CHECKSUM = "crc32"

# The size of the fixed part of a segment's header, which has the log's id.
BEGINNING = 48

# No log has as many rows.
OFFSET_MAX = 1 << 62

# The maximum size of the header of a frame, and where that says up to which offset rows were on
# disk.
HEADER = 512
DURABLE = slice(72, 80)

# A position is remembered for each of this many bytes of a segment.
MARK_EVERY = 256 << 10

# Read at once in search of headers: little of a local file, and much if every read is a request.
AHEAD_LOCAL = 8 << 10
AHEAD_REMOTE = 4 << 20


class Frame(NamedTuple):
    """The position of a frame, and the values of its header."""

    position: int
    length: int
    first: int
    end: int
    received: int
    durable: int


@dataclass
class Index:
    """The index of a segment: positions to start from, and the position up to which it was scanned."""

    start: int
    end: int
    position: int
    latest: int | None = None
    # The offset below which rows were on disk when the last frame was written.
    durable: int = 0
    # Position, offset, and the greatest time of receipt before.
    marks: list[tuple[int, int, int | None]] = field(default_factory=list)

    def add(self, frame: Frame) -> None:
        """Adds a frame."""
        if not self.marks or frame.position - self.marks[-1][0] >= MARK_EVERY:
            self.marks.append((frame.position, frame.first, self.latest))
        self.latest = frame.received if self.latest is None else max(self.latest, frame.received)
        self.durable = max(self.durable, frame.durable)
        self.position, self.end = frame.position + frame.length, frame.end

    def to_json(self) -> str:
        """The form that is stored next to the segment."""
        return json.dumps({**self.__dict__, CHECKSUM: _checksum(self.__dict__)})

    @classmethod
    def from_json(cls, text: bytes) -> "tuple[Index, bool]":
        """Reads the stored form, and returns whether it had a checksum: that of older versions has none.

        Raises:
            ValueError: It is damaged.
        """
        try:
            fields = json.loads(text)
            checksum = fields.pop(CHECKSUM, None)
            if checksum not in (None, _checksum(fields)):
                raise ValueError("the checksum is another one")
            marks = [(position, offset, latest) for position, offset, latest in fields["marks"]]
            index = cls(**{**fields, "marks": marks})
        except (TypeError, KeyError, AttributeError, RecursionError) as error:
            raise ValueError(str(error)) from None
        numbers = [index.start, index.end, index.position, index.durable, index.latest or 0]
        numbers += [number for mark in marks for number in mark[:2]]
        if not all(isinstance(number, int) for number in numbers):
            raise ValueError("a number is missing")
        return index, checksum is not None


def _checksum(fields: dict[str, Any]) -> int:
    return crc32(json.dumps(fields).encode())


class Segment:
    """One file of a log."""

    def __init__(
        self,
        filesystem: "FileSystem",
        path: str,
        size: int,
        first: int,
        modified: int | None = None,
    ) -> None:
        self.filesystem = filesystem
        self.path = path
        self.size = size
        self.first = first
        # The first offset of the next segment, if there is one.
        self.until: int | None = None
        self.is_local: bool = filesystem.type_name == "local"
        self._modified = modified
        self._inode, self._changed = self._stat()
        self._head: bytes | None = None
        self._beginning: tuple[str, int, int] | None = None
        self._ahead = AHEAD_LOCAL if self.is_local else AHEAD_REMOTE
        self._file: Any = None
        self._window = (0, b"")
        self._index: Index | None = None
        # Whether the index next to it is used.
        self.trusts_index: bool = True

    def _stat(self) -> tuple[int | None, int]:
        """The number of a local file, and the time of its last change."""
        if not self.is_local:
            return None, 0
        try:
            stat = os.stat(self.path)
        except OSError:
            return None, 0  # reading it raises with the reason
        return stat.st_ino, stat.st_ctime_ns

    def is_replaced(self, size: int, modified: int | None = None) -> bool:
        """Whether another file has this name now: of a log made anew, or with rows instead of none."""
        if not self.is_local:
            # The objects of an archive are only written whole.
            return size < self.size or modified != self._modified
        inode, changed = self._stat()
        if size < self.size or inode != self._inode:
            return True
        if changed != self._changed:
            # It has grown, or another file has got the number of a deleted one.
            self._changed = changed
            return self._head is not None and self._head != self._read_head()
        return False

    def _read_head(self) -> bytes:
        try:
            with open(self.path, "rb") as file:
                return file.read(BEGINNING)
        except OSError:
            return b""

    def read(self, position: int, length: int, ahead: int = 0) -> memoryview:
        """These bytes, or as many of them as exist."""
        start, window = self._window
        length = min(length, self.size - position)
        if not start <= position <= position + length <= start + len(window):
            if self._file is None:
                self._file = self.filesystem.open_input_file(self.path)
                if self.is_local and self._head is None:
                    self._head = self._file.read_at(min(BEGINNING, self.size), 0)
            wanted = min(max(length, ahead), self.size - position)
            start, window = self._window = position, self._file.read_at(wanted, position)
        return memoryview(window)[position - start :]

    def close(self) -> None:
        """Closes the file, and releases what was read of it; reading opens it again."""
        self._window = (0, b"")
        if self._file is not None:
            self._file.close()
            self._file = None

    def beginning(self) -> tuple[str, int, int]:
        """The log's id, the first offset, and the position of the first frame."""
        if self._beginning is None:
            try:
                self._beginning = _native.log_segment(self.read(0, 64 << 10))
            except ValueError as error:
                raise CollectorError(f"{self.path}: {error}") from None
        return self._beginning

    def index(self) -> Index:
        """Positions in it, up to the last complete frame."""
        if self._index is None:
            kept = self._kept() if self.trusts_index else None
            self._index = kept or Index(start := self.beginning()[2], self.first, start)
        for frame in self.walk(self._index.position, self._index.end):
            self._index.add(frame)
        return self._index

    def before(self, offset: int) -> tuple[int, int]:
        """A position at or before this offset, and the offset there."""
        index = self.index()
        at = bisect_right(index.marks, offset, key=lambda mark: mark[1]) - 1
        # The first frames have no marks if they are damaged.
        return index.marks[at][:2] if at >= 0 else (index.start, self.first)

    def end_of_rows(self, offset: int) -> tuple[int, int]:
        """The position after the last frame of the rows before an offset, and the offset there."""
        position, end = self.before(offset)
        for frame in self.walk(position, end):
            if frame.end > offset:
                break
            position, end = frame.position + frame.length, frame.end
        return position, end

    def received_at(self, micros: int) -> int | None:
        """The first offset that was received at this time or later; None if all are earlier."""
        index = self.index()
        if index.latest is None or index.latest < micros:
            return None
        at = bisect_right(
            index.marks, False, key=lambda mark: mark[2] is not None and mark[2] >= micros
        )
        position, offset = index.marks[at - 1][:2] if at else (index.start, self.first)
        for frame in self.walk(position, offset):
            if frame.received >= micros and frame.end > frame.first:
                return frame.first
        return None

    def walk(self, position: int, offset: int) -> Iterator[Frame]:
        """The frames from this one on, which begins with `offset`; damaged ones are skipped."""
        is_found = False
        while position < self.size:
            header = self.read(position, HEADER, self._ahead)
            try:
                peeked = _native.log_peek(header, 0)
                is_next = peeked is None or peeked[1] == offset
            except ValueError:
                is_next = False
            if not is_next:
                after = self.search(position, offset)
                if after is None:
                    return
                position, offset = after
                is_found = True
                continue
            if peeked is None or position + peeked[0] > self.size:
                return
            length, first, offset, received = peeked
            # The first frame after damage may be a value that looks like one.
            durable = 0 if is_found else int.from_bytes(header[DURABLE], "little")
            is_found = False
            yield Frame(position, length, first, offset, received, durable)
            position += length

    def search(self, position: int, offset: int) -> tuple[int, int] | None:
        """The position and the first offset of the next frame after damage at a position.

        Args:
            position: The position of the damage.
            offset: The offset that is expected there.
        """
        end = OFFSET_MAX if self.until is None else self.until
        return _native.log_next(self.read, position, offset, self.size, end)

    def _kept(self) -> Index | None:
        """The index next to an archived segment, if it can be trusted: it only saves time."""
        try:
            found = self.stored_index()
        except ValueError:
            return None
        if found is None:
            return None
        if self.is_local and self._head is None:
            self._head = self._read_head()
        index, has_checksum = found
        return index if has_checksum else self._up_to_last_mark(index)

    def stored_index(self) -> tuple[Index, bool] | None:
        """The index next to an archived segment, and whether it has a checksum; None if there is none.

        Raises:
            ValueError: It is damaged.
        """
        path = self.path.removesuffix(SEGMENT) + INDEX
        if self.is_local and not os.path.exists(path):
            return None
        try:
            with self.filesystem.open_input_stream(path) as file:
                text = file.read()
        except OSError:
            return None
        found = Index.from_json(text)
        # That of a longer segment is there before the segment.
        return found if found[0].position <= self.size else None

    def _up_to_last_mark(self, index: Index) -> Index | None:
        """An index without a checksum, whose end may be wrong: what follows its last mark is scanned again."""
        if not index.marks:
            return None
        position, offset, latest = index.marks.pop()
        if not 0 <= position < self.size:
            return None
        try:
            peeked = _native.log_peek(self.read(position, HEADER, self._ahead), 0)
        except ValueError:
            return None
        if peeked is None or peeked[1] != offset:
            return None
        index.position, index.end, index.latest, index.durable = position, offset, latest, 0
        return index
