"""Checks whether a collector answers and can write, for a probe.

It prints one line. The collector is healthy if it answers within --timeout, can write to its disk,
and stays within --max-lag and --max-silence. A key without the role admin can only check that it
answers.

exit codes: 0 healthy, 1 not healthy, 2 a mistake in the arguments

examples:
  zeroxide check tcp://collector:5555
  zeroxide check tcp://collector:5555 --timeout 2 --max-lag 100000 --max-silence 60

with CURVE (see zeroxide keygen --name):
  zeroxide check tcp://collector:5555 --key keys/probe.key_secret --server-key keys/collector.key
"""

import argparse
from datetime import UTC, datetime
from typing import Any

from .._arguments import above
from .._lags import lag
from ..error import ZMQBaseError
from ..pipeline import Client, Refused
from .collectors import (
    add_collector,
    add_json,
    make_client,
    missed_rows,
    number_of,
    print_json,
)

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide check``."""
    add_collector(parser)
    parser.add_argument(
        "--max-lag",
        metavar="ROWS",
        type=above(0, "rows"),
        help="not healthy if a consumer group has more rows left to read, or has missed rows",
    )
    parser.add_argument(
        "--max-silence",
        metavar="SECONDS",
        type=above(0.0, "seconds"),
        help="not healthy if no row was received for longer than this",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the result; 1 if the collector is not healthy."""
    client = make_client(options)
    try:
        with client:
            facts = _facts(client, options)
    except ZMQBaseError as error:
        facts = {"healthy": False, "problems": [str(error)]}
    if options.json:
        print_json(facts)
    elif facts["healthy"]:
        written = f"offsets {facts['earliest']} to {facts['latest']}"
        print(f"healthy: {options.endpoint} has {written}, {facts['bytes']} bytes")
    else:
        print(f"not healthy: {'; '.join(facts['problems'])}")
    return 0 if facts["healthy"] else 1


def _facts(client: Client, options: argparse.Namespace) -> dict[str, Any]:
    info = client.info()
    problems = []
    try:
        stats = client.stats()
    except Refused as error:
        if error.code != "denied" or options.max_lag is not None:
            raise
        stats = None
    if stats is not None and stats["state"] != "fine":
        problems.append(f"it cannot write: {stats['reason'] or stats['state']}")
    if stats is not None and options.max_lag is not None:
        for group, offset in stats["groups"].items():
            one = lag(offset, info.earliest, info.latest)
            if one.rows > options.max_lag:
                problems.append(f"group {group} has not read {number_of(one.rows, 'row')}")
            if one.missed:
                problems.append(f"group {group} {missed_rows(one)}")
    if options.max_silence is not None:
        last = info.last_received
        silence = None if last is None else (datetime.now(UTC) - last).total_seconds()
        if silence is None or silence > options.max_silence:
            how = "there are no rows" if silence is None else f"no row for {silence:.0f} s"
            problems.append(how)
    return {
        "healthy": not problems,
        "problems": problems,
        "log_id": info.log_id,
        "earliest": info.earliest,
        "latest": info.latest,
        "bytes": info.bytes,
        "last_received": None if info.last_received is None else info.last_received.isoformat(),
    }
