"""Faults of a collector's disk and folder: the reader reports each, and there is never a silent gap.

These tests use the readers as plain Python with real collectors; test_log_session.py tests
errors within Spark.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")

from pyspark.sql.streaming.datasource import ReadAllAvailable

from zeroxide import Producer
from zeroxide.pipeline import Client, Collector, DataLoss
from zeroxide.spark.source import ZeroMQDataSource

WAIT_S = 60
SEGMENT = 1 << 16


class Query:
    """Uses a reader as Spark does, batch by batch; its checkpoint is `end`."""

    def __init__(self, endpoint, **options):
        given = {"endpoint": endpoint, "startingOffsets": "earliest", "minPartitions": "1"}
        given |= {"collector.graceMs": "5000"} | options
        source = ZeroMQDataSource(given)
        self.reader = source.streamReader(source.schema())
        self.end = None

    def batch(self):
        start = self.end or self.reader.initialOffset()
        end = self.reader.latestOffset(start, ReadAllAvailable())
        rows = []
        for partition in self.reader.partitions(start, end):
            for table in self.reader.read(partition):
                rows += zip(table["offset"].to_pylist(), table["value"].to_pylist(), strict=True)
        self.end = end
        return rows

    def stop(self):
        self.reader.stop()


@pytest.fixture
def query():
    queries = []

    def make(endpoint, **options):
        queries.append(Query(endpoint, **options))
        return queries[-1]

    yield make
    for one in queries:
        one.stop()


def fill(collector, start, end):
    """Sends rows whose values are their numbers, in small batches."""
    for first in range(start, end, 50):
        last = min(first + 50, end)
        collector.append([b"%06d" % number + bytes(94) for number in range(first, last)])


def numbers(rows):
    return [int(value[:6]) for _, value in rows]


def segments(folder: Path):
    return sorted(folder.glob("*.zlog"))


def test_the_checkpoint_is_older_than_retention(tmp_path, query):
    with Collector(tmp_path, segment_bytes=SEGMENT, retention_bytes=4 * SEGMENT) as collector:
        fill(collector, 0, 100)
        strict, lossy = query(collector.endpoint), query(collector.endpoint, failOnDataLoss="false")
        assert numbers(strict.batch()) == numbers(lossy.batch()) == list(range(100))
        fill(collector, 100, 10_000)
        deadline = time.monotonic() + WAIT_S
        with Client(collector.endpoint) as client:
            while client.info().earliest <= 100:  # retention runs every few seconds
                assert time.monotonic() < deadline
                time.sleep(0.05)
        with pytest.raises(DataLoss) as error:
            strict.batch()
        earliest = error.value.earliest
        assert earliest > 100
        for said in (
            f"rows [100, {earliest})",
            collector.log_id,
            "failOnDataLoss",
            "--retention-bytes",
        ):
            assert said in str(error.value)
        rest = numbers(lossy.batch())
        # Retention may have run again.
        assert rest == list(range(rest[0], 10_000))
        assert rest[0] >= earliest


def test_an_empty_collector_in_its_place(tmp_path, query):
    with Collector(tmp_path / "log") as collector:
        endpoint, first_id = collector.endpoint, collector.log_id
        fill(collector, 0, 1000)
        strict, lossy = query(endpoint), query(endpoint, failOnDataLoss="false")
        assert numbers(strict.batch()) == numbers(lossy.batch()) == list(range(1000))
    shutil.rmtree(tmp_path / "log")
    with Collector(tmp_path / "log", endpoint) as collector:
        fill(collector, 0, 2000)
        with pytest.raises(DataLoss) as error:
            strict.batch()
        for said in ("rows from 1000 on", first_id, collector.log_id, "failOnDataLoss", "folder"):
            assert said in str(error.value)
        assert numbers(lossy.batch()) == list(range(2000))


def test_a_flipped_bit(tmp_path, query):
    """This holds even for a running collector, which checks rows before it serves them."""
    with Collector(tmp_path, segment_bytes=SEGMENT) as collector:
        fill(collector, 0, 5000)
        victim = segments(tmp_path)[3]
        damage(victim)
        check(query, collector.endpoint)
        endpoint = collector.endpoint
    with Collector(tmp_path, endpoint, segment_bytes=SEGMENT) as collector:
        check(query, collector.endpoint)


def check(query, endpoint):
    strict, lossy = query(endpoint), query(endpoint, failOnDataLoss="false")
    with pytest.raises(DataLoss) as error:
        strict.batch()
    for said in ("cannot be read", ".zlog", "failOnDataLoss"):
        assert said in str(error.value)
    got = numbers(lossy.batch())
    missing = sorted(set(range(5000)) - set(got))
    assert 0 < len(missing) < 2000
    assert missing == list(range(missing[0], missing[-1] + 1))
    assert got == sorted(got)


def damage(file: Path):
    size = file.stat().st_size
    with file.open("r+b") as bits:
        bits.seek(size // 2)
        (byte,) = bits.read(1)
        bits.seek(size // 2)
        bits.write(bytes([byte ^ 1]))


def test_a_truncated_last_segment(tmp_path, query):
    """Acknowledged rows are lost with the end of a file; their offsets are not used again."""
    with Collector(tmp_path, segment_bytes=SEGMENT) as collector:
        endpoint = collector.endpoint
        fill(collector, 0, 5000)
        had_read_them = query(endpoint)
        assert numbers(had_read_them.batch()) == list(range(5000))
    last = segments(tmp_path)[-1]
    os.truncate(last, last.stat().st_size - 5000)
    with Collector(tmp_path, endpoint, segment_bytes=SEGMENT) as collector:
        ((first, end),) = collector.recovery.damaged
        assert first < end == 5000
        fill(collector, 5000, 5100)
        assert numbers(had_read_them.batch()) == list(range(5000, 5100))
        with pytest.raises(DataLoss) as error:
            query(endpoint).batch()
        for said in (f"offsets {first} to 5000", "failOnDataLoss", last.name):
            assert said in str(error.value)
        lossy = query(endpoint, failOnDataLoss="false")
        assert numbers(lossy.batch()) == [*range(first), *range(5000, 5100)]


@pytest.fixture
def small_disk(tmp_path):
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=6m", "none", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True).returncode != 0:
        pytest.skip("mounting a small file system takes root")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_the_disk_is_full_while_producing(small_disk, query):
    filler = small_disk / "filler"
    with Collector(small_disk / "log", segment_bytes=SEGMENT) as collector:
        reader = query(collector.endpoint)
        filler.write_bytes(bytes(4 << 20))
        with Producer(collector.endpoint, name="p", timeout_s=None) as producer:
            # These are more rows than fit.
            producer.send_batch([b"%06d" % number + bytes(94) for number in range(30_000)])
            waited = 0
            while collector.stats()["state"] == "fine":
                waited += 1
                assert waited < 100
                with pytest.raises(TimeoutError):
                    producer.flush(0.2)
            first = numbers(reader.batch())
            assert first == list(range(len(first)))
            assert len(first) < 30_000
            filler.unlink()
            producer.flush(WAIT_S)
        assert first + numbers(reader.batch()) == list(range(30_000))
        assert collector.stats()["state"] == "fine"
