"""zeroxide.Producer: rows go into a collector's log, each of them once."""

import contextlib
import gc
import os
import resource
import signal
import subprocess
import sys
import threading
import weakref
from collections import OrderedDict, UserDict
from datetime import UTC, datetime
from itertools import pairwise
from types import MappingProxyType

import pyarrow as pa
import pytest
from collecting import fetch, process, seqs, values
from support import PATIENCE, eventually, run_script

import zeroxide
from zeroxide.pipeline import (
    Client,
    Collector,
    CollectorError,
    CollectorGone,
    Delivery,
    Fenced,
    NotAcknowledged,
    Producer,
    Refused,
)

pytestmark = pytest.mark.zeroxide_only

NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture
def collector(directory):
    with Collector(directory / "log") as collector:
        yield collector


def await_connection(producer, endpoint=None):
    """Waits until batches flow to a collector."""
    endpoint = endpoint or producer.endpoints[0]
    eventually(lambda: producer.stats()["collectors"][endpoint]["connected"])


def lonely(timeout, **options):
    """A producer without a collector that took a row before its timeout expired."""
    while True:
        producer = Producer(NOBODY, timeout_s=timeout, **options)
        try:
            producer.send(b"x")
            return producer
        except CollectorGone:
            # On a busy machine, its timeout may have expired already.
            producer.close(0)
            timeout *= 2


def test_rows_are_in_the_log_after_flush(collector):
    with zeroxide.Producer(collector.endpoint, name="p") as producer:
        for row in range(1000):
            producer.send(b"%d" % row)
        producer.flush(20)
        assert values(collector.endpoint) == [b"%d" % row for row in range(1000)]
        stats = producer.stats()
        assert stats["rows"] == stats["acknowledged"] == 1000
        assert stats["unacknowledged"] == stats["resent"] == 0
        there = stats["collectors"][collector.endpoint]
        assert (there["connected"], there["next_seq"]) == (True, 1000)
        assert there["log_id"] == collector.log_id
    table = fetch(collector.endpoint)
    assert set(table["producer"].to_pylist()) == {"p"}
    assert table["seq"].to_pylist() == list(range(1000))


def test_every_field_of_a_row(collector):
    when = datetime(2026, 3, 4, 5, 6, 7, 890123, tzinfo=UTC)
    with Producer(collector.endpoint) as producer:
        producer.send("text", key="key", topic="topic", headers={"a": b"1", "b": "2"})
        producer.send(bytearray(b"buffer"), headers=[("a", b"x"), ("a", memoryview(b"y"))])
        producer.send(b"", timestamp=when)
        producer.send(b"", timestamp=when.timestamp())
        producer.send(b"", timestamp=int(when.timestamp()) * 1_000_000 + 890_123)
        producer.send(b"", timestamp=when.astimezone().replace(tzinfo=None))
    rows = fetch(collector.endpoint, headers=True).to_pylist()
    assert (rows[0]["value"], rows[0]["key"], rows[0]["topic"]) == (b"text", b"key", "topic")
    assert rows[0]["headers"] == [{"key": "a", "value": b"1"}, {"key": "b", "value": b"2"}]
    assert [h["value"] for h in rows[1]["headers"]] == [b"x", b"y"]
    assert rows[1]["value"] == b"buffer"
    assert rows[1]["key"] is None and rows[1]["topic"] is None
    assert rows[0]["timestampType"] == 1
    assert rows[0]["timestamp"] == rows[0]["receive_time"]
    for row in rows[2:]:
        assert (row["timestamp"], row["timestampType"]) == (when, 0)


def test_a_value_that_is_not_a_row(collector):
    with Producer(collector.endpoint) as producer:
        for wrong in (5, None, [b"a"]):
            with pytest.raises(TypeError):
                producer.send(wrong)
        with pytest.raises(TypeError):
            producer.send(b"", headers={1: b""})
        with pytest.raises(TypeError):
            producer.send(b"", timestamp="today")
        with pytest.raises(ValueError):
            producer.send(b"", timestamp=float("nan"))
        with pytest.raises(ValueError, match="UTF-8"):
            producer.send(b"", topic=b"\xff")
        with pytest.raises(TypeError, match="send takes one"):
            producer.send_batch(b"abc")
        with pytest.raises(ValueError, match="'colour'"):
            producer.send_batch([{"value": b"", "colour": "red"}])
        await_connection(producer)
        with pytest.raises(ValueError, match="too large"):
            producer.send(bytes(32 << 20))
        assert producer.stats()["rows"] == 0


def test_a_row_that_is_too_large_is_refused_once_the_limit_is_known(directory):
    with process(directory) as collector:
        collector.kill()
        producer = Producer(collector.endpoint)
        producer.send(b"small")
        producer.send(bytes(32 << 20))
        collector.start()
        with pytest.raises(Refused, match="16777216") as refused:
            producer.flush(20)
        assert refused.value.code == "too-big"
        producer.close()
        assert values(collector.endpoint) == [b"small"]


def test_batches_of_values_and_rows(collector):
    with Producer(collector.endpoint, batch_rows=100) as producer:
        assert producer.send_batch([b"a", "b", memoryview(b"c")]) == 3
        assert producer.send_batch(iter([])) == 0
        assert producer.send_batch((b"%d" % row for row in range(1000)), topic="many") == 1000
        mixed = [b"x", {"value": "y", "key": "k", "topic": "own"}, {"value": b"z", "key": None}]
        assert producer.send_batch(mixed, topic="common", key="default") == 3
    rows = fetch(collector.endpoint).to_pylist()
    assert [row["value"] for row in rows[:3]] == [b"a", b"b", b"c"]
    assert [row["value"] for row in rows[3:1003]] == [b"%d" % row for row in range(1000)]
    assert {row["topic"] for row in rows[3:1003]} == {"many"}
    assert [(row["value"], row["key"], row["topic"]) for row in rows[1003:]] == [
        (b"x", b"default", "common"),
        (b"y", b"k", "own"),
        (b"z", b"default", "common"),
    ]


@pytest.mark.parametrize("given", [list, iter])
@pytest.mark.parametrize("kind", [OrderedDict, UserDict, MappingProxyType])
def test_rows_are_mappings_of_any_class(collector, given, kind):
    row = kind(
        {"value": "y", "key": None, "topic": "own", "headers": {"a": b"1"}, "timestamp": 1.5}
    )
    with Producer(collector.endpoint) as producer:
        assert producer.send_batch(given([row, kind({"value": b"z"})]), key="k", topic="t") == 2
    assert collector.append(given([row])) == (2, 3)
    rows = fetch(collector.endpoint, headers=True).to_pylist()
    assert [(row["value"], row["key"], row["topic"]) for row in rows] == [
        (b"y", b"k", "own"),
        (b"z", b"k", "t"),
        (b"y", None, "own"),
    ]
    for row in rows[0], rows[2]:
        assert row["headers"] == [{"key": "a", "value": b"1"}]
        assert row["timestamp"].timestamp() == 1.5


def test_tables(collector):
    when = datetime(2026, 1, 1, tzinfo=UTC)
    table = pa.table(
        {
            "value": [f"row {row}" for row in range(20_000)],
            "key": pa.array([b"k", None] * 10_000, pa.binary()),
            "timestamp": pa.array([when] * 20_000, pa.timestamp("ms", "UTC")),
        }
    )
    with Producer(collector.endpoint) as producer:
        producer.send(b"before")
        assert producer.send_arrow(table) == 20_000
        assert producer.send_arrow(pa.array([b"a", b"b"])) == 2
        with pytest.raises((ValueError, TypeError)):
            producer.send_arrow(pa.table({"value": ["a"], "other": ["b"]}))
        with pytest.raises(TypeError):
            producer.send_arrow([b"a"])
    rows = fetch(collector.endpoint)
    assert rows["value"].to_pylist() == [
        b"before",
        *(b"row %d" % row for row in range(20_000)),
        b"a",
        b"b",
    ]
    assert rows["key"].to_pylist()[1:3] == [b"k", None]
    assert rows["timestamp"].to_pylist()[1] == when


def test_callbacks_report_offsets_in_order(collector):
    seen: list[Delivery] = []
    with Producer(collector.endpoint, on_delivery=seen.append, batch_rows=7) as producer:
        for _ in range(10):
            producer.send_batch([b"x"] * 10)
            producer.flush(20)
            assert seen[-1].last_seq == seen[-1].offset + seen[-1].last_seq - seen[-1].first_seq
        assert seen[0].first_seq == seen[0].offset == 0
        for before, after in pairwise(seen):
            assert after.first_seq == before.last_seq + 1
        assert seen[-1].last_seq == 99
        assert all(one.error is None and one.endpoint == collector.endpoint for one in seen)


def test_callbacks_come_without_another_call(collector):
    arrived = threading.Event()
    with Producer(collector.endpoint, on_delivery=lambda _: arrived.set()) as producer:
        producer.send(b"x")
        assert arrived.wait(20)


def test_a_callback_may_send_and_flush_and_fail(collector, monkeypatch):
    failed = []
    monkeypatch.setattr(threading, "excepthook", failed.append)

    def again(delivery):
        if delivery.first_seq == 0:
            producer.send(b"from the callback")
            producer.flush(20)
            raise RuntimeError("in the callback")

    producer = Producer(collector.endpoint, on_delivery=again)
    producer.send(b"x")
    producer.flush(20)
    producer.close()
    assert values(collector.endpoint) == [b"x", b"from the callback"]
    assert str(failed[0].exc_value) == "in the callback"


def test_lost_rows_are_reported(collector):
    seen = []
    producer = Producer(NOBODY, timeout_s=None, on_delivery=seen.append)
    producer.send_batch([b"x"] * 5)
    with pytest.raises(NotAcknowledged):
        producer.close(0.1)
    assert sum(one.error.remaining[NOBODY] for one in seen) == 5
    assert producer.closed


def test_a_collector_that_is_gone(collector):
    with pytest.raises(ValueError):
        Producer([])
    producer = lonely(0.3)
    with pytest.raises(CollectorGone, match="has not answered") as gone:
        producer.flush()
    assert gone.value.endpoint == NOBODY and gone.value.seconds >= 0.3
    assert isinstance(gone.value, TimeoutError)
    with pytest.raises(CollectorGone, match="1 row is not acknowledged, and sent as soon"):
        producer.send(b"y")
    with pytest.raises(CollectorGone):
        producer.close()
    with pytest.raises(CollectorError, match="closed"):
        producer.send(b"z")
    producer.close()

    producer = Producer(NOBODY, timeout_s=None)
    producer.send(b"x")
    with pytest.raises(NotAcknowledged, match="1 row at tcp") as late:
        producer.flush(0.1)
    assert late.value.remaining == {NOBODY: 1}
    with pytest.raises(NotAcknowledged):
        producer.close(0.1)


def test_it_continues_when_the_collector_is_back(directory):
    with process(directory) as collector:
        # No row is sent before a flush.
        with Producer(collector.endpoint, timeout_s=1, linger_ms=600_000) as producer:
            await_connection(producer)
            producer.send(b"1")
            producer.flush(20)
            producer.send(b"2")
            collector.kill()
            with pytest.raises(CollectorGone):
                producer.flush()
            collector.start()
            await_connection(producer)
            producer.send(b"3")
            producer.flush(20)
        assert values(collector.endpoint) == [b"1", b"2", b"3"]


def test_every_row_once_while_the_collector_is_killed(directory):
    total, chunk = 200_000, 500
    with process(directory) as collector:
        with Producer(collector.endpoint, batch_rows=1000, linger_ms=1) as producer:
            for at in range(0, total, chunk):
                producer.send_batch([b"%d" % row for row in range(at, at + chunk)])
                if at in (40_000, 120_000):
                    await_connection(producer)
                    collector.kill()
                    collector.start()
            producer.flush(30)
            assert producer.stats()["reconnects"] >= 2
        assert values(collector.endpoint) == [b"%d" % row for row in range(total)]
        assert seqs(collector.endpoint) == list(range(total))


def test_a_stopped_collector_is_asked_again(directory):
    with process(directory) as collector, Producer(collector.endpoint) as producer:
        producer.send(b"1")
        producer.flush(20)
        collector.stop_for_now()
        producer.send(b"2")
        with pytest.raises(NotAcknowledged):
            producer.flush(2.5)
        collector.go_on()
        producer.flush(20)
        assert values(collector.endpoint) == [b"1", b"2"]


def test_the_newer_of_two_producers_with_one_name_wins(collector):
    first = Producer(collector.endpoint, name="twin")
    first.send(b"1")
    first.flush(20)
    with Producer(collector.endpoint, name="twin") as second:
        second.send(b"2")
        second.flush(20)
        first.send(b"lost")
        with pytest.raises(Fenced, match="twin") as fenced:
            first.flush(20)
        assert (fenced.value.producer, fenced.value.unacknowledged) == ("twin", 1)
        with pytest.raises(Fenced):
            first.send(b"also lost")
        with pytest.raises(Fenced):
            first.close()
    assert values(collector.endpoint) == [b"1", b"2"]


def test_back_pressure(directory):
    with process(directory) as collector:
        with Producer(collector.endpoint, max_unacked_rows=100) as producer:
            producer.send(b"x")
            producer.flush(20)
            collector.stop_for_now()
            sent = []

            def send():
                for row in range(1000):
                    producer.send(b"%d" % row)
                    sent.append(row)

            thread = threading.Thread(target=send)
            thread.start()
            eventually(lambda: len(sent) == 100)
            thread.join(0.2)
            assert thread.is_alive() and len(sent) == 100
            assert producer.stats()["unacknowledged"] == 100
            collector.go_on()
            thread.join(20)
            assert len(sent) == 1000
        assert len(values(collector.endpoint)) == 1001


def test_several_collectors(directory):
    with Collector(directory / "a") as a, Collector(directory / "b") as b:
        endpoints = [a.endpoint, b.endpoint]
        with Producer(endpoints, batch_rows=10) as producer:
            for endpoint in endpoints:  # rows without a key avoid a collector that has not started
                await_connection(producer, endpoint)
            for row in range(1000):
                producer.send(b"%d" % row, key=b"key %d" % (row % 10))
            producer.send_batch([b"unkeyed"] * 1000)
            producer.flush(20)
            assert list(producer.stats()["collectors"]) == endpoints
        tables = [fetch(endpoint) for endpoint in endpoints]
        keys = [{key for key in table["key"].to_pylist() if key} for table in tables]
        assert not keys[0] & keys[1] and len(keys[0] | keys[1]) == 10
        for table in tables:
            assert table["seq"].to_pylist() == list(range(table.num_rows))
            keyed = [int(v) for v in table["value"].to_pylist() if v != b"unkeyed"]
            assert keyed == sorted(keyed)
        unkeyed = [table["value"].to_pylist().count(b"unkeyed") for table in tables]
        # Batch by batch, avoiding a collector that has just paused for a long time, so not in equal shares.
        assert sum(unkeyed) == 1000 and all(unkeyed)


def test_rows_without_a_key_avoid_a_collector_that_is_gone(directory):
    with (
        Collector(directory / "a") as a,
        # Only full batches are sent, even on a busy machine.
        Producer(
            [NOBODY, a.endpoint], batch_rows=10, linger_ms=600_000, timeout_s=None
        ) as producer,
    ):
        await_connection(producer, a.endpoint)
        for row in range(200):
            producer.send(b"%d" % row)
        eventually(lambda: producer.stats()["unacknowledged"] == 10)
        with pytest.raises(NotAcknowledged) as late:
            producer.flush(0)
        assert late.value.remaining == {NOBODY: 10}
        assert len(values(a.endpoint)) == 190
        with pytest.raises(NotAcknowledged):
            producer.close(0)


def test_curve(directory):
    public, secret = zeroxide.curve_keypair()
    own_public, own_secret = zeroxide.curve_keypair()
    with Collector(directory, secret_key=secret, allow=[own_public]) as collector:
        keys = {"server_key": public, "public_key": own_public, "secret_key": own_secret}
        with Producer(collector.endpoint, **keys) as producer:
            producer.send(b"sealed")
            producer.flush(20)
        assert Client(collector.endpoint, **keys).info().latest == 1

        stranger = Producer(collector.endpoint, server_key=public, timeout_s=0.5)
        with pytest.raises(Refused, match="public key"):
            stranger.send(b"x")
            stranger.flush()
        with contextlib.suppress(Refused):
            stranger.close()
        with pytest.raises((Refused, CollectorGone)):
            Client(collector.endpoint, server_key=public, timeout_s=0.2, retries=1).info()
    for wrong in (
        {"secret_key": own_secret},
        {"server_key": public, "public_key": own_public},
        {"server_key": public, "public_key": public, "secret_key": own_secret},
    ):
        with pytest.raises(ValueError):
            Producer(NOBODY, **wrong)


def test_a_forked_child_cannot_use_it(collector):
    with Producer(collector.endpoint) as producer:
        producer.send(b"1")
        producer.flush(20)
        read, write = os.pipe()
        pid = os.fork()
        if not pid:
            said = []
            for call in (lambda: producer.send(b"2"), producer.flush, producer.stats):
                try:
                    call()
                except RuntimeError as error:
                    said.append(str(error))
            producer.close()
            os.write(write, "\n".join(said).encode())
            os._exit(0)
        assert os.waitpid(pid, 0)[1] == 0
        os.close(write)
        with os.fdopen(read) as pipe:
            said = pipe.read().splitlines()
        assert len(said) == 3
        assert all(f"belongs to process {os.getpid()}" in line for line in said)
        producer.send(b"3")
    assert values(collector.endpoint) == [b"1", b"3"]


def test_ctrl_c_ends_a_wait(collector):
    producer = Producer(NOBODY, max_unacked_rows=1)
    producer.send(b"x")
    for wait in (lambda: producer.send(b"y"), producer.flush):
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        with pytest.raises(KeyboardInterrupt):
            timer.start()
            wait()
        timer.join()
    with pytest.raises(NotAcknowledged):
        producer.close(0)


def test_a_close_that_ctrl_c_ends_loses_no_row_and_can_be_continued(directory):
    with process(directory) as collector:
        producer = Producer(collector.endpoint)
        producer.send(b"first")
        producer.flush()
        collector.stop_for_now()
        producer.send_batch([b"x"] * 100)
        for _ in range(2):
            timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
            with pytest.raises(KeyboardInterrupt):
                timer.start()
                producer.close()
            timer.join()
        with pytest.raises(CollectorError):
            producer.send(b"late")
        collector.go_on()
        producer.close()
        producer.close()
        assert producer.stats()["unacknowledged"] == 0
        assert len(values(collector.endpoint)) == 101


def test_a_block_whose_end_ctrl_c_interrupts_still_delivers(directory):
    with process(directory) as collector:
        timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
        with pytest.raises(KeyboardInterrupt), Producer(collector.endpoint) as producer:
            producer.send(b"first")
            producer.flush()
            collector.kill()
            producer.send(b"last")
            timer.start()
        timer.join()
        del producer
        gc.collect()
        collector.start()
        eventually(lambda: values(collector.endpoint) == [b"first", b"last"])


def interrupted_close(endpoint, **options):
    timer = threading.Timer(0.1, signal.raise_signal, [signal.SIGINT])
    with pytest.raises(KeyboardInterrupt), Producer(endpoint, **options) as producer:
        producer.send(b"x")
        timer.start()
    timer.join()
    return producer


def test_an_interrupted_close_leaves_the_rows_to_the_next_producer_with_the_spool(tmp_path):
    producer = interrupted_close(NOBODY, spool=tmp_path)
    with Producer(NOBODY, spool=tmp_path) as following:
        assert following.stats()["unacknowledged"] == 1
        following.close(0)
    producer.close()


def test_an_interrupted_producer_goes_once_its_rows_are_delivered(directory):
    with process(directory) as collector:
        collector.kill()
        producer = interrupted_close(collector.endpoint)
        collector.start()
        eventually(lambda: producer.stats()["unacknowledged"] == 0)
        gone, producer = weakref.ref(producer), None
        with Producer(collector.endpoint):
            gc.collect()
            assert gone() is None


@pytest.mark.parametrize("signals", [1, 2])
def test_a_program_that_ends_after_an_interrupted_close_reports_its_rows(signals):
    """Another signal during the wait at the exit ends that wait, and not the report."""
    _, error = run_script(
        "zeroxide",
        f"""
        import signal, sys
        from zeroxide import producer as module
        module._LAST_WORDS = 1000 if {signals} > 1 else 0.1
        signal.signal(signal.SIGALRM, lambda *_: sys.exit(0))
        signal.setitimer(signal.ITIMER_REAL, 0.2, 0.3 if {signals} > 1 else 0)
        with zmq.Producer({NOBODY!r}) as producer:
            producer.send(b"x")
        """,
    )
    assert error.endswith("has not acknowledged 1 row\n") and "Traceback" not in error


def test_many_threads(collector):
    def send(number):
        for row in range(2000):
            producer.send(b"%d %d" % (number, row))

    with Producer(collector.endpoint) as producer:
        threads = [threading.Thread(target=send, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    rows = [value.split() for value in values(collector.endpoint)]
    assert len(rows) == 8000
    for number in range(4):
        own = [int(row) for who, row in rows if int(who) == number]
        assert own == list(range(2000))


def test_a_program_that_forgets_to_close(directory):
    with process(directory) as collector:
        output, error = run_script(
            "zeroxide",
            f"""
            from zeroxide import producer as module
            module._LAST_WORDS = {PATIENCE}  # a busy machine needs more than two seconds
            producer = zmq.Producer({collector.endpoint!r})
            producer.send(b"last words")
            """,
        )
        assert (output, error) == ("", "")
        assert values(collector.endpoint) == [b"last words"]
    code = f"import zeroxide\nproducer = zeroxide.Producer({NOBODY!r})\nproducer.send(b'x')"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert "has not acknowledged 1 row\n" in done.stderr
    assert done.returncode == 0


def test_options_are_checked():
    for options in (
        {"max_unacked_rows": 0},
        {"batch_rows": 0},
        {"linger_ms": -1},
        {"name": ""},
        {"name": "x" * 256},
    ):
        with pytest.raises(ValueError):
            Producer(NOBODY, **options)
    with pytest.raises(ValueError, match="twice"):
        Producer([NOBODY, NOBODY])
    with pytest.raises(zeroxide.ZMQError, match="not an endpoint"):
        Producer("nonsense")


def test_a_full_disk_holds_rows_back_and_loses_none(directory):
    """A limit on the size of files replaces a full disk, because the system reports both alike."""
    with process(directory) as collector:
        unlimited = resource.prlimit(collector.pid, resource.RLIMIT_FSIZE)
        with Producer(collector.endpoint, batch_rows=100, timeout_s=2) as producer:
            await_connection(producer)
            producer.send(b"first")
            producer.flush(20)
            resource.prlimit(collector.pid, resource.RLIMIT_FSIZE, (100_000, unlimited[1]))
            producer.send_batch(bytes(100) for _ in range(5000))
            with pytest.raises(Refused, match="taken no rows") as refused:
                producer.flush(20)
            assert refused.value.code == "full"
            there = producer.stats()["collectors"][collector.endpoint]
            assert there["obstacle"] == "full" and there["reason"]
            # There is still room here.
            producer.send(b"last")
            resource.prlimit(collector.pid, resource.RLIMIT_FSIZE, unlimited)
            eventually(lambda: not producer.stats()["unacknowledged"])
            producer.flush(20)
        assert values(collector.endpoint) == [b"first", *[bytes(100)] * 5000, b"last"]


# ---- iterables ----------------------------------------------------------------------


def rows_until(error, count):
    """Yields `count` rows, then raises."""
    yield from (b"%d" % row for row in range(count))
    raise error


def test_an_iterable_that_raises_loses_none_of_its_rows(collector):
    with Producer(collector.endpoint) as producer:
        with pytest.raises(LookupError) as caught:
            producer.send_batch(rows_until(LookupError("the end"), 10))
        assert caught.value.sent == 10
        with pytest.raises(TypeError) as caught:
            producer.send_batch([b"10", "11", 12, b"13"])
        assert caught.value.sent == 2
    assert values(collector.endpoint) == [b"%d" % row for row in range(12)]


def test_each_row_is_taken_before_the_next_is_requested(collector):
    with Producer(collector.endpoint) as producer:

        def rows():
            for row in range(5):
                yield b"%d" % row
                producer.flush(20)
                assert producer.stats()["acknowledged"] == row + 1

        assert producer.send_batch(rows()) == 5


@pytest.mark.parametrize("form", [iter, list])
def test_a_batch_that_times_out_reports_what_it_took(form):
    producer = Producer(NOBODY, timeout_s=0.2, max_unacked_rows=10, batch_rows=4)
    given = []
    rows = form([b"%d" % row for row in range(100)])
    if form is iter:
        rows = (given.append(row) or row for row in rows)
    with pytest.raises(CollectorGone) as caught:
        producer.send_batch(rows)
    assert caught.value.sent == producer.stats()["rows"] > 0
    if form is iter:
        assert given[caught.value.sent :] == [caught.value.unsent]
    with pytest.raises((CollectorGone, NotAcknowledged)):
        producer.close(0)


def test_a_table_that_times_out_reports_what_it_took():
    producer = Producer(NOBODY, timeout_s=0.2, max_unacked_rows=10, batch_rows=4)
    with pytest.raises(CollectorGone) as caught:
        producer.send_arrow(pa.table({"value": [b"x"] * 100}))
    assert caught.value.sent == producer.stats()["rows"] > 0
    with pytest.raises((CollectorGone, NotAcknowledged)):
        producer.close(0)


# ---- sizes --------------------------------------------------------------------------


def test_batches_are_split_to_the_collectors_limit(directory):
    with Collector(directory, max_batch_bytes=100_000) as collector:
        with Producer(collector.endpoint) as producer:
            producer.send(b"first")
            producer.flush(20)
            wide = [b"%060000d" % number for number in range(40)]
            producer.send_batch(wide)
            producer.send_batch([b"%01000d" % number for number in range(2000)], key="k")
            producer.send_arrow(pa.table({"value": pa.array(wide, pa.binary())}))
            large = b"x" * 200_000
            for send in (
                lambda: producer.send(large),
                lambda: producer.send_batch([b"small", large]),
                lambda: producer.send_arrow(pa.table({"value": pa.array([large], pa.binary())})),
            ):
                with pytest.raises(ValueError, match="max_batch_bytes"):
                    send()
            producer.send(b"last")
            producer.flush(20)
        found = values(collector.endpoint)
        assert found[:41] == [b"first", *wide]
        assert found[2041:2081] == wide
        assert found[-1] == b"last"
