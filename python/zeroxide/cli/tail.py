r"""Prints rows of a collector's log, and follows it.

It prints the last 10 rows and ends, unless an option below says where to begin or to go on. The
values are printed, one per line; --fields chooses other fields, and --json prints all of them.
The formats are those of zeroxide cat, with a field for each part.
With --follow, it waits for a collector that does not answer any more, and then goes on.

exit codes: 0 everything was printed, 1 an error
A signal (Ctrl-C, SIGTERM, SIGPIPE) ends the command quietly; a shell adds 128 to its number.

examples:
  zeroxide tail tcp://collector:5555 --follow
  zeroxide tail tcp://collector:5555 --topic weather -n 100 --fields timestamp,topic,value
  zeroxide tail tcp://collector:5555 --offset earliest --json | jq .value
  zeroxide tail tcp://collector:5555 --since 10m --follow | grep error
  zeroxide tail tcp://collector:5555 --since 2030-01-31T12:00 --count 1
  zeroxide tail tcp://collector:5555 --group reports --follow

with CURVE (see zeroxide keygen --name):
  zeroxide tail tcp://collector:5555 --key keys/alice.key_secret --server-key keys/collector.key
"""

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

from .._arguments import above, name, text
from ..pipeline import Client, CollectorGone, Follower, Record, Start
from .collectors import add_collector, make_client
from .formats import OUTPUT, make_encoder
from .rows import FIELDS, field_names, to_json, to_parts
from .streams import LOOK_EVERY, check_reader, write_all

__all__ = ["add_arguments", "run"]

# Rows that are there already are written this many at once.
_BATCH = 512

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide tail``."""
    add_collector(parser)
    where = parser.add_argument_group("where to begin (default: -n 10, or the group's position)")
    start: Any = where.add_mutually_exclusive_group()
    start.add_argument(
        "-n", "--lines", metavar="N", type=above(0, "rows"), help="print the last N rows"
    )
    start.add_argument(
        "--offset",
        metavar="OFFSET",
        type=_offset,
        help="begin at an offset, at earliest or latest, or with -N at the last N rows",
    )
    start.add_argument(
        "--since",
        metavar="TIME",
        type=_time,
        help="begin with rows received since: an age such as 30s, 10m, 2h or 7d, or"
        " 2030-01-31T12:00 in local time",
    )
    where.add_argument(
        "--group",
        metavar="GROUP",
        type=name,
        help="begin at the position of this consumer group, and commit what was printed",
    )
    what = parser.add_argument_group("what to print")
    what.add_argument(
        "--topic",
        metavar="PREFIX",
        type=text,
        action="append",
        default=[],
        help="only rows whose topic begins with this (repeatable)",
    )
    what.add_argument("-f", "--follow", action="store_true", help="go on with rows as they arrive")
    what.add_argument("--count", metavar="N", type=above(1, "rows"), help="end after N rows")
    what.add_argument(
        "--fields",
        metavar="NAMES",
        type=field_names(FIELDS),
        default=("value",),
        help=f"the fields to print, in order: {', '.join(FIELDS)} (default: value)",
    )
    what.add_argument(
        "--format",
        metavar="FORMAT",
        type=OUTPUT,
        choices=OUTPUT.values,
        default="lines",
        help=f"format of stdout: {', '.join(OUTPUT.values)} (default: lines)",
    )
    what.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="print an object with all fields per row, as --format json",
    )


def _offset(text: str) -> int | str:
    if text in ("earliest", "latest"):
        return text
    if re.fullmatch(r"-?\d{1,18}", text):
        return int(text)
    raise argparse.ArgumentTypeError(
        f"expected an offset, earliest, latest, or -N for the last N rows, got {text!r}"
    )


def _time(text: str) -> datetime:
    age = re.fullmatch(r"(\d+(?:\.\d+)?)([smhd])", text)
    try:
        if age:
            return datetime.now(UTC) - timedelta(seconds=float(age[1]) * _UNITS[age[2]])
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError, OSError):
        raise argparse.ArgumentTypeError(
            f"expected an age such as 10m, or a time such as 2030-01-31T12:00, got {text!r}"
        ) from None


def run(options: argparse.Namespace) -> int:
    """Prints rows until the end of the log, the count or a signal."""
    with make_client(options) as client:
        _print(client, options)
    return 0


def _print(client: Client, options: argparse.Namespace) -> None:
    encode = _encoder(options)
    start, skip = _start(client, options)
    left: int | None = options.count
    rows = client.follow(options.topic, group=options.group, start=start, timeout_s=0)
    position = rows.position
    gone = _Gone()
    has_begun = False
    try:
        for batch in _batches(rows, _BATCH):
            batch, skip = batch[skip:], max(0, skip - len(batch))
            if not batch:
                continue
            if left is not None:
                batch = batch[:left]
                left -= len(batch)
            write_all(encode(batch))
            position = batch[-1].offset + 1 if left == 0 else rows.position
            has_begun = True
            if options.group:
                rows.commit(position)
            if left == 0:
                return
    except CollectorGone as error:
        if not has_begun or not options.follow or left == 0:
            raise
        gone.report(error)
    else:
        position = max(position, rows.position)
    if not options.follow:
        return
    rows.close()
    new: Follower | None = None
    while True:
        try:
            new = new or client.follow(
                options.topic, group=options.group, start=position, timeout_s=LOOK_EVERY
            )
            # The loop ends when no row has arrived for a while; the next one goes on.
            for row in new:
                gone.end()
                write_all(encode([row]))
                if left is not None:
                    left -= 1
                if options.group:
                    new.commit()
                if left == 0:
                    return
        except CollectorGone as error:
            if left == 0:
                raise
            gone.report(error)
        check_reader()


class _Gone:
    """Reports once that the collector does not answer, until rows arrive again."""

    _is_reported = False

    def report(self, error: CollectorGone) -> None:
        if not self._is_reported:
            self._is_reported = True
            print(f"zeroxide: {error} Waiting for it.", file=sys.stderr, flush=True)

    def end(self) -> None:
        self._is_reported = False


def _encoder(options: argparse.Namespace) -> Callable[[list[Record]], bytes]:
    if options.format == "json":
        return lambda rows: b"".join(
            json.dumps(to_json(row), ensure_ascii=False).encode() + b"\n" for row in rows
        )
    encode, fields = make_encoder(options.format), options.fields
    if fields == ("value",):
        return lambda rows: encode([row.value for row in rows])
    return lambda rows: encode([to_parts(row, fields) for row in rows])


def _batches(rows: Follower, most: int) -> Iterator[list[Record]]:
    batch = []
    for row in rows:
        batch.append(row)
        if len(batch) == most:
            yield batch
            batch = []
    if batch:
        yield batch


def _start(client: Client, options: argparse.Namespace) -> tuple[Start | None, int]:
    """Where to begin, and how many rows to leave out from there on."""
    offset = options.offset
    if options.since is not None:
        return options.since, 0
    if isinstance(offset, int) and offset < 0:
        return _last(client, -offset, options.topic)
    if offset is not None:
        return offset, 0
    if options.lines is not None:
        return _last(client, options.lines, options.topic)
    if options.group is not None:
        return None, 0
    return _last(client, 10, options.topic)


def _last(client: Client, count: int, topics: list[str]) -> tuple[int, int]:
    """The place of the last `count` rows of these topics."""
    info = client.info()
    size = count
    while True:
        start = max(info.earliest, info.latest - size)
        if not topics or count == 0:
            return start, 0
        tables = client.fetch_tables(start, info.latest, topics=topics)
        found = sum(table.num_rows for table in tables)
        if found >= count or start == info.earliest:
            return start, max(0, found - count)
        size *= 4
