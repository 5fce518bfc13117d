"""The position of a query in the logs of its collectors, and the arithmetic on it.

The JSON in a checkpoint, per collector:

    {"version": 1, "collectors": {"tcp://a:5555": {"log": "5f..", "offset": 70, "partition": 0}}}

An entry also records which opening of the log wrote the row before its offset
(``"generation"``), if that is known, because an older copy that replaced a log has the same id
but other rows.

The id identifies a log, so a collector may move to another address and keep its position. Its
number, the column ``partition``, is assigned once and kept, so that reading a range again
returns the same rows, whatever happened to the list of endpoints.

An end may also record the start of its batch (``"from"``): for a log that is missing from the
offsets before it, and for a query's first batch, because Spark does not store that start, and
asks a reader that may return another one by then. A log without new rows keeps its entry
unchanged, because Spark would run a batch for a changed one.

With a group of consumers, an end records where the last batch with rows of this log began
(``"since"``). A restarted query needs it, because Spark may repeat that batch.
"""

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

__all__ = ["Offsets", "Position", "Range", "dump", "load", "ranges", "share", "split"]

VERSION = 1

# The advice if a query cannot continue from its checkpoint.
NEW_CHECKPOINT = "give the query a new checkpointLocation"


@dataclass(frozen=True)
class Position:
    """A position in one log: `offset` is that of the next row."""

    log: str
    offset: int
    partition: int
    begin: int | None = None
    generation: str | None = None
    since: int | None = None


# By the name of the collector, which is its endpoint as written in the option.
Offsets: TypeAlias = dict[str, Position]


@dataclass(frozen=True)
class Range:
    """Rows of one log, the last not included."""

    name: str
    log: str
    partition: int
    start: int
    end: int
    # The start and end of its batch, with the generations that wrote the rows before them.
    marks: tuple[tuple[int, str], ...] = ()

    @property
    def rows(self) -> int:
        """The number of rows."""
        return self.end - self.start


def dump(offsets: Mapping[str, Position]) -> dict[str, Any]:
    """Serialises offsets for Spark."""
    collectors = {}
    for name, position in offsets.items():
        entry: dict[str, Any] = {
            "log": position.log,
            "offset": position.offset,
            "partition": position.partition,
        }
        if position.begin is not None:
            entry["from"] = position.begin
        if position.generation is not None:
            entry["generation"] = position.generation
        if position.since is not None:
            entry["since"] = position.since
        collectors[name] = entry
    return {"version": VERSION, "collectors": collectors}


def load(kept: Any) -> Offsets:
    """Parses the output of `dump`: one position for each log.

    Raises ValueError for anything else: Spark passes on what it finds in a checkpoint.
    """
    version = kept.get("version") if isinstance(kept, Mapping) else None
    # Not a bool, which is an int and may equal the version.
    if type(version) is int and version != VERSION:
        raise ValueError(
            f"these offsets have version {version}, but this zeroxide supports version {VERSION}:"
            " a newer one wrote this checkpoint, and is needed to continue from it. If the checkpoint"
            f" belongs to another source, {NEW_CHECKPOINT}"
        )
    if type(version) is not int or not _is_complete(kept.get("collectors")):
        raise ValueError(
            f"{_shown(kept)} are not offsets of the format zeromq: the checkpoint belongs to another"
            f" source, or it was changed; {NEW_CHECKPOINT}"
        )
    found: Offsets = {}
    names: dict[str, str] = {}
    for name, entry in kept["collectors"].items():
        position = Position(
            entry["log"],
            entry["offset"],
            entry["partition"],
            entry.get("from"),
            entry.get("generation"),
            entry.get("since"),
        )
        # Old versions kept a log twice, under its previous and its present address.
        other = names.get(position.log)
        if other is not None:
            if position.offset < found[other].offset:
                continue
            del found[other]
        found[name] = position
        names[position.log] = name
    return found


def _is_complete(collectors: Any) -> bool:
    """Whether this has the positions that `dump` stores, with values of the right types."""
    if not isinstance(collectors, Mapping):
        return False
    for entry in collectors.values():
        if not isinstance(entry, Mapping):
            return False
        numbers = [entry.get("offset"), entry.get("partition")]
        numbers += [entry[name] for name in ("from", "since") if entry.get(name) is not None]
        texts = [entry.get("log")]
        texts += [entry["generation"]] if entry.get("generation") is not None else []
        if not all(type(number) is int and number >= 0 for number in numbers):
            return False
        if not all(isinstance(text, str) for text in texts):
            return False
    return True


def _shown(kept: Any) -> str:
    """A value out of a checkpoint, as the checkpoint has it, for an error."""
    text = json.dumps(kept)
    return text if len(text) <= 200 else f"{text[:200]} ..."


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """The ranges between two offsets; collectors without new rows are omitted."""
    before = {position.log: position for position in start.values()}
    found = []
    for name, position in end.items():
        was = before.get(position.log)
        if was is not None and (was.offset, was.begin) == (position.offset, position.begin):
            continue  # its start belongs to the previous batch
        if position.begin is not None:
            first = position.begin
        elif was is not None:
            first = was.offset
        else:
            raise ValueError(
                f"collector {name}: the offsets before this batch do not contain its log"
                f" {position.log}, so the start of the batch is unknown"
            )
        if first < position.offset:
            known = [position] if was is None or was.offset != first else [was, position]
            marks = tuple((one.offset, one.generation) for one in known if one.generation)
            found.append(
                Range(name, position.log, position.partition, first, position.offset, marks)
            )
    return found


def share(available: Mapping[str, int], most: int) -> dict[str, int]:
    """Divides `most` among the collectors with rows, in proportion to their rows.

    Each of them gets at least one row if possible. Otherwise, a collector with few rows would
    wait as long as others have many.
    """
    total = sum(available.values())
    if total <= most:
        return dict(available)
    shares = dict.fromkeys(available, 0)
    waiting = sorted((name for name in available if available[name]), key=available.__getitem__)
    left = most
    for place, name in enumerate(waiting):
        # The smallest first: its unused share is divided among the larger ones.
        rest = sum(available[other] for other in waiting[place:])
        fair = max(math.floor(left * available[name] / rest), min(1, left))
        shares[name] = min(fair, available[name], left)
        left -= shares[name]
    return shares


def split(
    found: Iterable[Range], at_least: int, *, most_rows: int | None, least_rows: int
) -> list[Range]:
    """Splits ranges into about `at_least` pieces in total, none above `most_rows`.

    Pieces are not made smaller than `least_rows` just to reach that number.
    """
    whole = list(found)
    total = sum(piece.rows for piece in whole)
    pieces = []
    for piece in whole:
        number = round(at_least * piece.rows / total)
        number = min(number, piece.rows // least_rows)
        if most_rows is not None:
            number = max(number, math.ceil(piece.rows / most_rows))
        number = max(number, 1)
        cuts = [piece.start + piece.rows * place // number for place in range(number + 1)]
        pieces += [replace(piece, start=first, end=last) for first, last in pairwise(cuts)]
    return pieces
