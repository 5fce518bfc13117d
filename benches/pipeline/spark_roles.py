"""Runs with Spark, all in one session: WHAT LOG FOLDER SIZE ROWS REPEAT [KEY=VALUE ...]; prints the figures of each run as JSON.

follow: a query is up before the first row; the figure is from there to the last row.
drain: all rows are there before the query starts; the query's start-up counts, that of the session does not.
steady: rows arrive at 20,000 rows/s; the figure is the age of a row when its batch is done.

A run before the first is not counted, because a query runs for days and its JVM compiles in its
first seconds. The position of a query is read from its checkpoint, because asking the query would
slow it down.
"""

import json
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from collecting import CollectorLog
from kafka_broker import KafkaLog

from zeroxide.spark import session

Log: TypeAlias = CollectorLog | KafkaLog
Figures: TypeAlias = dict[str, float]

RATE = 20_000
LOOK_S = 0.005
TROUBLE_S = 1.0


class Query:
    """A streaming query that writes nothing."""

    def __init__(self, spark: Any, log: Log, checkpoint: Path) -> None:
        self.log = log
        self.checkpoint = checkpoint
        source = spark.readStream.format(log.format).options(**log.options)
        frame = source.option("startingOffsets", "earliest").load()
        writer = frame.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
        self.query = writer.start()

    def await_rows(self, rows: int) -> None:
        """Waits until the query has processed the log's first `rows` rows."""
        look_for_trouble = 0.0
        while self.done() < rows:
            if time.monotonic() > look_for_trouble:
                if self.query.exception():
                    raise self.query.exception()
                look_for_trouble = time.monotonic() + TROUBLE_S
            time.sleep(LOOK_S)

    def done(self) -> int:
        newest = max(self.batches(), default=None)
        return sum(self.ends(newest).values()) if newest is not None else 0

    def batches(self) -> Iterator[int]:
        """The completed batches."""
        return (int(file.name) for file in (self.checkpoint / "commits").glob("[0-9]*"))

    def ends(self, batch: int) -> dict[int, int]:
        text = (self.checkpoint / "offsets" / str(batch)).read_text()
        return self.log.ends(json.loads(text.splitlines()[-1]))

    def done_at(self, batch: int) -> float:
        return (self.checkpoint / "commits" / str(batch)).stat().st_mtime

    def stop(self) -> None:
        self.query.stop()


def follow(spark: Any, log: Log, folder: Path, size: int, rows: int) -> Iterator[Figures]:
    before = max(rows // 10, 1)
    log.fill(size, before)
    query = Query(spark, log, folder / "checkpoint")
    query.await_rows(before)
    while True:
        began = time.time()
        sent = log.fill(size, rows)
        # The time to start and to end a sender is left out.
        began = time.time() - sent if log.format == "kafka" else began
        before += rows
        query.await_rows(before)
        seconds = query.done_at(max(query.batches())) - began
        yield {
            "M rows/s": rows / seconds / 1e6,
            "MB/s": rows * size / seconds / 1e6,
            "acknowledged M rows/s": rows / sent / 1e6,
        }


def drain(spark: Any, log: Log, folder: Path, size: int, rows: int) -> Iterator[Figures]:
    log.fill(size, rows)
    for number in count():
        began = time.time()
        query = Query(spark, log, folder / f"checkpoint{number}")
        query.await_rows(rows)
        seconds = query.done_at(max(query.batches())) - began
        query.stop()
        yield {"M rows/s": rows / seconds / 1e6, "MB/s": rows * size / seconds / 1e6}


def steady(spark: Any, log: Log, folder: Path, size: int, rows: int) -> Iterator[Figures]:
    before = rows // 10
    log.fill(size, before)
    query = Query(spark, log, folder / "checkpoint")
    query.await_rows(before)
    while True:
        after = max(query.batches())
        log.pace(size, rows, RATE)
        before += rows
        query.await_rows(before)
        p50, p99 = np.percentile(ages_of(spark, query, after), (50, 99))
        yield {"p50 s": float(p50), "p99 s": float(p99)}


def ages_of(spark: Any, query: Query, after: int) -> np.ndarray:
    """The age of each row when its batch was done, for all batches after this one."""
    frame = spark.read.format(query.log.format).options(**query.log.options).load()
    table = frame.selectExpr("partition", "offset", "unix_micros(timestamp) AS sent").toArrow()
    partitions, offsets, sent = (column.to_numpy() for column in table.columns)
    ages = []
    first = query.ends(after)
    for batch in sorted(batch for batch in query.batches() if batch > after):
        last = query.ends(batch)
        for partition, end in last.items():
            rows = (partitions == partition) & (offsets >= first.get(partition, 0))
            ages.append(query.done_at(batch) - sent[rows & (offsets < end)] / 1e6)
        first = last
    return np.concatenate(ages)


def main() -> None:
    what, kind, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    size, rows, repeat = map(int, sys.argv[4:7])
    run = {"follow": follow, "drain": drain, "steady": steady}[what]
    log_of = {"collector": CollectorLog, "kafka": KafkaLog}[kind]
    settings = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "2",
        # Hundreds of batches are looked up afterwards.
        "spark.sql.streaming.minBatchesToRetain": "100000",
        **log_of.settings(),
        **dict(setting.split("=", 1) for setting in sys.argv[7:]),
    }
    spark = session("bench", config=settings)
    spark.sparkContext.setLogLevel("ERROR")
    with log_of.running(folder) as log:
        runs = run(spark, log, folder, size, rows)
        figures = [next(runs) for _ in range(1 + repeat)]
    spark.stop()
    print(json.dumps(figures[1:]))


if __name__ == "__main__":
    main()
