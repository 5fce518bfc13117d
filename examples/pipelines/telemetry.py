"""Devices on unreliable links: no row is lost or duplicated, and the order is kept.

Each device is a producer with a spool on its disk, so rows that the collector has not
acknowledged survive a lost link or a power failure. Sequence numbers tell the collector which
rows it has, so a device can send all of them again. In this example, the link is cut, which
for a device is the same as a restart of the collector, and a device loses its power.
"""

import random
import tempfile
import threading
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import zeroxide as zmq
from zeroxide.pipeline import Collector
from zeroxide.spark import session

DEVICES = 8


def main() -> None:
    """Sends readings through three cuts, and counts them."""
    spark = session("telemetry", "local[2]", {"spark.sql.shuffle.partitions": "2"})
    with tempfile.TemporaryDirectory() as folder:
        run(spark, Path(folder), readings=2_000, cuts=3).show(truncate=False)
    spark.stop()


def run(spark: SparkSession, folder: Path, readings: int, cuts: int) -> DataFrame:
    """Counts the rows in the log for this many readings per device, one row per reading."""
    collector = Collector(folder / "log")
    endpoint = collector.endpoint
    sent = threading.Semaphore(0)
    devices = [
        threading.Thread(target=measure, args=(endpoint, folder, number, readings, sent))
        for number in range(DEVICES)
    ]
    for device in devices:
        device.start()
    for _ in range(cuts):
        for _ in range(DEVICES * readings // (cuts + 1)):
            sent.acquire()
        # Acknowledgements that were in transit are lost.
        collector.close()
        collector = Collector(folder / "log", endpoint)
    for device in devices:
        device.join()
    with collector:
        return count(spark, endpoint).localCheckpoint()


def measure(
    endpoint: str, folder: Path, number: int, readings: int, sent: threading.Semaphore
) -> None:
    """One device."""
    name, spool = f"device-{number}", folder / f"spool-{number}"
    chance = random.Random(number)
    device = zmq.Producer(endpoint, name=name, spool=spool)
    for reading in range(readings):
        if number == 0 and reading == readings // 2:
            # The power fails: rows in memory are lost, rows in the spool are not.
            device.close(timeout_s=0)
            device = zmq.Producer(endpoint, name=name, spool=spool)
        device.send(b"%.2f" % chance.gauss(20, 3), topic="temperature")
        sent.release()
    device.flush(60)
    device.close()


def count(spark: SparkSession, endpoint: str) -> DataFrame:
    """Per device: rows, distinct rows, and unusual readings."""
    rows = spark.read.format("zeromq").option("endpoint", endpoint).load()
    celsius = f.col("value").cast("string").cast("double")
    return (
        rows.withColumn("celsius", celsius)
        .groupBy(f.col("producer").alias("device"))
        .agg(
            f.count("*").alias("rows"),
            f.count_distinct("seq").alias("different"),
            (f.max("seq") - f.min("seq") + 1).alias("expected"),
            f.round(f.avg("celsius"), 2).alias("mean"),
            f.count_if(f.abs(f.col("celsius") - 20) > 9).alias("alarms"),
        )
        .orderBy("device")
    )


if __name__ == "__main__":
    main()
