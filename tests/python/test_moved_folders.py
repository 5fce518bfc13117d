"""Folders of logs and spools that are moved or removed while they are in use."""

import shutil

import pytest
from collecting import values
from support import eventually

from zeroxide.pipeline import Client, Collector, CollectorError, Producer

pytestmark = pytest.mark.zeroxide_only

NOBODY = "tcp://127.0.0.1:9"


def stats(collector):
    with Client(collector.endpoint) as client:
        return client.stats()


def test_a_collector_leaves_the_log_in_the_place_of_its_own_alone(tmp_path):
    path, moved = tmp_path / "log", tmp_path / "log.old"
    first = Collector(path, segment_bytes=1 << 16)
    producer = Producer(first.endpoint, name="a", timeout_s=None)
    producer.send(b"a0")
    producer.flush(30)
    path.rename(moved)
    with Collector(path, segment_bytes=1 << 16) as second:
        rows = [b"b%d" % row + b"." * 10_000 for row in range(20)]
        for row in rows:
            second.append([row])
        producer.send_batch([b"a" * 10_000] * 20)
        eventually(lambda: "was replaced by another folder" in (stats(first)["reason"] or ""))
        eventually(lambda: "in use by process" in (stats(first)["reason"] or ""))
        assert producer.stats()["acknowledged"] == 1
        assert values(second.endpoint) == rows
    shutil.rmtree(path)
    moved.rename(path)
    producer.close(30)
    assert values(first.endpoint) == [b"a0"] + [b"a" * 10_000] * 20
    first.close()


@pytest.mark.parametrize("what", ["folder", "files"])
def test_a_collector_whose_log_was_removed_acknowledges_nothing(tmp_path, what):
    path = tmp_path / "log"
    collector = Collector(path)
    producer = Producer(collector.endpoint, name="a", timeout_s=None)
    producer.send(b"0")
    producer.flush(30)
    if what == "folder":
        shutil.rmtree(path)
    else:
        for file in path.iterdir():
            if file.is_file():
                file.unlink()
    producer.send(b"1")
    eventually(lambda: "removed while its log was in use" in (stats(collector)["reason"] or ""))
    eventually(lambda: producer.stats()["collectors"][collector.endpoint]["obstacle"] == "failed")
    found = producer.stats()
    assert (found["acknowledged"], found["unacknowledged"]) == (1, 1)
    assert "was" in found["collectors"][collector.endpoint]["reason"]
    assert path.exists() == (what == "files")
    with pytest.raises(CollectorError):
        producer.close(0)
    collector.close()


@pytest.mark.parametrize("what", ["moved", "removed"])
def test_a_producer_reports_that_its_spool_is_not_where_it_was(tmp_path, what):
    spool = tmp_path / "spool"
    producer = Producer(NOBODY, name="a", spool=spool, spool_sync=True, timeout_s=None)
    if what == "moved":
        spool.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(spool)

    def is_reported():
        try:
            producer.send(b"1")
        except CollectorError as error:
            return "was moved or removed while its log was in use" in str(error)
        return False

    eventually(is_reported)
    with pytest.raises(CollectorError):
        producer.close(0)
    assert not spool.exists()


def test_a_program_may_change_its_working_directory(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with (
        Collector("log") as collector,
        Producer(collector.endpoint, spool="spool", spool_sync=True) as producer,
    ):
        producer.send(b"before")
        producer.flush(30)
        monkeypatch.chdir("/")
        producer.send(b"after")
        producer.flush(30)
        assert values(collector.endpoint) == [b"before", b"after"]
