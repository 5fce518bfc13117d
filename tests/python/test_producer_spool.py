"""A producer's spool: rows that survive the process, and are sent once."""

import subprocess
import sys

import pytest
from collecting import process, seqs, values
from support import eventually

from zeroxide.pipeline import Client, Collector, CollectorError, CollectorGone, Producer

pytestmark = pytest.mark.zeroxide_only

NOBODY = "tcp://127.0.0.1:9"

# Sends numbers from the end of the spool on, and prints its progress.
SEND = """
import sys, time
from zeroxide import Producer
endpoint, spool, total = sys.argv[1], sys.argv[2], int(sys.argv[3])
producer = Producer(endpoint, name="p", spool=spool, batch_rows=100, linger_ms=1)
while (at := producer.stats()["collectors"][endpoint]["next_seq"]) is None:
    time.sleep(0.001)
for row in range(at, total):
    producer.send(b"%d" % row)
    if row % 1000 == 0:
        print(row, flush=True)
producer.close(30)
print("done", flush=True)
"""


def sender(endpoint, spool, total):
    return subprocess.Popen(
        [sys.executable, "-c", SEND, endpoint, str(spool), str(total)],
        stdout=subprocess.PIPE,
        text=True,
    )


def test_every_row_once_while_the_producer_is_killed(directory):
    """Its program continues where the rows in the spool and the collector end."""
    with process(directory / "log") as collector:
        for kill_at in (10_000, 25_000, 25_000):
            sending = sender(collector.endpoint, directory / "spool", 40_000)
            for line in sending.stdout:
                if line.strip() == "done" or int(line) >= kill_at:
                    break
            sending.kill()
            sending.communicate()
            if kill_at == 25_000:
                collector.kill()
                collector.start()
        sending = sender(collector.endpoint, directory / "spool", 40_000)
        assert "done" in sending.communicate(timeout=60)[0]
        assert values(collector.endpoint) == [b"%d" % row for row in range(40_000)]
        assert seqs(collector.endpoint) == list(range(40_000))


def test_rows_wait_for_a_collector_that_starts_later(directory):
    with Producer(NOBODY, spool=directory / "spool", timeout_s=0.1) as producer:
        name = producer.name
        for row in range(1000):
            producer.send(b"%d" % row)
        with pytest.raises(CollectorGone):
            producer.flush()
        # Rows in a spool may wait longer than that.
        producer.send(b"1000")
        producer.close(0)
    with Producer(NOBODY, spool=directory / "spool", timeout_s=0.1) as producer:
        assert producer.name == name
        assert producer.stats()["unacknowledged"] == 1001
        producer.close(0)


def test_rows_that_do_not_fit_into_memory_are_read_again(directory):
    with process(directory / "log") as collector:
        collector.kill()
        spool = directory / "spool"
        with Producer(collector.endpoint, spool=spool, max_unacked_bytes=100_000) as producer:
            for row in range(50_000):
                producer.send(b"%050d" % row)
            collector.start()
            producer.flush(30)
        assert values(collector.endpoint) == [b"%050d" % row for row in range(50_000)]


def test_a_full_spool_waits(directory):
    spool = directory / "spool"
    with Producer(NOBODY, spool=spool, spool_bytes=100_000, timeout_s=0.3) as producer:
        with pytest.raises(CollectorGone):
            for _ in range(10_000):
                producer.send(bytes(100))
        assert 500 < producer.stats()["rows"] < 1100
        producer.close(0)


def test_one_process_and_one_name_per_spool(directory):
    spool = directory / "spool"
    with Producer(NOBODY, spool=spool, name="mine") as producer:
        with pytest.raises(CollectorError, match="in use"):
            Producer(NOBODY, spool=spool)
        producer.close(0)
    with pytest.raises(CollectorError, match="belongs to producer"):
        Producer(NOBODY, spool=spool, name="yours")


def test_a_new_spool_for_an_old_name(directory):
    with Collector(directory / "log") as collector:
        for run in ("one", "two"):
            with Producer(collector.endpoint, name="p", spool=directory / run) as producer:
                producer.send_batch([b"x"] * 10)
        # The first producer's spool does not know the second one's rows.
        with Producer(collector.endpoint, name="p", spool=directory / "one") as producer:
            producer.send(b"last")
            producer.flush(20)
        assert seqs(collector.endpoint) == list(range(21))


# Sends until the spool has no room, then as its input says. A limit on the size of files replaces a full disk.
FILL = """
import resource, sys, time
from zeroxide.pipeline import CollectorError, NotAcknowledged, Producer
endpoint, spool = sys.argv[1:]
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, hard))
producer = Producer(
    endpoint, name="p", spool=spool, batch_rows=100, max_unacked_bytes=50_000, timeout=0.3
)
sent = 0
def send():
    global sent
    producer.send(b"%0100d" % sent)
    sent += 1
try:
    while True:
        send()
except CollectorError as error:
    print(sent, error, flush=True)
if input() == "close":
    try:
        producer.close(0)
    except NotAcknowledged as error:
        print(error.remaining[endpoint], flush=True)
else:
    while producer.stats()["unacknowledged"]:
        time.sleep(0.001)
    total = 3 * sent
    while sent < total:
        try:
            send()
        except CollectorError:
            time.sleep(0.001)
    producer.close(60)
    print(sent, flush=True)
"""


def filler(endpoint, spool):
    filling = subprocess.Popen(
        [sys.executable, "-c", FILL, endpoint, str(spool)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    sent, error = filling.stdout.readline().split(maxsplit=1)
    assert "no room left for" in error and "go on as soon as it does" in error
    return filling, int(sent)


def test_a_producer_whose_spool_is_on_a_full_disk_waits_and_continues(directory):
    with process(directory / "log") as collector:
        collector.kill()
        filling, sent = filler(collector.endpoint, directory / "spool")
        assert sent > 1000
        collector.start()
        told, _ = filling.communicate("go on\n", timeout=120)
        assert filling.returncode == 0 and int(told) == 3 * sent
        assert values(collector.endpoint) == [b"%0100d" % row for row in range(3 * sent)]
        assert seqs(collector.endpoint) == list(range(3 * sent))


def test_rows_that_a_full_spool_did_not_take_are_reported_at_the_end(directory):
    filling, sent = filler(NOBODY, directory / "spool")
    told, _ = filling.communicate("close\n", timeout=60)
    assert filling.returncode == 0
    with Producer(NOBODY, spool=directory / "spool") as producer:
        assert producer.stats()["unacknowledged"] == sent - int(told)
        producer.close(0)


@pytest.mark.parametrize("synced", [True, False])
def test_a_spool_that_is_synced(directory, synced):
    spool = directory / "spool"

    def on_disk():
        """The mark that a log sets after a sync: rows below it are on disk."""
        (mark,) = spool.rglob("durable")
        return int(mark.read_text().split()[0])

    # The rows are never read, so nothing else causes a sync.
    producer = Producer(NOBODY, spool=spool, spool_sync=synced, batch_rows=50, linger_ms=1)
    producer.send_batch([b"x" * 1000] * 100)
    eventually(lambda: sum(file.stat().st_size for file in spool.rglob("*.zlog")) > 100_000)
    if synced:
        eventually(lambda: on_disk() == 100)
    else:
        assert on_disk() == 0
    producer.close(0)
    with (
        Collector(directory / "log") as collector,
        Producer(collector.endpoint, spool=directory / "other", spool_sync=synced) as producer,
    ):
        producer.send_batch([b"x"] * 100)
        producer.flush(20)
        assert seqs(collector.endpoint) == list(range(100))


# Sends while the process has no descriptors left, until that is reported. Then it has some again.
EXHAUST = """
import os, resource, sys, time
from zeroxide.pipeline import CollectorError, Producer
endpoint, spool = sys.argv[1:]
producer = Producer(endpoint, name="p", spool=spool, timeout_s=0.1, max_unacked_bytes=4 << 20)
producer.send(b"0")
producer.flush(60)
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (len(os.listdir("/proc/self/fd")) - 1, hard))
sent, reason = 1, ""
while "Too many open files" not in reason:
    try:
        producer.send(b"x" * 100_000)
        sent += 1
    except CollectorError as error:
        reason = str(error)
resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
print(reason)
while producer.stats()["unacknowledged"]:
    time.sleep(0.001)
producer.close(60)
print(sent)
"""


def test_a_spool_continues_when_there_are_descriptors_again(directory):
    with process(directory / "log") as collector:
        command = [sys.executable, "-c", EXHAUST, collector.endpoint, directory / "spool"]
        done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        assert done.returncode == 0, done.stderr
        reason, sent = done.stdout.splitlines()
        assert "the spool has taken no rows" in reason
        with Client(collector.endpoint) as client:
            assert client.info().latest == int(sent), "each row once"
