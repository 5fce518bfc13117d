"""Makes sockets do everything for an hour, and reports whether memory, descriptors and threads stay level.

    python tests/soak/sockets.py                                  # an hour
    python tests/soak/sockets.py --minutes 2 --seed 7
    python tests/soak/sockets.py --only churn,forks
    python tests/soak/sockets.py --rounds 1 --patience 600 --signal-ms 20    # for a slow machine, such as valgrind's

Rounds of patterns, churn, hostile and killed peers, forks and signals (`loads.py`) follow each other in one process and one
context, in an order that the seed decides. Every few seconds, after a round of all loads, memory, descriptors and threads are read. The report
has the slope of each per hour, over the last three quarters of the run. The last line is the verdict.
"""

from __future__ import annotations

import argparse
import faulthandler
import gc
import os
import random
import shutil
import statistics
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NamedTuple

from loads import LOADS, Bench, Wrong

import zeroxide as zmq

TELL_S = 60
# How long the next sample waits after the first few.
SAMPLE_S = 5
# Descriptors close shortly after their sockets. The longest wait for that.
SETTLE_S = 2
# A load has stalled if it takes as many times the longest wait for a message.
STALL = 5
# Growth of the memory that the allocator may cause.
SLACK_BYTES = 4 << 20
SLACK_SHARE = 0.03


class Sample(NamedTuple):
    """The process after a round of all loads."""

    seconds: float
    memory: int
    descriptors: int
    threads: int


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument(
        "--rounds", type=int, help="of each load instead of minutes, and nothing has to stay level"
    )
    parser.add_argument(
        "--patience", type=float, default=60, help="the longest wait for a message, in seconds"
    )
    parser.add_argument(
        "--signal-ms", type=float, default=2, help="the interval of signals, in milliseconds"
    )
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    parser.add_argument("--only", help="names of loads, with commas between them")
    given = parser.parse_args(arguments)
    named = given.only.split(",") if given.only else [load.__name__ for load in LOADS]
    if unknown := set(named) - {load.__name__ for load in LOADS}:
        parser.error(f"there is no load {', '.join(sorted(unknown))}")
    loads = [load for load in LOADS if load.__name__ in named]
    print(f"seed {given.seed}, Python {sys.version.split()[0]}, zeroxide {zmq.__version__}")
    try:
        if given.rounds is not None:
            run(loads, 0, given.seed, given.rounds, given.patience, given.signal_ms)
            print("FINE: every message arrived")
            return 0
        seconds, patience, signal_ms = given.minutes * 60, given.patience, given.signal_ms
        samples, rounds = run(loads, seconds, given.seed, patience=patience, signal_ms=signal_ms)
    except Wrong as error:
        print(f"WRONG: {error}")
        return 1
    problems = report(samples, rounds)
    for problem in problems:
        print("WRONG:", problem)
    if not problems:
        print("FINE: every message arrived, and memory, descriptors and threads stay level")
    return 1 if problems else 0


def run(
    loads: Sequence[Callable[[Bench], None]],
    seconds: float,
    seed: int,
    least: int = 8,
    patience: float = 60,
    signal_ms: float = 2,
) -> tuple[list[Sample], Counter[str]]:
    """Runs rounds of all loads for this long, and `least` of them at any rate. Returns samples that were taken after a round of all
    loads, and the rounds of each load.

    A load that stalls ends the process, with the tracebacks of all threads.

    Raises:
        Wrong: If a message was missing, repeated, out of order or changed; names the load.
    """
    chance = random.Random(seed)
    folder = Path(tempfile.mkdtemp(prefix="zx-soak-"))
    rounds: Counter[str] = Counter()
    samples: list[Sample] = []
    start = told = time.monotonic()
    try:
        with zmq.Context() as context:
            bench = Bench(context, chance, folder, patience, signal_ms)
            context.socket(zmq.PAIR).close()  # starts the threads
            level = count("fd")
            while time.monotonic() - start < seconds or len(samples) < least:
                # Each load once, in another order.
                for load in chance.sample(loads, len(loads)):
                    # This ends the process even if a call that stalls keeps the GIL. 2 is standard error.
                    faulthandler.dump_traceback_later(STALL * patience, exit=True, file=2)
                    try:
                        load(bench)
                    except Wrong as error:
                        raise Wrong(
                            f"{load.__name__}, round {rounds[load.__name__]}: {error}"
                        ) from None
                    finally:
                        faulthandler.cancel_dump_traceback_later()
                    rounds[load.__name__] += 1
                passed = time.monotonic() - start
                # Each sample takes memory itself. One of each round would be 2 MiB an hour.
                if len(samples) < least or passed - samples[-1].seconds > SAMPLE_S:
                    samples.append(sample(passed, level))
                    # These descriptors stay open. The report shows it if there are more and more of them.
                    level = samples[-1].descriptors
                if time.monotonic() - told > TELL_S:
                    told = time.monotonic()
                    print(f"{told - start:6.0f} s {sum(rounds.values())} rounds", samples[-1][1:])
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    return samples, rounds


def sample(seconds: float, level: int) -> Sample:
    """Reads the process once it has as many descriptors as before, or will not have."""
    gc.collect()
    limit = time.monotonic() + SETTLE_S
    while count("fd") > level and time.monotonic() < limit:
        time.sleep(0.01)
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    memory = pages * os.sysconf("SC_PAGE_SIZE")
    return Sample(seconds, memory, count("fd"), count("task"))


def count(what: str) -> int:
    """The descriptors (`fd`) or threads (`task`) of this process."""
    return len(os.listdir(f"/proc/self/{what}"))


def report(samples: list[Sample], rounds: Counter[str]) -> list[str]:
    """Prints slopes and rounds. Returns what is not level."""
    later = samples[len(samples) // 4 :]
    seconds = [sample.seconds for sample in later]
    window = seconds[-1] - seconds[0]
    problems = []
    for name in Sample._fields[1:]:
        values = [getattr(sample, name) for sample in later]
        slope = statistics.linear_regression(seconds, values).slope if window else 0.0
        scale, unit = (1 / 1024, "KiB") if name == "memory" else (1, "")
        first, last = values[0] * scale, values[-1] * scale
        print(
            f"{name:12} {slope * 3600 * scale:+10.2f} {unit} an hour, {first:.0f} -> {last:.0f} {unit}"
        )
        slack = max(SLACK_BYTES, SLACK_SHARE * values[0]) if name == "memory" else 0.5
        if slope * window > slack:
            problems.append(f"{name} grow with {slope * 3600 * scale:.1f} {unit} an hour")
    print("rounds:", ", ".join(f"{name} {number}" for name, number in sorted(rounds.items())))
    return problems


if __name__ == "__main__":
    sys.exit(main())
