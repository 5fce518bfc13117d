"""Large transactions: published completely or not at all, even if the collector dies, while other writers continue."""

import time
from pathlib import Path

import pytest
from collecting import process
from support import Background, eventually

pytestmark = pytest.mark.zeroxide_only

collectors = pytest.importorskip("zeroxide.pipeline")
pa = pytest.importorskip("pyarrow")

from zeroxide import Producer  # noqa: E402

ROWS = 2000
VALUE = b"x" * 2000
PART = pa.record_batch({"value": pa.array([VALUE] * ROWS, pa.binary())})


def stage(client, parts):
    for part in range(parts):
        client.stage("q", 0, 0, 1, part, PART)


def sizes(client):
    """Counts the rows of the transaction and the other rows."""
    info = client.info()
    total = of_others = 0
    for batch in client.fetch(info.earliest, info.latest):
        total += batch.num_rows
        of_others += batch["value"].to_pylist().count(b"other")
    return total - of_others, of_others


def test_a_collector_that_is_killed_while_it_publishes(directory):
    parts = 20
    with process(directory) as collector:
        client = collectors.Client(collector.endpoint, timeout_s=60)
        stage(client, parts)
        for _ in range(3):
            publishing = Background(_try_publish, collector.endpoint, parts)
            _await_begun(directory, publishing)
            collector.kill()
            publishing.result()
            collector.start()
            client = collectors.Client(collector.endpoint, timeout_s=60)
            found, _ = sizes(client)
            assert found in (0, parts * ROWS)
            assert not list(Path(directory).glob("*.preparing"))
        first, end, _ = client.publish("q", 0, [(0, 1, parts)])
        assert (first, end) == (0, parts * ROWS)
        assert client.publish("q", 0, [(0, 1, parts)]).already
        assert sizes(client) == (parts * ROWS, 0)


def _await_begun(directory, publishing):
    eventually(lambda: any(Path(directory).glob("*.preparing")) or not publishing.is_alive())


def _try_publish(endpoint, parts):
    client = collectors.Client(endpoint, timeout_s=2, retries=0)
    try:
        return client.publish("q", 0, [(0, 1, parts)])
    except collectors.CollectorError:
        return None


@pytest.mark.slow
def test_more_than_a_gibibyte_in_little_memory_next_to_other_writers(directory):
    parts = 320
    with process(directory) as collector:
        client = collectors.Client(collector.endpoint, timeout_s=5)
        stage(client, parts)
        # Publishing takes longer than the client would wait for a silent collector.
        publishing = Background(client.publish, "q", 0, [(0, 1, parts)])
        slowest = sent = 0
        with Producer(collector.endpoint) as producer:
            while publishing.is_alive():
                began = time.monotonic()
                producer.send(b"other")
                producer.flush(60)
                slowest = max(slowest, time.monotonic() - began)
                sent += 1
        first, end, already = publishing.result()
        assert (end - first, already) == (parts * ROWS, False)
        # Far less memory than the transaction, and far less time than publishing takes.
        assert memory(collector.pid) < 256 << 20
        assert slowest < 2
        assert sizes(client) == (parts * ROWS, sent)


def memory(pid):
    """The peak memory of a process in bytes."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) << 10
    raise AssertionError


def test_readers_of_the_folder_see_rows_that_replace_an_empty_segment(directory):
    from zeroxide.pipeline import FilesLog

    with process(directory) as collector, FilesLog(directory) as files:
        client = collectors.Client(collector.endpoint, timeout_s=60)
        with Producer(collector.endpoint) as producer:
            # A frame without rows marks its start.
            eventually(lambda: client.stats()["hellos"] == 1)
            assert files.info().latest == 0
            stage(client, 5)
            first, end, _ = client.publish("q", 0, [(0, 1, 5)])
            assert (first, end) == (0, 5 * ROWS)
            assert files.info().latest == end
            assert sum(batch.num_rows for batch in files.fetch(0, end)) == end
            producer.send(b"other")
            producer.flush(60)
        [batch] = files.fetch(end, end + 1)
        assert batch["value"].to_pylist() == [b"other"]
