"""The readers as plain Python with real collectors: keys, files, a collector in the query, several collectors."""

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable

import zeroxide as zmq
from zeroxide import Producer
from zeroxide.pipeline import Client, Collector, Refused
from zeroxide.spark._schema import arrow_schema
from zeroxide.spark.source import ZeroMQDataSource

WAIT_S = 60
ALL = ReadAllAvailable()


def batch(**options):
    """The rows of one batch."""
    source = ZeroMQDataSource(options)
    reader = source.reader(source.schema())
    tables = [table for part in reader.partitions() for table in reader.read(part)]
    for table in tables:
        assert table.schema.equals(arrow_schema(source.schema()))
        table.validate(full=True)
    return [row for table in tables for row in table.to_pylist()]


def test_columns_match_sparks_schema(tmp_path):
    with Collector(tmp_path, keep_frames=True) as collector:
        collector.append([{"value": b"v", "key": b"k", "topic": "t", "headers": {"h": b"1"}}, b"w"])
        with Producer(collector.endpoint, name="p") as producer:
            producer.send(b"x", timestamp=5.5)
        rows = batch(endpoint=collector.endpoint, includeHeaders="true", includeFrames="true")
    assert [(row["offset"], row["value"], row["producer"], row["seq"]) for row in rows] == [
        (0, b"v", None, None),
        (1, b"w", None, None),
        (2, b"x", "p", 0),
    ]
    assert rows[0]["headers"] == [{"key": "h", "value": b"1"}]
    assert [row["timestampType"] for row in rows] == [1, 1, 0]
    assert rows[2]["timestamp"].timestamp() == 5.5


def test_keys_from_the_environment_and_a_file(tmp_path, monkeypatch):
    server, secret = zmq.curve_keypair()
    own, own_secret = zmq.curve_keypair()
    monkeypatch.setenv("READER_SECRET", own_secret.decode())
    (tmp_path / "public").write_bytes(own)
    keys = {
        "zmq.curve_serverkey": server.decode(),
        "zmq.curve_publickey": f"file:{tmp_path / 'public'}",
        "zmq.curve_secretkey": "env:READER_SECRET",
    }
    with Collector(tmp_path / "log", secret_key=secret, allow=[own]) as collector:
        collector.append([b"a", b"b"])
        assert len(batch(endpoint=collector.endpoint, **keys)) == 2
        grace = {"collector.graceMs": "500", "fetch.timeoutMs": "300"}
        with pytest.raises(Refused, match="requires CURVE"):
            batch(endpoint=collector.endpoint, **grace)


def test_files_with_and_without_a_collector(tmp_path):
    with Collector(tmp_path) as collector:
        collector.append([b"%d" % number for number in range(1000)])
        files = {"fetch": "files", "collector.dir": str(tmp_path)}
        there = batch(endpoint=collector.endpoint, minPartitions="3", **files)
        assert there == batch(endpoint=collector.endpoint)
    assert batch(**files) == there
    assert [row["value"] for row in there] == [b"%d" % number for number in range(1000)]


def test_several_collectors(tmp_path):
    with Collector(tmp_path / "a") as a, Collector(tmp_path / "b") as b:
        a.append([b"1", b"2"])
        b.append([b"3"])
        rows = batch(endpoint=f"{a.endpoint},{b.endpoint}")
    assert [(row["partition"], row["value"]) for row in rows] == [(0, b"1"), (0, b"2"), (1, b"3")]


def test_a_collector_in_the_query(tmp_path):
    options = {
        "endpoint": "tcp://127.0.0.1:*",
        "collector": "embedded",
        "collector.dir": str(tmp_path),
        "collector.retentionBytes": "1000000000",
        "startingOffsets": "earliest",
        "consumerGroup": "g",
    }
    source = ZeroMQDataSource(options)
    end = None
    for turn in range(2):
        reader = source.streamReader(source.schema())
        start = end or reader.initialOffset()
        endpoint = reader._reach().address(options["endpoint"])
        with Producer(endpoint, name="p") as producer:
            producer.send_batch([b"%d" % turn] * 100)
            producer.flush(WAIT_S)
        end = reader.latestOffset(start, ALL)
        rows = [
            value
            for part in reader.partitions(start, end)
            for table in reader.read(part)
            for value in table["value"].to_pylist()
        ]
        assert rows == [b"%d" % turn] * 100
        with Client(endpoint) as client:
            assert client.stats()["groups"] == {"g": 0}
        reader.stop()
