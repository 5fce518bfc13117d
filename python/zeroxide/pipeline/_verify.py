"""Reads a whole log from its files, and reports what is damaged instead of stopping there."""

import os
from dataclasses import dataclass, field, replace

from ._errors import CollectorError, Refused
from ._files import FilesLog
from ._segments import INDEX, SEGMENT, Segment

__all__ = ["Damage", "SegmentState", "verify"]


@dataclass(frozen=True)
class Damage:
    """A place that cannot be read."""

    position: int | None
    """Where in the file; None if the whole file is meant."""
    first: int
    """The offset of the first row that is lost."""
    end: int
    """The offset after the last one; the same as `first` if no row is lost."""
    what: str
    """What is wrong, in words."""


@dataclass
class SegmentState:
    """What was found in a segment."""

    name: str
    """The name of its file."""
    size: int
    """Its size in bytes."""
    first: int
    """The offset of its first row."""
    end: int
    """The offset after its last row."""
    rows: int = 0
    """Rows that can be read."""
    tail: int = 0
    """Bytes after its last row that are not part of the log yet."""
    damage: list[Damage] = field(default_factory=list)
    """What cannot be read."""


class _Checker(FilesLog):
    """Notes damage and goes on behind it."""

    found: list[Damage]

    def _step_over(
        self, segment: Segment, position: int, offset: int, start: int, end: int, what: str
    ) -> tuple[int, int]:
        after, behind = self._behind(segment, position, offset, end)
        first = max(offset, start)
        self.found.append(Damage(position, first, max(first, min(behind, end)), what))
        return after, behind

    def states(self) -> list[SegmentState]:
        """Reads everything."""
        segments = self._segments()
        for segment in segments:
            segment.trusts_index = False
        ids = list(map(_beginning, segments))
        known = [id for id in ids if isinstance(id, str)]
        last = segments[-1]
        try:
            latest = self._latest(segments)
        except CollectorError:  # reported as the damage of the last segment
            latest = last.first
        ends = [segment.first for segment in segments[1:]] + [latest]
        states = []
        for segment, id, end in zip(segments, ids, ends, strict=True):
            name = os.path.basename(segment.path)
            state = SegmentState(name, segment.size, segment.first, end)
            states.append(state)
            if not isinstance(id, str):
                state.damage.append(replace(id, end=end))
            elif id != known[-1]:
                what = f"it belongs to the log {id}, not {known[-1]}"
                state.damage.append(Damage(None, segment.first, end, what))
            else:
                self._read(segment, state, is_last=segment is last)
                if _is_index_damaged(segment, is_whole=not state.damage):
                    file = name.removesuffix(SEGMENT) + INDEX
                    what = f"its index is damaged: delete {file}, which only saves time"
                    state.damage.append(Damage(None, end, end, what))
                segment.close()
        return states

    def _read(self, segment: Segment, state: SegmentState, *, is_last: bool) -> None:
        self.found = state.damage
        first, end = state.first, state.end
        try:
            for table in self._tables(segment, first, end, 8 << 20, (None, 0, False, False)):
                state.rows += table.num_rows
        except Refused as error:
            # Damage that nothing follows.
            lost = sum(damage.end - damage.first for damage in self.found)
            self.found.append(Damage(None, first + state.rows + lost, end, str(error)))
            return
        rest = segment.size - segment.end_of_rows(end)[0]
        if is_last:
            state.tail = rest
        elif rest:
            what = f"{rest} bytes after the last row belong to no row"
            self.found.append(Damage(segment.size - rest, end, end, what))


def _is_index_damaged(segment: Segment, *, is_whole: bool) -> bool:
    """Returns whether readers of an archive have to scan this segment, or would miss its last rows."""
    try:
        found = segment.stored_index()
    except ValueError:
        return True
    if found is None or not is_whole:
        return False  # there is none, or the segment was damaged after the index was made
    index = segment.index()
    return found[0].position == index.position and found[0].end != index.end


def _beginning(segment: Segment) -> str | Damage:
    """The log's id in the header of a segment, or what is wrong with that."""
    try:
        id, first, _ = segment.beginning()
    except CollectorError as error:
        return Damage(0, segment.first, segment.first, str(error))
    finally:
        segment.close()
    if first != segment.first:
        what = f"its header has the first offset {first}, and its name another one"
        return Damage(0, segment.first, segment.first, what)
    return id


def verify(address: str | os.PathLike[str]) -> list[SegmentState]:
    """Reads every row of a log and compares all checksums.

    Args:
        address: The folder of a collector, or an archive.

    Returns:
        The state of each segment.

    Raises:
        CollectorError: If there is no log at the address.
    """
    with _Checker(address) as log:
        return log.states()
