"""A Spark program, as users write them."""

from collections.abc import Iterator

from pyspark.sql import DataFrame, SparkSession

from zeroxide.spark import register, rpc, session


def read() -> DataFrame:
    spark: SparkSession = session(
        "flights", master="local[2]", config={"spark.ui.enabled": "false"}
    )
    register(spark)
    flights = spark.readStream.format("zeromq").option("endpoint", "tcp://collector:5555").load()
    query = flights.writeStream.format("zeromq").option("endpoint", "tcp://other:5555").start()
    query.awaitTermination(10)
    return flights


def call(values: Iterator[bytes]) -> None:
    print(rpc, list(values))
