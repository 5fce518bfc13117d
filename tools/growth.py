"""Simulates a growing pipeline: 10 to 100,000 producers, 1 to 100 collectors.

    python tools/growth.py                # the table of docs/pipeline/growth.md
    python tools/growth.py --measure      # with this machine's costs instead of those in COSTS
    python tools/growth.py --rows 500000 --size 1000

Producers and collectors are simulated. A collector is one thread that takes in batches, one
after the other, and a disk that syncs many of them at once. The load of a query's driver is
computed. There are no connections.
"""

import argparse
import json
import math
import os
import random
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

PRODUCERS = (10, 1_000, 100_000)
COLLECTORS = (1, 10, 100)


@dataclass(frozen=True)
class Costs:
    """The costs on one machine."""

    #: Seconds of a collector's thread for a batch, and for each row in it.
    batch: float = 4.0e-6
    row: float = 0.2e-6
    #: Seconds for a sync, and bytes that the disk writes per second in addition.
    sync: float = 0.005
    disk: float = 400e6
    #: Bytes of memory for a connected producer.
    connection: int = 9 * 1024
    #: Seconds of the driver per trigger, and per request to a collector; and the number of
    #: concurrent requests.
    trigger: float = 0.2
    ask: float = 0.001
    asked_at_once: int = 16
    #: Bytes of a collector in the offsets that a checkpoint keeps of each batch.
    offset: int = 110


# Measured with --measure, two cores of a virtual machine with a network disk.
COSTS = Costs()

# The defaults of producers and collectors.
LINGER, BATCH_ROWS, BATCH_BYTES = 0.005, 8192, 512 * 1024
FLUSH_SECONDS, FLUSH_ROWS = 0.010, 20_000
CREDIT_ROWS, CREDIT_BYTES = 8 << 20, 256 << 20
SEGMENT_OVERHEAD = 1.15


@dataclass(frozen=True)
class Load:
    """Rows per second of all producers together, and the size of a row."""

    rows: float
    size: int


@dataclass
class Outcome:
    """One simulated collector, and the driver that reads all of them."""

    producers: int
    collectors: int
    rows_per_batch: float
    busy: float
    disk_busy: float
    median: float
    slowest: float
    memory: float
    credit_rows: int
    driver: float
    checkpoint: int
    descriptors: int

    def breaks(self) -> str:
        """The resource that reaches its limit first."""
        if self.busy >= 0.9:
            return "the collector's thread"
        if self.disk_busy >= 0.9:
            return "the disk"
        if self.descriptors > 65_536:
            return "descriptors: raise LimitNOFILE"
        if self.credit_rows < 2 * self.rows_per_batch:
            return "credit: smaller batches"
        if self.driver > 1:
            return "the driver's trigger"
        return "nothing"


def simulate(producers: int, collectors: int, load: Load, costs: Costs, seconds: float) -> Outcome:
    """Simulates one of several collectors that share the load, starting idle."""
    own = max(1, producers // collectors)
    rate = load.rows / collectors
    rows = min(max(1.0, rate / own * LINGER), BATCH_ROWS, max(1, BATCH_BYTES // load.size))
    batch_rate = rate / rows
    service = costs.batch + rows * costs.row
    size = rows * load.size * SEGMENT_OVERHEAD
    busy = batch_rate * service
    # Syncs follow each other; each covers the batches that arrived meanwhile.
    disk_busy = batch_rate * size / costs.disk
    waits: list[float] = []
    random_ = random.Random(7)
    now = free = 0.0
    written: list[tuple[float, float]] = []
    sync_ends = 0.0
    # An overloaded queue only grows, so its length is meaningless.
    horizon = seconds if busy < 1 and disk_busy < 1 else 0.0
    if batch_rate * horizon > 200_000:
        horizon = 200_000 / batch_rate
    while now < horizon:
        now += random_.expovariate(batch_rate)
        free = max(free, now) + service
        written.append((now, free))
        first, last = written[0][1], written[-1][1]
        full = len(written) * rows >= FLUSH_ROWS
        if (full or last - first >= FLUSH_SECONDS) and last >= sync_ends:
            sync_ends = max(last, first + (0 if full else FLUSH_SECONDS))
            sync_ends += costs.sync + len(written) * size / costs.disk
            waits += [LINGER + sync_ends - came for came, _ in written]
            written.clear()
    waits.sort()
    asked = math.ceil(collectors / costs.asked_at_once) * costs.ask
    return Outcome(
        producers=producers,
        collectors=collectors,
        rows_per_batch=rows,
        busy=busy,
        disk_busy=disk_busy,
        median=waits[len(waits) // 2] if waits else math.inf,
        slowest=waits[len(waits) * 99 // 100] if waits else math.inf,
        memory=own * costs.connection + min(CREDIT_BYTES, rate * load.size * FLUSH_SECONDS * 4),
        credit_rows=min(CREDIT_ROWS, CREDIT_BYTES // load.size) // own,
        driver=costs.trigger + 2 * asked,
        checkpoint=collectors * costs.offset,
        descriptors=own + 64,
    )


def outcomes(load: Load, costs: Costs, seconds: float) -> Iterator[Outcome]:
    for producers in PRODUCERS:
        for collectors in COLLECTORS:
            if collectors <= producers:
                yield simulate(producers, collectors, load, costs, seconds)


def table(rows: Iterator[Outcome]) -> str:
    """Returns the tables in Markdown."""
    lines = [
        "| producers | collectors | rows per batch | thread | disk | acknowledged after (p50, p99) "
        "| memory each | credit in rows | driver per trigger | breaks first |",
        "| ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | ---: | --- |",
    ]
    for row in rows:
        time = "–"
        if math.isfinite(row.median):
            time = f"{row.median * 1e3:.0f}, {row.slowest * 1e3:.0f} ms"
        lines.append(
            f"| {row.producers:,} | {row.collectors} | {row.rows_per_batch:,.0f} "
            f"| {row.busy:.0%} | {row.disk_busy:.0%} | {time} | {row.memory / 2**20:,.0f} MiB "
            f"| {row.credit_rows:,} | {row.driver * 1e3:.0f} ms | {row.breaks()} |"
        )
    return "\n".join(lines)


def measure() -> Costs:
    """Measures the costs on this machine with a collector in a separate process."""
    from zeroxide import Producer
    from zeroxide.pipeline import Client

    with tempfile.TemporaryDirectory(prefix="zeroxide-growth-") as folder:
        command = ["-m", "zeroxide.collector", "--bind", "tcp://127.0.0.1:*", "--dir"]
        collector = subprocess.Popen(
            [sys.executable, *command, str(Path(folder, "log"))],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        try:
            assert collector.stdout is not None
            found = re.search(r"tcp://\S+", collector.stdout.readline())
            assert found is not None, "the collector says where it is"
            endpoint = found[0]

            def seconds_per_row(rows: int, batch: int) -> float:
                name = f"in batches of {batch}"
                with Producer(endpoint, name=name, batch_rows=batch) as producer:
                    producer.send(b"first")
                    producer.flush(60)
                    before = _processor_time(collector.pid)
                    for _ in range(rows // 1000):
                        producer.send_batch([b"x" * 200] * 1000)
                    producer.flush(120)
                    return (_processor_time(collector.pid) - before) / rows

            row = seconds_per_row(2_000_000, 8192)
            batch = seconds_per_row(100_000, 1) - row
            stats = Client(endpoint).stats()["sync_seconds"]
            sync = stats["sum"] / max(1, stats["count"])
        finally:
            collector.terminate()
            collector.wait()
    return replace(COSTS, batch=batch, row=row, sync=sync)


def _processor_time(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1e6, help="rows per second in all")
    parser.add_argument("--size", type=int, default=200, help="bytes of a row")
    parser.add_argument("--seconds", type=float, default=5.0, help="how long is simulated")
    parser.add_argument("--measure", action="store_true", help="measure the costs first")
    options = parser.parse_args()
    costs = measure() if options.measure else COSTS
    if options.measure:
        print(json.dumps(vars(costs), indent=1))
    print(table(outcomes(Load(options.rows, options.size), costs, options.seconds)))


if __name__ == "__main__":
    main()
