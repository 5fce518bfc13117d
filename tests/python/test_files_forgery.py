"""Rows whose values are frames of a log: if the frame around them is damaged, reading the log's
files does not take them for rows of the log."""

import struct

import pytest
from collecting import crc32c, durable_mark

pytestmark = pytest.mark.zeroxide_only

pa = pytest.importorskip("pyarrow")

# The row whose value is a frame, and the number of all rows.
FORGED = 3
ROWS = 9


def segment(folder):
    return next(iter(sorted(folder.glob("*.zlog"))))


def frames(data):
    """The positions of the frames."""
    position = struct.unpack_from("<I", data, 12)[0]
    while position < len(data):
        yield position
        position += struct.unpack_from("<I", data, position + 8)[0]


def written(folder, values):
    """A log with a frame for each value."""
    from zeroxide.pipeline import Collector

    with Collector(folder) as collector:
        for value in values:
            collector.append([{"value": value}])
    return segment(folder)


def forged(folder, first, durable):
    """A frame of another log, with these offsets."""
    data = written(folder, [b"forged"]).read_bytes()
    frame = bytearray(data[next(frames(data)) :])
    struct.pack_into("<Q", frame, 24, first)
    struct.pack_into("<Q", frame, 72, durable)
    header = struct.unpack_from("<I", frame, 12)[0]
    struct.pack_into("<I", frame, 4, crc32c(frame[8:header]))
    return bytes(frame)


def flip(path, position, bits=1):
    data = bytearray(path.read_bytes())
    data[position] ^= bits
    path.write_bytes(data)


def subtree(path):
    """A file system that does not look like the local one."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    return SubTreeFileSystem(str(path), LocalFileSystem())


@pytest.mark.parametrize("byte", [9, 25, 50, 84], ids=["length", "offset", "time", "rows"])
@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
@pytest.mark.parametrize("first", [FORGED, FORGED + 1, FORGED + 2, ROWS, 1 << 61])
def test_a_value_that_is_a_frame_is_no_row(tmp_path, first, is_local, byte):
    from zeroxide.pipeline import FilesLog, Refused

    value = forged(tmp_path / "other", first, 0)
    values = [value if row == FORGED else b"row %d" % row for row in range(ROWS)]
    folder = tmp_path / "log"
    path = written(folder, values)
    flip(path, list(frames(path.read_bytes()))[FORGED] + byte)
    opened = FilesLog(folder) if is_local else FilesLog("", filesystem=subtree(folder))
    with opened as log:
        assert log.info().latest == ROWS
        for start, end in [(0, FORGED), (FORGED + 1, ROWS)]:
            table = pa.Table.from_batches(log.fetch(start, end))
            assert table.column("value").to_pylist() == values[start:end]
            assert table.column("offset").to_pylist() == list(range(start, end))
        with pytest.raises(Refused) as caught:
            list(log.fetch(FORGED, ROWS))
        assert (caught.value.code, caught.value.detail) == ("corrupt", FORGED + 1)


@pytest.mark.parametrize("byte", [9, 25, 50, 84], ids=["length", "offset", "time", "rows"])
def test_a_value_that_is_a_frame_is_no_row_beside_others(tmp_path, byte):
    from zeroxide.pipeline import Collector, FilesLog

    value = forged(tmp_path / "other", 2, 0)
    folder = tmp_path / "log"
    with Collector(folder) as collector:
        for values in [[b"before"], [value, b"beside", b"beside"], [b"behind"], [b"behind"]]:
            collector.append([{"value": value} for value in values])
    path = segment(folder)
    flip(path, list(frames(path.read_bytes()))[1] + byte)
    with FilesLog(folder) as log:
        table = pa.Table.from_batches(log.fetch(4, 6))
        assert table.column("value").to_pylist() == [b"behind", b"behind"]
    with Collector(folder) as collector:
        assert collector.recovery.damaged == ((1, 4),)


@pytest.mark.parametrize("bit", range(8))
@pytest.mark.parametrize("byte", [8, 9, 10, 11])
@pytest.mark.parametrize("is_local", [True, False], ids=["local", "remote"])
def test_a_length_that_leads_nowhere_costs_one_frame(tmp_path, byte, bit, is_local):
    from zeroxide.pipeline import FilesLog

    folder = tmp_path / "log"
    values = [b"row %d" % row for row in range(4)]
    path = written(folder, values)
    flip(path, list(frames(path.read_bytes()))[1] + byte, 1 << bit)
    opened = FilesLog(folder) if is_local else FilesLog("", filesystem=subtree(folder))
    with opened as log:
        for start, end in [(0, 1), (2, 4)]:
            table = pa.Table.from_batches(log.fetch(start, end))
            assert table.column("value").to_pylist() == values[start:end]


def test_a_value_does_not_say_what_was_on_disk(tmp_path):
    """After a power cut, the mark may be older than the file."""
    from zeroxide.pipeline import FilesLog

    value = forged(tmp_path / "other", FORGED + 1, FORGED + 1)
    folder = tmp_path / "log"
    path = written(folder, [b"row %d" % row for row in range(FORGED)] + [value])
    flip(path, list(frames(path.read_bytes()))[FORGED] + 25)
    (folder / "durable").write_bytes(durable_mark(1))
    with FilesLog(folder) as log:
        # The last frame before the damage knows of the rows before its own.
        assert log.info().latest == FORGED - 1


def test_errors_of_a_file_system_reach_the_reader(tmp_path, monkeypatch):
    from zeroxide.pipeline import FilesLog
    from zeroxide.pipeline._segments import Segment

    folder = tmp_path / "log"
    path = written(folder, [b"row %d" % row for row in range(ROWS)])
    flip(path, list(frames(path.read_bytes()))[FORGED] + 9)
    read = Segment.read

    def fail(self, position, length, ahead=0):
        if position > 0 and ahead == 0:  # in search of the next frame
            raise OSError("the bucket is gone")
        return read(self, position, length, ahead)

    monkeypatch.setattr(Segment, "read", fail)
    with FilesLog(folder) as log, pytest.raises(OSError, match="the bucket is gone"):
        log.info()
