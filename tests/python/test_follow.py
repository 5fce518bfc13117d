"""Following a log, with threads and in asyncio."""

import asyncio
import math
import os
import pickle
import shutil
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta

import pytest
from collecting import process
from support import PATIENCE, Background, eventually

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")

Client, Collector, Producer = pipeline.Client, pipeline.Collector, pipeline.Producer


@pytest.fixture
def collector(directory):
    with Collector(directory / "log") as collector:
        yield collector


@pytest.fixture
def client(collector):
    with Client(collector.endpoint, timeout_s=PATIENCE) as client:
        yield client


def waiting(collector, count=1):
    """Waits until `count` followers wait for rows."""
    eventually(lambda: collector.stats()["followers"] == count)


def values(rows, count):
    return [next(rows).value for _ in range(count)]


def test_rows_arrive_as_they_are_written(collector, client):
    with client.follow() as rows:
        for number in range(3):
            follower = Background(next, rows)
            waiting(collector)
            collector.append([b"%d" % number])
            row = follower.result()
            assert (row.value, row.offset) == (b"%d" % number, number)


def test_a_row_has_everything_that_was_sent(collector, client):
    when = datetime(2026, 5, 4, 3, 2, 1, 500, tzinfo=UTC)
    headers = [("a", b"1"), ("a", b"2")]
    with Producer(collector.endpoint, name="p") as producer:
        producer.send(b"v", key="k", topic="t", headers=headers, timestamp=when)
        producer.send(b"w")
    before = datetime.now(UTC)
    first, second = client.follow(timeout_s=0.5)
    assert first == pipeline.Record(b"v", "t", b"k", (("a", b"1"), ("a", b"2")), when, 0, "p", 0)
    assert second[:4] == (b"w", None, None, ())
    assert abs(second.timestamp - before) < timedelta(minutes=5)
    assert (second.offset, second.producer, second.seq) == (1, "p", 1)
    collector.append([b"x"])
    (third,) = client.follow(start=2, timeout_s=0.5)
    assert (third.producer, third.seq) == (None, None)
    assert pickle.loads(pickle.dumps(first)) == first


def test_times_that_python_has_not_are_the_nearest_ones(directory):
    pa = pytest.importorskip("pyarrow")
    times = pa.array([2**62, 0, -(2**62)], pa.timestamp("us", tz="UTC"))
    table = pa.table({"value": [b"late", b"1970", b"early"], "timestamp": times})
    with Collector(directory / "log", max_ahead_hours=math.inf) as collector:
        collector.append(table)
        rows = Client(collector.endpoint, timeout_s=PATIENCE).follow(timeout_s=0)
        shown = [(row.value, row.timestamp.replace(tzinfo=None)) for row in rows]
    assert shown == [
        (b"late", datetime.max),
        (b"1970", datetime(1970, 1, 1)),
        (b"early", datetime.min),
    ]


def test_where_to_begin(collector, client):
    collector.append([b"0", b"1"])
    later = datetime.now(UTC)
    collector.append([b"2", b"3"])

    def begin(start):
        with client.follow(start=start, timeout_s=0.2) as rows:
            return [row.value for row in rows]

    assert begin(None) == begin("earliest") == begin(0) == [b"0", b"1", b"2", b"3"]
    assert begin(3) == [b"3"]
    assert begin(later) == [b"2", b"3"]
    assert begin("latest") == begin(4) == []
    rows = client.follow(start="latest")
    collector.append([b"4"])
    assert next(rows).value == b"4"
    for wrong in ("first", -1):
        with pytest.raises(ValueError, match="start"):
            client.follow(start=wrong)


def test_topics_select_rows_and_others_count_as_read(collector, client):
    collector.append([{"value": b"%d" % n, "topic": "ab"[n % 2]} for n in range(10)])
    with client.follow("a", group="g", timeout_s=0.3) as rows:
        assert [row.value for row in rows] == [b"0", b"2", b"4", b"6", b"8"]
        assert rows.position == 10
        assert rows.commit() == 10
    assert client.follow(["a", "b"]).position == 0


def test_a_group_continues_where_it_committed(collector, client):
    assert client.committed("g") is None
    collector.append([b"%d" % n for n in range(10)])
    with client.follow(group="g") as rows:
        assert values(rows, 3) == [b"0", b"1", b"2"]
        assert rows.position == 3
        assert rows.commit() == 3
        values(rows, 2)
    assert client.committed("g") == 3
    assert client.groups() == {"g": 3}
    with client.follow(group="g") as rows:
        assert next(rows).value == b"3"
        assert rows.commit(8) == 8
    with client.follow(group="g") as rows:
        assert next(rows).value == b"8"
    with client.follow(group="g", start=5) as rows:
        assert next(rows).value == b"5"
    assert client.commit("g", 2) == 2
    with pytest.raises(ValueError, match="group"):
        client.follow().commit()


def test_rows_that_were_not_handed_out_are_not_committed(collector, client):
    collector.append([b"0", b"1", b"2"])
    rows = client.follow(group="g")
    next(rows)
    rows.close()
    assert rows.position == 1
    assert rows.commit() == 1


def test_a_timeout_ends_a_loop_and_the_next_loop_continues(collector, client):
    rows = client.follow(timeout_s=0.05)
    assert list(rows) == []
    collector.append([b"0"])
    assert next(rows).value == b"0"
    assert list(rows) == []
    collector.append([b"1"])
    assert next(rows).value == b"1"


def test_closing_ends_a_wait_in_another_thread(collector, client):
    rows = client.follow()
    follower = Background(list, rows)
    waiting(collector)
    rows.close()
    assert follower.result() == []
    assert rows.closed
    assert "closed" in repr(rows)


def test_closing_the_client_ends_the_loops_over_its_followers(collector):
    client = Client(collector.endpoint, timeout_s=PATIENCE)
    collector.append([b"a"])
    early, late = client.follow(), client.follow(start="latest")
    assert next(early).value == b"a"
    loops = [Background(list, rows) for rows in (early, late)]
    waiting(collector, 2)
    client.close()
    assert [loop.result() for loop in loops] == [[], []]
    assert early.closed and late.closed
    with pytest.raises(StopIteration):
        next(early)
    # The client itself can be used again.
    assert client.info().latest == 1
    assert values(client.follow(), 1) == [b"a"]
    client.close()


def test_tables_instead_of_rows(collector, client):
    pa = pytest.importorskip("pyarrow")
    collector.append([{"value": b"0", "headers": {"h": b"1"}}, b"1"])
    rows = client.follow(group="g", timeout_s=0.3)
    table = pa.Table.from_batches(rows.batches())
    assert table["value"].to_pylist() == [b"0", b"1"]
    assert table["headers"].to_pylist()[0] == [{"key": "h", "value": b"1"}]
    assert rows.commit() == 2
    collector.append([b"2", b"3"])
    assert next(rows).value == b"2"
    with pytest.raises(RuntimeError, match="rows of the last batch"):
        next(rows.tables())


def test_a_backlog_and_what_comes_meanwhile(collector, client):
    expected = [b"%d" % n for n in range(20_000)]
    with (
        Producer(collector.endpoint, linger_ms=1) as producer,
        client.follow(max_bytes=5000) as rows,
    ):
        producer.send_batch(expected[:10_000])
        producer.flush()
        sending = Background(producer.send_batch, expected[10_000:])
        assert values(rows, 20_000) == expected
        sending.result()


def test_a_collector_that_is_killed_and_comes_back(directory):
    with process(directory / "log") as collector, Producer(collector.endpoint) as producer:
        producer.send(b"0")
        with Client(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow()
            assert next(rows).value == b"0"
            follower = Background(next, rows)
            eventually(lambda: client.stats()["followers"] == 1)
            collector.kill()
            producer.send(b"1")
            collector.start()
            assert follower.result().value == b"1"


def test_a_collector_that_stays_away_is_an_error_and_nothing_is_lost(directory):
    with process(directory / "log") as collector, Producer(collector.endpoint) as producer:
        producer.send(b"0")
        producer.flush()
        with Client(collector.endpoint, timeout_s=0.1, retries=1) as client:
            eventually(lambda: client.info().latest == 1)
            rows = client.follow()
            assert next(rows).value == b"0"
            collector.kill()
            with pytest.raises(pipeline.CollectorGone):
                next(rows)
            collector.start()
            producer.send(b"1")

            def goes_on():
                try:
                    return next(rows).value == b"1"
                except pipeline.CollectorGone:
                    return False

            eventually(goes_on)


def test_rows_that_retention_deleted(directory):
    options = {"segment_bytes": 4096, "retention_bytes": 8192}
    with Collector(directory / "log", **options) as collector:
        client = Client(collector.endpoint, timeout_s=PATIENCE)
        collector.append([bytes(1000)])
        client.commit("g", 0)
        for _ in range(50):
            collector.append([bytes(1000)])
        eventually(lambda: client.info().earliest > 0)
        with client.follow(group="g") as rows, pytest.raises(pipeline.DataLoss) as caught:
            next(rows)
        assert (caught.value.asked, caught.value.earliest) == (0, client.info().earliest)
        assert "retention" in str(caught.value)
        with client.follow(group="g", start="earliest") as rows:
            assert next(rows).offset >= caught.value.earliest


def test_a_log_that_was_replaced(directory):
    with process(directory / "log") as collector:
        with Producer(collector.endpoint) as producer:
            producer.send(b"0")
        rows = Client(collector.endpoint, timeout_s=PATIENCE).follow()
        assert next(rows).value == b"0"
        collector.kill()
        shutil.rmtree(directory / "log")
        collector.start()
        with pytest.raises(pipeline.DataLoss, match="replaced"):
            next(rows)


def write_with_damage(directory, endpoint):
    """Writes 60 rows; row 20 is damaged on disk afterwards."""
    with Producer(endpoint, linger_ms=0) as producer:
        for number in range(60):
            producer.send(b"%03d" % number + bytes(2000))
            producer.flush()
    (segment,) = directory.glob("*.zlog")
    at = segment.read_bytes().index(b"020" + bytes(2000))
    with open(segment, "r+b") as file:
        file.seek(at + 10)
        file.write(b"Y")


def test_no_row_is_passed_over_after_a_damaged_one(directory):
    with (
        Collector(directory / "log") as collector,
        Client(collector.endpoint, timeout_s=PATIENCE) as client,
    ):
        write_with_damage(directory / "log", collector.endpoint)
        rows = client.follow(group="g", max_bytes=6000)
        seen = []

        def read():
            seen.extend(row.offset for row in rows)

        for _ in range(4):
            with pytest.raises(pipeline.Refused) as caught:
                read()
            assert caught.value.code == "corrupt"
            assert seen == list(range(20))
            assert rows.commit() == 20
        rows = client.follow(start=int(caught.value.detail), max_bytes=6000, timeout_s=0)
        read()
        assert seen == [*range(20), *range(21, 60)]


def test_lost_rows_are_an_error_of_every_loop(collector):
    collector.append([b"0"])
    client = Client(collector.endpoint, timeout_s=1, retries=0)
    for timeout_s in (None, 0):
        rows = client.follow(start=100, timeout_s=timeout_s)
        for _ in range(3):
            with pytest.raises(pipeline.DataLoss):
                next(rows)


def test_a_timeout_of_0_reads_the_existing_rows(collector, client):
    collector.append([{"value": b"%d" % n, "topic": "ab"[n % 2]} for n in range(100)])
    rows = client.follow("a", group="g", timeout_s=0, max_bytes=300)
    collector.append([{"value": b"later", "topic": "a"}])
    assert [int(row.value) for row in rows] == list(range(0, 100, 2))
    assert (rows.position, rows.commit()) == (100, 100)
    assert [row.value for row in rows] == [b"later"]
    assert list(rows) == list(rows.tables()) == []
    collector.append([{"value": b"other", "topic": "b"}])
    assert list(rows) == []
    assert rows.commit() == 102
    rows.close()
    assert list(rows) == []
    assert list(client.follow(start="latest", timeout_s=0)) == []
    assert client.follow(timeout_s=0).position == 0


def before(monkeypatch, name, first):
    """Calls a function before the first request of this kind by a client."""
    real, due = getattr(Client, name), [first]

    def request(self, *args, **options):
        while due:
            due.pop()()
        return real(self, *args, **options)

    monkeypatch.setattr(Client, name, request)


@pytest.mark.parametrize("kind", ["blocking", "asyncio"])
@pytest.mark.parametrize("start", ["time", "group"])
def test_a_timeout_of_0_ends_although_rows_arrive_before_it_begins(
    collector, client, monkeypatch, start, kind
):
    collector.append([b"0"])
    # The clock of the client is ahead.
    later = datetime.now(UTC) + timedelta(hours=1)
    options = {"group": "g"} if start == "group" else {"start": later}

    def arrive():
        collector.append([b"1"])
        if start == "group":
            client.commit("g", 2)

    name = "committed" if start == "group" else "offset_at"
    before(monkeypatch, name, arrive)

    async def read():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as other:
            rows = other.follow(timeout_s=0, **options)
            return [row async for row in rows], rows.position

    if kind == "asyncio":
        found, position = Background(asyncio.run, read()).result()
    else:
        rows = client.follow(timeout_s=0, **options)
        found, position = Background(list, rows).result(), rows.position
    assert (found, position) == ([], 2)


def test_a_timeout_of_0_ends_beyond_the_end_of_a_log_that_grows(collector, client, monkeypatch):
    before(monkeypatch, "_follow", lambda: collector.append([b"0"]))
    rows = client.follow(start=1, timeout_s=0)
    with pytest.raises(pipeline.DataLoss):
        Background(next, rows).result()


def descriptors():
    return len(os.listdir("/dev/fd"))


def test_closing_releases_the_connection(collector, client):
    collector.append([b"0"])
    client.info()
    before = descriptors()
    followers = [client.follow() for _ in range(20)]
    assert [next(rows).value for rows in followers] == [b"0"] * 20
    waiting_one = client.follow(start="latest")
    waiter = Background(list, waiting_one)
    waiting(collector)
    assert descriptors() > before + 40
    for rows in [*followers, waiting_one]:
        rows.close()
    assert waiter.result() == []
    # The client keeps some connections for its next calls.
    eventually(lambda: descriptors() <= before + 10)
    assert [rows.position for rows in followers] == [1] * 20


# ---- asyncio ---------------------------------------------------------------------------------


def test_asyncio_rows_arrive_as_they_are_written(collector):
    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            seen = []
            async with client.follow(group="g") as rows:
                collector.append([b"0"])
                async for row in rows:
                    seen.append(row.value)
                    assert await rows.commit() == row.offset + 1
                    if len(seen) == 5:
                        break
                    writing = asyncio.to_thread(collector.append, [b"%d" % len(seen)])
                    task = asyncio.create_task(writing)
                await task
            assert seen == [b"%d" % n for n in range(5)]
            assert await client.committed("g") == 5
            assert (await client.info()).latest == 5
            assert [batch.num_rows async for batch in client.fetch(0, 5)] == [1] * 5

    asyncio.run(main())


def test_asyncio_followers_take_no_threads(collector):
    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            followers = [client.follow(start="latest") for _ in range(50)]
            for follower in followers:
                await follower.__aenter__()
            before = threading.active_count()
            tasks = [asyncio.ensure_future(anext(follower)) for follower in followers]
            while collector.stats()["followers"] < 50:
                await asyncio.sleep(0.001)
            assert threading.active_count() <= before
            await asyncio.to_thread(collector.append, [b"for all"])
            rows = await asyncio.wait_for(asyncio.gather(*tasks), PATIENCE)
            assert {row.value for row in rows} == {b"for all"}

    asyncio.run(main())


def test_asyncio_a_cancelled_wait_loses_nothing(collector):
    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow()
            for number in range(20):
                waiting = asyncio.ensure_future(anext(rows))
                await asyncio.sleep(0.001 * (number % 3))
                waiting.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await waiting
            await asyncio.to_thread(collector.append, [b"0", b"1"])
            assert [(await anext(rows)).value for _ in range(2)] == [b"0", b"1"]

    asyncio.run(main())


def test_asyncio_closing_and_time_end_a_loop(collector):
    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow()

            async def everything():
                return [row async for row in rows]

            following = asyncio.create_task(everything())
            while not collector.stats()["followers"]:
                await asyncio.sleep(0.001)
            with pytest.raises(RuntimeError, match="another task"):
                await anext(rows)
            await rows.close()
            assert await asyncio.wait_for(following, PATIENCE) == []
            assert [row async for row in client.follow(timeout_s=0.05)] == []

    asyncio.run(main())


def test_asyncio_closing_the_client_ends_the_loops_over_its_followers(collector):
    async def everything(rows):
        return [row.value async for row in rows]

    async def main():
        client = pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE)
        never_begun = client.follow()
        following = [asyncio.create_task(everything(client.follow())) for _ in range(2)]
        while collector.stats()["followers"] < 2:
            await asyncio.sleep(0.001)
        await client.close()
        assert await asyncio.wait_for(asyncio.gather(*following), PATIENCE) == [[], []]
        assert await everything(never_begun) == []
        assert (await client.info()).latest == 0
        await client.close()

    asyncio.run(main())


def test_asyncio_a_collector_that_is_killed_and_comes_back(directory):
    async def main():
        with process(directory / "log") as collector, Producer(collector.endpoint) as producer:
            producer.send(b"0")
            async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
                rows = client.follow()
                assert (await anext(rows)).value == b"0"
                following = asyncio.ensure_future(anext(rows))
                while not (await client.stats())["followers"]:
                    await asyncio.sleep(0.001)
                collector.kill()
                producer.send(b"1")
                await asyncio.to_thread(collector.start)
                assert (await asyncio.wait_for(following, PATIENCE)).value == b"1"

    asyncio.run(main())


def test_asyncio_tables(collector):
    pytest.importorskip("pyarrow")
    collector.append([b"0", b"1"])

    async def main():
        async with pipeline.AsyncClient(collector.endpoint) as client:
            rows = client.follow(timeout_s=0.1)
            assert [batch.num_rows async for batch in rows.batches()] == [2]
            assert rows.position == 2

    asyncio.run(main())


def test_asyncio_a_cancelled_beginning_repeats_and_loses_nothing(collector, monkeypatch):
    collector.append([b"%d" % n for n in range(10)])
    asked, go_on = [], threading.Event()
    info = Client.info

    def late_the_first_time(client):
        found = info(client)
        asked.append(client)
        if len(asked) == 1:
            assert go_on.wait(PATIENCE)
        return found

    monkeypatch.setattr(Client, "info", late_the_first_time)

    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow()
            for _ in range(3):
                with pytest.raises(TimeoutError):
                    await asyncio.wait_for(anext(rows), 0.01)
            go_on.set()
            assert [int((await anext(rows)).value) for _ in range(10)] == list(range(10))
            assert rows.position == 10
            assert len(asked) == 1

    try:
        asyncio.run(main())
    finally:
        go_on.set()


def test_asyncio_a_commit_is_of_the_position_at_its_call(collector):
    collector.append([b"%d" % n for n in range(10)])
    go_on = threading.Event()

    async def main():
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(1))
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow(group="g")
            await anext(rows)
            busy = asyncio.create_task(asyncio.to_thread(go_on.wait, PATIENCE))
            commit = asyncio.create_task(rows.commit())
            await asyncio.sleep(0)
            for _ in range(5):
                await anext(rows)
            go_on.set()
            assert await commit == 1
            assert await busy
            assert await client.committed("g") == 1

    asyncio.run(main())


def test_asyncio_a_timeout_of_0_reads_the_existing_rows(collector):
    collector.append([{"value": b"%d" % n, "topic": "ab"[n % 2]} for n in range(100)])

    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            rows = client.follow("a", group="g", timeout_s=0, max_bytes=300)
            assert [int(row.value) async for row in rows] == list(range(0, 100, 2))
            assert await rows.commit() == 100
            assert [row async for row in rows] == []
            await asyncio.to_thread(collector.append, [{"value": b"later", "topic": "a"}])
            assert [row.value async for row in rows] == [b"later"]

    asyncio.run(main())


def test_asyncio_closing_releases_the_connection(collector):
    async def main():
        async with pipeline.AsyncClient(collector.endpoint, timeout_s=PATIENCE) as client:
            await client.info()
            before = descriptors()
            followers = [client.follow(start="latest") for _ in range(20)]
            tasks = [asyncio.ensure_future(anext(rows)) for rows in followers]
            while collector.stats()["followers"] < 20:
                await asyncio.sleep(0.001)
            assert descriptors() > before + 40
            for rows in followers:
                await rows.close()
            for task in tasks:
                with pytest.raises(StopAsyncIteration):
                    await asyncio.wait_for(task, PATIENCE)
            await asyncio.to_thread(eventually, lambda: descriptors() <= before + 30)

    asyncio.run(main())


def test_no_batch_is_without_rows(collector, client, directory):
    """The requested part of a stored batch may have no row of the topics."""
    pytest.importorskip("pyarrow")
    rows = [{"value": b"%d" % n, "topic": "a" if n < 10 else "b"} for n in range(20)]
    with Producer(collector.endpoint, name="p") as producer:
        producer.send_batch(rows)
    with pipeline.FilesLog(str(directory / "log")) as files:
        for read in (client.fetch, client.fetch_tables, files.fetch):
            assert [batch.num_rows for batch in read(12, 20, topics=["a"])] == []
            assert [batch.num_rows for batch in read(0, 12, topics=["b"])] == [2]
    with client.follow("a", start=12, timeout_s=0) as follower:
        assert list(follower.batches()) == []
        assert follower.position == 20

    async def follow():
        async with (
            pipeline.AsyncClient(collector.endpoint) as client,
            client.follow("a", start=12, timeout_s=0) as follower,
        ):
            return [table async for table in follower.tables()]

    assert asyncio.run(follow()) == []


def test_a_client_closes_after_a_loop_that_was_closed_while_a_follower_waited(tmp_path):
    with Collector(tmp_path / "log") as collector:
        client = pipeline.AsyncClient(collector.endpoint)
        followers = [client.follow() for _ in range(2)]
        loop = asyncio.new_event_loop()

        async def wait() -> None:
            for follower in followers:
                waiting.append(asyncio.ensure_future(anext(follower)))
            while not all(follower._ready for follower in followers):
                await asyncio.sleep(0)

        waiting: list[asyncio.Future] = []
        loop.run_until_complete(wait())
        loop.close()
        asyncio.run(client.close())
        assert all(follower._is_closed for follower in followers)
        # Their tasks never end, and would be reported.
        for task in waiting:
            task._log_destroy_pending = False
