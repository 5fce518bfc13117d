"""Lists the topics of a collector, with their rows and bytes since it started.

The collector counts the first 1,024 topics one by one, and lists the 100 with the most rows.
The line (others) has all other topics together.

examples:
  zeroxide topics tcp://collector:5555
  zeroxide topics tcp://collector:5555 --json

with CURVE (see zeroxide keygen --name):
  zeroxide topics tcp://collector:5555 --key keys/alice.key_secret --server-key keys/collector.key
"""

import argparse

from .collectors import add_collector, add_json, make_client, print_json, print_table

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide topics``."""
    add_collector(parser)
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the topics."""
    with make_client(options) as client:
        stats = client.stats()
    topics, others = stats["topics"], stats["topics_unlisted"]
    if options.json:
        print_json({"topics": topics, "unlisted": others})
        return 0
    rows = [(topic["rows"], topic["bytes"], topic["topic"] or "(none)") for topic in topics]
    if others["rows"]:
        rows.append((others["rows"], others["bytes"], "(others)"))
    print_table(("rows", "bytes", "topic"), rows)
    return 0
