"""A producer's name at several hosts, older copies of a log, and rows that will never arrive."""

import asyncio
import shutil

import pytest
from collecting import process, seqs, values
from support import eventually

import zeroxide.asyncio
from zeroxide.pipeline import Client, Collector, DataLoss, Producer, Refused

pytestmark = pytest.mark.zeroxide_only


def away(endpoint, spool, rows, **options):
    """Sends rows while the collector is away, so that they stay in the spool."""
    with Producer(endpoint, name="p", spool=spool, timeout_s=0.1, **options) as producer:
        for row in rows:
            producer.send(row)
        producer.close(0)


def numbered(host, count):
    return [b"%s %d" % (host, row) for row in range(count)]


def test_a_spool_that_comes_back_after_others_used_its_name_is_delivered(directory):
    """Without this, the 50 rows would count as duplicates of the 80, and be reported as delivered."""
    told = []
    with process(directory / "log") as collector:
        with Producer(collector.endpoint, name="p", spool=directory / "a") as producer:
            producer.send_batch([b"first"] * 10)
        collector.kill()
        away(collector.endpoint, directory / "a", numbered(b"a", 50))
        collector.start()
        with Producer(collector.endpoint, name="p", spool=directory / "b") as producer:
            producer.send_batch(numbered(b"b", 80))
        with Producer(
            collector.endpoint, name="p", spool=directory / "a", on_delivery=told.append
        ) as producer:
            producer.flush(20)
        expected = [b"first"] * 10 + numbered(b"b", 80) + numbered(b"a", 50)
        assert values(collector.endpoint) == expected
        assert seqs(collector.endpoint) == list(range(140))
        assert [(one.first_seq, one.last_seq, one.error) for one in told] == [(90, 139, None)]


def test_rows_of_others_in_between_cause_no_repetition_and_no_loss(directory, caplog):
    with process(directory / "log") as collector:
        endpoint = collector.endpoint
        with Producer(endpoint, name="p", spool=directory / "a") as producer:
            producer.send_batch(numbered(b"a", 30))
            producer.flush(20)
            # The process dies here: some rows are acknowledged, but the spool does not know.
            copied = shutil.copytree(directory / "a", directory / "killed")
        collector.kill()
        away(endpoint, copied, [b"a 30", b"a 31"])
        collector.start()
        with Producer(endpoint, name="p", spool=directory / "b") as producer:
            producer.send_batch(numbered(b"b", 80))
        with Producer(endpoint, name="p", spool=copied) as producer:
            producer.send(b"a 32")
            producer.flush(20)
            stats = producer.stats()["collectors"][endpoint]
            assert stats["renumbered"] == 2
            assert "another producer" in caplog.text
        expected = numbered(b"a", 30) + numbered(b"b", 80) + [b"a 30", b"a 31", b"a 32"]
        assert values(endpoint) == expected
        assert seqs(endpoint) == list(range(113))


def test_a_producer_learns_that_acknowledged_rows_are_gone(directory):
    """The log is restored from an older copy of the folder, which another producer has used since."""
    told = []
    with process(directory / "log") as collector:
        endpoint = collector.endpoint
        with Producer(endpoint, name="p", on_delivery=told.append) as producer:
            producer.send_batch([b"old"] * 10)
            producer.flush(20)
            collector.kill()
            shutil.copytree(directory / "log", directory / "copy")
            collector.start()
            producer.send_batch([b"gone"] * 10)
            producer.flush(20)
            collector.kill()
            shutil.rmtree(directory / "log")
            shutil.copytree(directory / "copy", directory / "log")
            collector.start()
            producer.send(b"new")
            with pytest.raises(Refused, match="has lost 10 rows that it had ack") as error:
                producer.flush(20)
            assert error.value.code == "other-rows"
            producer.flush(20)  # reported once
            assert producer.stats()["collectors"][endpoint]["lost"] == 10
        assert values(endpoint) == [b"old"] * 10 + [b"new"]
    assert [str(one.error) for one in told if one.error] == [str(error.value)]


def test_a_row_that_is_too_large_does_not_block_others(directory):
    pa = pytest.importorskip("pyarrow")
    told = []
    large = bytes(17 << 20)
    with process(directory / "log") as collector:
        collector.kill()
        rows = [b"before", large, b"after"]
        away(collector.endpoint, directory / "spool", rows, max_unacked_bytes=100 << 20)
        collector.start()
        with Producer(
            collector.endpoint, name="p", spool=directory / "spool", on_delivery=told.append
        ) as producer:
            with pytest.raises(Refused, match="larger than") as error:
                producer.flush(30)
            assert error.value.code == "too-big"
            producer.send(b"last")
            producer.flush(30)
            stats = producer.stats()
            assert stats["collectors"][collector.endpoint]["set_aside"] == 1
            assert stats["unacknowledged"] == 0
        assert values(collector.endpoint) == [b"before", b"after", b"last"]
        assert seqs(collector.endpoint) == [0, 1, 2]
    assert sum(one.error is not None for one in told) == 1
    (aside,) = (directory / "spool" / "set-aside").iterdir()
    assert str(aside) in str(error.value)
    with pa.ipc.open_stream(aside) as stream:
        assert stream.read_all()["value"].to_pylist() == [large]


def test_rows_that_are_too_large_together_are_split(directory):
    with Collector(directory / "log", max_batch_bytes=1 << 16) as collector:
        endpoint = collector.endpoint
    away(endpoint, directory / "spool", [b"%05000d" % row for row in range(100)])
    with (
        Collector(directory / "log", endpoint, max_batch_bytes=1 << 16),
        Producer(endpoint, name="p", spool=directory / "spool") as producer,
    ):
        producer.flush(30)
        assert values(endpoint) == [b"%05000d" % row for row in range(100)]


def test_a_row_without_a_spool_that_is_too_large_is_reported(directory):
    with process(directory / "log") as collector:
        collector.kill()
        with Producer(collector.endpoint, max_unacked_bytes=100 << 20) as producer:
            for row in (b"before", bytes(17 << 20), b"after"):
                producer.send(row)
            collector.start()
            with pytest.raises(Refused, match="lost"):
                producer.flush(30)
            producer.flush(30)
        assert values(collector.endpoint) == [b"before", b"after"]


def test_a_row_that_is_too_large_does_not_block_an_asyncio_producer(directory):
    async def send(collector):
        async with zeroxide.asyncio.Producer(
            collector.endpoint, max_unacked_bytes=100 << 20
        ) as producer:
            futures = [await producer.send(row) for row in (b"before", bytes(17 << 20))]
            collector.start()
            with pytest.raises(Refused, match="larger than"):
                await producer.flush(30)
            await producer.send(b"after")
            await producer.flush(30)
            assert (await futures[0]).error is None
            with pytest.raises(Exception, match="larger than"):
                await futures[1]

    with process(directory / "log") as collector:
        collector.kill()
        asyncio.run(send(collector))
        assert values(collector.endpoint) == [b"before", b"after"]


def test_a_bit_that_flips_in_a_spool_does_not_block_other_rows(directory):
    """A flipped bit, in any file and at many positions, sets aside only the affected rows."""
    with process(directory / "log") as collector:
        collector.kill()
        endpoint = collector.endpoint
        away(endpoint, directory / "spool", numbered(b"a", 40), batch_rows=10, linger_ms=1000)
        collector.start()
        files = [path for path in (directory / "spool").rglob("*") if path.is_file()]
        hits = [(path, at) for path in files for at in spread(path.stat().st_size)]
        for number, (path, at) in enumerate(hits):
            spool = directory / "spool" if number == 0 else directory / f"spool{number}"
            if number:
                shutil.copytree(directory / "kept", spool)
            else:
                shutil.copytree(spool, directory / "kept")
            broken = spool / path.relative_to(directory / "spool")
            data = bytearray(broken.read_bytes())
            data[at] ^= 1 << number % 8
            broken.write_bytes(data)
            before = Client(endpoint).info().latest
            with Producer(endpoint, spool=spool, timeout_s=20) as producer:
                producer.send(b"last")
                try:
                    producer.flush(20)
                except Refused as error:
                    assert error.code == "corrupt", (broken, at)
                aside = producer.stats()["collectors"][endpoint]["set_aside"]
            batches = Client(endpoint).fetch(before, Client(endpoint).info().latest)
            rows = [value for batch in batches for value in batch["value"].to_pylist()]
            assert aside in (0, 10), (broken, at)
            assert len(rows) == 41 - aside and rows[-1] == b"last", (broken, at)


def spread(size):
    """Returns some positions in a file, more of them near its beginning."""
    return sorted(
        {at for at in (*range(0, 100, 7), *range(0, size, max(size // 25, 1))) if at < size}
    )


def test_a_position_in_an_older_copy_that_has_grown_is_a_loss(directory):
    """500 rows are copied and 800 are read. The copy then gets 800 other rows, and is longer than what was read."""
    with Collector(directory / "log") as collector:
        collector.append([b"x"] * 500)
    shutil.copytree(directory / "log", directory / "copy")
    with Collector(directory / "log") as collector:
        collector.append([b"x"] * 300)
        client = Client(collector.endpoint)
        info = client.info()
        read = info.generation(info.latest)
        early = info.generation(400)
    with Collector(directory / "copy") as collector:
        collector.append([b"y"] * 800)
        client = Client(collector.endpoint)
        info = client.info()
        assert info.check(800, read) == 500
        assert info.check(400, early) is None
        with pytest.raises(DataLoss, match="older copy") as error:
            list(client.fetch(800, 1300, generation=read))
        assert (error.value.asked, error.value.others) == (800, 500)
        with pytest.raises(Refused) as refused:
            client.commit("g", 800, generation=read)
        assert (refused.value.code, refused.value.detail) == ("other-rows", 500)
        assert client.groups() == {}
        rows = sum(len(batch) for batch in client.fetch(400, 1300, generation=early))
        assert rows == 900
    from zeroxide.pipeline import FilesLog

    with FilesLog(directory / "copy") as log:
        assert log.info().generations == info.generations
        with pytest.raises(DataLoss, match="older copy"):
            list(log.fetch(800, 1300, generation=read))


def test_a_folder_from_before_generations_is_opened(directory):
    with Collector(directory / "log") as collector:
        collector.append([b"x"] * 5)
    (directory / "log" / "generations").unlink()
    with Collector(directory / "log") as collector:
        client = Client(collector.endpoint)
        assert client.info().generations == ()
        collector.append([b"x"] * 5)
        info = client.info()
        assert info.generation(5) is None
        assert info.generation(6) is not None
        assert sum(len(batch) for batch in client.fetch(5, 10, generation="0" * 15 + "1")) == 5


def test_reading_deletes_nothing_and_groups_can_be_dropped(directory):
    def fill(**options):
        collector = Collector(directory / "log", segment_bytes=1 << 16, **options)
        for _ in range(5):
            collector.append([bytes(1000)] * 100)
        return collector

    with fill() as collector:
        client = Client(collector.endpoint)
        segments = collector.stats()["segments"]
        assert segments > 3
        client.commit("reports", 500)
        client.commit("stale", 0)
        assert client.groups() == collector.groups() == {"reports": 500, "stale": 0}
        assert client.drop_group("stale")
        assert not client.drop_group("stale")
        assert collector.drop_group("reports")
        client.commit("reports", 500)
        # Retention has run twice in the meantime.
        eventually(lambda: collector.stats()["uptime_seconds"] >= 3)
        assert client.info().earliest == 0
    with Collector(directory / "log", retention_groups=True) as collector:
        assert collector.groups() == {"reports": 500}
        client = Client(collector.endpoint)
        eventually(lambda: client.info().earliest > 0)


def test_the_command_lists_and_drops_groups(directory, capsys):
    from zeroxide.cli import main

    with Collector(directory / "log") as collector:
        collector.append([b"x"] * 10)
        client = Client(collector.endpoint)
        client.commit("reports", 7)
        client.commit("stale", 3)
        assert main(["groups", collector.endpoint]) == 0
        assert capsys.readouterr().out.split() == ["7", "reports", "3", "stale"]
        assert main(["groups", collector.endpoint, "--drop", "stale"]) == 0
        assert capsys.readouterr().out.split() == ["7", "reports"]
        assert main(["groups", collector.endpoint, "--drop", "stale"]) == 1
        assert "no group 'stale'" in capsys.readouterr().err
