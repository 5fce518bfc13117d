"""The Spark part: flights from the collector, by day, to a log and to the live view."""

import argparse
import time

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.streaming import StreamingQuery

import zeroxide as zmq
from zeroxide.spark import session
from zeroxide.spark.metrics import measure

from . import flights, lifeline

REPORT_S = 0.2


def main() -> None:
    """Starts both queries and reports their progress until the process is ended."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", required=True, help="the collector to read")
    parser.add_argument("--answer", required=True, help="the collector to write to")
    parser.add_argument("--view", required=True, help="where the view subscribes")
    parser.add_argument("--report", required=True, help="endpoint for progress reports")
    parser.add_argument("--checkpoint", required=True, help="a folder")
    parser.add_argument("--limit", type=float, required=True, help="ignored: ended from outside")
    arguments = parser.parse_args()

    lifeline.hold_on()
    spark = session(
        "flights",
        master="local[2]",
        config={
            "spark.ui.enabled": "false",
            "spark.sql.session.timeZone": "UTC",
            "spark.sql.shuffle.partitions": "1",
            "spark.driver.memory": "1g",
            # This JVM runs for seconds, too short for optimised code to pay off.
            "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
        },
    )
    final = (
        to_messages(daily(read(spark, arguments.flights), "origin", "carrier"))
        .writeStream.queryName("final")
        .format("zeromq")
        .option("delivery", "exactly-once")
        .option("endpoint", arguments.answer)
        .option("checkpointLocation", f"{arguments.checkpoint}/final")
        .outputMode("append")  # each window once, when it is complete
        .start()
    )
    live = (
        to_messages(daily(read(spark, arguments.flights), "origin"))
        .writeStream.queryName("live")
        # Python data sources have no update mode, but foreachBatch does.
        .foreachBatch(lambda windows, _: publish(windows, arguments.view))
        .option("checkpointLocation", f"{arguments.checkpoint}/live")
        .outputMode("update")  # each window whenever it changes
        .start()
    )
    report([final, live], arguments.report)


def read(spark: SparkSession, endpoint: str) -> DataFrame:
    """The flights with their scheduled departures."""
    messages = (
        spark.readStream.format("zeromq")
        .option("endpoint", endpoint)
        .option("startingOffsets", "earliest")
        .option("maxOffsetsPerTrigger", 40_000)
        .load()
        .withWatermark("timestamp", flights.WATERMARK)
        # A row after the end of the year only moves the watermark. A condition on any other
        # column would be tested first, and the watermark would not see that row.
        .where(f.col("timestamp") < f.lit(flights.LAST))
    )
    # A line that is not a flight ends the query instead of being ignored.
    as_csv = {"nullValue": flights.UNKNOWN, "mode": "FAILFAST"}
    line = f.from_csv(f.col("value").cast("string"), flights.COLUMNS, as_csv)
    return messages.select("timestamp", line.alias("flight")).select("timestamp", "flight.*")


def daily(rows: DataFrame, *groups: str) -> DataFrame:
    """Delays by day and group."""
    return rows.groupBy(f.window("timestamp", "1 day"), *groups).agg(
        f.count("*").alias("flights"),
        f.count("dep_delay").alias("departed"),
        f.count_if(f.col("dep_delay") > flights.LATE).alias("late"),
        f.coalesce(f.sum("dep_delay"), f.lit(0)).alias("minutes"),
    )


def to_messages(windows: DataFrame) -> DataFrame:
    """A window as a message: its day as the key, and the rest as JSON."""
    day: Column = f.date_format("window.start", "yyyy-MM-dd")
    names = [name for name in windows.columns if name != "window"]
    value = f.to_json(f.struct(day.alias("day"), *names))
    return windows.select(day.alias("topic"), value.alias("value"))


def publish(windows: DataFrame, endpoint: str) -> None:
    """Sends changed windows to the view."""
    (
        windows.coalesce(1)  # one task, one PUB socket
        .write.format("zeromq")
        .mode("append")
        .option("socket", "pub")
        .option("endpoint", endpoint)
        .save()
    )


def waits_for_data(query: StreamingQuery) -> bool:
    """Whether the query has opened its source."""
    return query.lastProgress is not None or query.status["message"].startswith("Waiting")


def report(queries: list[StreamingQuery], endpoint: str) -> None:
    """Reports the progress of the queries until one of them fails."""
    with zmq.Context() as context, context.socket(zmq.PUSH) as log:
        log.connect(endpoint)
        ready = False
        while all(query.isActive for query in queries):
            if not ready and all(map(waits_for_data, queries)):
                ready = True
                log.send_json({"ready": True})
            progress = queries[0].lastProgress
            metrics = measure(progress) if progress is not None else None
            if metrics is not None:
                (collector,) = metrics.collectors.values()
                log.send_json({"batch": metrics.batch, "read": collector.offset})
            time.sleep(REPORT_S)
    for query in queries:
        query.awaitTermination(1)  # raises the query's exception


if __name__ == "__main__":
    main()
