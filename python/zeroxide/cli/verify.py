"""Reads a whole log from its files, without a collector, and reports damage.

It compares both checksums of every batch of rows, and finds missing files, truncated files, files
of another log, and damaged indexes of an archive. It changes nothing, and a collector may be running:
rows that are not on its disk yet are not checked. This command needs pyarrow.

exit codes: 0 no damage, 1 some, or there is no log

examples:
  zeroxide verify /var/lib/zeroxide
  zeroxide verify /var/lib/zeroxide --json
  zeroxide verify s3://bucket/ticks --verbose
"""

import argparse
import sys
from dataclasses import asdict

from .._optional import needed_by
from ..pipeline._verify import SegmentState, verify
from .collectors import add_json, number_of, print_json

__all__ = ["add_arguments", "run"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Adds the arguments of ``zeroxide verify``."""
    parser.add_argument(
        "folder", metavar="FOLDER", help="the folder of a collector, or the URL of an archive"
    )
    parser.add_argument(
        "-v", "--verbose", action="store_true", help="print a line for every segment"
    )
    add_json(parser)


def run(options: argparse.Namespace) -> int:
    """Prints the damage and a summary; 1 if there is damage."""
    try:
        with needed_by("zeroxide verify", extra="arrow"):
            states = verify(options.folder)
    except ModuleNotFoundError as error:
        print(f"zeroxide: {error}", file=sys.stderr)
        return 1
    lost = sum(damage.end - damage.first for state in states for damage in state.damage)
    is_whole = not any(state.damage for state in states)
    rows, tail = sum(state.rows for state in states), states[-1].tail
    if options.json:
        print_json(
            {
                "whole": is_whole,
                "earliest": states[0].first,
                "latest": states[-1].end,
                "rows": rows,
                "lost_rows": lost,
                "tail_bytes": tail,
                "segments": [asdict(state) for state in states],
            }
        )
        return 0 if is_whole else 1
    for state in states:
        _print_segment(state, options.verbose)
    size = sum(state.size for state in states)
    count, read = number_of(len(states), "segment"), number_of(rows, "row")
    print(
        f"{count}, {size} bytes, offsets {states[0].first} to {states[-1].end}, {read} can be read"
    )
    if tail:
        print(f"not part of the log yet: {number_of(tail, 'byte')} at the end")
    print("no damage" if is_whole else f"DAMAGED: {number_of(lost, 'row')} lost")
    return 0 if is_whole else 1


def _print_segment(state: SegmentState, verbose: bool) -> None:
    if verbose:
        print(f"{state.name}  offsets {state.first} to {state.end}, {state.size} bytes")
    for damage in state.damage:
        where = "" if damage.position is None else f" at byte {damage.position}"
        rows = f"offsets {damage.first} to {damage.end} cannot be read: "
        print(f"{state.name}{where}: {rows if damage.end > damage.first else ''}{damage.what}")
