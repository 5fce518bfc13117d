"""Rows whose values are frames of a log: if the frame around them is damaged, reading the log's
files does not take them for rows of the log."""

import struct

import pytest

pytestmark = pytest.mark.zeroxide_only

pa = pytest.importorskip("pyarrow")

# The row whose value is a frame, and the number of all rows.
FORGED = 3
ROWS = 9


def crc32c(data):
    """The checksum of frames (RFC 3720, appendix B.4)."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    return crc ^ 0xFFFFFFFF


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


def flip(path, position):
    data = bytearray(path.read_bytes())
    data[position] ^= 1
    path.write_bytes(data)


def subtree(path):
    """A file system that does not look like the local one."""
    from pyarrow.fs import LocalFileSystem, SubTreeFileSystem

    return SubTreeFileSystem(str(path), LocalFileSystem())


@pytest.mark.parametrize("byte", [9, 25, 50], ids=["length", "offset", "time"])
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


def test_a_value_does_not_say_what_was_on_disk(tmp_path):
    """After a power cut, the mark may be older than the file."""
    from zeroxide.pipeline import FilesLog

    value = forged(tmp_path / "other", FORGED + 1, FORGED + 1)
    folder = tmp_path / "log"
    path = written(folder, [b"row %d" % row for row in range(FORGED)] + [value])
    flip(path, list(frames(path.read_bytes()))[FORGED] + 25)
    (folder / "durable").write_text("1 ")
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
