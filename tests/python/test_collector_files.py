"""Reading a log from its files, which gives the same rows as the collector; archives."""

import errno
import json
import os
import shutil
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from collecting import durable_mark
from support import eventually

pytestmark = pytest.mark.zeroxide_only

pa = pytest.importorskip("pyarrow")

ROWS = 3000


def rows(count=200, first=0):
    for number in range(first, first + count):
        yield {
            "value": b"value %d" % number,
            "key": b"k" if number % 3 else None,
            "topic": f"{'ab'[number % 2]}/{number % 5}",
            "headers": {"name": b"v"} if number % 7 == 0 else None,
        }


@pytest.fixture(scope="module")
def written(tmp_path_factory):
    """A closed log of several segments, and the rows that a client fetched from it."""
    from zeroxide.pipeline import Client, Collector

    folder = tmp_path_factory.mktemp("log")
    with Collector(folder, segment_bytes=15_000) as collector:
        for first in range(0, ROWS, 200):
            collector.append(rows(200, first))
        client = Client(collector.endpoint)
        info = client.info()
        table = pa.Table.from_batches(client.fetch(0, ROWS, headers=True, frames=True))
        middle = table.column("receive_time")[ROWS // 2].as_py()
        at = {
            time: client.offset_at(time)
            for time in (
                info.first_received,
                middle,
                info.last_received,
                info.first_received - timedelta(days=1),
                info.last_received + timedelta(days=1),
            )
        }
    assert len(list(folder.glob("*.zlog"))) > 4
    return folder, info, table, at


@pytest.fixture
def folder(written, tmp_path):
    """A copy of the log, to be damaged."""
    return shutil.copytree(written[0], tmp_path / "log")


def subtree(path):
    """A file system that does not look like the local one."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    return SubTreeFileSystem(str(path), LocalFileSystem())


def read(log, start=0, end=ROWS, **options):
    return pa.Table.from_batches(log.fetch(start, end, headers=True, frames=True, **options))


@pytest.mark.parametrize("place", ["folder", "uri", "filesystem"])
def test_files_give_the_same_rows_as_the_collector(written, place):
    from zeroxide.pipeline import FilesLog

    folder, info, table, times = written
    made = {
        "folder": lambda: FilesLog(folder),
        "uri": lambda: FilesLog(folder.as_uri()),
        "filesystem": lambda: FilesLog("", subtree(folder)),
    }
    with made[place]() as log:
        found = log.info()
        assert (found.log_id, found.earliest, found.latest) == (info.log_id, 0, ROWS)
        assert (found.first_received, found.last_received) == (
            info.first_received,
            info.last_received,
        )
        assert read(log) == table
        for start, end in ((0, 1), (777, 2345), (ROWS - 1, ROWS), (200, 400), (5, 5)):
            for max_bytes in (1, 5000, 1 << 20):
                batches = log.fetch(
                    start, end, headers=True, frames=True, max_bytes=max_bytes, log_id=info.log_id
                )
                got = pa.Table.from_batches(batches, table.schema)
                assert got == table.slice(start, end - start).combine_chunks()
        chosen = read(log, 100, 2900, topics=("a/", "b/1"), partition=0)
        wanted = [
            row
            for row in table.slice(100, 2800).to_pylist()
            if row["topic"].startswith(("a/", "b/1"))
        ]
        assert chosen.to_pylist() == wanted
        assert read(log, topics=[]) == table
        narrow = next(log.fetch(0, 1, partition=7))
        assert narrow.schema.names == table.schema.names[:10]
        assert narrow.column("partition").to_pylist() == [7]
        for time, offset in times.items():
            assert log.offset_at(time) == offset
            assert log.offset_at(time.timestamp()) in range(max(offset - 200, 0), offset + 201)
        log.commit("group", 7)


def test_missing_rows_are_reported(written, folder):
    from zeroxide.pipeline import CollectorError, DataLoss, FilesLog

    first, second = sorted(folder.glob("*.zlog"))[:2]
    first.unlink()
    with FilesLog(folder) as log:
        earliest = int(second.stem)
        assert log.info().earliest == earliest
        for start, end, asked in ((0, 10, 0), (earliest, ROWS + 1, ROWS + 1)):
            with pytest.raises(DataLoss) as caught:
                list(log.fetch(start, end))
            loss = caught.value
            assert (loss.asked, loss.earliest, loss.latest) == (asked, earliest, ROWS)
        with pytest.raises(DataLoss, match="not 00"):
            list(log.fetch(earliest, ROWS, log_id="00" * 16))
        with pytest.raises(ValueError, match="no offsets"):
            list(log.fetch(7, 3))
        fetching = log.fetch(earliest, ROWS, max_bytes=1)
        next(fetching)
    (folder / "empty").mkdir()
    for nothing in (folder / "empty", folder / "not there"):
        with FilesLog(nothing) as log, pytest.raises(CollectorError, match="holds no log"):
            log.info()


@pytest.mark.parametrize("call", ["info", "offset_at"])
def test_a_segment_that_is_removed_after_the_listing(folder, call):
    """Retention may remove the first segment before the reader opens it."""
    from zeroxide.pipeline import FilesLog

    first, second = sorted(folder.glob("*.zlog"))[:2]

    with FilesLog("", removing(folder, first)) as log:
        if call == "info":
            assert log.info().earliest == int(second.stem)
        else:
            assert log.offset_at(0) == int(second.stem)


def removing(folder, segment):
    """A file system that removes a segment as soon as it has listed it."""
    from pyarrow.fs import FSSpecHandler, PyFileSystem

    class Handler(FSSpecHandler):
        def get_file_info_selector(self, selector):
            infos = inner.get_file_info(selector)
            segment.unlink(missing_ok=True)
            return infos

        def open_input_file(self, path):
            return inner.open_input_file(path)

        def open_input_stream(self, path):
            return inner.open_input_stream(path)

        def get_type_name(self):
            return "removing"

    inner = subtree(folder)
    return PyFileSystem(Handler(None))


def test_damage_is_reported_and_can_be_skipped(written, folder):
    from zeroxide.pipeline import FilesLog, Refused

    table = written[2]
    segment = sorted(folder.glob("*.zlog"))[2]
    data = bytearray(segment.read_bytes())
    frame = data.index(b"ZXF1", data.index(b"ZXF1") + 1)
    first = int.from_bytes(data[frame + 24 : frame + 32], "little")
    for at in (0, 9, 30, 100, 600, 3000):
        damaged = data.copy()
        damaged[frame + at] ^= 4
        segment.write_bytes(damaged)
        with FilesLog(folder) as log:
            good, start = [], 0
            while start < ROWS:
                try:
                    for batch in log.fetch(start, ROWS, headers=True, frames=True):
                        good.append(batch)
                        start = batch.column("offset")[-1].as_py() + 1
                except Refused as error:
                    assert error.code == "corrupt"
                    assert start == first
                    assert f"offsets {first} to {first + 200}" in str(error)
                    start = error.detail
            assert start == ROWS
        kept = pa.concat_tables([table.slice(0, first), table.slice(first + 200)])
        assert pa.Table.from_batches(good) == kept
    segment.write_bytes(data[: frame + 100])
    with FilesLog(folder) as log, pytest.raises(Refused, match="ends before its last rows"):
        list(log.fetch(first, ROWS))


def test_unacknowledged_rows_do_not_count(folder):
    from zeroxide.pipeline import FilesLog

    (folder / "durable").write_bytes(durable_mark(ROWS - 10))
    with FilesLog(folder) as log:
        assert log.info().latest == ROWS - 10
    (folder / "durable").unlink()
    last = sorted(folder.glob("*.zlog"))[-1]
    last.write_bytes(last.read_bytes()[:-9])
    with FilesLog(folder) as log:
        assert log.info().latest == ROWS - 200


def test_a_stale_mark_hides_no_rows_that_the_last_frame_knows_of(folder):
    """The file is not synced, so a crash of the machine leaves an older one."""
    from zeroxide.pipeline import FilesLog

    (folder / "durable").write_bytes(durable_mark(5))
    with FilesLog(folder) as log:
        # Each frame is written when those before it are on disk.
        assert log.info().latest == ROWS - 200
        assert read(log, ROWS - 600, ROWS - 200).num_rows == 400
    names = sorted(path.name for path in folder.glob("*.zlog"))
    (folder / names[-1]).write_bytes((folder / names[-1]).read_bytes()[:-9])
    with FilesLog(folder) as log:
        assert ROWS - 600 <= log.info().latest <= ROWS - 400


def flips(path):
    """Damages each bit of a file in turn."""
    whole = path.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            path.write_bytes(damaged)
            yield damaged
    path.write_bytes(whole)


def test_a_flipped_bit_in_the_mark_adds_no_rows(tmp_path):
    from zeroxide.pipeline import Collector, FilesLog

    with Collector(tmp_path) as collector:
        for first in range(0, 15, 5):
            collector.append(rows(5, first))
        with FilesLog(tmp_path) as log:
            for damaged in flips(tmp_path / "durable"):
                # The last frame was written when those before it were on disk.
                assert log.info().latest == 10, damaged
            assert log.info().latest == 15
            next(flips(tmp_path / "durable"))
            collector.append(rows(5, 15))
            assert log.info().latest == 20


def test_a_flipped_bit_in_the_list_of_openings_makes_them_unknown(tmp_path):
    from zeroxide.pipeline import Client, Collector, FilesLog

    for _ in range(2):
        with Collector(tmp_path) as collector:
            collector.append(rows(5))
            known = Client(collector.endpoint).info().generations
    with FilesLog(tmp_path) as log:
        assert log.info().generations == known
        for damaged in flips(tmp_path / "generations"):
            assert log.info().generations == (), damaged
        assert log.info().generations == known


def test_an_archive_keeps_its_list_of_openings_if_that_of_the_log_is_damaged(tmp_path):
    from zeroxide.pipeline import FilesLog, archive_segments

    _make_log(tmp_path / "log")
    archive_segments(tmp_path / "log", subtree(tmp_path), "archive", all_segments=True)
    with FilesLog(tmp_path / "archive") as log:
        known = log.info().generations
        assert known
        next(flips(tmp_path / "log" / "generations"))
        archive_segments(tmp_path / "log", subtree(tmp_path), "archive", all_segments=True)
        assert log.info().generations == known


def test_an_archive_keeps_older_openings_that_the_log_has_forgotten(tmp_path):
    from zeroxide.pipeline import Collector, FilesLog, archive_segments

    _make_log(tmp_path / "log")
    archive_segments(tmp_path / "log", subtree(tmp_path), "archive", all_segments=True)
    kept, own = (tmp_path / name / "generations" for name in ("archive", "log"))
    assert kept.read_bytes() == own.read_bytes()
    with FilesLog(tmp_path / "archive") as log:
        known = log.info().generations
        next(flips(tmp_path / "log" / "generations"))
        with Collector(tmp_path / "log") as collector:
            collector.append(rows(10))
        archive_segments(tmp_path / "log", subtree(tmp_path), "archive", all_segments=True)
        with FilesLog(tmp_path / "log") as own:
            assert own.info().generations[0] not in known
            assert log.info().generations == known + own.info().generations


@pytest.mark.parametrize("name", ["durable", "generations"])
def test_a_file_that_cannot_be_read_is_not_missing(folder, name):
    """Without it, rows that are not on the disk would count, or other rows as those that were read."""
    from zeroxide.pipeline import FilesLog

    (folder / name).unlink()
    (folder / name).mkdir()
    with FilesLog(folder) as log, pytest.raises(OSError, match=name):
        log.info()


def test_reading_while_it_is_written(tmp_path):
    from zeroxide.pipeline import Collector, FilesLog

    with Collector(tmp_path, segment_bytes=15_000) as collector, FilesLog(tmp_path) as log:
        seen = 0
        assert (log.info().earliest, log.info().latest) == (0, 0)
        assert log.info().first_received is None
        for first in range(0, 1800, 300):
            collector.append(rows(300, first))
            latest = log.info().latest
            assert latest == first + 300
            for batch in log.fetch(seen, latest):
                assert batch.column("offset")[0].as_py() == seen
                seen = batch.column("offset")[-1].as_py() + 1
            assert seen == latest


def test_a_reader_keeps_few_files_open(written):
    """However many segments the log has."""
    from zeroxide.pipeline import FilesLog

    folder, info, _, times = written

    def count():
        links = (f"/proc/self/fd/{name}" for name in os.listdir("/proc/self/fd"))
        targets = [os.readlink(link) for link in links if os.path.lexists(link)]
        return sum(target.startswith(str(folder)) for target in targets)

    with FilesLog(folder) as log:
        log.info()
        assert count() <= 1
        for time in times:
            log.offset_at(time)
            assert count() <= 1
        opens = [count() for _ in log.fetch(0, info.latest, max_bytes=1000)]
        assert max(opens) <= 2
        assert count() <= 1
        fetching = log.fetch(0, info.latest, max_bytes=1000)
        next(fetching)
        fetching.close()
        assert count() <= 1
    assert count() == 0


@pytest.mark.parametrize("place", ["folder", "archive"])
def test_a_log_that_is_made_anew_is_another_log(tmp_path, place):
    from zeroxide.pipeline import Collector, DataLoss, FilesLog, archive_segments

    folder, archive = tmp_path / "log", tmp_path / "archive"
    reader = FilesLog(folder) if place == "folder" else FilesLog("archive", subtree(tmp_path))
    ids = []
    with reader as log:
        # The second log is larger than the first one.
        for count in (200, 500):
            shutil.rmtree(folder, ignore_errors=True)
            shutil.rmtree(archive, ignore_errors=True)
            with Collector(folder) as collector:
                collector.append(rows(count))
            archive_segments(folder, subtree(tmp_path), "archive", all_segments=True)
            with FilesLog(folder) as fresh:
                ids.append(fresh.info().log_id)
            assert (log.info().log_id, log.info().latest) == (ids[-1], count)
            assert sum(b.num_rows for b in log.fetch(0, count, log_id=ids[-1])) == count
        with pytest.raises(DataLoss, match=f"is the log {ids[1]}, not {ids[0]}"):
            list(log.fetch(0, 200, log_id=ids[0]))


def test_an_archive_outlives_the_disk(written, folder, tmp_path):
    from zeroxide.pipeline import CollectorError, FilesLog, archive_segments

    info, table, times = written[1:]
    filesystem = subtree(tmp_path)
    names = sorted(path.name for path in folder.glob("*.zlog"))
    assert archive_segments(folder, filesystem, "archive") == names[:-1]
    assert archive_segments(folder, filesystem, "archive") == []
    sealed = int(names[-1].removesuffix(".zlog"))
    for log in (FilesLog("archive", filesystem), FilesLog(tmp_path / "archive")):
        with log:
            assert (log.info().log_id, log.info().latest) == (info.log_id, sealed)
            assert read(log, 0, sealed) == table.slice(0, sealed)
    assert archive_segments(folder, filesystem, "archive", all_segments=True) == names[-1:]
    shutil.rmtree(folder)
    with FilesLog((tmp_path / "archive").as_uri()) as log:
        assert read(log) == table
        assert {time: log.offset_at(time) for time in times} == times
    for index in (tmp_path / "archive").glob("*.index"):
        index.write_text("{}")
    with FilesLog("archive", filesystem) as log:
        assert read(log, 1500, 2500) == table.slice(1500, 1000)
    assert not list((tmp_path / "archive").glob("*.part"))
    other = tmp_path / "other"
    _make_log(other)
    with pytest.raises(CollectorError, match="is of one log"):
        archive_segments(other, filesystem, "archive")


@pytest.mark.parametrize("has_checksum", [True, False])
def test_a_flipped_bit_in_the_index_of_an_archive(tmp_path, has_checksum):
    """An index of older versions has no checksum."""
    from zeroxide.pipeline import Archiver, Collector, FilesLog

    with Collector(tmp_path / "log", segment_bytes=15_000) as collector:
        for first in range(0, 600, 100):
            collector.append(rows(100, first))
    Archiver(tmp_path / "log", str(tmp_path / "archive")).close()
    for index in sorted((tmp_path / "archive").glob("*.index")):
        fields = json.loads(index.read_text())
        if not has_checksum:
            fields.pop("crc32", None)
        index.write_text(json.dumps(fields))
    whole = index.read_bytes()
    for position in range(len(whole)):
        for bit in range(8):
            damaged = bytearray(whole)
            damaged[position] ^= 1 << bit
            index.write_bytes(damaged)
            with FilesLog(tmp_path / "archive") as log:
                assert log.info().latest == 600, damaged
                offsets = [offset for b in log.fetch(0, 600) for offset in b["offset"].to_pylist()]
                assert offsets == list(range(600)), damaged


def _make_log(folder):
    from zeroxide.pipeline import Collector

    with Collector(folder) as collector:
        collector.append(rows(10))


def test_an_archiver_keeps_up(tmp_path):
    from zeroxide.pipeline import Archiver, Collector, FilesLog

    progress, moved = [], threading.Event()

    def on_progress(offset):
        progress.append(offset)
        if offset > 0:
            moved.set()

    with Collector(tmp_path / "log", segment_bytes=15_000) as collector:
        archiver = Archiver(
            tmp_path / "log", str(tmp_path / "archive"), every_s=0.02, on_progress=on_progress
        )
        for first in range(0, 1800, 300):
            collector.append(rows(300, first))
        assert moved.wait(20)
    archiver.close()
    assert archiver.failure is None
    assert progress[0] == 0 and progress == sorted(progress) and progress[-1] == 1800
    with FilesLog(tmp_path / "archive") as log:
        assert log.info().latest == 1800


def test_an_archiver_reports_a_failure_and_continues(written, tmp_path):
    from zeroxide.pipeline import Archiver

    (tmp_path / "archive").write_text("a file where a folder should be")
    archiver = Archiver(written[0], str(tmp_path / "archive"), every_s=0.01)
    eventually(lambda: archiver.failure)
    (tmp_path / "archive").unlink()
    archiver.close()
    assert archiver.archived == ROWS


def failing(monkeypatch, wanted):
    """Makes syncs of files and folders with such names fail; returns the synced names."""
    done, real = [], os.fsync

    def fsync(descriptor):
        path = os.readlink(f"/proc/self/fd/{descriptor}")
        if wanted(path):
            raise OSError(errno.EIO, "the disk is gone")
        done.append(path)
        real(descriptor)

    monkeypatch.setattr(os, "fsync", fsync)
    return done


@pytest.mark.parametrize("what", ["file", "folder"])
def test_an_original_stays_until_its_copy_is_synced(tmp_path, monkeypatch, what):
    from zeroxide.pipeline import Client, Collector

    archive = tmp_path / "archive"
    broken = [True]

    def wanted(path):
        is_it = path == str(archive) if what == "folder" else ".zlog" in path
        return is_it and broken[0]

    done = failing(monkeypatch, wanted)
    with Collector(
        tmp_path / "log", segment_bytes=15_000, retention_bytes=20_000, archive=archive
    ) as collector:
        for first in range(0, 1800, 300):
            collector.append(rows(300, first))
        eventually(lambda: "the disk is gone" in collector.stats()["archive_failure"])
        # Retention has run in the meantime.
        client = Client(collector.endpoint)
        looked = collector.stats()["uptime_seconds"]
        eventually(lambda: collector.stats()["uptime_seconds"] > looked + 2)
        assert (client.info().earliest, collector.stats()["archived"]) == (0, 0)
        broken[0] = False
        collector._archiver.archive()
        eventually(lambda: client.info().earliest > 0)
    copies = sorted(archive.glob("*.zlog"))
    assert {f"{path}.part" for path in copies} <= set(done)
    assert str(archive) in done
    assert not list(archive.glob("*.part"))


def test_a_folder_that_could_not_be_synced_is_synced_by_the_next_attempt(
    written, folder, tmp_path, monkeypatch
):
    from zeroxide.pipeline import archive_segments

    archive, known = str(tmp_path / "archive"), set()
    sealed = sorted(path.name for path in folder.glob("*.zlog"))[:-1]
    last = sealed[-1]
    os.rename(folder / last, tmp_path / last)
    filesystem = subtree(tmp_path)
    assert archive_segments(folder, filesystem, "archive", synced=known) == sealed[:-1]
    os.rename(tmp_path / last, folder / last)
    broken = [True]
    done = failing(monkeypatch, lambda path: path == archive and broken[0])
    with pytest.raises(OSError, match="the disk is gone"):
        archive_segments(folder, filesystem, "archive", synced=known)
    assert last not in known
    broken[0] = False
    archive_segments(folder, filesystem, "archive", synced=known)
    assert archive in done
    assert last in known


def test_a_folder_above_the_archive_is_synced_only_if_the_archive_was_made(
    written, folder, tmp_path, monkeypatch
):
    """It may be one that this user can enter, but not open."""
    from zeroxide.pipeline import archive_segments

    above = tmp_path / "above"
    filesystem = subtree(above)
    broken = [True]
    done = failing(monkeypatch, lambda path: path == str(above) and broken[0])
    with pytest.raises(OSError, match="the disk is gone"):
        archive_segments(folder, filesystem, "archive")
    broken[0] = False
    assert archive_segments(folder, filesystem, "archive")
    assert {str(tmp_path), str(above), str(above / "archive")} <= set(done)
    shutil.rmtree(above / "archive")
    (above / "archive").mkdir()
    broken[0] = True
    assert archive_segments(folder, filesystem, "archive")


def test_a_collector_starts_while_its_archive_is_unavailable(tmp_path, monkeypatch):
    from zeroxide.pipeline import Client, Collector
    from zeroxide.pipeline import _archive as archive

    there = threading.Event()
    real = archive.open_address

    def away(address):
        if not there.is_set():
            raise OSError("When resolving region for bucket: Couldn't connect to server")
        return real(address)

    monkeypatch.setattr(archive, "open_address", away)
    with Collector(
        tmp_path / "log", segment_bytes=15_000, retention_bytes=20_000, archive=tmp_path / "a"
    ) as collector:
        for first in range(0, 1800, 300):
            collector.append(rows(300, first))
        eventually(lambda: "Couldn't connect" in collector.stats()["archive_failure"])
        assert Client(collector.endpoint).info().earliest == 0
        there.set()
    with Collector(tmp_path / "log") as collector:
        assert Client(collector.endpoint).info().latest == 1800
    with pytest.raises(ValueError, match="not 's4://bucket'"):
        Collector(tmp_path / "log", archive="s4://bucket")


@pytest.mark.parametrize("address", ["{}/log", "{}/log/../log", "{}/link", "file://{}/log"])
def test_an_archive_is_not_the_folder_of_the_log(tmp_path, address):
    """Retention deletes what was archived, and there it would be the only copy."""
    from zeroxide.pipeline import Archiver, Collector, archive_segments

    archive = address.format(tmp_path)
    os.symlink(tmp_path / "log", tmp_path / "link")
    for _ in range(2):
        with pytest.raises(ValueError, match="is the folder of the log itself"):
            Collector(tmp_path / "log", archive=archive)
    with pytest.raises(ValueError, match="is the folder of the log itself"):
        Archiver(tmp_path / "log", archive)
    with pytest.raises(ValueError, match="is the folder of the log itself"):
        archive_segments(tmp_path / "log", subtree(tmp_path), "log")


def test_an_archive_refuses_rows_of_another_history(tmp_path):
    from zeroxide.pipeline import Archiver, Collector, CollectorError

    with Collector(tmp_path / "log") as collector:
        collector.append(rows(10))
    shutil.copytree(tmp_path / "log", tmp_path / "copy")
    for name in ("log", "copy"):
        with Collector(tmp_path / name) as collector:
            collector.append(rows(10))
    Archiver(tmp_path / "log", str(tmp_path / "archive")).close()
    with pytest.raises(CollectorError, match="other rows from offset 10 on"):
        Archiver(tmp_path / "copy", str(tmp_path / "archive")).close()


def archived_beyond_a_copy(tmp_path):
    """A copy of a log, and the archive of the log, which has continued meanwhile in the same opening."""
    from zeroxide.pipeline import Archiver, Collector

    with Collector(tmp_path / "log", segment_bytes=15_000) as collector:
        collector.append(rows(300))
        shutil.copytree(tmp_path / "log", tmp_path / "copy")
        for first in range(300, 900, 100):
            collector.append(rows(100, first))
    Archiver(tmp_path / "log", str(tmp_path / "archive")).close()
    return tmp_path / "copy", tmp_path / "archive"


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.parametrize("count", [0, 10, 900])
def test_an_archive_refuses_an_older_copy_of_its_log(tmp_path, count):
    """The copy may have no new rows yet, fewer than the archive, or more."""
    from zeroxide.pipeline import Collector, CollectorError, archive_segments

    copy, archive = archived_beyond_a_copy(tmp_path)
    before = contents(archive)
    with Collector(copy, segment_bytes=15_000) as collector:
        for first in range(300, 300 + count, 10):
            collector.append({"value": b"other %d" % row} for row in range(first, first + 10))
    for all_segments in (False, True):
        with pytest.raises(CollectorError, match="other rows from offset 300 on"):
            archive_segments(copy, subtree(tmp_path), "archive", all_segments=all_segments)
        assert contents(archive) == before


def test_retention_keeps_the_rows_that_an_archive_refuses(tmp_path):
    from zeroxide.pipeline import Client, Collector, CollectorError

    copy, archive = archived_beyond_a_copy(tmp_path)
    collector = Collector(copy, segment_bytes=15_000, retention_bytes=20_000, archive=archive)
    with pytest.raises(CollectorError, match="other rows from offset 300 on"), collector:
        for first in range(300, 1800, 300):
            collector.append(rows(300, first))
        eventually(lambda: "other rows from" in collector.stats()["archive_failure"])
        # Retention has run in the meantime.
        looked = collector.stats()["uptime_seconds"]
        eventually(lambda: collector.stats()["uptime_seconds"] > looked + 2)
        assert (Client(collector.endpoint).info().earliest, collector.stats()["archived"]) == (0, 0)


def test_an_archive_gets_only_rows_that_are_on_the_disk_of_the_log(tmp_path):
    """After a crash of the machine, other rows may follow at the same offsets."""
    from zeroxide.pipeline import Collector, FilesLog, archive_segments

    log, archive = tmp_path / "log", tmp_path / "archive"
    with Collector(log) as collector:
        collector.append(rows(200))
        synced = (log / "durable").read_bytes()
        collector.append(rows(100, 200))
    whole = (log / "durable").read_bytes()
    for mark, count in ((synced, 200), (whole, 300)):
        (log / "durable").write_bytes(mark)
        assert len(archive_segments(log, subtree(tmp_path), "archive", all_segments=True)) == 1
        assert not archive_segments(log, subtree(tmp_path), "archive", all_segments=True)
        with FilesLog(archive) as copy:
            assert copy.info().latest == count
            assert sum(batch.num_rows for batch in copy.fetch(0, count)) == count


def test_an_archive_accepts_a_log_whose_last_opening_lost_all_its_rows(tmp_path):
    """An opening is recorded before its first row, and a crash of the machine may lose that row."""
    from zeroxide.pipeline import Archiver, Collector, FilesLog

    log, archive = tmp_path / "log", tmp_path / "archive"
    with Collector(log) as collector:
        collector.append(rows(10))
    Archiver(log, str(archive)).close()
    shutil.copytree(log, tmp_path / "crashed")
    with Collector(tmp_path / "crashed") as collector:
        collector.append(rows(1, 10))
    shutil.copy(tmp_path / "crashed" / "generations", archive)
    with Collector(log) as collector:
        collector.append(rows(5, 10))
    Archiver(log, str(archive)).close()
    with FilesLog(archive) as copy, FilesLog(log) as own:
        assert copy.info().latest == 15
        assert copy.info().generations == own.info().generations


def test_a_log_that_is_opened_again_while_it_is_archived(tmp_path, monkeypatch):
    """No row is archived before the opening that wrote it."""
    from zeroxide.pipeline import Collector, FilesLog, archive_segments
    from zeroxide.pipeline import _archive as archive

    log, real = tmp_path / "log", archive._copy_generations

    def write():
        with Collector(log, segment_bytes=15_000) as collector:
            for first in range(0, 600, 200):
                collector.append(rows(200, first))

    def copy_generations(*args):
        real(*args)
        write()

    write()
    with monkeypatch.context() as patched:
        patched.setattr(archive, "_copy_generations", copy_generations)
        archive_segments(log, subtree(tmp_path), "archive", all_segments=True)
    archive_segments(log, subtree(tmp_path), "archive", all_segments=True)
    with FilesLog(tmp_path / "archive") as copy:
        assert copy.info().latest == 1200
        assert len(copy.info().generations) == 2


def test_an_archiver_survives_unexpected_exceptions(written, tmp_path, monkeypatch):
    from pyarrow import ArrowInvalid

    from zeroxide.pipeline import _archive as archive

    looks, looked_again = [], threading.Event()

    def fail(*_, **__):
        looks.append(None)
        if len(looks) > 2:
            looked_again.set()
        raise ArrowInvalid

    with monkeypatch.context() as patched:
        patched.setattr(archive, "archive_segments", fail)
        archiver = archive.Archiver(written[0], str(tmp_path / "archive"), every_s=0.01)
        assert looked_again.wait(20)
        assert isinstance(archiver.failure, ArrowInvalid)
    archiver.close()
    assert archiver.archived == ROWS


def test_sockets_are_not_needed(written):
    """An executor that reads files starts no threads for it."""
    code = f"""if True:
        import threading
        from zeroxide.pipeline import FilesLog
        with FilesLog({str(written[0])!r}) as log:
            assert sum(batch.num_rows for batch in log.fetch(0, {ROWS})) == {ROWS}
        assert threading.active_count() == 1
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
