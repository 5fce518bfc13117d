"""Where a query stands in the logs of its collectors, and the arithmetic on it.

The JSON in a checkpoint, per collector:

    {"version": 1, "collectors": {"tcp://a:5555": {"log": "5f..", "offset": 70, "partition": 0}}}

An entry also says which opening of the log wrote the row before its offset
(``"generation"``), if that is known: an older copy of a log that was put in its place has the
same id, and other rows.

A log is known by its id, so a collector may move to another address and keep its place. Its
number, the column ``partition``, is given once and kept, so that a range which is read again
gives the same rows whatever became of the list of endpoints.

An end may also say where its batch begins (``"from"``), for a log that the offsets before
it do not have, or have no more, and for a query's first batch: Spark does not keep where
that began, and asks a reader that may know better by then. A log without new rows keeps its
entry as it is: another one would be a batch to Spark.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, TypeAlias

__all__ = ["Offsets", "Position", "Range", "dump", "load", "ranges", "share", "split"]

VERSION = 1


@dataclass(frozen=True)
class Position:
    """A place in one log: `offset` is that of the next row."""

    log: str
    offset: int
    partition: int
    begin: int | None = None
    generation: str | None = None


# By the name of the collector, which is the endpoint as the option has it.
Offsets: TypeAlias = dict[str, Position]


@dataclass(frozen=True)
class Range:
    """Rows of one log, the last not included."""

    name: str
    log: str
    partition: int
    start: int
    end: int
    # Where its batch begins and ends, and what wrote the rows before: offsets and generations.
    marks: tuple[tuple[int, str], ...] = ()

    @property
    def rows(self) -> int:
        """How many there are."""
        return self.end - self.start


def dump(offsets: Mapping[str, Position]) -> dict[str, Any]:
    """The form that Spark keeps."""
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
        collectors[name] = entry
    return {"version": VERSION, "collectors": collectors}


def load(kept: Mapping[str, Any]) -> Offsets:
    """What `dump` made of it."""
    version = kept.get("version")
    if version != VERSION:
        raise ValueError(
            f"these offsets are of version {version}, and this zeroxide knows version {VERSION}:"
            " a newer one wrote this checkpoint, and is needed to go on from it"
            if isinstance(version, int)
            else f"these are no offsets of the format zeromq: {str(kept)[:200]}"
        )
    return {
        name: Position(
            entry["log"],
            entry["offset"],
            entry["partition"],
            entry.get("from"),
            entry.get("generation"),
        )
        for name, entry in kept["collectors"].items()
    }


def ranges(start: Offsets, end: Offsets) -> list[Range]:
    """What lies between two offsets; collectors without new rows are left out."""
    before = {position.log: position for position in start.values()}
    found = []
    for name, position in end.items():
        was = before.get(position.log)
        if was is not None and (was.offset, was.begin) == (position.offset, position.begin):
            continue  # where it began is that of the batch before
        if position.begin is not None:
            first = position.begin
        elif was is not None:
            first = was.offset
        else:
            raise ValueError(
                f"collector {name}: the offsets before this batch do not know its log"
                f" {position.log}, so nothing says where the batch begins"
            )
        if first < position.offset:
            known = [position] if was is None or was.offset != first else [was, position]
            marks = tuple((one.offset, one.generation) for one in known if one.generation)
            found.append(
                Range(name, position.log, position.partition, first, position.offset, marks)
            )
    return found


def share(available: Mapping[str, int], most: int) -> dict[str, int]:
    """Divides `most` among those who have something, in proportion to what they have.

    Everybody with something gets at least one as long as that is possible: who has little
    would otherwise wait for as long as the others have much.
    """
    total = sum(available.values())
    if total <= most:
        return dict(available)
    shares = dict.fromkeys(available, 0)
    waiting = sorted((name for name in available if available[name]), key=available.__getitem__)
    left = most
    for place, name in enumerate(waiting):
        # The smallest first: what it does not need is divided among the larger ones.
        rest = sum(available[other] for other in waiting[place:])
        fair = max(math.floor(left * available[name] / rest), min(1, left))
        shares[name] = min(fair, available[name], left)
        left -= shares[name]
    return shares


def split(
    found: Iterable[Range], at_least: int, *, most_rows: int | None, least_rows: int
) -> list[Range]:
    """Cuts ranges into about `at_least` pieces in all, none above `most_rows`.

    Pieces are not made smaller than `least_rows` for the sake of their number.
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
