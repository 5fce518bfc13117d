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

from .._arguments import above
from .._native import curve_public
from ..pipeline import Client, CollectorError
from .keys import public_key, secret_key

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide groups``."""
    parser.add_argument(
        "endpoint", metavar="ENDPOINT", help="the collector, as in tcp://collector:5555"
    )
    parser.add_argument(
        "--drop", metavar="GROUP", action="append", default=[], help="drop a group (repeatable)"
    )
    parser.add_argument(
        "--timeout",
        type=above(0.0, "seconds"),
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


def run(options: argparse.Namespace) -> int:
    """Prints the groups; 1 if a group that was to be dropped does not exist."""
    if options.key and not options.server_key:
        options.fail("--key requires --server-key")
    client = Client(
        options.endpoint,
        timeout_s=options.timeout,
        retries=0,
        server_key=options.server_key,
        public_key=curve_public(options.key) if options.key else None,
        secret_key=options.key,
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
