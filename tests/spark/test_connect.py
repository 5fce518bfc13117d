"""Spark Connect: a client without a JVM, and the package on the server."""

import json
import os
import subprocess
import sys

import pytest

pytest.importorskip("grpc", reason="pip install 'pyspark[connect]'")

from zeroxide import Producer
from zeroxide.pipeline import Client, Collector

pytestmark = pytest.mark.slow

ROWS = 1000

CLIENT = """
import json, sys
from pyspark.sql import SparkSession, functions as f

source, target, checkpoint = sys.argv[1:]
# A server of its own, in a process that this one starts.
spark = SparkSession.builder.remote("local[2]").getOrCreate()
rows = spark.read.format("zeromq").option("endpoint", source).load()
number = f.col("value").cast("string").cast("bigint")
[[count, total]] = rows.agg(f.count("*"), f.sum(number)).collect()
query = (
    spark.readStream.format("zeromq").options(endpoint=source, startingOffsets="earliest").load()
    .select("value")
    .writeStream.format("zeromq").options(endpoint=target, delivery="exactly-once")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
ended = query.awaitTermination(60)
print("RESULT", json.dumps([type(spark).__module__, count, total, ended, str(query.exception())]))
spark.stop()
"""


def test_a_client_reads_and_writes(java, tmp_path):
    with Collector(tmp_path / "from") as source, Collector(tmp_path / "to") as target:
        with Producer(source.endpoint, name="connect") as producer:
            producer.send_batch([b"%d" % number for number in range(ROWS)])
            producer.flush(60)
        environment = os.environ | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}
        client = subprocess.run(
            [
                sys.executable,
                "-c",
                CLIENT,
                source.endpoint,
                target.endpoint,
                str(tmp_path / "check"),
            ],
            env=environment,
            capture_output=True,
            text=True,
            timeout=300,
        )
        results = [line for line in client.stdout.splitlines() if line.startswith("RESULT ")]
        assert results, client.stderr[-3000:]
        module, *result = json.loads(results[0].removeprefix("RESULT "))
        assert module.startswith("pyspark.sql.connect")
        assert result == [ROWS, ROWS * (ROWS - 1) // 2, True, "None"]
        assert Client(target.endpoint).info().latest == ROWS
