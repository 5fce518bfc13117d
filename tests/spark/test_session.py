"""The format in a local session: behaviour that only Spark itself shows."""

import json
import os
import sys

import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import zeroxide as zmq


def feed(push, bodies, end=b"END"):
    def work():
        push.send_batch(bodies)
        push.send(end)

    return work


def zeromq(spark, endpoint, **options):
    return spark.read.format("zeromq").options(
        mode="live", endpoint=endpoint, timeoutMs=60_000, **options
    )


def test_the_format_needs_no_registration(spark):
    frame = zeromq(spark, "tcp://127.0.0.1:9").load()
    assert frame.schema.simpleString() == "struct<value:binary,topic:string,timestamp:timestamp>"


def test_the_workers_run_this_interpreter(spark):
    # Defined here, so that it is pickled by value: the workers cannot import the tests.
    def environment(batches):
        import sys

        import pyarrow as pa

        for batch in batches:
            yield pa.record_batch({"path": [sys.prefix] * batch.num_rows})

    path = spark.range(1).mapInArrow(environment, "path string").first().path
    assert os.path.realpath(path) == os.path.realpath(sys.prefix)


def test_read_aggregates(spark, bound, background):
    endpoints = []
    for airport in range(3):
        push, endpoint = bound(zmq.PUSH)
        endpoints.append(endpoint)
        background(feed(push, [b"%d" % (number * 10 + airport) for number in range(20_000)]))
    # More partitions than threads: the third publisher waits for its turn.
    read = zeromq(spark, ",".join(endpoints), endOfStream="END").schema("value binary").load()
    number = f.col("value").cast("string").cast("bigint")
    row = read.agg(f.count("*").alias("n"), f.sum(number).alias("sum")).first()
    expected = [number * 10 + airport for number in range(20_000) for airport in range(3)]
    assert (row.n, row["sum"]) == (60_000, sum(expected))


def test_every_column_arrives(spark, bound, background):
    push, endpoint = bound(zmq.PUSH)
    message = [b"t", b"k", b"v", b"h", b"1"]
    background(lambda: push.send_batch([message, [b"END"]]))
    options = {"framing": "envelope", "includeHeaders": "true", "includeFrames": "true"}
    rows = zeromq(spark, endpoint, endOfStream="END", **options).load().collect()
    (row,) = rows
    assert (row.key, row.value, row.topic) == (b"k", b"v", "t")
    assert [tuple(header) for header in row.headers] == [("h", b"1")]
    assert row.frames == message
    assert row.timestamp is not None


def test_sql(spark, bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(feed(push, [b"a", b"b"]))
    spark.sql(
        "CREATE OR REPLACE TEMPORARY VIEW messages USING zeromq"
        f" OPTIONS (mode 'live', endpoint '{endpoint}', endOfStream 'END')"
    )
    rows = spark.sql("SELECT cast(value AS string) AS text FROM messages").collect()
    assert sorted(row.text for row in rows) == ["a", "b"]


def test_a_frame_counted_twice_is_two_reads(spark, bound, background):
    push, endpoint = bound(zmq.PUSH)
    frame = zeromq(spark, endpoint, endOfStream="END").load()
    background(feed(push, [b"a", b"b"]))
    assert frame.count() == 2
    background(feed(push, [b"c"]))
    assert frame.count() == 1


def test_a_sort_reads_twice_and_gets_an_error(spark, bound, background):
    push, endpoint = bound(zmq.PUSH)
    frame = zeromq(spark, endpoint, endOfStream="END").load().select("value")
    background(feed(push, [b"b", b"a"]))
    with pytest.raises(PySparkException, match=r"was already read.*\.cache\(\)"):
        frame.sort("value").collect()
    background(feed(push, [b"b", b"a"]))
    kept = frame.cache()
    assert [row.value for row in kept.sort("value").collect()] == [b"a", b"b"]
    kept.unpersist()


def test_write(spark, bound, background):
    pull, endpoint = bound(zmq.PULL)
    messages = []
    done = background(lambda: messages.extend(pull.recv_multipart() for _ in range(10_000)))
    (
        spark.range(10_000)
        .select(f.col("id").cast("string").alias("value"))
        .write.format("zeromq")
        .mode("append")
        .options(endpoint=endpoint, includeHeaders=True)
        .save()
    )
    done.join()
    assert sorted(int(message[2]) for message in messages) == list(range(10_000))
    headers = [message[4].decode().split(",") for message in messages]
    # There is one batch of one job, from two partitions, each at the first attempt, and each row is marked.
    assert len({query for query, *_ in headers}) == 1
    assert {(batch, attempt) for _, batch, _, attempt, _ in headers} == {("0", "0")}
    assert {(partition, int(row)) for _, _, partition, _, row in headers} == {
        (partition, row) for partition in "01" for row in range(5_000)
    }


def test_stream_write(spark, bound, background, tmp_path):
    pull, endpoint = bound(zmq.PULL)
    source, checkpoint = tmp_path / "in", tmp_path / "checkpoint"
    source.mkdir()
    messages = []
    for number in range(2):
        file = source / f"{number}.json"
        file.write_text("".join(json.dumps({"value": f"{number}-{i}"}) + "\n" for i in range(100)))
    done = background(lambda: messages.extend(pull.recv_multipart() for _ in range(200)))
    query = (
        spark.readStream.schema("value string")
        .option("maxFilesPerTrigger", 1)
        .json(str(source))
        .writeStream.format("zeromq")
        .options(endpoint=endpoint, includeHeaders=True)
        .option("checkpointLocation", str(checkpoint))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    done.join()
    assert len({message[2] for message in messages}) == 200
    headers = [message[4].decode().split(",") for message in messages]
    assert {header[0] for header in headers} == {query.id}
    assert {header[1] for header in headers} == {"0", "1"}


def test_wrong_options_are_reported_by_the_plan(spark):
    with pytest.raises(PySparkException, match="did you mean 'endOfStream'"):
        zeromq(spark, "tcp://127.0.0.1:9", endofstreams="x").load().count()


def test_a_live_stream_read_is_refused(spark, tmp_path):
    options = {"endpoint": "tcp://127.0.0.1:9", "mode": "live"}
    read = spark.readStream.format("zeromq").options(**options).load()
    write = read.writeStream.format("noop").option("checkpointLocation", str(tmp_path))
    with pytest.raises(PySparkException, match=r"spark\.readStream cannot have"):
        write.start().awaitTermination(60)


def test_an_error_in_a_task_names_its_cause(spark, bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_multipart([b"a", b"b"]))
    with pytest.raises(PySparkException, match="but framing=single expects one frame"):
        zeromq(spark, endpoint).load().collect()


THREADS = """
import sys
from concurrent.futures import ThreadPoolExecutor
from zeroxide.pipeline import Client, Collector
from zeroxide.spark import register, session

folder = sys.argv[1]
config = {"spark.ui.enabled": "false"}
spark = session("threads", "local[2]", config)
spark.sparkContext.setLogLevel("OFF")
collector = Collector(folder + "/log")
to = {"endpoint": collector.endpoint, "socket": "log"}


def write(frame, topic):
    named = frame.selectExpr("cast(id AS string) AS value").write.format("zeromq").mode("append")
    named.options(**to, topic=topic).save()


def write_twice(batch, number):
    with ThreadPoolExecutor(2, initializer=register, initargs=(batch.sparkSession,)) as threads:
        list(threads.map(lambda topic: write(batch, topic), ["a", "b"]))


def stream(checkpoint, begin):
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 3).load()
    rows = rows.selectExpr("value AS id", "cast(value AS string) AS value")
    query = begin(rows.writeStream, checkpoint).trigger(availableNow=True).start()
    assert query.awaitTermination(60)


def direct(writer, checkpoint):
    return writer.format("zeromq").options(**to, checkpointLocation=checkpoint)


def by_hand(writer, checkpoint):
    return writer.foreachBatch(write_twice).option("checkpointLocation", checkpoint)


with ThreadPoolExecutor(2, initializer=register, initargs=(spark,)) as threads:
    list(threads.map(lambda topic: write(spark.range(10), topic), ["c", "d"]))
    threads.submit(stream, folder + "/direct", direct).result()
    threads.submit(stream, folder + "/by_hand", by_hand).result()
with ThreadPoolExecutor(1) as threads:
    threads.submit(lambda: write(session(config=config).range(10), "e")).result()
print("ROWS", Client(collector.endpoint).info().latest)
spark.stop()
collector.close()
"""


def test_registered_threads_write(run_script, tmp_path):
    assert "ROWS 39\n" in run_script(THREADS, tmp_path)
