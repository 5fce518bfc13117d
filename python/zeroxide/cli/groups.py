"""Lists the consumer groups of a collector, or drops some of them.

A group's offset is the position up to which it has read. A collector with --retention-groups
deletes the rows that all groups have read, so an abandoned group keeps rows until it is dropped.

examples:
  zeroxide groups tcp://collector:5555
  zeroxide groups tcp://collector:5555 --drop reports

with CURVE (see zeroxide keygen --name):
  zeroxide groups tcp://collector:5555 --key keys/alice.key_secret --server-key keys/collector.key
"""

import argparse
import sys

from .._arguments import name
from .collectors import add_collector, make_client, say_unlisted

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide groups``."""
    add_collector(parser)
    parser.add_argument(
        "--drop",
        metavar="GROUP",
        type=name,
        action="append",
        default=[],
        help="drop a group (repeatable)",
    )


def run(options: argparse.Namespace) -> int:
    """Prints the groups; 1 if a group that was to be dropped does not exist."""
    missing = 0
    with make_client(options) as client:
        for group in options.drop:
            if not client.drop_group(group):
                print(f"zeroxide: there is no group {group!r}", file=sys.stderr)
                missing = 1
        stats = client.stats()
    for group, offset in stats["groups"].items():
        print(f"{offset:>20} {group}")
    # A collector of an earlier version lists all groups.
    say_unlisted(stats.get("groups_unlisted", 0))
    return missing
