"""The replayable source in a local session with a real collector: behaviour that only Spark shows."""

import contextlib
import json
import os
import shutil

import pyspark
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

from zeroxide import Producer
from zeroxide.pipeline import Client, Collector
from zeroxide.spark.metrics import measure

WAIT_S = 240
pytestmark = pytest.mark.timeout(300)
SPARK = tuple(map(int, pyspark.__version__.split(".")[:2]))


@pytest.fixture
def collector(tmp_path):
    with Collector(tmp_path / "log") as collector:
        yield collector


@pytest.fixture
def fill(collector):
    """Appends rows with the values start to end, acknowledged."""

    def append(start, end, to=collector, topic=None):
        with Producer(to.endpoint, name=f"p{topic or ''}") as producer:
            for number in range(start, end):
                producer.send(b"%d" % number, topic=topic, key=b"k")
            producer.flush(WAIT_S)

    return append


@pytest.fixture
def stream(spark, collector, tmp_path):
    """Runs a query over all existing rows, and returns the values in each batch."""
    batches = {}

    def run(now=None, until=None, endpoint=None, **options):
        options = {"startingOffsets": "earliest"} | options
        reader = spark.readStream.format("zeromq").options(**options)
        reader = reader.option("endpoint", endpoint or collector.endpoint)

        def note(frame, batch):
            rows = frame.select("value", "offset", "partition").collect()
            kept = sorted((row.partition, row.offset, int(row.value)) for row in rows)
            batches.setdefault(batch, []).append(kept)
            if now is not None:
                now(batch)

        query = (
            reader.load()
            .writeStream.foreachBatch(note)
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        try:
            assert query.awaitTermination(WAIT_S)
        finally:
            query.stop()
        if SPARK < (4, 2) and until not in (None, len(run.values())):
            return run(now, None, endpoint, **options)  # there, a run is one batch
        return query

    run.batches = batches
    run.values = lambda: [value for batch in sorted(batches) for _, _, value in batches[batch][-1]]
    return run


def batch(spark, collector, **options):
    return spark.read.format("zeromq").options(endpoint=collector.endpoint, **options).load()


def test_a_batch_has_every_column(spark, collector, fill):
    with Producer(collector.endpoint, name="device") as producer:
        producer.send(b"v", key=b"k", topic="t", headers={"h": b"1"}, timestamp=1_700_000_000.5)
        producer.send(b"w")
        producer.flush(WAIT_S)
    frame = batch(spark, collector, includeHeaders=True, includeFrames=True)
    assert frame.schema.simpleString() == (
        "struct<key:binary,value:binary,topic:string,partition:int,offset:bigint,"
        "timestamp:timestamp,timestampType:int,receive_time:timestamp,producer:string,seq:bigint,"
        "headers:array<struct<key:string,value:binary>>,frames:array<binary>>"
    )
    one, two = frame.orderBy("offset").collect()
    assert (one.key, one.value, one.topic, one.partition) == (b"k", b"v", "t", 0)
    assert (one.offset, two.offset, one.seq + 1, one.producer) == (0, 1, two.seq, "device")
    assert [tuple(header) for header in one.headers] == [("h", b"1")]
    assert (one.timestamp.timestamp(), one.timestampType) == (1_700_000_000.5, 0)
    assert one.receive_time > one.timestamp
    assert (two.key, two.topic) == (None, None)


def test_a_batch_between_offsets_in_several_tasks(spark, collector, fill):
    fill(0, 5000)
    ends = {"startingOffsets": 1000, "endingOffsets": 4000}
    options = {name: json.dumps({collector.endpoint: at}) for name, at in ends.items()}
    frame = batch(spark, collector, minPartitions=7, **options)
    assert frame.rdd.getNumPartitions() == 7
    number = f.col("value").cast("string").cast("int")
    row = frame.agg(f.count("*").alias("n"), f.sum(number).alias("sum")).first()
    assert (row.n, row["sum"]) == (3000, sum(range(1000, 4000)))


def test_a_frame_may_be_used_twice(spark, collector, fill):
    fill(0, 1000)
    frame = batch(spark, collector).select("offset")
    assert [row.offset for row in frame.sort(f.desc("offset")).take(2)] == [999, 998]
    assert frame.count() == 1000
    assert frame.limit(3).count() == 3


def test_topics(spark, collector, fill):
    for topic in ("air.nox", "air.pm10", "water"):
        fill(0, 10, topic=topic)
    assert batch(spark, collector, subscribe="air.,wat").count() == 30
    frame = batch(spark, collector, subscribe="air.p")
    assert {row.topic for row in frame.collect()} == {"air.pm10"}


@pytest.mark.slow
def test_filters(spark, collector, fill):
    if SPARK < (4, 1):
        with pytest.raises(PySparkException, match=r"needs pyspark 4\.1"):
            batch(spark, collector, filterPushdown="once").count()
        return
    fill(0, 1000)
    spark.conf.set("spark.sql.python.filterPushdown.enabled", "true")
    try:
        for condition, count in (
            ("offset >= 900 and offset < 950", 50),
            ("receive_time < timestamp '2000-01-01 00:00:00'", 0),
        ):
            frame = batch(spark, collector, filterPushdown="once")
            assert frame.where(condition).count() == count
    finally:
        spark.conf.unset("spark.sql.python.filterPushdown.enabled")


def test_a_stream_in_limited_batches(stream, fill):
    fill(0, 1000)
    query = stream(maxOffsetsPerTrigger=300)
    sizes = [len(stream.batches[batch][0]) for batch in sorted(stream.batches)]
    if SPARK < (4, 2):
        assert sizes == [300]  # this version cannot report that more rows exist
        return
    assert sizes == [300, 300, 300, 100]
    assert stream.values() == list(range(1000))
    metrics = [measure(progress) for progress in query.recentProgress]
    lags = [one.lag for one in metrics if one is not None and one.rows]
    assert lags == [700, 400, 100, 0]


def test_an_uncommitted_batch_is_repeated(stream, fill, tmp_path):
    fill(0, 1000)

    def fails(batch):
        if batch == 1:
            raise RuntimeError("as planned")

    stream()
    fill(1000, 1100)
    with pytest.raises(PySparkException):
        stream(now=fails)
    fill(1100, 5000)
    stream(until=5000)
    first, again = stream.batches[1]
    assert first == again
    assert stream.values() == list(range(5000))


@pytest.mark.slow
def test_a_deleted_commit_repeats_the_same_batch(stream, fill, tmp_path):
    fill(0, 100)
    stream()
    fill(100, 200)
    stream()
    for file in (tmp_path / "checkpoint" / "commits").glob("*1*"):
        file.unlink()
    fill(200, 300)
    stream(until=300)
    first, again = stream.batches[1]
    assert first == again
    assert stream.values() == list(range(300))


@pytest.mark.slow
def test_collectors_are_added(stream, fill, collector, tmp_path):
    fill(0, 100)
    stream()
    with Collector(tmp_path / "other") as other:
        fill(0, 50, to=other)
        stream(endpoint=f"{other.endpoint},{collector.endpoint}")
        (kept,) = stream.batches[1]
        assert kept == [(1, number, number) for number in range(50)]
    with pytest.raises(PySparkException, match=r"at none of the addresses in option 'endpoint'"):
        stream()


@pytest.mark.slow
def test_a_query_records_its_position(stream, fill, collector):
    for start in range(0, 500, 100):
        fill(start, start + 100)
        stream(consumerGroup="g")
    with Client(collector.endpoint) as client:
        groups = client.stats()["groups"]
    assert groups["g"] == 300


def test_the_checkpoint_is_older_than_the_log(stream, fill, collector, tmp_path):
    fill(0, 100)
    stream()
    collector.close()
    shutil.rmtree(tmp_path / "log")
    with Collector(tmp_path / "log", collector.endpoint) as empty:
        fill(0, 10, to=empty)
        with pytest.raises(PySparkException, match=r"rows from 100 on.*'failOnDataLoss'"):
            stream()
        stream(failOnDataLoss=False)
        assert [value for _, _, value in stream.batches[1][-1]] == list(range(10))


def test_the_checkpoint_of_another_source(spark, stream, fill, tmp_path):
    query = (
        spark.readStream.format("rate")
        .load()
        .writeStream.format("noop")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(WAIT_S)
    fill(0, 10)
    with pytest.raises(PySparkException, match=r"another source.*new checkpointLocation"):
        stream()
    assert not stream.batches


def test_an_embedded_collector(spark, tmp_path, free_port):
    endpoint = f"tcp://127.0.0.1:{free_port}"
    options = {
        "collector": "embedded",
        "collector.dir": str(tmp_path / "own"),
        "startingOffsets": "earliest",
    }
    query = (
        spark.readStream.format("zeromq")
        .options(endpoint=endpoint, **options)
        .load()
        .writeStream.format("memory")
        .queryName("embedded")
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .start()
    )
    try:
        with Producer(endpoint, timeout_s=None) as producer:
            for number in range(1000):
                producer.send(b"%d" % number)
            producer.flush(WAIT_S)
        query.processAllAvailable()
        assert spark.table("embedded").select("value").distinct().count() == 1000
    finally:
        query.stop()
    # The log stays, and can be read as files.
    read = spark.read.format("zeromq").option("fetch", "files")
    assert read.option("collector.dir", str(tmp_path / "own")).load().count() == 1000


@pytest.fixture
def free_port():
    import socket

    # Not a port that the system assigns, so no other program gets it in between.
    for port in range(10_000 + os.getpid() * 61 % 20_000, 32_000):
        with socket.socket() as probe, contextlib.suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port
    raise AssertionError("no port is free")


def test_files(spark, collector, fill, tmp_path):
    fill(0, 3000)
    frame = batch(spark, collector, fetch="files", **{"collector.dir": str(tmp_path / "log")})
    assert frame.select("offset").distinct().count() == 3000
    assert os.path.isdir(tmp_path / "log")


def test_windows_survive_a_restart(spark, collector, fill, tmp_path):
    """Event-time windows by the producer's clock; the state is restored from the state store."""

    def send(seconds):
        with Producer(collector.endpoint) as producer:
            for second in seconds:
                producer.send(b"x", timestamp=1_700_000_000.0 + second)
            producer.flush(WAIT_S)

    def run():
        frame = spark.readStream.format("zeromq").options(
            endpoint=collector.endpoint, startingOffsets="earliest"
        )
        counts = (
            frame.load()
            .withWatermark("timestamp", "10 seconds")
            .groupBy(f.window("timestamp", "10 seconds"))
            .count()
        )
        query = (
            counts.writeStream.format("parquet")
            .option("path", str(tmp_path / "out"))
            .option("checkpointLocation", str(tmp_path / "checkpoint"))
            .trigger(availableNow=True)
            .start()
        )
        assert query.awaitTermination(WAIT_S)

    send(range(15))
    run()
    send([3, *range(15, 40)])  # one late row for the first window, which is still open
    run()
    for later in (100, 200):
        send([later])
        run()
    rows = spark.read.parquet(str(tmp_path / "out")).orderBy("window").collect()
    assert [row["count"] for row in rows][:4] == [11, 10, 10, 10]
