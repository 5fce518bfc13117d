"""A standalone master with two workers whose Python does not have zeroxide: the query ships it."""

import json
import os
import re
import subprocess
import sys
import threading
from pathlib import Path

import pyspark
import pytest

from zeroxide import Producer
from zeroxide.pipeline import Client, Collector
from zeroxide.spark.pack import pack

pytestmark = pytest.mark.slow

SPARK_HOME = Path(pyspark.__file__).parent
ROWS = 20_000

QUERY = """
import json, sys
from pyspark.sql import functions as f
from zeroxide.spark import session

master, archive, source, target, checkpoint = sys.argv[1:]
spark = session("standalone", master, {
    "spark.archives": archive + "#environment",
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
})
spark.sparkContext.setLogLevel("OFF")

def where(batches):
    import pyarrow, sys, zeroxide
    for batch in batches:
        yield pyarrow.RecordBatch.from_pydict({
            "module": [zeroxide.__file__], "python": [sys.executable], "rows": [batch.num_rows],
        })

rows = spark.read.format("zeromq").options(endpoint=source, minPartitions=4).load()
seen = rows.mapInArrow(where, "module string, python string, rows bigint").collect()
stream = (
    spark.readStream.format("zeromq").options(endpoint=source, startingOffsets="earliest").load()
    .select("value")
    .writeStream.format("zeromq").option("endpoint", target).option("delivery", "exactly-once")
    .option("checkpointLocation", checkpoint).trigger(availableNow=True).start()
)
stream.awaitTermination()
hosts = spark.sparkContext._jsc.sc().getExecutorMemoryStatus().size() - 1
spark.stop()
print("RESULT", json.dumps({
    "modules": sorted({row.module for row in seen}),
    "pythons": sorted({row.python for row in seen}),
    "rows": sum(row.rows for row in seen),
    "executors": hosts,
}))
"""


def bare_environment(tmp_path):
    """The environment of a worker, without variables that lead to this package."""
    kept = ("HOME", "JAVA_HOME", "LANG", "PATH", "TMPDIR")
    environment = {name: os.environ[name] for name in kept if name in os.environ}
    return environment | {
        "SPARK_HOME": str(SPARK_HOME),
        "SPARK_NO_DAEMONIZE": "1",
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
    }


@pytest.fixture
def cluster(java, tmp_path):
    """A master and two workers; returns the master's address."""
    processes = []

    def start(kind, *arguments, until):
        process = subprocess.Popen(
            [str(SPARK_HOME / "bin/spark-class"), f"org.apache.spark.deploy.{kind}", *arguments],
            env=bare_environment(tmp_path),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            text=True,
        )
        processes.append(process)
        for line in process.stderr:
            if found := re.search(until, line):
                # Otherwise the pipe is not read, and would fill up.
                threading.Thread(target=process.stderr.read, daemon=True).start()
                return found[1]
        raise AssertionError(f"{kind} ended")

    loopback = ("--host", "127.0.0.1", "--port", "0", "--webui-port", "0")
    master = start("master.Master", *loopback, until=r"Starting Spark master at (spark://\S+)")
    for number in range(2):
        folder = str(tmp_path / f"worker-{number}")
        limits = ("-c", "1", "-m", "512m", "-d", folder)
        done = r"Successfully registered with master (\S+)"
        start("worker.Worker", *loopback, *limits, master, until=done)
    yield master
    for process in reversed(processes):
        process.terminate()
        process.wait(60)


@pytest.fixture
def venv_pack():
    return pytest.importorskip("venv_pack", reason="pip install venv-pack")


def test_the_query_ships_the_package(venv_pack, cluster, tmp_path):
    archive = pack(tmp_path / "environment.tar.gz")
    with Collector(tmp_path / "from") as source, Collector(tmp_path / "to") as target:
        with Producer(source.endpoint, name="standalone") as producer:
            producer.send_batch([b"%d" % number for number in range(ROWS)])
            producer.flush(60)
        environment = os.environ | {
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "PYSPARK_PYTHON": "./environment/bin/python",
            "SPARK_LOCAL_DIRS": str(tmp_path / "local"),
        }
        arguments = (
            cluster,
            str(archive),
            source.endpoint,
            target.endpoint,
            str(tmp_path / "check"),
        )
        query = subprocess.run(
            [sys.executable, "-c", QUERY, *arguments],
            env=environment,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            timeout=300,
        )
        results = [line for line in query.stdout.splitlines() if line.startswith("RESULT ")]
        assert results, query.stderr[-3000:]
        result = json.loads(results[0].removeprefix("RESULT "))
        assert result["rows"] == ROWS
        assert result["executors"] == 2
        for path in result["modules"] + result["pythons"]:
            assert "/environment/" in path and "/worker-" in path
        client = Client(target.endpoint)
        batches = list(client.fetch(0, client.info().latest))
        values = [int(value.as_py()) for batch in batches for value in batch.column("value")]
        assert sorted(values) == list(range(ROWS))
