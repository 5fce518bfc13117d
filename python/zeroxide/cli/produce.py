r"""Writes rows to a collector's log, from stdin or arguments.

Each line of stdin is the value of a row, unless --fields or --format says otherwise. The command
ends when every row is on the collector's disk. The format json takes the objects that zeroxide
tail --json prints; the formats of several fields per row are those of zeroxide cat.

exit codes: 0 every row is on the collector's disk, 1 an error, or rows that are not acknowledged

examples:
  zeroxide produce tcp://collector:5555 --topic weather < readings.txt
  zeroxide produce tcp://collector:5555 --topic weather --data 21.5 --row-key kitchen
  zeroxide produce tcp://collector:5555 --fields topic,key,value --separator : < rows.txt
  tail -F app.log | zeroxide produce tcp://collector:5555 --name app-1 --spool /var/spool/app-1
  zeroxide tail tcp://a:5555 --offset earliest --json | zeroxide produce tcp://b:5555 --json

with CURVE (see zeroxide keygen --name):
  zeroxide produce tcp://collector:5555 --key keys/alice.key_secret --server-key keys/collector.key
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator
from typing import Any

from .._arguments import name, text
from ..pipeline import CollectorError, Producer
from .collectors import add_collector, keys, number_of
from .formats import (
    INPUT,
    Decoder,
    LineDecoder,
    Malformed,
    Message,
    load_json,
    make_decoder,
    parts_of,
)
from .rows import INPUT_FIELDS, field_names, from_json, from_parts
from .streams import FAILED, read_some

__all__ = ["add_arguments", "run"]

# Seconds for the last rows after Ctrl-C.
_LAST_WORDS = 2.0


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide produce``."""
    add_collector(parser)
    rows = parser.add_argument_group("rows")
    rows.add_argument("--topic", metavar="TEXT", type=text, help="topic of rows that have none")
    rows.add_argument(
        "--row-key", metavar="TEXT", type=os.fsencode, help="key of rows that have none"
    )
    rows.add_argument(
        "--header",
        metavar="NAME=VALUE",
        type=_header,
        action="append",
        default=[],
        help="header of rows that have none (repeatable)",
    )
    rows.add_argument(
        "-D",
        "--data",
        metavar="TEXT",
        type=os.fsencode,
        action="append",
        default=[],
        help="the value of a row, instead of stdin (repeatable)",
    )
    rows.add_argument(
        "--format",
        metavar="FORMAT",
        type=INPUT,
        choices=INPUT.values,
        default="lines",
        help=f"format of stdin: {', '.join(INPUT.values)} (default: lines)",
    )
    rows.add_argument(
        "--json",
        dest="format",
        action="store_const",
        const="json",
        help="the same as --format json",
    )
    rows.add_argument(
        "--fields",
        metavar="NAMES",
        type=field_names(INPUT_FIELDS),
        default=("value",),
        help=f"the fields of each row, in order: {', '.join(INPUT_FIELDS)} (default: value)",
    )
    rows.add_argument(
        "--separator",
        metavar="TEXT",
        type=_separator,
        default=b"\t",
        help="what is between the fields of a line (default: a tab)",
    )
    producer = parser.add_argument_group("producer")
    producer.add_argument(
        "--name",
        type=name,
        help="name under which the collector drops repeated rows (default: a random one)",
    )
    producer.add_argument(
        "--spool", metavar="FOLDER", help="keep rows here until they are acknowledged"
    )
    producer.add_argument(
        "-v", "--verbose", action="store_true", help="write the number of rows to stderr at the end"
    )


def _header(pair: str) -> tuple[str, bytes]:
    header, equals, value = pair.partition("=")
    if not equals or not header:
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, got {pair!r}")
    return text(header), os.fsencode(value)


def _separator(given: str) -> bytes:
    if not given:
        raise argparse.ArgumentTypeError("expected at least one character, got ''")
    return os.fsencode(given)


def run(options: argparse.Namespace) -> int:
    """Sends rows until the end of the input, and waits for the last acknowledgement."""
    given: Any = keys(options)
    try:
        _produce(options, given)
    except Malformed as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return FAILED
    return 0


def _produce(options: argparse.Namespace, given: Any) -> None:
    producer = Producer(
        options.endpoint,
        name=options.name,
        spool=options.spool,
        timeout_s=options.timeout,
        **given,
    )
    count = 0
    try:
        for rows in _batches(options):
            try:
                count += producer.send_batch(
                    rows, options.row_key, options.topic, options.header or None
                )
            except ValueError as error:  # a row that no collector takes
                number = count + getattr(error, "sent", 0) + 1
                raise Malformed(f"row {number} cannot be sent: {error}") from error
    except BaseException:
        # After a signal, a second one gives up the last rows.
        _close_soon(producer)
        raise
    producer.close()
    if options.verbose:
        print(f"on the collector's disk: {number_of(count, 'row')}", file=sys.stderr)


def _close_soon(producer: Producer) -> None:
    """Closes a producer after an error that is more important than this one."""
    try:
        producer.close(timeout_s=_LAST_WORDS)
    except CollectorError as error:
        print(f"zeroxide: {error}", file=sys.stderr)


def _batches(options: argparse.Namespace) -> Iterator[list[Any]]:
    """Rows, as soon as they are there."""
    if options.data:
        yield options.data
        return
    decoder, convert = _reading(options)
    count = 0
    while True:
        data = read_some()
        messages = decoder.feed(data) if data else decoder.end()
        wrong = None
        rows: list[Any] = [] if convert else messages
        if convert is not None:
            for message in messages:
                count += 1
                try:
                    row = convert(message)
                    if row is not None:
                        rows.append(row)
                except ValueError as error:
                    wrong = Malformed(f"row {count} of the input: {error}")
                    break
        # The rows before a mistake are sent, however the input was cut into pieces.
        yield rows
        if wrong is not None:
            raise wrong
        decoder.check()
        if not data:
            return


def _reading(
    options: argparse.Namespace,
) -> tuple[Decoder, Callable[[Message], dict[str, Any] | None] | None]:
    """The decoder, and what makes rows of its messages, or None of empty ones; None if they are values."""
    fields = options.fields
    if options.format == "json":
        return LineDecoder(), _from_line_of_json
    if fields == ("value",):
        return make_decoder(options.format), None
    if options.format == "lines":
        splits = len(fields) - 1
        return (
            LineDecoder(),
            lambda line: from_parts(line.split(options.separator, splits), fields),
        )
    return make_decoder(options.format), lambda message: from_parts(message, fields)


def _from_line_of_json(line: Message) -> dict[str, Any] | None:
    (text,) = parts_of(line)
    return from_json(load_json(text)) if text.strip() else None
