"""Compares the Rust core with libzmq's C, both without Python: `python benches/python/native.py
[--quick] [--only tcp]`.

Builds benches/libzmq.rs and benches/c/libzmq.c, which take the same arguments, starts each against itself,
alternately, and puts the medians side by side. Where libzmq's header is not installed (Debian: libzmq3-dev) its column is
empty; "tuned", with reads and writes of 64 KiB, needs a libzmq that was built with its draft options.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import report
from cases import NO_LESS, SIZES
from progress import Progress
from report import Row
from runner import machine_cpu, own_cpu

ROOT = Path(__file__).resolve().parents[2]
C_SOURCE = ROOT / "benches" / "c" / "libzmq.c"
OURS, LIBZMQ, TUNED = "zeroxide", "libzmq", "libzmq, tuned"
LIMIT_S = 60
GIANT = 1 << 30

THROUGHPUT = "Rust beside libzmq's C: PUSH/PULL over tcp, messages per second"
CPU = "Rust beside libzmq's C: CPU of both processes per message"
FLOOR = "Rust beside libzmq's C: bytes over tcp, beside a bare connection's"
TURNS = "Rust beside libzmq's C: round trips of 1 B over tcp, one way"
CALLS = "Rust beside libzmq's C: system calls of one process per round trip"
INPROC = "Rust beside libzmq's C: PUSH/PULL inproc, messages per second"
SCALING = "Rust beside libzmq's C: 64 B over tcp, I/O threads and sockets of each side"
GIANTS = "Rust beside libzmq's C: round trips beside a message of 1 GiB on another connection"

Figures = dict[str, float]


class Failed(Exception):
    """A program ended or timed out without its result."""


@dataclass(frozen=True)
class Program:
    """One of the two programs, perhaps with other settings."""

    path: Path
    settings: tuple[tuple[str, str], ...] = ()  # in its environment

    def start(
        self,
        role: str,
        *arguments: object,
        cores: set[int] | None = None,
        under: tuple[str, ...] = (),
    ) -> Running:
        words = [*under, str(self.path), role, *map(str, arguments)]
        return Running(words, os.environ | dict(self.settings), cores)

    def with_settings(self, **settings: str) -> Program:
        """Returns the same program with more in its environment."""
        return replace(self, settings=(*self.settings, *settings.items()))


class Running:
    """A running program, and its output, line by line."""

    def __init__(self, words: list[str], env: dict[str, str], cores: set[int] | None) -> None:
        mine = os.sched_getaffinity(0)
        if cores:
            os.sched_setaffinity(0, cores)  # the child inherits it
        try:
            self.process = subprocess.Popen(
                words, env=env, stdout=subprocess.PIPE, text=True, bufsize=1
            )
        finally:
            os.sched_setaffinity(0, mine)
        self.watchdog = threading.Timer(LIMIT_S, self.process.kill)
        self.watchdog.daemon = True
        self.watchdog.start()

    def hear(self, first: str) -> list[str]:
        assert self.process.stdout is not None
        words = self.process.stdout.readline().split()
        if not words or words[0] != first:
            raise Failed(f"{self.process.args!r} said {words}, not {first}")
        return words[1:]

    def cpu_ns(self) -> int:
        """See clock_getcpuclockid(3)."""
        return time.clock_gettime_ns((~self.process.pid << 3) | 2)

    def end(self) -> None:
        self.watchdog.cancel()
        self.process.kill()
        self.process.communicate()


# ---------------------------------------------------------------- what is measured


@dataclass(frozen=True)
class Settings:
    repetitions: int
    seconds: float
    giant: int
    trips: int  # for counting system calls


FULL = Settings(repetitions=5, seconds=1.0, giant=GIANT, trips=2000)
QUICK = Settings(repetitions=3, seconds=0.4, giant=GIANT // 4, trips=500)


def throughput(
    program: Program,
    settings: Settings,
    size: int,
    threads: int = 1,
    sockets: int = 1,
    raw: str = "",
    roles: tuple[str, str] = ("pull", "push"),
    under: tuple[tuple[str, ...], tuple[str, ...]] = ((), ()),
) -> Figures:
    """`under` are the words that start the reader and the writer, each in a network of its own."""
    with_all = (size, settings.seconds, threads, sockets)
    reading, writing = (f"{raw}{role}" for role in roles)
    reader = program.start(reading, *with_all, under=under[0])
    try:
        writer = program.start(writing, *with_all, *reader.hear("endpoints"), under=under[1])
        try:
            reader.hear("begin")
            before = reader.cpu_ns() + writer.cpu_ns()
            messages, nanoseconds = map(int, reader.hear("end"))
            # The reader exits right after its last line, so the writer's clock is read first.
            used = writer.cpu_ns() + reader.cpu_ns() - before
            return {"rate": messages / nanoseconds * 1e9, "cpu_us": used / 1e3 / messages}
        finally:
            writer.end()
    finally:
        reader.end()


def inproc(program: Program, settings: Settings, size: int) -> Figures:
    both = program.start("inproc", size, settings.seconds, 1, 1)
    try:
        both.hear("begin")
        messages, nanoseconds = map(int, both.hear("end"))
        return {"rate": messages / nanoseconds * 1e9}
    finally:
        both.end()


def turns(program: Program, settings: Settings, cores: set[int] | None, raw: str = "") -> Figures:
    with_all = (1, settings.seconds, 1, 1)
    answering = program.start(f"{raw}rep", *with_all, cores=cores)
    try:
        asking = program.start(f"{raw}req", *with_all, *answering.hear("endpoints"), cores=cores)
        try:
            asking.hear("begin")
            before = asking.cpu_ns() + answering.cpu_ns()
            trips, p50, p99, p999 = map(int, asking.hear("end"))
            used = answering.cpu_ns() - before
            used += asking.cpu_ns()
        finally:
            asking.end()
    finally:
        answering.end()
    figures = {"p50": p50 / 2e3, "p99": p99 / 2e3, "p99.9": p999 / 2e3}
    return figures | {"cpu_us": used / 1e3 / trips}


def system_calls(program: Program, settings: Settings) -> Figures:
    """The difference between many trips and twice as many, because both include starting and
    ending."""
    few, many = (counted(program, trips) for trips in (settings.trips, 2 * settings.trips))
    return {side: (many[side] - few[side]) / settings.trips for side in few}


def counted(program: Program, trips: int) -> dict[str, int]:
    with tempfile.TemporaryDirectory(prefix="zeroxide-strace-") as folder:
        files = {side: Path(folder) / side for side in ("rep", "req")}
        under = {side: ("strace", "-f", "-c", "-o", str(path)) for side, path in files.items()}
        answering = program.start("rep", 1, trips, 1, 1, under=under["rep"])
        try:
            endpoint = answering.hear("endpoints")
            asking = program.start("count", 1, trips, 1, 1, *endpoint, under=under["req"])
            try:
                asking.process.wait(LIMIT_S)
                answering.process.wait(LIMIT_S)
            finally:
                asking.end()
        finally:
            answering.end()
        return {side: calls_in(path.read_text()) for side, path in files.items()}


def calls_in(summary: str) -> int:
    """The number of calls in the last line of what `strace -c` writes."""
    total = re.search(
        r"^\s*100\.00\s+\S+\s+(?:\S+\s+)?(\d+)(?:\s+\d+)?\s+total$", summary, re.MULTILINE
    )
    if total is None:
        raise Failed(f"no total in {summary!r}")
    return int(total[1])


def beside_giant(program: Program, settings: Settings) -> Figures:
    with_all = (settings.giant, settings.seconds / 2, 1, 1)
    bound = program.start("giant_bind", *with_all)
    try:
        connected = program.start("giant_connect", *with_all, *bound.hear("endpoints"))
        try:
            connected.hear("begin")
            _, quiet, quiet_p99, _ = map(int, connected.hear("end"))
            _, during, during_p99, longest = map(int, connected.hear("giant"))
        finally:
            connected.end()
    finally:
        bound.end()
    return {
        "quiet": quiet / 1e6,
        "during": during / 1e6,
        "delay": (during - quiet) / 1e6,
        "delay p99": (during_p99 - quiet_p99) / 1e6,
        "longest": longest / 1e6,
    }


# ---------------------------------------------------------------- side by side


def scaled(runs: report.Runs, key: str, factor: float) -> report.Runs:
    """Returns one figure of the runs, in another unit."""
    return {
        label: [{"x": run[key] * factor, "foreign": run["foreign"]} for run in done]
        for label, done in runs.items()
    }


class Bench:
    def __init__(self, programs: dict[str, Program], settings: Settings, only: str) -> None:
        self.programs, self.settings, self.only = programs, settings, only.lower()
        self.rows: list[Row] = []
        self.progress = Progress(len(self.tables))
        self.table = ""

    def run_all(self) -> None:
        for table in self.tables:
            table()
            self.progress.step()

    def wants(self, group: str, name: str = "") -> bool:
        return self.only in f"{group} {name}".lower()

    def run(
        self, measure: Callable[[Program], Figures], ours_only: bool = False, times: int = 0
    ) -> report.Runs:
        """Runs every program in turn, the requested number of times."""
        programs = {OURS: self.programs[OURS]} if ours_only else self.programs
        runs: report.Runs = {label: [] for label in programs}
        times = times or self.settings.repetitions
        for repetition in range(times):
            self.progress.show(f"{self.table}: {repetition + 1} of {times}")
            labels = list(programs)
            for label in labels if repetition % 2 == 0 else reversed(labels):
                before = (time.monotonic(), machine_cpu(), own_cpu())
                try:
                    figures = measure(programs[label])
                except (Failed, OSError, ValueError, subprocess.TimeoutExpired) as why:
                    print(f"{label}: {why}", file=sys.stderr)
                    continue
                elapsed = time.monotonic() - before[0]
                foreign = (machine_cpu() - before[1]) - (own_cpu() - before[2])
                share = max(0.0, foreign / elapsed / (os.cpu_count() or 1))
                runs[label].append(figures | {"foreign": share})
        return runs

    def row(
        self,
        group: str,
        name: str,
        unit: str,
        key: str,
        runs: report.Runs,
        *,
        targets: tuple[float, ...] = (),
        bound: float | None = None,
        less: bool = False,
    ) -> Row:
        figures = {label: [run[key] for run in done] for label, done in runs.items()}
        noisy = any(
            (report.median([r["foreign"] for r in d]) or 0) > report.NOISY for d in runs.values()
        )
        row = Row(
            group,
            name,
            unit,
            {label: report.median(values) for label, values in figures.items()},
            {label: [min(values), max(values)] for label, values in figures.items() if values},
            {
                label: report.median([run["cpu_us"] for run in done if "cpu_us" in run])
                for label, done in runs.items()
            },
            higher_is_better=not less,
            targets=dict(zip((LIBZMQ, TUNED), targets, strict=False)),
            bound=bound,
            noisy=noisy,
        )
        self.progress.say(report.line(row))
        self.rows.append(row)
        return row

    def heading(self, group: str) -> None:
        self.table = group
        print(f"\n{group}", flush=True)

    def stream(
        self, size: int, threads: int, sockets: int, raw: str = ""
    ) -> Callable[[Program], Figures]:
        return partial(
            throughput,
            settings=self.settings,
            size=size,
            threads=threads,
            sockets=sockets,
            raw=raw,
        )

    # ---- the tables

    @property
    def tables(self) -> tuple[Callable[[], None], ...]:
        return (
            self.streams,
            self.round_trips,
            self.calls,
            self.within,
            self.scaling,
            self.giants,
        )

    def streams(self) -> None:
        targets = {8: (2, 1.4), 64: (2, 1.4), 1024: (4, 1.5), 16384: (5, 1.7), 262144: (1.5, 1.2)}
        cpu_targets = {64: (0.4, 0.6), 1024: (0.35, 0.6)}
        if not self.wants(THROUGHPUT):
            return
        self.heading(THROUGHPUT)
        kept = {}
        for size, wanted in targets.items():
            kept[size] = self.run(self.stream(size, 1, 1))
            self.row(THROUGHPUT, SIZES[size], "msgs/s", "rate", kept[size], targets=wanted)
        self.heading(CPU)
        for size, wanted in cpu_targets.items():
            self.row(CPU, SIZES[size], "us", "cpu_us", kept[size], targets=wanted, less=True)
        self.floor({size: kept[size] for size in (1024, 16384, 262144)})

    def floor(self, streams: dict[int, report.Runs]) -> None:
        """The rates relative to the kernel's, with a thread on each side that only writes or
        reads."""
        self.heading(FLOOR)
        rates, cpus = [1.0], [math.inf]
        for size in (65536, 262144):
            bare = self.run(self.stream(size, 1, 1, raw="raw_"), ours_only=True)
            name = f"bare connection, {SIZES[size]} at a time"
            row = self.row(FLOOR, name, "MB/s", "x", scaled(bare, "rate", size / 1e6))
            rates.append(row.medians[OURS] or 0.0)
            cpu = scaled(bare, "cpu_us", (1 << 20) / size)
            row = self.row(FLOOR, f"{name}, CPU per MiB", "us", "x", cpu, less=True)
            cpus.append(row.medians[OURS] or math.inf)
        for size, runs in streams.items():
            name = f"{SIZES[size]}, over the better one's"
            of_rate = scaled(runs, "rate", size / 1e6 / max(rates))
            self.row(FLOOR, f"{name} rate", "x", "x", of_rate)
            of_cpu = scaled(runs, "cpu_us", (1 << 20) / size / min(cpus))
            self.row(FLOOR, f"{name} CPU", "x", "x", of_cpu, less=True)

    def round_trips(self) -> None:
        if not self.wants(TURNS):
            return
        self.heading(TURNS)
        for place, cores, target in (("free", None, 1 / NO_LESS), ("all on one core", {0}, 0.5)):
            runs = self.run(partial(turns, settings=self.settings, cores=cores))
            raw = self.run(
                partial(turns, settings=self.settings, cores=cores, raw="raw_"), ours_only=True
            )
            for key in ("p50", "p99", "p99.9"):
                wanted = (target,) if key == "p50" else ()
                self.row(TURNS, f"{place}, {key}", "us", key, runs, targets=wanted, less=True)
            bare = self.row(TURNS, f"{place}, p50, bare connection", "us", "p50", raw, less=True)
            multiple = scaled(runs, "p50", 1 / (bare.medians[OURS] or 1.0))
            bound = 1.4 if cores else None
            name = f"{place}, p50 over the bare connection's"
            self.row(TURNS, name, "x", "x", multiple, bound=bound, less=True)

    def calls(self) -> None:
        if not self.wants(CALLS):
            return
        self.heading(CALLS)
        if shutil.which("strace") is None:
            print("skipped: no strace here (Debian: strace)")
            return
        runs = self.run(partial(system_calls, settings=self.settings))
        for side, name in (("req", "who asks"), ("rep", "who answers")):
            self.row(CALLS, name, "calls", side, runs, bound=6, less=True)

    def within(self) -> None:
        if not self.wants(INPROC):
            return
        self.heading(INPROC)
        for size, *target in ((64, 2.5), (1024,)):
            runs = self.run(partial(inproc, settings=self.settings, size=size))
            self.row(INPROC, SIZES[size], "msgs/s", "rate", runs, targets=tuple(target))

    def scaling(self) -> None:
        if not self.wants(SCALING):
            return
        self.heading(SCALING)
        kept: dict[tuple[int, int], report.Runs] = {}
        for threads, sockets in ((1, 1), (1, 2), (2, 2), (1, 4), (2, 4), (4, 4), (1, 8), (4, 8)):
            kept[threads, sockets] = self.run(self.stream(64, threads, sockets), times=3)
            name = (
                f"{threads} I/O thread{'s' * (threads > 1)}, {sockets} socket{'s' * (sockets > 1)}"
            )
            self.row(SCALING, name, "msgs/s", "rate", kept[threads, sockets])
        # One socket on each side already fills two cores, so the figure is CPU per message.
        per_core: report.Runs = {}
        for label, done in kept[2, 2].items():
            alone = report.median([run["cpu_us"] for run in kept[1, 1][label]]) or 0.0
            per_core[label] = [
                {"x": 2 * alone / run["cpu_us"], "foreign": run["foreign"]} for run in done
            ]
        self.row(SCALING, "2 on 2 over 1 on 1 at the same CPU", "x", "x", per_core, bound=1.8)

    def giants(self) -> None:
        if not self.wants(GIANTS):
            return
        self.heading(GIANTS)
        runs = self.run(partial(beside_giant, settings=self.settings))
        self.row(GIANTS, "median without it", "ms", "quiet", runs, less=True)
        self.row(GIANTS, "median beside it", "ms", "during", runs, less=True)
        self.row(GIANTS, "delay of the median", "ms", "delay", runs, bound=1, less=True)
        self.row(GIANTS, "delay of the 99th percentile", "ms", "delay p99", runs, less=True)
        self.row(GIANTS, "longest beside it", "ms", "longest", runs, less=True)


# ---------------------------------------------------------------- the programs


def build_c(path: Path, *libzmq: str) -> Program | None:
    """Builds the program; `libzmq` is where the compiler finds the library, unless the system has it."""
    compiler = shutil.which("cc")
    if compiler is None:
        print("libzmq is left out: no C compiler here (Debian: gcc libc6-dev)")
        return None
    built = subprocess.run(
        [compiler, "-O2", "-o", path, C_SOURCE, *(libzmq or ("-lzmq",)), "-lpthread"],
        capture_output=True,
        text=True,
    )
    if built.returncode != 0:
        first = next(iter(built.stderr.splitlines()), "")
        print(f"libzmq is left out: benches/c does not build (Debian: libzmq3-dev): {first}")
        return None
    return Program(path)


def build_rust(profile: str) -> Program:
    command = ("cargo", "build", "--locked", "--profile", profile, "--bench", "libzmq")
    said = subprocess.run(
        (*command, "--message-format=json"), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout
    for line in said.splitlines():
        built = json.loads(line)
        if built.get("executable") and built["target"]["name"] == "libzmq":
            return Program(Path(built["executable"]))
    raise Failed("cargo built no program")


def version(program: Program) -> str:
    return subprocess.run(
        [program.path, "version"], capture_output=True, text=True, check=True
    ).stdout.strip()


def main() -> int:
    arguments = parse(__doc__)
    out: Path = arguments.out
    out.mkdir(parents=True, exist_ok=True)
    programs: dict[str, Program] = {}
    versions: dict[str, str] = {}
    if (c := build_c(out / "libzmq")) is not None:
        programs[LIBZMQ] = c
        versions[LIBZMQ] = version(c)
        if versions[LIBZMQ].endswith("draft"):
            programs[TUNED] = c.with_settings(ZEROXIDE_BENCH_TUNED="1")
        else:
            print(
                f"no column for a tuned libzmq: {versions[LIBZMQ]} was built without draft options"
            )
    programs[OURS] = build_rust(arguments.profile)
    versions[OURS] = f"{version(programs[OURS])} ({arguments.profile})"
    settings = QUICK if arguments.quick else FULL
    bench = Bench(programs, settings, arguments.only)
    started = time.monotonic()
    bench.run_all()
    if not bench.rows:
        print(f"no heading holds {arguments.only!r}")
        return 0
    results = {
        "machine": report.machine([], versions),
        "settings": vars(settings),
        "labels": list(programs),
        "rows": report.as_json(bench.rows),
    }
    (out / "native.json").write_text(json.dumps(results, indent=1) + "\n")
    (out / "native.md").write_text(report.markdown(results))
    missed = [row for row in bench.rows if row.missed]
    elapsed = time.monotonic() - started
    print(f"\n{len(bench.rows)} rows in {elapsed:.0f} s, {len(missed)} below their target")
    print(f"written: {out}/native.json and native.md")
    return 0


def parse(description: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="a short look")
    parser.add_argument("--only", default="", help="just the tables whose heading holds this text")
    parser.add_argument("--profile", default="release", help="how cargo builds ours")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "bench")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
