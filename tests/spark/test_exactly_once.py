"""The sink to a collector's log, in Spark: repeated writes have their rows in the log once."""

import json
from collections import Counter
from datetime import UTC, datetime

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from zeroxide.pipeline import Client, Collector

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def collector(tmp_path):
    with Collector(tmp_path / "log") as collector:
        yield collector


@pytest.fixture
def published(collector):
    """All readable rows, from the beginning."""

    def read():
        with Client(collector.endpoint) as client:
            batches = client.fetch(0, client.info().latest, headers=True)
            return [row for batch in batches for row in batch.to_pylist()]

    return read


def numbers(rows):
    return sorted(int(row["value"]) for row in rows)


def write(frame, collector, **options):
    writer = frame.write.format("zeromq").mode("append")
    writer.options(endpoint=collector.endpoint, socket="log", **options).save()


def test_a_batch_write(spark, collector, published):
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    header = f.array(f.struct(f.lit("h").alias("key"), f.lit(b"1").alias("value")))
    frame = spark.range(0, 20_000, 1, 3).select(
        f.col("id").cast("string").alias("value"),
        f.lit(b"k").alias("key"),
        f.lit(noon).alias("timestamp"),
        header.alias("headers"),
    )
    write(frame, collector, topic="t")
    rows = published()
    # Rows are in the order of the partitions, and in order within each.
    assert [int(row["value"]) for row in rows] == list(range(20_000))
    assert [row["offset"] for row in rows] == list(range(20_000))
    first = rows[0]
    assert (first["key"], first["topic"], first["timestamp"]) == (b"k", "t", noon)
    assert first["headers"] == [{"key": "h", "value": b"1"}]
    write(frame.limit(5), collector)
    assert len(published()) == 20_005


def test_a_batch_write_that_fails_leaves_nothing(spark, collector, published):
    def fails(batches):
        yield from batches
        raise RuntimeError("as planned")

    frame = spark.range(0, 1000, 1, 2).selectExpr("string(id) AS value")
    with pytest.raises(PySparkException, match="as planned"):
        write(frame.mapInArrow(fails, "value string"), collector)
    assert published() == []
    write(frame, collector)
    assert numbers(published()) == list(range(1000))


def test_a_write_with_a_number_can_be_repeated(spark, collector, published):
    for number, count in ((1, 10), (1, 10), (2, 5), (2, 5)):
        frame = spark.range(count).selectExpr("string(id) AS value")
        write(frame, collector, queryName="daily", batchId=number)
    with pytest.raises(PySparkException, match="batch 1 of query daily is older"):
        write(
            spark.range(10).selectExpr("string(id) AS value"),
            collector,
            queryName="daily",
            batchId=1,
        )
    assert Counter(numbers(published())) == Counter([*range(10), *range(5)])


def files(folder, *numbers):
    folder.mkdir(exist_ok=True)
    for number in numbers:
        rows = (json.dumps({"value": f"{number * 100 + row}"}) + "\n" for row in range(100))
        (folder / f"{number}.json").write_text("".join(rows))


def stream(spark, source):
    return spark.readStream.schema("value string").option("maxFilesPerTrigger", 1).json(str(source))


def run(writer, checkpoint):
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    assert query.awaitTermination(250)
    return query


def forget_commit(checkpoint, batch):
    """Restores the state of a driver that ended between the collector's commit and its own."""
    (checkpoint / "commits" / str(batch)).unlink()
    (checkpoint / "commits" / f".{batch}.crc").unlink(missing_ok=True)


def test_a_replayed_batch(spark, collector, published, tmp_path):
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    files(source, 0, 1, 2)

    def go():
        writer = stream(spark, source).repartition(2).writeStream.format("zeromq")
        writer = writer.options(endpoint=collector.endpoint, delivery="exactly-once")
        return run(writer, checkpoint)

    first = go()
    assert numbers(published()) == list(range(300))
    forget_commit(checkpoint, 2)
    files(source, 3)
    second = go()
    assert second.id == first.id
    replayed = [progress.batchId for progress in second.recentProgress if progress.numInputRows]
    assert replayed == [2, 3]
    assert numbers(published()) == list(range(400))


def test_foreach_batch(spark, collector, published, tmp_path):
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    files(source, 0, 1)

    def both(batch, number):
        write(batch, collector, queryName="one", batchId=number)
        write(batch, collector, queryName="two", batchId=number)

    run(stream(spark, source).writeStream.foreachBatch(both), checkpoint)
    forget_commit(checkpoint, 1)
    files(source, 2)
    run(stream(spark, source).writeStream.foreachBatch(both), checkpoint)
    assert Counter(numbers(published())) == Counter([*range(300), *range(300)])


def test_a_collector_that_is_away_fails_the_write(spark, tmp_path):
    with Collector(tmp_path / "log") as collector:
        pass
    frame = spark.range(1).selectExpr("string(id) AS value")
    with pytest.raises(PySparkException, match=r"CollectorGone"):
        write(frame, collector, ackTimeoutMs=200)


# Spark only starts a second attempt on another host, so there are two: two addresses of this machine.
CLUSTER = """
import json, re, subprocess, sys, threading
from pathlib import Path

import pyspark
from pyspark.sql import functions as f
from zeroxide.pipeline import Client, Collector
from zeroxide.spark import ensure_java, session

folder = Path(sys.argv[1])
processes = []

def start(kind, host, *arguments, until):
    ensure_java()
    command = [Path(pyspark.__file__).parent / "bin" / "spark-class"]
    command += [f"org.apache.spark.deploy.{kind}", "--host", host, "--port", "0"]
    command += ["--webui-port", "0", *arguments]
    processes.append(subprocess.Popen(command, stderr=subprocess.PIPE, text=True))
    for line in processes[-1].stderr:
        if found := re.search(until, line):
            # Otherwise the pipe is not read, and would fill up.
            threading.Thread(target=processes[-1].stderr.read, daemon=True).start()
            return found[1].strip()
    raise SystemExit(f"{kind} has ended")

master = start("master.Master", "127.0.0.1", until=r"Starting Spark master at (spark://[^ ]+)")
for host in ("127.0.0.1", "127.0.0.2"):
    limits = ("-c", "1", "-m", "512m", "-d", str(folder / host))
    start("worker.Worker", host, *limits, master, until="(Successfully registered) with master")

spark = session("exactly once", master, {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.executor.memory": "512m",
    "spark.task.maxFailures": "3",
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.quantile": "0.25",
    "spark.speculation.multiplier": "1.0",
    "spark.speculation.minTaskRuntime": "500ms",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "1000",
})
spark.sparkContext.setLogLevel("OFF")
result = {}
collector = Collector(folder / "log")
client = Client(collector.endpoint)

def fails_at_first(batches):
    # All rows are staged by then: the writer sees the failure when it asks for more.
    from pyspark import TaskContext
    yield from batches
    if TaskContext.get().attemptNumber() == 0:
        raise RuntimeError("as planned")

def hangs_at_first(batches):
    import time
    from pyspark import TaskContext
    task = TaskContext.get()
    yield from batches
    if task.partitionId() == 0 and task.attemptNumber() == 0:
        time.sleep(600)  # until it is killed, because another attempt was faster

def written(change, rows, partitions, first):
    before = client.info().latest
    # Wide rows, so that a task has several parts to stage.
    wide = f.lpad((f.col("id") + first).cast("string"), 1000, "0")
    frame = spark.range(0, rows, 1, partitions).select(wide.alias("value"))
    (frame.mapInArrow(change, "value string").write.format("zeromq").mode("append")
     .options(endpoint=collector.endpoint, delivery="exactly-once").save())
    found = [int(value) for batch in client.fetch(before, client.info().latest)
             for value in batch["value"].to_pylist()]
    return sorted(found) == list(range(first, first + rows))

result["failed"] = written(fails_at_first, 20_000, 2, 0)
result["speculated"] = written(hangs_at_first, 40_000, 4, 1_000_000)
spark.stop()
for process in reversed(processes):
    process.terminate()
client.close()
collector.close()
print("RESULT", json.dumps(result))
"""


def test_failed_and_speculative_tasks(run_script, tmp_path):
    output = run_script(CLUSTER, str(tmp_path), timeout=290)
    (line,) = [line for line in output.splitlines() if line.startswith("RESULT ")]
    result = json.loads(line.removeprefix("RESULT "))
    assert result == {"failed": True, "speculated": True}
