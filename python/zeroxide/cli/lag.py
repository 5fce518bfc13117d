"""Shows how many rows each consumer group of a collector has not read yet.

The lag of a group is the number of rows after its offset, which is the position that it committed.

exit codes: 0 the lags were printed, 1 a group is missing, or its lag is above --max

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
from .collectors import (
    add_collector,
    add_json,
    make_client,
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
        "--max", metavar="ROWS", type=above(0, "rows"), help="exit with 1 if a lag is above this"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the lags; 1 if one is too large, or a group does not exist."""
    with make_client(options) as client:
        stats = client.stats()
        latest, groups = stats["durable"], stats["groups"]
        wanted = options.group or list(groups)
        # A collector of an earlier version lists all groups.
        unlisted = stats.get("groups_unlisted", 0)
        for name in wanted:
            if unlisted and name not in groups and (offset := client.committed(name)) is not None:
                groups[name] = offset
    # A group may have read further since the statistics were made.
    lags = {name: max(0, latest - groups[name]) for name in wanted if name in groups}
    unlisted = 0 if options.group else unlisted
    if options.json:
        shown = {name: {"offset": groups[name], "lag": lag} for name, lag in lags.items()}
        print_json({"latest": latest, "groups": shown, "unlisted": unlisted})
    else:
        print_table(("lag", "offset", "group"), [(lags[name], groups[name], name) for name in lags])
    say_unlisted(unlisted)
    missing = [name for name in wanted if name not in groups]
    for name in missing:
        print(f"zeroxide: there is no group {name!r}", file=sys.stderr)
    behind = [name for name, lag in lags.items() if options.max is not None and lag > options.max]
    for name in behind:
        print(
            f"zeroxide: {name} has not read {number_of(lags[name], 'row')}, which is above {options.max}",
            file=sys.stderr,
        )
    return 1 if missing or behind else 0
