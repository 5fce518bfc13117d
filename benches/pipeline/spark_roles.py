"""One run with Spark: WHAT FOLDER SIZE ROWS; prints the figures as JSON.

follow: a query is up before the first row; the figure is from there to the last row.
drain: all rows are there before the query starts; start-up counts, the session's does not.
steady: 20,000 rows/s for as long as that takes; how old a row is when its batch is done.
"""

import json
import statistics
import sys
import threading
import time
from pathlib import Path
from typing import Any

from bench import collector, fill

import zeroxide
from zeroxide.spark import session

RATE = 20_000


class Query:
    """A streaming query that counts, and writes nothing."""

    def __init__(self, spark: Any, endpoint: str, folder: Path, keep: bool = False) -> None:
        self.rows = 0
        self.batches: list[tuple[float, int]] = []
        self.ages: list[float] = []
        self.changed = threading.Condition()
        self.keep = keep
        frame = (
            spark.readStream.format("zeromq")
            .option("endpoint", endpoint)
            .option("startingOffsets", "earliest")
            .load()
        )
        writer = frame.writeStream.option("checkpointLocation", str(folder / "checkpoint"))
        writer = writer.foreachBatch(self.note) if keep else writer.format("noop")
        self.query = writer.start()

    def note(self, frame: Any, _: int) -> None:
        times = [row[0].timestamp() for row in frame.select("timestamp").collect()]
        now = time.time()
        self.ages.extend(now - sent for sent in times)

    def await_rows(self, rows: int) -> None:
        """Waits until the query is done with so many rows."""
        while self.done() < rows:
            if self.query.exception():
                raise self.query.exception()
            time.sleep(0.01)

    def done(self) -> int:
        return sum(progress["numInputRows"] for progress in self.query.recentProgress)

    def await_ready(self) -> None:
        while not self.query.status["message"].startswith("Waiting"):
            time.sleep(0.05)


def follow(spark: Any, endpoint: str, folder: Path, size: int, rows: int) -> dict[str, float]:
    fill(endpoint, size, 1)
    query = Query(spark, endpoint, folder)
    query.await_rows(1)
    began = time.perf_counter()
    fill(endpoint, size, rows)
    sent = time.perf_counter() - began
    query.await_rows(rows + 1)
    seconds = time.perf_counter() - began
    query.query.stop()
    return {
        "M rows/s": rows / seconds / 1e6,
        "MB/s": rows * size / seconds / 1e6,
        "acknowledged M rows/s": rows / sent / 1e6,
    }


def drain(spark: Any, endpoint: str, folder: Path, size: int, rows: int) -> dict[str, float]:
    fill(endpoint, size, rows)
    began = time.perf_counter()
    query = Query(spark, endpoint, folder)
    query.await_rows(rows)
    seconds = time.perf_counter() - began
    query.query.stop()
    return {"M rows/s": rows / seconds / 1e6, "MB/s": rows * size / seconds / 1e6}


def steady(spark: Any, endpoint: str, folder: Path, size: int, rows: int) -> dict[str, float]:
    fill(endpoint, size, 1)
    query = Query(spark, endpoint, folder, keep=True)
    while not query.ages:
        time.sleep(0.05)
    value, step = bytes(size), RATE // 100
    with zeroxide.Producer(endpoint) as producer:
        began = time.time()
        for at in range(0, rows, step):
            producer.send_batch([value] * step, timestamp=time.time())
            time.sleep(max(0.0, began + (at + step) / RATE - time.time()))
    while len(query.ages) < rows:
        time.sleep(0.05)
    query.query.stop()
    ages = sorted(query.ages[len(query.ages) // 4 :])
    return {"p50 s": statistics.median(ages), "p99 s": ages[len(ages) * 99 // 100]}


def main() -> None:
    what, folder = sys.argv[1], Path(sys.argv[2])
    size, rows = int(sys.argv[3]), int(sys.argv[4])
    run = {"follow": follow, "drain": drain, "steady": steady}[what]
    quiet = {"spark.ui.enabled": "false", "spark.ui.showConsoleProgress": "false"}
    spark = session("bench", config=quiet | {"spark.sql.shuffle.partitions": "2"})
    spark.sparkContext.setLogLevel("ERROR")
    # What the first job of a session costs is not what is measured.
    spark.range(10).count()
    with collector(folder / "log") as endpoint:
        figures = run(spark, endpoint, folder, size, rows)
    spark.stop()
    print(json.dumps(figures))


if __name__ == "__main__":
    main()
