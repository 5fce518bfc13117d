"""The Spark part: reads the flights from sockets, and sends the answer to one."""

import argparse

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

from zeroxide.spark import session

from . import flights, lifeline


def main() -> None:
    """Reads, aggregates and publishes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flights", required=True, help="endpoints, comma-separated")
    parser.add_argument("--answer", required=True, help="where the subscriber is")
    parser.add_argument("--limit", type=float, required=True, help="seconds to give up after")
    arguments = parser.parse_args()

    lifeline.hold_on()
    spark = session(
        "flights",
        # A partition per endpoint and a thread per partition: all airports at once.
        master=f"local[{len(arguments.flights.split(','))}]",
        config={
            "spark.ui.enabled": "false",
            "spark.sql.shuffle.partitions": "2",
            "spark.driver.memory": "1g",
        },
    )
    received = read(spark, arguments.flights, arguments.limit)
    publish(answer(received), arguments.answer)
    spark.stop()


def read(spark: SparkSession, endpoints: str, limit_s: float) -> DataFrame:
    """The flights, once: a socket cannot be read a second time."""
    messages = (
        spark.read.format("zeromq")
        .schema("value binary")
        .option("mode", "live")
        .option("endpoint", endpoints)
        .option("endOfStream", flights.END.decode())
        .option("timeoutMs", int(limit_s * 1000))
        .load()
    )
    # A line that is not a flight ends the query instead of being counted as nothing.
    as_csv = {"nullValue": flights.UNKNOWN, "mode": "FAILFAST"}
    line = f.col("value").cast("string")
    return messages.select(f.from_csv(line, flights.COLUMNS, as_csv).alias("row")).select("row.*")


def answer(received: DataFrame) -> DataFrame:
    """All groups in one pass, as messages: a topic, and numbers as JSON."""
    by_carrier, by_hour, total = ["carrier", "origin"], ["hour"], []
    groups = received.groupingSets([by_carrier, by_hour, total], "carrier", "origin", "hour").agg(
        f.grouping("carrier").alias("all_carriers"),
        f.grouping("hour").alias("all_hours"),
        f.count("*").alias("flights"),
        f.count("dep_delay").alias("departed"),
        f.coalesce(f.sum("dep_delay"), f.lit(0)).alias("minutes"),
        f.count_if(f.col("dep_delay") > flights.LATE).alias("late"),
    )
    topic = (
        f.when(f.col("all_carriers") == 0, flights.BY_CARRIER)
        .when(f.col("all_hours") == 0, flights.BY_HOUR)
        .otherwise(flights.TOTAL)
    )
    value = f.to_json(f.struct(*[name for name in groups.columns if not name.startswith("all_")]))
    return groups.select(topic.alias("topic"), value.alias("value"))


def publish(messages: DataFrame, endpoint: str) -> None:
    """Sends the answer; done when it has left."""
    (
        messages.coalesce(1)  # one task, one PUB socket
        .write.format("zeromq")
        .mode("append")
        .option("endpoint", endpoint)
        .option("socket", "pub")
        .save()
    )


if __name__ == "__main__":
    main()
