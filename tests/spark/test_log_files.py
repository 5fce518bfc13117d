"""Reading a log's folder or its archive without a collector; these tests need no JVM."""

import shutil
from pathlib import Path

import pytest

from zeroxide.pipeline import Collector, CollectorError, CollectorGone, DataLoss
from zeroxide.pipeline import _files as files
from zeroxide.pipeline._segments import Segment
from zeroxide.spark import _collectors as collectors
from zeroxide.spark import _log_tasks as log_tasks
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


class FileSystem:
    """Counts what is asked of a file system, and fails from one request up to another."""

    def __init__(self, monkeypatch):
        self.asked = 0
        self.failing = range(0)
        self.error = OSError("AWS Error SLOW_DOWN during ListObjectsV2 operation")
        for owner, name in (
            (files, "open_address"),
            (files.FilesLog, "_segments"),
            (files.FilesLog, "_generations"),
            (Segment, "read"),
        ):
            monkeypatch.setattr(owner, name, self._wrapped(getattr(owner, name)))
        for module in (collectors, log_tasks):
            monkeypatch.setattr(module, "PAUSE_S", 0.001)
        # Other tests have left open files.
        monkeypatch.setattr(collectors, "_idle", {})

    def _wrapped(self, real):
        def request(*args):
            self.asked += 1
            if self.asked - 1 in self.failing:
                raise self.error
            return real(*args)

        return request

    def fail(self, start, end):
        self.asked, self.failing = 0, range(start, end)


def streamed(folder, **options):
    limits = pytest.importorskip("pyspark.sql.streaming.datasource", reason="needs Spark 4.2")
    given = {"startingTimestamp": "0", "fetch": "files", "collector.dir": str(folder), **options}
    source = ZeroMQDataSource(given)
    reader = source.streamReader(source.schema())
    start = reader.initialOffset()
    while (end := reader.latestOffset(start, limits.ReadAllAvailable())) == start:
        pass  # the folder was away
    batches = [batch for part in reader.partitions(start, end) for batch in reader.read(part)]
    reader.stop()
    return [row for batch in batches for row in batch.to_pylist()]


@pytest.mark.parametrize("kind", [read, streamed])
def test_a_file_system_that_fails_for_a_short_time(tmp_path, monkeypatch, kind):
    write(tmp_path / "log", 7)
    given = {"collector.dir": str(tmp_path / "log")}
    if kind is streamed:
        given = {"folder": tmp_path / "log"}
    system = FileSystem(monkeypatch)
    assert len(kind(**given)) == 7
    for start in range(system.asked):
        monkeypatch.setattr(collectors, "_idle", {})
        system.fail(start, start + 3)
        assert [row["offset"] for row in kind(**given)] == list(range(7)), start


@pytest.mark.parametrize("start", [0, 1, 5])
def test_a_file_system_that_fails_for_longer_than_the_grace(tmp_path, monkeypatch, start):
    write(tmp_path / "log", 7)
    system = FileSystem(monkeypatch)
    system.fail(start, 1 << 30)
    with pytest.raises(CollectorGone, match=r"'collector.graceMs' \(0 ms\).*SLOW_DOWN"):
        read(**{"collector.dir": str(tmp_path / "log"), "collector.graceMs": "0"})


@pytest.mark.parametrize("mistake", ["missing", "a file", "forbidden"])
def test_a_wrong_folder_is_reported_at_once(tmp_path, monkeypatch, mistake):
    def wait(_):
        raise AssertionError("it waits")

    monkeypatch.setattr(collectors.time, "sleep", wait)
    system = FileSystem(monkeypatch)
    if mistake == "a file":
        (tmp_path / "log").write_text("")
    if mistake == "forbidden":
        system.error = PermissionError("Permission denied")
        system.fail(0, 1 << 30)
    with pytest.raises((CollectorError, OSError)) as caught:
        read(**{"collector.dir": str(tmp_path / "log")})
    assert not isinstance(caught.value, CollectorGone)
