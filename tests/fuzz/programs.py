"""Runs random programs with zeroxide and with libzmq, and compares the results of their statements.

A program uses a few sockets of types that fit together: it sets options, binds, connects, sends, receives, ends
connections and closes. Nothing in it waits. A difference counts if it appears again when the program runs more slowly,
and if it is not one of those that `program_differences.py` lists. It is made as short as possible and printed, and the
program ends with status 1.

    python tests/fuzz/programs.py --seconds 300 --seed 1
    python tests/fuzz/programs.py --runs 1 --seed 4711
"""

from __future__ import annotations

import argparse
import itertools
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

from libraries import Library
from program_differences import ORDER, Difference, known, only_order
from program_drawing import draw
from program_running import serve

# Seconds after each statement: what a difference must survive.
PAUSES = (0.02, 0.1, 0.3)
# How long a library may take for a program, in seconds.
PATIENCE = 30
# Programs mostly wait, so several run at once.
WORKERS = 6


class Pair:
    """Both libraries."""

    def __init__(self) -> None:
        self._libraries = [Library(name, serve, PATIENCE) for name in ("zeroxide", "zmq")]

    def compare(self, statements: list[str], pause: float) -> Difference | None:
        with ThreadPoolExecutor() as pool:
            asked = [pool.submit(each.ask, (statements, pause)) for each in self._libraries]
        ours, theirs = (each.result() for each in asked)
        if isinstance(ours, str) or isinstance(theirs, str):
            return Difference(statements, ours, theirs)
        if ours == theirs:
            return None
        pairs = enumerate(zip(ours, theirs, strict=True))
        end = next(at for at, (mine, other) in pairs if mine != other) + 1
        return Difference(statements[:end], ours[:end], theirs[:end])

    def confirm(self, statements: list[str]) -> Difference | None:
        """A difference that does not depend on time, or the end of zeroxide's process."""
        found = None
        for pause in PAUSES:
            found = self.compare(statements, pause)
            if found is None or isinstance(found.ours, str):
                return found
            statements = found.statements
        return found

    def is_order(self, found: Difference) -> bool:
        """Whether a socket receives the same messages in another order."""
        last = found.statements[-1]
        if not last.endswith(".recv_multipart()"):
            return False
        rest = self.compare([*found.statements[:-1], f"rest({last[0]})"], PAUSES[-1])
        return rest is None or only_order(rest)

    def shorten(self, found: Difference) -> Difference:
        """Leaves out statements without which the last one still makes a difference that is not listed."""
        for at in reversed(range(len(found.statements) - 1)):
            # A socket that is not closed is closed when its memory is reclaimed, whenever that is.
            if found.statements[at].endswith(".close()"):
                continue
            rest = found.statements[:at] + found.statements[at + 1 :]
            shorter = self.compare(rest, PAUSES[0]) and self.confirm(rest)
            if shorter and shorter.statements == rest and known(shorter) is None:
                found = shorter
        return found

    def close(self) -> None:
        for library in self._libraries:
            library.close()


def compare(seeds: Iterator[int], end: float | None) -> tuple[Counter[str], list[Difference]]:
    """Compares the programs of seeds; returns how many there were of each verdict, and the differences that are not
    listed."""
    seen, wrong, lock = Counter[str](), list[Difference](), threading.Lock()

    def work() -> None:
        pair = Pair()
        try:
            while end is None or time.monotonic() < end:
                with lock:
                    seed = next(seeds, None)
                if seed is None:
                    break
                found = pair.confirm(draw(seed))
                verdict = "same" if found is None else known(found) or "different"
                if found and verdict == "different" and pair.is_order(found):
                    verdict = ORDER
                if found and verdict == "different":
                    found = pair.shorten(found)
                with lock:
                    seen[verdict] += 1
                    if found and verdict == "different":
                        wrong.append(found)
                        print(f"seed {seed}\n{found}", file=sys.stderr, flush=True)
        finally:
            pair.close()

    with ThreadPoolExecutor(WORKERS) as pool:
        for worker in [pool.submit(work) for _ in range(WORKERS)]:
            worker.result()
    return seen, wrong


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--runs", type=int, help="the number of programs, instead of a time")
    parser.add_argument("--seed", type=int, default=1, help="of the first program")
    arguments = parser.parse_args()
    seeds = itertools.count(arguments.seed)
    if arguments.runs:
        seen, wrong = compare(itertools.islice(seeds, arguments.runs), None)
    else:
        seen, wrong = compare(seeds, time.monotonic() + arguments.seconds)
    for verdict, count in seen.most_common():
        print(f"{count:6} {verdict}")
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
