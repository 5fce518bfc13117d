"""What the commands that ask a collector share: its endpoint, the keys, and the client."""

import argparse
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from .._arguments import above
from .._lags import Lag
from .._native import curve_public
from ..pipeline import Client
from .keys import public_key, secret_key

__all__ = [
    "add_collector",
    "add_json",
    "keys",
    "make_client",
    "missed_rows",
    "number_of",
    "print_json",
    "print_table",
    "say_unlisted",
]


def add_collector(parser: argparse.ArgumentParser) -> None:
    """Adds the endpoint of a collector, the time to wait for its answers, and the keys."""
    parser.add_argument(
        "endpoint", metavar="ENDPOINT", help="the collector, as in tcp://collector:5555"
    )
    parser.add_argument(
        "--timeout",
        type=above(0.001, "seconds"),
        metavar="SECONDS",
        default=10.0,
        help="longest wait for an answer (default: 10)",
    )
    parser.add_argument(
        "--key", type=secret_key, metavar="FILE", help="your certificate with its secret key"
    )
    parser.add_argument(
        "--server-key",
        type=public_key,
        metavar="FILE",
        help="the collector's certificate, or its public key in Z85",
    )


def add_json(parser: argparse.ArgumentParser, help: str = "print a JSON object") -> None:
    """Adds ``--json``."""
    parser.add_argument("--json", action="store_true", help=help)


def keys(options: argparse.Namespace) -> dict[str, bytes | None]:
    """The keys as arguments of clients and producers."""
    if options.key and not options.server_key:
        options.fail("--key requires --server-key")
    return {
        "server_key": options.server_key,
        "public_key": curve_public(options.key) if options.key else None,
        "secret_key": options.key,
    }


def make_client(options: argparse.Namespace) -> Client:
    """A client of the collector, which asks once."""
    given: Any = keys(options)
    return Client(options.endpoint, timeout_s=options.timeout, retries=0, **given)


def print_table(head: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Prints columns: numbers to the right, and a last one of text to the left."""
    texts = [list(map(str, row)) for row in rows]
    widths = [max(map(len, column)) for column in zip(head, *texts, strict=True)]
    for row in [list(head), *texts]:
        *numbers, last = row
        shown = [text.rjust(width) for text, width in zip(numbers, widths, strict=False)]
        print("  ".join([*shown, last]))


def print_json(facts: Mapping[str, Any]) -> None:
    """Prints an object."""
    print(json.dumps(facts, indent=1, ensure_ascii=False))


def number_of(count: int, noun: str) -> str:
    """A number with its noun, which has an s unless there is one."""
    return f"{count} {noun}{'' if count == 1 else 's'}"


def missed_rows(one: Lag) -> str:
    """The end of a sentence about a group that has missed rows."""
    return (
        f"has missed {number_of(one.missed, 'row')}: retention removed them from the log before the"
        " group had read them"
    )


def say_unlisted(groups: int) -> None:
    """Says that a list leaves out this many groups."""
    if groups:
        text = f"zeroxide: {number_of(groups, 'group')} not listed, not further behind than those shown"
        print(text, file=sys.stderr)
