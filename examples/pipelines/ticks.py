"""Market ticks to bars: open, high, low, close and VWAP of every symbol, by event time.

Two feeds send ticks to a collector, each as a separate producer. Spark makes bars of ten
seconds of market time, and writes each finished bar to a second log exactly once. Any program
can read that log; here a batch query prints the last bars.
"""

import json
import random
import tempfile
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

import zeroxide as zmq
from zeroxide.pipeline import Collector
from zeroxide.spark import session

FEEDS = {"north": ("AAPL", "MSFT"), "south": ("VALE3", "PETR4")}
OPENING = datetime(2026, 11, 20, 14, 30, tzinfo=UTC)
BAR = "10 seconds"

# A feed may lag this far behind the other before its ticks are too late for their bar.
LATENESS = "5 seconds"


def main() -> None:
    """Runs ten minutes of trading as fast as possible."""
    spark = session("ticks", "local[2]", {"spark.sql.shuffle.partitions": "2"})
    with tempfile.TemporaryDirectory() as folder:
        bars, ticks = run(spark, Path(folder), minutes=10)
        print(f"{ticks:,} ticks in {bars.count()} bars, the last of them:")
        bars.orderBy(f.desc("start"), "symbol").show(8, truncate=False)
    spark.stop()


def run(spark: SparkSession, folder: Path, minutes: int) -> tuple[DataFrame, int]:
    """Returns the bars and the number of ticks in them."""
    with Collector(folder / "ticks") as incoming, Collector(folder / "bars") as outgoing:
        ticks = trade(incoming.endpoint, minutes)
        (
            bars(read(spark, incoming.endpoint))
            .select(
                f.col("symbol").alias("key"),
                f.to_json(f.struct("*")).alias("value"),
                f.col("start").alias("timestamp"),
            )
            .writeStream.format("zeromq")
            .option("endpoint", outgoing.endpoint)
            .option("delivery", "exactly-once")
            .option("topic", "bars")
            .option("checkpointLocation", str(folder / "checkpoint"))
            .outputMode("append")
            .trigger(availableNow=True)  # without this, it keeps running
            .start()
            .awaitTermination()
        )
        schema = "symbol string, start timestamp, open double, high double, low double,"
        schema += " close double, volume long, vwap double"
        written = spark.read.format("zeromq").option("endpoint", outgoing.endpoint).load()
        found = written.select(f.from_json(f.col("value").cast("string"), schema).alias("bar"))
        # The collectors end with this function.
        return found.select("bar.*").localCheckpoint(), ticks


def read(spark: SparkSession, endpoint: str) -> DataFrame:
    """The ticks, as columns."""
    ticks = (
        spark.readStream.format("zeromq")
        .option("endpoint", endpoint)
        .option("startingOffsets", "earliest")
        .load()
    )
    tick = f.from_json(f.col("value").cast("string"), "price double, size long").alias("tick")
    symbol = f.col("key").cast("string").alias("symbol")
    return ticks.select(symbol, "timestamp", "seq", tick).select("*", "tick.*")


def bars(ticks: DataFrame) -> DataFrame:
    """A row per symbol and ten seconds."""
    order = f.struct("timestamp", "seq")
    return (
        ticks.withWatermark("timestamp", LATENESS)
        .groupBy("symbol", f.window("timestamp", BAR))
        .agg(
            f.min_by("price", order).alias("open"),
            f.max("price").alias("high"),
            f.min("price").alias("low"),
            f.max_by("price", order).alias("close"),
            f.sum("size").alias("volume"),
            (f.sum(f.col("price") * f.col("size")) / f.sum("size")).alias("vwap"),
        )
        .select("symbol", f.col("window.start").alias("start"), "open", "high", "low", "close",
                "volume", "vwap")
    )  # fmt: skip


def trade(endpoint: str, minutes: int) -> int:
    """Sends the ticks of both feeds; returns their number."""
    producers = {feed: zmq.Producer(endpoint, name=feed) for feed in FEEDS}
    ticks = 0
    for second, feed, symbol, price, size in market(minutes * 60):
        when = OPENING + timedelta(seconds=second)
        value = json.dumps({"price": price, "size": size}).encode()
        producers[feed].send(value, key=symbol.encode(), timestamp=when)
        ticks += 1
    for producer in producers.values():
        producer.flush(60)
    # The closing bell: time continues without trades, so that the last bars end.
    for producer in producers.values():
        producer.send(b"", key=b"", timestamp=when + timedelta(minutes=1))
        producer.close()
    return ticks


def market(seconds: int) -> Iterator[tuple[float, str, str, float, int]]:
    """Random walks, the same each time."""
    chance = random.Random(7)
    prices = {symbol: 100.0 for symbols in FEEDS.values() for symbol in symbols}
    for second in range(seconds):
        for feed, symbols in FEEDS.items():
            for symbol in symbols:
                for part in range(chance.randrange(1, 12)):
                    prices[symbol] += chance.gauss(0, 0.02)
                    price = round(prices[symbol], 2)
                    yield second + part / 12, feed, symbol, price, chance.randrange(1, 500)


if __name__ == "__main__":
    main()
