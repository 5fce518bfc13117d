"""The pipeline: producer, collector and Spark on this machine, compared with Kafka.

    python benches/pipeline/bench.py [--quick] [--only spark] [--out build/bench/pipeline.json]
    python benches/pipeline/bench.py --repeat 5 --dir /var/tmp

Logs are on the disk of --dir. Every figure is the median of --repeat runs. Each run has a log of
its own, except those with Spark, which share a session. Figures bound by the disk are compared with
dd on the same disk in the same run, with fdatasync. --out is for JSON; the table is next to it, as
Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import zeroxide
from zeroxide.pipeline import Client

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "python"))

from collecting import CHUNK_BYTES, CollectorLog, values
from java_programs import NotInstalled
from kafka_broker import KafkaLog, install
from report import machine, table_line

Figures: TypeAlias = dict[str, float]
# Takes the folder of the logs and the number of repetitions; returns the figures of each run.
Runs: TypeAlias = Callable[[Path, int], list[Figures]]

SPARK_LIMIT_S = 900
SPARK_SETTINGS: list[str] = []  # KEY=VALUE
KAFKA = "Kafka: "


@dataclass
class Case:
    """One row."""

    name: str
    runs: Callable[[int], Runs]  # the argument divides the number of rows
    # Targets by unit, of which one must be met: a minimum for rates, a maximum for seconds.
    wanted: dict[str, float]

    def reached(self, medians: Figures) -> bool | None:
        if not self.wanted:
            return None
        return any(
            medians[unit] <= bound if unit.endswith(" s") else medians[unit] >= bound
            for unit, bound in self.wanted.items()
        )


def each_on_its_own(run: Callable[[Path], Figures]) -> Runs:
    def runs(folder: Path, repeat: int) -> list[Figures]:
        figures = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory(dir=folder) as own:
                figures.append(run(Path(own)))
        return figures

    return runs


def ingest(size: int, rows: int, form: str) -> Runs:
    """Rows per second, from the first call to the last acknowledgement."""

    def run(folder: Path) -> Figures:
        chunk = max(1, CHUNK_BYTES // size)
        table = values(size, chunk)
        listed = table["value"].to_pylist()
        with (
            CollectorLog.running(folder) as log,
            zeroxide.Producer(log.endpoint, timeout_s=None) as producer,
        ):
            producer.send(b"")
            producer.flush()
            began = time.perf_counter()
            for _ in range(rows // chunk):
                if form == "arrow":
                    producer.send_arrow(table)
                elif form == "batch":
                    producer.send_batch(listed)
                else:
                    for value in listed:
                        producer.send(value)
            producer.flush()
            seconds = time.perf_counter() - began
            assert producer.stats()["resent"] == 0
        return acknowledged(folder, size, rows // chunk * chunk, seconds)

    return each_on_its_own(run)


def acknowledged(folder: Path, size: int, rows: int, seconds: float) -> Figures:
    figures = {"M rows/s": rows / seconds / 1e6, "MB/s": rows * size / seconds / 1e6}
    if size >= 1024:
        figures["dd MB/s"] = dd(folder, rows * size)
        figures["of dd"] = figures["MB/s"] / figures["dd MB/s"]
    return figures


def dd(folder: Path, size: int) -> float:
    """Returns the rate at which dd writes to the folder, fdatasync included, in MB/s."""
    blocks = size >> 20
    command = ["dd", "if=/dev/zero", f"of={folder / 'dd'}", "bs=1M", f"count={blocks}"]
    done = subprocess.run(
        [*command, "conv=fdatasync"],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    seconds = re.search(r"copied, ([0-9.e-]+) s", done.stderr)
    assert seconds, done.stderr
    return (blocks << 20) / float(seconds[1]) / 1e6


def fetch(size: int, rows: int) -> Runs:
    """Reads all rows, as pyarrow batches."""

    def run(folder: Path) -> Figures:
        with CollectorLog.running(folder) as log:
            log.fill(size, rows)
            client = Client(log.endpoint)
            info = client.info()
            began = time.perf_counter()
            count = sum(batch.num_rows for batch in client.fetch(info.earliest, info.latest))
            seconds = time.perf_counter() - began
            assert count == info.latest - info.earliest
        return {"M rows/s": count / seconds / 1e6, "MB/s": count * size / seconds / 1e6}

    return each_on_its_own(run)


def kafka_ingest(size: int, rows: int) -> Runs:
    """The same with a broker, after a warm-up with a tenth of the rows."""

    def run(folder: Path) -> Figures:
        with KafkaLog.running(folder) as log:
            log.fill(size, max(rows // 10, 1))
            return acknowledged(folder, size, rows, log.fill(size, rows))

    return each_on_its_own(run)


def spark(what: str, size: int, rows: int, log: str = "collector") -> Runs:
    """Spark, in a process of its own: see spark_roles.py."""

    def runs(folder: Path, repeat: int) -> list[Figures]:
        program = Path(__file__).with_name("spark_roles.py")
        with tempfile.TemporaryDirectory(dir=folder) as own:
            arguments = [what, log, own, str(size), str(rows), str(repeat), *SPARK_SETTINGS]
            done = subprocess.run(
                [sys.executable, str(program), *arguments],
                stdout=subprocess.PIPE,
                text=True,
                check=True,
                timeout=SPARK_LIMIT_S,
            )
        figures: list[Figures] = json.loads(done.stdout.splitlines()[-1])
        return figures

    return runs


CASES = [
    Case(
        "ingest 64 B, send_arrow", lambda n: ingest(64, 12_000_000 // n, "arrow"), {"M rows/s": 3}
    ),
    Case(
        "ingest 64 B, send_batch", lambda n: ingest(64, 12_000_000 // n, "batch"), {"M rows/s": 3}
    ),
    Case("ingest 64 B, send", lambda n: ingest(64, 6_000_000 // n, "send"), {}),
    Case(
        "ingest 1 KiB, send_arrow",
        lambda n: ingest(1024, 1_500_000 // n, "arrow"),
        {"MB/s": 500, "of dd": 0.8},
    ),
    Case("fetch 64 B", lambda n: fetch(64, 16_000_000 // n), {"M rows/s": 10}),
    Case("fetch 1 KiB", lambda n: fetch(1024, 1_500_000 // n), {}),
    Case(
        "spark 64 B, end to end", lambda n: spark("follow", 64, 8_000_000 // n), {"M rows/s": 1.2}
    ),
    Case("spark 1 KiB, end to end", lambda n: spark("follow", 1024, 1_200_000 // n), {"MB/s": 240}),
    Case("spark 64 B, backlog", lambda n: spark("drain", 64, 10_000_000 // n), {"M rows/s": 2.5}),
    Case("spark 20,000 rows/s", lambda n: spark("steady", 64, 400_000 // n), {"p50 s": 0.4}),
    Case(KAFKA + "ingest 64 B", lambda n: kafka_ingest(64, 6_000_000 // n), {}),
    Case(KAFKA + "ingest 1 KiB", lambda n: kafka_ingest(1024, 1_000_000 // n), {}),
    Case(KAFKA + "64 B, end to end", lambda n: spark("follow", 64, 4_000_000 // n, "kafka"), {}),
    Case(KAFKA + "1 KiB, end to end", lambda n: spark("follow", 1024, 600_000 // n, "kafka"), {}),
    Case(KAFKA + "64 B, backlog", lambda n: spark("drain", 64, 10_000_000 // n, "kafka"), {}),
    Case(KAFKA + "20,000 rows/s", lambda n: spark("steady", 64, 400_000 // n, "kafka"), {}),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=Path("build"), help="where the logs go")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--conf", action="append", default=[], help="a setting of Spark: KEY=VALUE")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    SPARK_SETTINGS.extend(options.conf)
    part, repeat = (10, 1) if options.quick else (1, options.repeat)
    options.dir.mkdir(parents=True, exist_ok=True)
    cases = [case for case in CASES if options.only in case.name]
    versions, skipped = kafka_versions(any(case.name.startswith(KAFKA) for case in cases))
    where = machine(["zeroxide", "pyspark", "pyarrow"], versions)
    rows: list[dict[str, Any]] = []
    everything = {"machine": where, "repeat": repeat, "parts": part, "conf": options.conf}
    everything |= {"rows": rows, "skipped": skipped}
    failed = False
    for case in cases:
        if skipped and case.name.startswith(KAFKA):
            continue
        try:
            runs = case.runs(part)(options.dir, repeat)
        except (subprocess.SubprocessError, NotInstalled) as error:
            print(f"{case.name:28} failed: {error}", flush=True)
            failed = True
            continue
        medians = {unit: statistics.median(run[unit] for run in runs) for unit in runs[0]}
        row = {"name": case.name, "median": medians, "runs": runs, "wanted": case.wanted}
        rows.append(row | {"reached": case.reached(medians)})
        print(f"{case.name:28} {' | '.join(cells(rows[-1]))}", flush=True)
        if options.out:
            options.out.parent.mkdir(parents=True, exist_ok=True)
            options.out.write_text(json.dumps(everything, indent=1))
            options.out.with_suffix(".md").write_text(markdown(everything))
    if skipped:
        print(f"{KAFKA}skipped: {skipped}")
    sys.exit(failed)


def kafka_versions(wanted: bool) -> tuple[dict[str, str], str]:
    """The versions of Kafka's parts, or why they are missing."""
    try:
        return install() if wanted else {}, ""
    except NotInstalled as error:
        return {}, str(error)


def markdown(everything: dict[str, Any]) -> str:
    where, repeat = everything["machine"], everything["repeat"]
    versions = ", ".join(f"{name} {value}" for name, value in where.items() if name != "date")
    runs = "one run" if repeat == 1 else f"median (least-most) of {repeat} runs"
    short = f", a {everything['parts']}th of the rows" if everything["parts"] > 1 else ""
    kafka = f" {KAFKA}skipped, {everything['skipped']}." if everything["skipped"] else ""
    if any(row["name"].startswith(KAFKA) for row in everything["rows"]):
        kafka = (
            f" {KAFKA}one broker, one topic with two partitions; `acks=all`, which Kafka sends by default when rows are in"
            " the page cache, whereas a collector has synced its disk; Kafka's own load generator, `batch.size` 128 KiB."
        )
    return "\n".join(
        [
            f"{where['date']}: {versions}; {runs}{short}. All programs of a case run on the same cores, and the sink writes"
            f" nothing. Cases with Spark have a warm-up run that is not counted.{kafka}",
            "",
            table_line(["case", "measured", "target"]),
            table_line(["---"] * 3),
            *(table_line([row["name"], *cells(row)]) for row in everything["rows"]),
            "",
        ]
    )


def number(value: float) -> str:
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def cells(row: dict[str, Any]) -> list[str]:
    """The measured value and the target."""
    shown = []
    for unit, middle in row["median"].items():
        values = [run[unit] for run in row["runs"]]
        spread = f" ({number(min(values))}-{number(max(values))})" if len(values) > 1 else ""
        shown.append(f"{number(middle)}{spread} {unit}")
    wanted = " or ".join(f"{bound:g} {unit}" for unit, bound in row["wanted"].items())
    mark = {True: " ✓", False: " ✗", None: ""}[row["reached"]]
    return [", ".join(shown), wanted + mark]


if __name__ == "__main__":
    main()
