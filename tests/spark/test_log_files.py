"""Reading a log's folder or its archive without a collector; these tests need no JVM."""

import shutil
from pathlib import Path

import pytest

from zeroxide.pipeline import Collector, DataLoss
from zeroxide.spark.source import ZeroMQDataSource

ROWS = 3000


@pytest.fixture(scope="module")
def places(tmp_path_factory):
    """A deleted folder with its archive, and an existing folder with its URL."""
    folder, archive = tmp_path_factory.mktemp("log"), tmp_path_factory.mktemp("archive")
    with Collector(folder, segment_bytes=20_000, archive=archive) as collector:
        for first in range(0, ROWS, 100):
            collector.append(
                {"value": b"%d" % row, "topic": "ab"[row % 2]} for row in range(first, first + 100)
            )
    copy = shutil.copytree(folder, tmp_path_factory.mktemp("copy") / "log")
    shutil.rmtree(folder)
    return {"archive": str(archive), "folder": str(copy), "url": copy.as_uri()}


def read(**options):
    source = ZeroMQDataSource({"mode": "log", "fetch": "files", **options})
    reader = source.reader(source.schema())
    return [
        row
        for partition in reader.partitions()
        for batch in reader.read(partition)
        for row in batch.to_pylist()
    ]


@pytest.mark.parametrize("place", ["archive", "folder", "url"])
def test_all_rows_are_read(places, place):
    rows = read(**{"collector.dir": places[place]})
    assert [row["offset"] for row in rows] == list(range(ROWS))
    assert [row["value"] for row in rows] == [b"%d" % row for row in range(ROWS)]
    chosen = read(**{"collector.dir": places[place], "subscribe": "a"})
    assert [row["offset"] for row in chosen] == list(range(0, ROWS, 2))


def write(folder, count):
    """A log made anew, with more rows than the one before."""
    shutil.rmtree(folder, ignore_errors=True)
    with Collector(folder) as collector:
        collector.append(b"%d" % row for row in range(count))


def test_a_folder_that_is_made_anew_is_read_by_the_same_worker(tmp_path):
    for count in (5, 700):
        write(tmp_path / "log", count)
        for lossy in ("true", "false"):
            rows = read(**{"collector.dir": str(tmp_path / "log"), "failOnDataLoss": lossy})
            assert [row["offset"] for row in rows] == list(range(count))


def test_a_stream_goes_on_with_a_folder_that_is_made_anew(tmp_path):
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")
    folder = tmp_path / "log"
    for lossy in (False, True):
        write(folder, 5)
        given = {"startingOffsets": "earliest", "failOnDataLoss": str(not lossy).lower()}
        source = ZeroMQDataSource({"fetch": "files", "collector.dir": str(folder), **given})
        reader = source.streamReader(source.schema())
        start = reader.latestOffset(reader.initialOffset(), limits.ReadAllAvailable())
        old = start["collectors"][str(folder)]["log"]
        write(folder, 700)
        if not lossy:
            with pytest.raises(DataLoss, match=rf"from log {old}, but the collector now has log"):
                reader.latestOffset(start, limits.ReadAllAvailable())
            continue
        end = reader.latestOffset(start, limits.ReadAllAvailable())
        batches = [
            batch for partition in reader.partitions(start, end) for batch in reader.read(partition)
        ]
        assert sum(batch.num_rows for batch in batches) == 700
        reader.stop()


def test_damage_is_an_error(places, tmp_path):
    folder = shutil.copytree(places["folder"], tmp_path / "log")
    segment = sorted(Path(folder).glob("*.zlog"))[1]
    data = bytearray(segment.read_bytes())
    data[-20] ^= 1
    segment.write_bytes(data)
    with pytest.raises(DataLoss, match=r"offsets \d+ to \d+ cannot be read.*failOnDataLoss"):
        read(**{"collector.dir": str(folder)})
    rows = read(**{"collector.dir": str(folder), "failOnDataLoss": "false"})
    assert len(rows) == ROWS - 100
