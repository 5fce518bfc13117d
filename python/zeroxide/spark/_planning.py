"""The driver's decisions: the start and end of each log, and the pieces.

These are functions of the collectors' state and the options. Only `resolve` waits, because it
asks for the offset at a time.
"""

import logging
import os
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from ..pipeline import DataLoss
from . import _loss
from ._collectors import Collectors, Info
from ._offsets import Offsets, Position, Range, split
from .log_options import EARLIEST, LATEST, Kept, LogReadOptions, Where

__all__ = ["mean_size", "narrow", "newest", "pieces", "present", "resolve"]

log: logging.Logger = logging.getLogger(__name__)

# Without `minPartitions`, no task is started for fewer rows than this.
TASK_ROWS = 50_000


def present(infos: Mapping[str, Info | None]) -> dict[str, Info]:
    return {name: info for name, info in infos.items() if info is not None}


def newest(start: Offsets, infos: Mapping[str, Info | None], keep: bool) -> Offsets:
    """The ends of all logs, checked against the query's positions."""
    by_log = {position.log: position for position in start.values()}
    serving = _serving(present(infos))
    numbers = [position.partition for position in start.values()]
    free = max(numbers, default=-1) + 1
    end: Offsets = {}
    for name, there in infos.items():
        old = start.get(name)
        if there is None:
            # Its log may have moved to another of the addresses.
            if old is not None and old.log not in serving:
                end[name] = old
            continue
        info = there
        position = by_log.get(info.log_id)
        if position is not None:
            end[name] = _onward(name, position, info, keep)
        elif old is not None and old.log not in serving:
            error = _loss.replaced(
                name, old.log, old.offset, info.log_id, info.earliest, info.latest
            )
            _refuse(error, keep)
            end[name] = _at_end(info, old.partition, info.earliest)
        else:
            log.warning(
                "zeromq: collector %s is not in the checkpoint and is read from its earliest row"
                " on: if this query has read it before, its rows are delivered again",
                name,
            )
            end[name] = _at_end(info, free, info.earliest)
            free += 1
    is_any_away = any(info is None for info in infos.values())
    for name, position in start.items():
        if position.log in serving or name in infos:
            continue
        if is_any_away:
            # It may be the unavailable one under another name.
            end[name] = position
        else:
            _refuse(_loss.removed(name, position.log, position.offset), keep)
            log.warning(
                "zeromq: the position of collector %s is forgotten: if it is listed again, it is"
                " read from its earliest row on",
                name,
            )
    return end


def _serving(infos: Mapping[str, Info]) -> dict[str, str]:
    """The names of the collectors by their logs, each of which must be there once."""
    serving: dict[str, str] = {}
    for name, info in infos.items():
        if info.log_id in serving:
            raise ValueError(
                f"option 'endpoint' or 'collector.dir' has one collector twice:"
                f" {serving[info.log_id]} and {name} are both log {info.log_id}"
            )
        serving[info.log_id] = name
    return serving


def _at_end(info: Info, partition: int, begin: int | None = None) -> Position:
    latest = info.latest
    return Position(info.log_id, latest, partition, begin, info.generation(latest))


def _onward(name: str, position: Position, info: Info, keep: bool) -> Position:
    here = _at_end(info, position.partition)
    others = info.check(position.offset, position.generation)
    if others is not None and position.offset <= info.latest:
        has = (info.earliest, info.latest)
        _refuse(_loss.other_rows(name, info.log_id, position.offset, others, *has), keep)
        return replace(here, begin=max(others, info.earliest))
    if position.offset == info.latest:
        return position  # exactly unchanged, or Spark would run a batch for it
    if position.offset < info.earliest:
        _refuse(_loss.trimmed(name, info.log_id, position.offset, info.earliest, info.latest), keep)
        return replace(here, begin=info.earliest)
    if position.offset > info.latest:
        _refuse(
            _loss.moved_back(name, info.log_id, position.offset, info.earliest, info.latest), keep
        )
    return here


def _refuse(error: DataLoss, keep: bool) -> None:
    if keep:
        raise error
    _loss.warn_of(error)


def resolve(
    collectors: Collectors,
    infos: Mapping[str, Info],
    where: Where,
    timestamp: int | None,
    option: str,
    keep: bool,
) -> dict[str, int]:
    """The offset of each collector for the value of an option."""
    _serving(infos)
    if timestamp is not None:
        found = {name: collectors.offset_at(name, timestamp) for name in infos}
        return {
            name: min(max(offset, infos[name].earliest), infos[name].latest)
            for name, offset in found.items()
        }
    if not isinstance(where, str):
        _check_names(option, where, infos)
    offsets = {}
    for name, info in infos.items():
        mark = where if isinstance(where, str) else where[name]
        if isinstance(mark, Kept):
            if mark.log != info.log_id:
                has = (info.log_id, info.earliest, info.latest)
                _refuse(_loss.replaced(name, mark.log, mark.offset, *has), keep)
            others = info.check(mark.offset, mark.generation)
            if mark.log != info.log_id:
                mark = EARLIEST
            elif others is not None and mark.offset <= info.latest:
                rows = (info.earliest, info.latest)
                error = _loss.other_rows(name, info.log_id, mark.offset, others, *rows)
                _refuse(error, keep)
                mark = max(others, info.earliest)
            else:
                mark = mark.offset
        if mark == EARLIEST:
            offsets[name] = info.earliest
        elif mark == LATEST:
            offsets[name] = info.latest
        else:
            assert isinstance(mark, int)
            if mark < info.earliest:
                error = _loss.trimmed(name, info.log_id, mark, info.earliest, info.latest)
                _refuse(error, keep)
            if mark > info.latest:
                raise ValueError(
                    f"option {option!r} is {mark} for collector {name}, whose log has offsets"
                    f" {info.earliest} to {info.latest}"
                )
            offsets[name] = max(mark, info.earliest)
    return offsets


def _check_names(option: str, where: Mapping[str, Any], infos: Mapping[str, Info]) -> None:
    missing = [name for name in infos if name not in where]
    unknown = [name for name in where if name not in infos]
    if missing or unknown:
        raise ValueError(
            f"option {option!r} must name the collectors of option 'endpoint', as they are written"
            f" there: {', '.join(missing) or 'none'} missing, {', '.join(unknown) or 'none'} unknown"
        )


def pieces(found: list[Range], options: LogReadOptions) -> list[Range]:
    given = options.min_partitions
    return split(
        found,
        given or len(os.sched_getaffinity(0)),
        most_rows=options.max_records,
        least_rows=TASK_ROWS if given is None else 1,
    )


def mean_size(info: Info | None) -> float:
    if info is None or info.latest <= info.earliest:
        return 1.0
    return max(info.bytes / (info.latest - info.earliest), 1.0)


def narrow(piece: Range, column: str, comparison: str, value: Any, collectors: Collectors) -> Range:
    empty = replace(piece, end=piece.start)
    if column == "partition":
        fits = {
            "=": piece.partition == value,
            ">": piece.partition > value,
            ">=": piece.partition >= value,
            "<": piece.partition < value,
            "<=": piece.partition <= value,
        }[comparison]
        return piece if fits else empty
    if column == "receive_time":
        if comparison not in (">", ">=", "="):
            return piece  # a clock may have been set back, so only a segment that begins late enough is certain
        micros = round(value.timestamp() * 1_000_000)
        first = collectors.offset_at(piece.name, micros)
        return replace(piece, start=min(max(piece.start, first), piece.end))
    start, end = piece.start, piece.end
    if comparison in ("=", ">="):
        start = max(start, value)
    if comparison == ">":
        start = max(start, value + 1)
    if comparison in ("=", "<="):
        end = min(end, value + 1)
    if comparison == "<":
        end = min(end, value)
    return replace(piece, start=start, end=max(start, end))
