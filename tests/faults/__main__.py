"""Prints the fault matrix: every row on every binding.

    python -m faults                                    # in the folder `tests`
    python -m faults --only curve,half --modules zeroxide zmq
    python -m faults --quick --out ../build/faults

The end of the output names the rows that could not run here. The exit code is 1 if zeroxide fails a row.
"""

from __future__ import annotations

import argparse
import sys
import threading
import time
from collections import Counter
from pathlib import Path

from . import report
from .row import all_rows
from .runner import Result, run_all

OUTCOMES = {"pass": "passed", "fail": "failed", "skip": "skipped"}


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        prog="python -m faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--modules", nargs="+", default=["zeroxide", "zmq"], metavar="MODULE")
    parser.add_argument("--only", help="parts of names of rows, with commas between them")
    parser.add_argument("--quick", action="store_true", help="only the rows of `make test`")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--at-once", type=int, default=2, help="rows that run at the same time")
    parser.add_argument("--out", type=Path, help="a folder for matrix.md and matrix.json")
    parser.add_argument("--page", type=Path, help="the page of the documentation to update")
    parser.add_argument("--list", action="store_true", help="print the rows and their specs")
    given = parser.parse_args(arguments)

    rows = list(all_rows().values())
    if given.only:
        parts = given.only.split(",")
        rows = [row for row in rows if any(part in row.name for part in parts)]
    if given.quick:
        rows = [row for row in rows if row.quick]
    if not rows:
        parser.error(f"no row has {given.only} in its name")
    if given.list:
        for row in rows:
            print(f"{row.name} ({row.group}{'' if row.quick else ', slow'})\n    {row.spec}")
        return 0

    versions = {module: report.version(module) for module in given.modules}
    print(f"seed {given.seed}, {report.machine()}, {', '.join(versions.values())}", flush=True)
    lock = threading.Lock()

    def say(result: Result) -> None:
        with lock:
            text = f"  {result.text}" if result.text else ""
            head = f"{result.outcome:4} {result.module:9} {result.row:40} {result.seconds:6.1f} s"
            print(f"{head}{text}", flush=True)
            if result.outcome == "fail" and result.module == "zeroxide":
                print(result.complaints, file=sys.stderr, flush=True)

    start = time.monotonic()
    results = run_all(rows, given.modules, given.seed, not given.quick, given.at_once, say)
    print()
    print(report.markdown(rows, results, versions))
    if given.out:
        report.write(given.out, rows, results, versions, given.seed)
    if given.page:
        report.update(given.page, report.markdown(rows, results, versions), given.seed)
    counts = Counter(result.outcome for result in results)
    for result in results:
        if result.outcome == "skip":
            print(f"SKIPPED: {result.row} on {result.module}: {result.text}")
    # As test runners print it: the summary of `make test-all` adds up such lines.
    told = ", ".join(f"{counts[one]} {how}" for one, how in OUTCOMES.items())
    print(f"{told} in {time.monotonic() - start:.1f}s")
    broken = [result for result in results if result.outcome == "fail"]
    ours = [result.row for result in broken if result.module == "zeroxide"]
    if ours:
        print("WRONG: zeroxide fails", ", ".join(ours))
    return 1 if ours else 0


if __name__ == "__main__":
    sys.exit(main())
