"""The pipeline's figures: acknowledged rows into a collector, rows out of it, and Spark in between.

    python benches/pipeline/bench.py                  # all, about five minutes
    python benches/pipeline/bench.py --only ingest --repeat 5 --dir /var/tmp

A collector in a process of its own, a producer here, both on the disk of --dir. Every
figure is the median of --repeat runs; each run has a log of its own. Beside what is
bound by the disk stands what dd reaches there in the same run, with fdatasync.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa

import zeroxide
from zeroxide.collector import Client

COLLECT = """
import sys
from zeroxide.collector import Collector
with Collector(sys.argv[1]) as collector:
    print(collector.endpoint, flush=True)
    sys.stdin.read()
"""


@contextmanager
def collector(folder: Path) -> Iterator[str]:
    """A collector in a process of its own; its address."""
    process = subprocess.Popen(
        [sys.executable, "-c", COLLECT, str(folder)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    try:
        yield process.stdout.readline().strip()
    finally:
        process.communicate()


def values(size: int, rows: int) -> pa.Table:
    """A table of so many values."""
    data = pa.py_buffer(bytes(range(256)) * (size * rows // 256 + 1))
    ends = pa.array(range(0, size * (rows + 1), size), pa.int32()).buffers()[1]
    return pa.table({"value": pa.BinaryArray.from_buffers(pa.binary(), rows, [None, ends, data])})


def fill(endpoint: str, size: int, rows: int) -> None:
    """Brings rows to the collector's disk."""
    chunk = max(1, min(rows, (4 << 20) // size))
    table = values(size, chunk)
    with zeroxide.Producer(endpoint, timeout=None) as producer:
        for _ in range(rows // chunk):
            producer.send_arrow(table)
        if rows % chunk:
            producer.send_arrow(table.slice(0, rows % chunk))
        producer.flush()


def ingest(size: int, rows: int, form: str) -> Callable[[Path], dict[str, float]]:
    """Rows from the first call to the last acknowledgement."""

    def run(folder: Path) -> dict[str, float]:
        chunk = max(1, (4 << 20) // size)
        table = values(size, chunk)
        listed = table["value"].to_pylist()
        with (
            collector(folder / "log") as endpoint,
            zeroxide.Producer(endpoint, timeout=None) as producer,
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
        sent = rows // chunk * chunk
        figures = {"M rows/s": sent / seconds / 1e6, "MB/s": sent * size / seconds / 1e6}
        if size >= 1024:
            figures["dd MB/s"] = dd(folder, sent * size)
            figures["of dd"] = figures["MB/s"] / figures["dd MB/s"]
        return figures

    return run


def dd(folder: Path, size: int) -> float:
    """What dd writes there, fdatasync included, in MB/s."""
    done = subprocess.run(
        [
            "dd",
            "if=/dev/zero",
            f"of={folder / 'dd'}",
            "bs=1M",
            f"count={size >> 20}",
            "conv=fdatasync",
        ],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "LC_ALL": "C"},
    )
    seconds = re.search(r"copied, ([0-9.e-]+) s", done.stderr)
    assert seconds, done.stderr
    return (size >> 20 << 20) / float(seconds[1]) / 1e6


def fetch(size: int, rows: int) -> Callable[[Path], dict[str, float]]:
    """All rows back, as pyarrow batches."""

    def run(folder: Path) -> dict[str, float]:
        with collector(folder / "log") as endpoint:
            fill(endpoint, size, rows)
            client = Client(endpoint)
            info = client.info()
            began = time.perf_counter()
            count = sum(batch.num_rows for batch in client.fetch(info.earliest, info.latest))
            seconds = time.perf_counter() - began
            assert count == info.latest - info.earliest
        return {"M rows/s": count / seconds / 1e6, "MB/s": count * size / seconds / 1e6}

    return run


def spark(what: str, size: int, rows: int) -> Callable[[Path], dict[str, float]]:
    """Spark, in a process of its own: see spark_roles.py."""

    def run(folder: Path) -> dict[str, float]:
        program = Path(__file__).with_name("spark_roles.py")
        arguments = [what, str(folder), str(size), str(rows)]
        done = subprocess.run(
            [sys.executable, str(program), *arguments],
            stdout=subprocess.PIPE,
            text=True,
            check=True,
            timeout=600,
        )
        figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
        return figures

    return run


# What, how, and what was asked for.
CASES: list[tuple[str, Callable[[int], Callable[[Path], dict[str, float]]], str]] = [
    ("ingest 64 B, send_arrow", lambda part: ingest(64, 12_000_000 // part, "arrow"), "3 M rows/s"),
    ("ingest 64 B, send_batch", lambda part: ingest(64, 12_000_000 // part, "batch"), "3 M rows/s"),
    ("ingest 64 B, send", lambda part: ingest(64, 6_000_000 // part, "send"), ""),
    (
        "ingest 1 KiB, send_arrow",
        lambda part: ingest(1024, 1_500_000 // part, "arrow"),
        "500 MB/s or 0.8 of dd",
    ),
    ("fetch 64 B", lambda part: fetch(64, 16_000_000 // part), "10 M rows/s"),
    ("fetch 1 KiB", lambda part: fetch(1024, 1_500_000 // part), ""),
    (
        "spark 64 B, end to end",
        lambda part: spark("follow", 64, 8_000_000 // part),
        "1.2 M rows/s",
    ),
    ("spark 1 KiB, end to end", lambda part: spark("follow", 1024, 1_200_000 // part), "240 MB/s"),
    ("spark 64 B, backlog", lambda part: spark("drain", 64, 10_000_000 // part), "2.5 M rows/s"),
    ("spark 20,000 rows/s", lambda part: spark("steady", 64, 600_000 // part), "p50 0.4 s"),
]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="cases whose name contains this")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--dir", type=Path, default=Path("build"), help="where the logs go")
    parser.add_argument("--quick", action="store_true", help="a tenth of the rows, once")
    parser.add_argument("--out", type=Path, help="a JSON file for the results")
    options = parser.parse_args()
    part, repeat = (10, 1) if options.quick else (1, options.repeat)
    options.dir.mkdir(parents=True, exist_ok=True)
    results: dict[str, Any] = {}
    for name, case, target in CASES:
        if options.only not in name:
            continue
        runs = []
        for _ in range(repeat):
            with tempfile.TemporaryDirectory(dir=options.dir) as folder:
                runs.append(case(part)(Path(folder)))
        medians = {unit: statistics.median(run[unit] for run in runs) for unit in runs[0]}
        results[name] = {"median": medians, "runs": runs, "target": target}
        shown = ", ".join(f"{figure:.3g} {unit}" for unit, figure in medians.items())
        print(f"{name:28} {shown}" + (f"   (asked for: {target})" if target else ""), flush=True)
    if options.out:
        options.out.parent.mkdir(parents=True, exist_ok=True)
        options.out.write_text(json.dumps(results, indent=1))


if __name__ == "__main__":
    main()
