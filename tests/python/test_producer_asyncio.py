"""zeroxide.asyncio.Producer."""

import asyncio
import gc
import itertools
import threading
import time

import pyarrow as pa
import pytest
from collecting import process, values
from support import PATIENCE, run_script

import zeroxide.asyncio
from zeroxide.pipeline import Collector, CollectorError, CollectorGone, NotAcknowledged

pytestmark = pytest.mark.zeroxide_only

NOBODY = "tcp://127.0.0.1:9"


@pytest.fixture
def collector(directory):
    with Collector(directory / "log") as collector:
        yield collector


def test_a_row_and_its_receipt(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            deliveries = [await producer.send(b"%d" % row, key="k") for row in range(100)]
            receipts = await asyncio.gather(*deliveries)
            assert [receipt.offset for receipt in receipts] == list(range(100))
            assert [receipt.first_seq for receipt in receipts] == list(range(100))
            assert await producer.send_batch([b"x"] * 1000) == 1000
            assert await producer.send_arrow(pa.table({"value": ["y"] * 10})) == 10
            await producer.flush(20)
            assert producer.stats()["acknowledged"] == 1110

    asyncio.run(main())
    assert len(values(collector.endpoint)) == 1110


def test_send_and_wait_returns_the_receipt(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            first = await producer.send_and_wait(b"0", topic="t")
            assert (first.offset, first.first_seq, first.error) == (0, 0, None)
            assert values(collector.endpoint) == [b"0"]
            receipts = await asyncio.gather(*(producer.send_and_wait(b"x") for _ in range(50)))
            assert [receipt.offset for receipt in receipts] == list(range(1, 51))

    asyncio.run(main())


def test_send_and_wait_raises_for_a_lost_row():
    async def main():
        producer = zeroxide.asyncio.Producer(NOBODY, timeout_s=None)
        waiting = asyncio.create_task(producer.send_and_wait(b"x"))
        while not producer.stats()["rows"]:
            await asyncio.sleep(0)
        with pytest.raises(NotAcknowledged):
            await producer.close(0)
        with pytest.raises(NotAcknowledged):
            await waiting

    asyncio.run(main())


def test_deliveries_are_reported_in_the_loop(collector):
    async def main():
        loop, seen, failures = asyncio.get_running_loop(), [], []
        loop.set_exception_handler(lambda _, context: failures.append(context["exception"]))

        def delivered(delivery):
            assert asyncio.get_running_loop() is loop
            seen.append(delivery)
            raise LookupError("of the callback")

        endpoint = collector.endpoint
        async with zeroxide.asyncio.Producer(endpoint, on_delivery=delivered) as producer:
            await producer.send_batch([b"x"] * 100)
            await producer.flush()
            assert sum(one.last_seq - one.first_seq + 1 for one in seen) == 100
            assert [type(failure) for failure in failures] == [LookupError] * len(seen)

    asyncio.run(main())


def test_receipts_need_not_be_awaited(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint, max_unacked_rows=50) as producer:
            for row in range(1000):
                await producer.send(b"%d" % row)

    asyncio.run(main())
    assert values(collector.endpoint) == [b"%d" % row for row in range(1000)]


def test_waiting_for_room_does_not_block_other_tasks(directory):
    async def main(collector):
        async with zeroxide.asyncio.Producer(collector.endpoint, max_unacked_rows=10) as producer:
            await (await producer.send(b"first"))
            collector.stop_for_now()

            async def send():
                for row in range(100):
                    await producer.send(b"%d" % row)

            sending = asyncio.create_task(send())
            while producer.stats()["unacknowledged"] < 10:
                await asyncio.sleep(0)
            for _ in range(1000):
                await asyncio.sleep(0)
            assert not sending.done()
            collector.go_on()
            await asyncio.wait_for(sending, 20)

    with process(directory) as collector:
        asyncio.run(main(collector))
        assert len(values(collector.endpoint)) == 101


def test_a_collector_that_is_gone():
    async def main():
        producer = zeroxide.asyncio.Producer(NOBODY, timeout_s=None)
        delivery = await producer.send(b"x")
        with pytest.raises(NotAcknowledged):
            await producer.flush(0.05)
        with pytest.raises(NotAcknowledged):
            await producer.close(0)
        with pytest.raises(NotAcknowledged):
            await delivery

        # Its timeout may expire at the first row, or at the row that has no room.
        producer = zeroxide.asyncio.Producer(NOBODY, timeout_s=0.3, max_unacked_rows=2)
        with pytest.raises(CollectorGone):
            for _ in range(3):
                await producer.send(b"x")
        if producer.stats()["unacknowledged"]:
            for end in (producer.flush, producer.close):
                with pytest.raises(CollectorGone):
                    await end()

    asyncio.run(main())


def test_a_cancelled_wait_loses_no_row(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            delivery = await producer.send(b"x")
            delivery.cancel()
            flush = asyncio.create_task(producer.flush())
            await asyncio.sleep(0)
            flush.cancel()
            await producer.send(b"y")

    asyncio.run(main())
    assert values(collector.endpoint) == [b"x", b"y"]


def test_a_close_continues_in_another_loop_once_its_own_is_closed(directory):
    async def begin(collector):
        producer = zeroxide.asyncio.Producer(collector.endpoint)
        delivery = await producer.send(b"x")
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(producer.close(), 0.05)
        return producer, delivery

    with process(directory) as collector:
        collector.stop_for_now()
        producer, _delivery = asyncio.run(begin(collector))
        collector.go_on()
        asyncio.run(producer.close())
        assert producer.stats()["unacknowledged"] == 0
        assert values(collector.endpoint) == [b"x"]
    no_threads_are_left()


@pytest.mark.parametrize("cancellations", [1, 2, 3])
def test_a_cancelled_close_loses_no_row_and_can_be_continued(directory, cancellations):
    async def main(collector):
        loop = asyncio.get_running_loop()
        watched = len(loop._selector.get_map())
        producer = zeroxide.asyncio.Producer(collector.endpoint)
        await producer.send_and_wait(b"first")
        collector.stop_for_now()
        await producer.send_batch([b"x"] * 100)
        closing = asyncio.create_task(producer.close())
        while not producer.closed:
            await asyncio.sleep(0)
        for _ in range(cancellations):
            closing.cancel()
            await asyncio.sleep(0)
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(CollectorError):
            await producer.send(b"late")
        collector.go_on()
        await producer.close()
        await producer.close()
        assert producer.stats()["unacknowledged"] == 0
        assert len(loop._selector.get_map()) == watched

    with process(directory) as collector:
        asyncio.run(main(collector))
        assert len(values(collector.endpoint)) == 101
    no_threads_are_left()


def test_a_close_that_is_cancelled_as_it_ends_leaves_nothing(collector):
    """At each step of the loop."""

    async def close(cancel_at):
        loop = asyncio.get_running_loop()
        watched = len(loop._selector.get_map())
        producer = zeroxide.asyncio.Producer(collector.endpoint)
        await producer.send_and_wait(b"x")
        closing = asyncio.create_task(producer.close())
        for _ in range(cancel_at):
            await asyncio.sleep(0)
        is_late = closing.done()
        for _ in range(2):
            closing.cancel()
            await asyncio.sleep(0)
        await asyncio.gather(closing, return_exceptions=True)
        await producer.close()
        assert len(loop._selector.get_map()) == watched
        return is_late

    for cancel_at in itertools.count():
        if asyncio.run(close(cancel_at)):
            break
    no_threads_are_left()


def test_a_close_that_is_cancelled_reports_its_error_later():
    async def main():
        producer = zeroxide.asyncio.Producer(NOBODY, timeout_s=None)
        delivery = await producer.send(b"x")
        closing = asyncio.create_task(producer.close())
        while not producer.closed:
            await asyncio.sleep(0)
        closing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await closing
        with pytest.raises(NotAcknowledged) as error:
            await producer.close(0)
        assert error.value.remaining == {NOBODY: 1}
        with pytest.raises(NotAcknowledged):
            await delivery
        await producer.close()

    asyncio.run(main())


def test_a_block_that_is_cancelled_as_it_ends_still_delivers(directory):
    async def block(collector, begun):
        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            await producer.send_and_wait(b"first")
            collector.kill()
            await producer.send_batch([b"x"] * 100)
            asyncio.get_running_loop().call_soon(begun.set)

    async def main(collector):
        loop = asyncio.get_running_loop()
        watched = len(loop._selector.get_map())
        begun = asyncio.Event()
        task = asyncio.create_task(block(collector, begun))
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        del task
        gc.collect()
        collector.start()
        # It leaves the loop when its last row is acknowledged.
        while len(loop._selector.get_map()) > watched:
            await asyncio.sleep(0.01)

    with process(directory) as collector:
        asyncio.run(main(collector))
        assert len(values(collector.endpoint)) == 101
    no_threads_are_left()


def test_a_program_that_ends_after_a_cancelled_close_reports_its_rows():
    _, error = run_script(
        "zeroxide.asyncio",
        f"""
        import asyncio

        async def main():
            async with asyncio.timeout(0.01):
                async with zmq.Producer({NOBODY!r}) as producer:
                    await producer.send(b"x")

        try:
            asyncio.run(main())
        except TimeoutError:
            print("late")
        """,
    )
    assert "has not acknowledged 1 row\n" in error


def no_threads_are_left():
    for thread in threading.enumerate():
        if thread.name.startswith("zeroxide_"):
            thread.join(PATIENCE)
            assert not thread.is_alive()


def test_a_loop_that_always_finds_room_lets_other_tasks_run(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            for call in (producer.send, lambda row: producer.send_batch(iter([row]))):
                over = []
                asyncio.get_running_loop().call_later(0.002, over.append, True)
                end = time.monotonic() + 1
                while not over and time.monotonic() < end:
                    await call(b"x")
                assert over

    asyncio.run(main())


def test_an_iterable_is_asked_row_by_row(collector):
    async def main():
        async with zeroxide.asyncio.Producer(collector.endpoint, max_unacked_rows=5) as producer:
            loop, taken = asyncio.get_running_loop(), []

            def rows():
                while True:
                    assert asyncio.get_running_loop() is loop
                    taken.append(b"%d" % len(taken))
                    yield taken[-1]

            sending = asyncio.create_task(producer.send_batch(rows()))
            while producer.stats()["acknowledged"] < 100:
                await asyncio.sleep(0.001)
            sending.cancel()
            with pytest.raises(asyncio.CancelledError):
                await sending
            await producer.flush(20)
            return taken, producer.stats()["rows"]

    taken, sent = asyncio.run(main())
    assert sent in (len(taken), len(taken) - 1)
    assert values(collector.endpoint) == taken[:sent]


@pytest.mark.parametrize("turns", range(6))
def test_a_batch_that_is_cancelled_as_rows_are_acknowledged(collector, turns):
    """The cancellation arrives `turns` turns of the loop after the acknowledgement."""

    async def main():
        loop, seen = asyncio.get_running_loop(), []

        def cancel(left):
            if left == 0:
                sending.cancel()
            else:
                loop.call_soon(cancel, left - 1)

        def delivered(_delivery):
            if not seen:
                seen.append(True)
                cancel(turns)

        async with zeroxide.asyncio.Producer(
            collector.endpoint, max_unacked_rows=5, on_delivery=delivered
        ) as producer:
            sending = asyncio.create_task(producer.send_batch(itertools.repeat(b"row")))
            await asyncio.wait({sending}, timeout=20)
            assert sending.cancelled()

    asyncio.run(main())


def test_a_table_whose_call_is_cancelled():
    async def main():
        producer = zeroxide.asyncio.Producer(NOBODY, max_unacked_rows=10, batch_rows=4)
        sending = asyncio.create_task(producer.send_arrow(pa.table({"value": [b"x"] * 100})))
        while not producer.stats()["rows"]:
            await asyncio.sleep(0.001)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await sending
        assert caught.value.sent == producer.stats()["rows"]
        with pytest.raises(NotAcknowledged):
            await producer.close(0)

    asyncio.run(main())


def test_a_stream_that_waits_does_not_keep_a_cancelled_call():
    goes_on, waits = threading.Event(), threading.Event()

    def batches():
        waits.set()
        assert goes_on.wait(PATIENCE)
        yield pa.record_batch({"value": [b"x"]})

    async def main():
        producer = zeroxide.asyncio.Producer(NOBODY)
        stream = pa.RecordBatchReader.from_batches(pa.schema({"value": pa.binary()}), batches())
        sending = asyncio.create_task(producer.send_arrow(stream))
        while not waits.is_set():
            await asyncio.sleep(0.001)
        sending.cancel()
        with pytest.raises(asyncio.CancelledError) as caught:
            await sending
        assert caught.value.sent == producer.stats()["rows"] == 0
        goes_on.set()
        await producer.close(0)

    asyncio.run(main())


def test_an_iterable_that_raises(collector):
    async def main():
        def rows():
            yield from ({"value": b"%d" % row} for row in range(3))
            raise LookupError("the end")

        async with zeroxide.asyncio.Producer(collector.endpoint) as producer:
            with pytest.raises(LookupError) as caught:
                await producer.send_batch(rows())
            assert caught.value.sent == 3

    asyncio.run(main())
    assert values(collector.endpoint) == [b"0", b"1", b"2"]
