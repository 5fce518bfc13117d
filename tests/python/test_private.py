"""Only their owner can read the files of collectors and producers."""

import os
import stat

import pytest

from zeroxide.pipeline import Collector, Producer

pytestmark = pytest.mark.zeroxide_only

OTHERS = stat.S_IRWXG | stat.S_IRWXO


@pytest.fixture(autouse=True)
def generous_umask():
    """A umask that would allow every user."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_to_others(folder):
    entries = [folder, *folder.rglob("*")]
    assert len(entries) > 2
    return [entry for entry in entries if entry.stat().st_mode & OTHERS]


def test_only_the_owner_can_read_a_log_and_a_spool(directory):
    log, spool = directory / "log", directory / "spool"
    with (
        Collector(log) as collector,
        Producer(collector.endpoint, name="p", spool=spool) as producer,
    ):
        producer.send(b"row")
        producer.flush(30)
        assert open_to_others(spool) == []
    assert open_to_others(log) == []


def test_folders_that_others_could_read_are_closed_to_them(directory):
    log = directory / "log"
    Collector(log).close()
    for entry in (log, *log.rglob("*")):
        entry.chmod(0o777)
    Collector(log).close()
    assert open_to_others(log) == []


def test_an_archive_is_for_the_owner_unless_its_folder_is_made_for_others(directory):
    pytest.importorskip("pyarrow")
    from pyarrow.fs import LocalFileSystem

    from zeroxide.pipeline import archive_segments

    log = directory / "log"
    with Collector(log) as collector:
        collector.append([b"row"])
    mine, shared = directory / "mine", directory / "shared"
    shared.mkdir(mode=0o755)
    for folder in (mine, shared):
        archive_segments(log, LocalFileSystem(), str(folder), all_segments=True)
    assert stat.S_IMODE(mine.stat().st_mode) == 0o700
    assert stat.S_IMODE(shared.stat().st_mode) == 0o755
