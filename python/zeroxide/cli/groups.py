"""Lists the groups of consumers of a collector, or drops some.

A group keeps the offset below which its readers need nothing any more. A collector that was
started with --retention-groups deletes what all groups have read: one that reads no longer
holds everything back until it is dropped.

examples:
  zeroxide groups tcp://collector:5555
  zeroxide groups tcp://collector:5555 --drop reports
"""

import argparse
import sys

from ..collector.client import Client
from ..collector.errors import CollectorError

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """What follows ``zeroxide groups``."""
    parser.add_argument("endpoint", help="where the collector is")
    parser.add_argument(
        "--drop", metavar="GROUP", action="append", default=[], help="forget this group"
    )
    parser.add_argument("--timeout", type=float, default=10.0, help="seconds to wait for an answer")
    for name, what in (
        ("server", "the collector's public key"),
        ("public", "the own public key"),
        ("secret", "the own secret key"),
    ):
        parser.add_argument(f"--{name}-key", metavar="Z85", help=f"CURVE: {what}")


def run(options: argparse.Namespace) -> int:
    """Prints the groups that there are; 1 when one that was to be dropped is not there."""
    client = Client(
        options.endpoint,
        timeout=options.timeout,
        retries=0,
        server_key=options.server_key,
        public_key=options.public_key,
        secret_key=options.secret_key,
    )
    missing = 0
    try:
        with client:
            for group in options.drop:
                if not client.drop_group(group):
                    print(f"zeroxide: there is no group {group!r}", file=sys.stderr)
                    missing = 1
            for group, offset in client.groups().items():
                print(f"{offset:>20} {group}")
    except CollectorError as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return 1
    return missing
