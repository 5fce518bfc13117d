"""A table scored by services: the model runs in separate processes, and rows are sent to it.

``python scoring.py`` starts two services and scores a table with them. On a cluster,
``python scoring.py serve tcp://*:5560`` runs where the GPU is, and the services' addresses go
to `rpc`.
"""

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from zeroxide.spark import Service, rpc, session

FEATURES = ("age", "visits", "spent")
WEIGHTS = np.array([-0.03, 0.4, 0.002])


def score(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The model: the probability that a customer comes back."""
    features = np.column_stack([batch[name].to_numpy(zero_copy_only=False) for name in FEATURES])
    return pa.record_batch({"id": batch["id"], "score": 1 / (1 + np.exp(-features @ WEIGHTS))})


@contextmanager
def services(count: int) -> Iterator[list[str]]:
    """Processes that score, and their addresses."""
    command = [sys.executable, __file__, "serve", "tcp://127.0.0.1:*"]
    started = [
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(count)
    ]
    try:
        yield [process.stdout.readline().strip() for process in started if process.stdout]
    finally:
        for process in started:
            process.communicate()  # which closes its input


def serve(endpoint: str) -> None:
    """Serves until its input is closed."""
    with Service(score, endpoint) as service:
        print(service.endpoint, flush=True)
        sys.stdin.read()


def run(spark: SparkSession, endpoints: list[str], customers: int) -> DataFrame:
    """Scores this many customers; returns the probabilities that they come back."""
    table = spark.range(customers).selectExpr(
        "id", "18 + id % 70 AS age", "id % 13 AS visits", "double(id % 997) AS spent"
    )
    return rpc(table, endpoints, "id bigint, score double")


def main() -> None:
    """Scores a million customers."""
    spark = session("scoring", "local[2]")
    with services(2) as endpoints:
        scored = run(spark, endpoints, 1_000_000)
        scored.selectExpr("round(score, 1) AS score").groupBy("score").count().sort("score").show()
    spark.stop()


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(*sys.argv[2:])
    else:
        main()
