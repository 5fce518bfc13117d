"""Reads a log's files without a collector: the folder of a collector, or its archive.

log = FilesLog("/var/lib/zeroxide")  # or "s3://bucket/ticks": any file system that pyarrow supports
for batch in log.fetch(log.info().earliest, log.info().latest):
    ...  # pyarrow.RecordBatch, with the columns that `Client.fetch` gives

A collector may be writing to the folder meanwhile: rows count once they are on its disk.
"""

import os
from collections.abc import Callable, Iterable, Iterator
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeVar

from .. import _native
from .._closing import Closing
from .._native import ArrowTable
from .._optional import needed_by
from ._client import Info
from ._errors import CollectorError, DataLoss, Refused
from ._marks import DURABLE, GENERATIONS, durable_offset, generations
from ._segments import HEADER, SEGMENT, Segment

if TYPE_CHECKING:
    from pyarrow.fs import FileSystem

    from .. import _pyarrow as pa

__all__ = ["FilesLog", "open_address"]

# How often the file `durable` is read if its checksum is wrong: the collector may just be writing it.
READS = 3

_T = TypeVar("_T")

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def open_address(address: str | os.PathLike[str]) -> "tuple[FileSystem, str]":
    """The file system and the path of a folder or a URL."""
    from pyarrow.fs import FileSystem, LocalFileSystem

    address = os.fspath(address)
    if "://" in address:
        filesystem, path = FileSystem.from_uri(address)
        return filesystem, path.rstrip("/")
    return LocalFileSystem(), os.path.abspath(address)


class FilesLog(Closing):
    """Reads a log by its files: the folder of a collector, or an archive of one.

    It has the methods of `Client` that read ranges, and needs pyarrow. A collector may be
    writing to the folder at the same time.

    Args:
        address: The folder, or the URL of an archive, such as ``s3://bucket/ticks``.
        filesystem: A file system of pyarrow, if the address is a path in it.

    Raises:
        CollectorError: When it is used, if there is no log at the address.

    Example:
        ```python
        with FilesLog("/var/lib/ticks") as log:
            info = log.info()
            for batch in log.fetch(info.earliest, info.latest):
                print(batch.num_rows)
        ```
    """

    def __init__(
        self, address: str | os.PathLike[str], filesystem: "FileSystem | None" = None
    ) -> None:
        self.address: str = os.fspath(address)
        if filesystem is None:
            self._filesystem, self._path = open_address(address)
        else:
            self._filesystem, self._path = filesystem, self.address
        self._known: dict[str, Segment] = {}

    def info(self) -> Info:
        """What the log contains.

        Returns:
            Its offsets, size, and times of receipt.
        """
        return self._look(self._info)

    def _info(self, segments: list[Segment]) -> Info:
        latest = self._latest(segments)
        times = self._received(segments, latest)
        first, last = (None, None) if times is None else map(_time, times)
        size = sum(segment.size for segment in segments)
        return Info(
            segments[-1].beginning()[0],
            segments[0].first,
            latest,
            first,
            last,
            size,
            "",
            self._generations(),
        )

    def offset_at(self, timestamp: datetime | float | int) -> int:
        """The first offset that was received at a time or later; see `Client.offset_at`.

        Args:
            timestamp: A datetime, a float of seconds, or an int of microseconds since 1970.

        Returns:
            The offset. If every row was received earlier, the offset of the next row.
        """
        if isinstance(timestamp, datetime):
            timestamp = timestamp.timestamp()
        micros = round(timestamp * 1e6) if isinstance(timestamp, float) else timestamp
        return self._look(lambda segments: self._received_at(segments, micros))

    def _received_at(self, segments: list[Segment], micros: int) -> int:
        latest = self._latest(segments)
        for segment in segments:
            try:
                first = segment.received_at(micros)
            finally:
                segment.close()
            if first is not None:
                return min(first, latest)
        return latest

    def fetch(
        self,
        start: int,
        end: int,
        *,
        topics: str | Iterable[str] | None = None,
        partition: int = 0,
        headers: bool = False,
        frames: bool = False,
        max_bytes: int = 8 << 20,
        log_id: str | None = None,
        generation: str | None = None,
    ) -> "Iterator[pa.RecordBatch]":
        """Reads a range of offsets, in order; see `Client.fetch`, as for all arguments.

        Args:
            start: The first offset.
            end: The offset after the last row.
            topics: Only rows whose topic begins with one of these.
            partition: The content of the column of that name.
            headers: Whether there is a column of headers.
            frames: Whether there is a column of all frames of a message.
            max_bytes: About how many bytes to read at once.
            log_id: The log that the offsets belong to.
            generation: The generation of the row before `start`.

        Returns:
            An iterator over batches of pyarrow.

        Raises:
            DataLoss: While iterating, if the log does not have all of the range.
            Refused: While iterating, with the code ``corrupt``, if rows are damaged.
            ValueError: If there are no such offsets.
        """
        with needed_by("FilesLog.fetch", extra="arrow"):
            import pyarrow as pa

        if start < 0 or end < start:
            raise ValueError(f"there are no offsets from {start} to {end}")
        # As with `Client`, none means all.
        prefixes = [topics] if isinstance(topics, str) else list(topics or ()) or None

        def check(segments: list[Segment]) -> list[Segment]:
            self._check(segments, start, end, log_id)
            self._check_generation(start, generation)
            return segments

        segments = self._look(check)
        ends = [segment.first for segment in segments[1:]] + [end]
        for segment, behind in zip(segments, ends, strict=True):
            behind = min(behind, end)
            if start >= behind:
                continue
            wanted = (prefixes, partition, headers, frames)
            try:
                for table in self._tables(segment, start, behind, max_bytes, wanted):
                    for batch in table.batches():
                        if batch.num_rows:
                            yield pa.record_batch(batch)
            finally:
                segment.close()
            start = behind

    def committed(self, group: str) -> None:
        """Returns None: files have no groups of consumers.

        Args:
            group: Ignored.

        Returns:
            None.
        """

    def commit(self, group: str, offset: int, *, generation: str | None = None) -> None:
        """Does nothing: a reader of files holds no rows back, and releases none.

        Args:
            group: Ignored, as are the other arguments.
            offset: Ignored.
            generation: Ignored.
        """

    def close(self) -> None:
        """Closes the files."""
        for segment in self._known.values():
            segment.close()

    def _look(self, read: Callable[[list[Segment]], _T]) -> _T:
        """Reads the current segments, and lists them again if retention has removed one meanwhile."""
        segments = self._segments()
        while True:
            try:
                return read(segments)
            except FileNotFoundError:
                listed = [segment.path for segment in segments]
                segments = self._segments()
                if [segment.path for segment in segments] == listed:
                    raise

    def _segments(self) -> list[Segment]:
        """The current segments, in order."""
        from pyarrow.fs import FileSelector, FileType

        listed = self._filesystem.get_file_info(FileSelector(self._path, allow_not_found=True))
        known, self._known = self._known, {}
        for entry in sorted(listed, key=lambda entry: entry.base_name):
            digits = entry.base_name.removesuffix(SEGMENT)
            is_segment = entry.type == FileType.File and entry.base_name.endswith(SEGMENT)
            if not (is_segment and len(digits) == 20 and digits.isdecimal()):
                continue
            segment = known.get(entry.path)
            if segment is not None and segment.is_replaced(entry.size, entry.mtime_ns):
                segment.close()
                segment = None
            if segment is None:
                first = int(digits)
                segment = Segment(self._filesystem, entry.path, entry.size, first, entry.mtime_ns)
            segment.size = entry.size
            self._known[entry.path] = segment
        # A new segment has no header yet, and no rows.
        segments = list(self._known.values())
        if len(segments) > 1 and segments[-1].size < HEADER:
            segments.pop()
        for segment, following in pairwise(segments):
            segment.until = following.first
        if not segments:
            raise CollectorError(f"{self.address} holds no log: there is no file *{SEGMENT} in it")
        return segments

    def _generations(self) -> tuple[tuple[int, str], ...]:
        """Which opening of the log wrote the rows from which offset on, if that is known."""
        from pyarrow.fs import FileType

        path = f"{self._path}/{GENERATIONS}"
        try:
            with self._filesystem.open_input_stream(path) as file:
                return generations(file.read())
        except OSError:
            # One that cannot be read now is not missing: without it, other rows count as those that were read.
            if self._filesystem.get_file_info(path).type == FileType.NotFound:
                return ()
            raise

    def _check_generation(self, start: int, generation: str | None) -> None:
        if generation is None:
            return
        info = self.info()
        others = info.check(start, generation)
        if others is not None:
            raise DataLoss(
                f"offset {start} of {self.address} was reached before, and from {others} on it has"
                " other rows than those that were read: it is an older copy that has grown since",
                start,
                info.earliest,
                info.latest,
                info.log_id,
                others,
            )

    def _latest(self, segments: list[Segment]) -> int:
        """The offset after the last row that counts."""
        last = segments[-1]
        durable = self._durable() if last.is_local else None
        try:
            index = last.index()
        except CollectorError:
            if durable is None:
                raise
            return max(durable, last.first)
        if durable is None:
            return index.end
        # The file is not synced. After a crash of the machine, the last frame may know of more rows.
        return max(durable, min(index.durable, index.end), last.first)

    def _durable(self) -> int | None:
        """What the collector wrote right after a sync; None in an archive, which has no such file.

        If it is damaged, it counts as 0, as for the collector: the last frame knows what is on the disk.
        """
        for _ in range(READS):
            try:
                with open(os.path.join(self._path, DURABLE), "rb") as file:
                    offset = durable_offset(file.read())
            except FileNotFoundError:
                return None
            if offset is not None:
                return offset
        return 0

    def _received(self, segments: list[Segment], latest: int) -> tuple[int, int] | None:
        """The times of receipt of the first and the last row."""
        if latest <= segments[0].first:
            return None
        first = next(segments[0].walk(segments[0].beginning()[2], segments[0].first), None)
        segments[0].close()
        for segment in reversed(segments):
            received = segment.index().latest
            if segment is not segments[-1]:  # the last one is soon read again
                segment.close()
            if first is not None and received is not None:
                return first.received, received
        return None

    def _check(self, segments: list[Segment], start: int, end: int, log_id: str | None) -> None:
        own, earliest, latest = (
            segments[-1].beginning()[0],
            segments[0].first,
            self._latest(segments),
        )
        asked = start if start < earliest else end
        if log_id is not None and log_id != own:
            what = f"is the log {own}, not {log_id}"
        elif start < earliest or end > latest:
            what = f"has the offsets from {earliest} to {latest}, not {asked}"
        else:
            return
        raise DataLoss(f"{self.address} {what}", asked, earliest, latest, own)

    def _tables(
        self, segment: Segment, start: int, end: int, max_bytes: int, wanted: tuple[Any, ...]
    ) -> Iterator[ArrowTable]:
        """The rows of one segment."""
        try:
            position, offset = segment.before(start)
            size = max_bytes
            while offset < end:
                data = segment.read(position, size, size)[:size]
                table, used, offset, wrong = _native.log_rows(data, 0, offset, start, end, *wanted)
                yield table
                position += used
                if wrong is not None:
                    position, offset = self._step_over(segment, position, offset, start, end, wrong)
                elif used == 0 and offset < end:
                    peeked = _native.log_peek(segment.read(position, HEADER), 0)
                    if peeked is None or position + peeked[0] > segment.size:
                        what = "the file ends before its last rows"
                        raise _corrupt(segment, position, max(offset, start), end, what)
                    size = peeked[0]
                else:
                    size = max_bytes
        except FileNotFoundError:
            segments = self._segments()
            text = f"{self.address}: offset {start} was removed while it was read"
            raise DataLoss(
                text, start, segments[0].first, end, segments[-1].beginning()[0]
            ) from None

    def _step_over(
        self, segment: Segment, position: int, offset: int, start: int, end: int, what: str
    ) -> tuple[int, int]:
        """The position after damage, if it contained no requested row."""
        after, behind = self._behind(segment, position, offset, end)
        if behind > start:
            raise _corrupt(segment, position, max(offset, start), min(behind, end), what)
        return after, behind

    def _behind(self, segment: Segment, position: int, offset: int, end: int) -> tuple[int, int]:
        """The position after damage, and the offset there."""
        try:
            peeked = _native.log_peek(segment.read(position, HEADER), 0)
        except ValueError:
            peeked = None
        if peeked is not None and peeked[1] == offset:
            return position + peeked[0], peeked[2]
        return segment.search(position, offset) or (segment.size, end)


def _corrupt(segment: Segment, position: int, first: int, end: int, what: str) -> Refused:
    return Refused(
        f"offsets {first} to {end} cannot be read, {segment.path} is damaged at byte {position}:"
        f" {what}; restore the file, or read on at {end}",
        "corrupt",
        end,
    )


def _time(micros: int) -> datetime:
    return _EPOCH + timedelta(microseconds=micros)
