"""Shows how many rows each consumer group of a collector has not read yet.

The lag of a group is the number of rows of the log after its offset, which is the position that it
committed. A group whose offset is before the log's first row has missed rows: retention removed
them before the group had read them. They are reported on stderr, and do not count as lag.

exit codes: 0 the lags were printed, 1 a group is missing, or with --max, its lag is above that or it
has missed rows

examples:
  zeroxide lag tcp://collector:5555
  zeroxide lag tcp://collector:5555 --group reports --max 100000 || alert "reports is behind"
  zeroxide lag tcp://collector:5555 --json

with CURVE (see zeroxide keygen --name):
  zeroxide lag tcp://collector:5555 --key keys/alice.key_secret --server-key keys/collector.key
"""

import argparse
import sys

from .._arguments import above
from .._lags import lag
from .collectors import (
    add_collector,
    add_json,
    make_client,
    missed_rows,
    number_of,
    print_json,
    print_table,
    say_unlisted,
)

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide lag``."""
    add_collector(parser)
    parser.add_argument(
        "--group",
        metavar="GROUP",
        action="append",
        default=[],
        help="only this group (repeatable; default: all groups)",
    )
    parser.add_argument(
        "--max",
        metavar="ROWS",
        type=above(0, "rows"),
        help="exit with 1 if a lag is above this, or a group has missed rows",
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the lags; 1 if one is too large, or a group does not exist."""
    with make_client(options) as client:
        stats = client.stats()
        earliest, latest, groups = stats["earliest"], stats["durable"], stats["groups"]
        wanted = options.group or list(groups)
        # A collector of an earlier version lists all groups.
        unlisted = stats.get("groups_unlisted", 0)
        for name in wanted:
            if unlisted and name not in groups and (offset := client.committed(name)) is not None:
                groups[name] = offset
    lags = {name: lag(groups[name], earliest, latest) for name in wanted if name in groups}
    unlisted = 0 if options.group else unlisted
    if options.json:
        shown = {
            name: {"offset": groups[name], "lag": one.rows, "missed": one.missed}
            for name, one in lags.items()
        }
        print_json({"earliest": earliest, "latest": latest, "groups": shown, "unlisted": unlisted})
    else:
        rows = [(one.rows, groups[name], name) for name, one in lags.items()]
        print_table(("lag", "offset", "group"), rows)
    say_unlisted(unlisted)
    missing = [name for name in wanted if name not in groups]
    for name in missing:
        print(f"zeroxide: there is no group {name!r}", file=sys.stderr)
    limit = options.max
    behind = [name for name, one in lags.items() if limit is not None and one.rows > limit]
    for name in behind:
        print(
            f"zeroxide: {name} has not read {number_of(lags[name].rows, 'row')}, which is above {limit}",
            file=sys.stderr,
        )
    lossy = [name for name, one in lags.items() if one.missed]
    for name in lossy:
        print(f"zeroxide: {name} {missed_rows(lags[name])}", file=sys.stderr)
    return 1 if missing or behind or (lossy and limit is not None) else 0
