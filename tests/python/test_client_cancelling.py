"""asyncio's clients and producers: a cancelled task ends its call, and the thread that waits for the collector."""

import asyncio
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import pytest
from support import PATIENCE

import zeroxide as zmq
from zeroxide.pipeline import AsyncClient, AsyncProducer


@pytest.fixture
def silent():
    """The address of a socket that takes requests and never answers."""
    with zmq.Context() as context, context.socket(zmq.ROUTER) as router:
        router.linger = 0
        router.bind("tcp://127.0.0.1:*")
        yield router.last_endpoint.decode()


CALLS = {
    "info": lambda client: client.info(),
    "groups": lambda client: client.groups(),
    "drop_group": lambda client: client.drop_group("g"),
    "committed": lambda client: client.committed("g"),
    "commit": lambda client: client.commit("g", 1),
    "offset_at": lambda client: client.offset_at(1),
    "offset_after": lambda client: client.offset_after(1, 1),
    "fetch": lambda client: anext(client.fetch(0, 1)),
    "follow": lambda client: anext(client.follow()),
    "follower's commit": lambda client: client.follow(group="g").commit(),
    "publish": lambda client: client.publish("q", 1, []),
    "abort": lambda client: client.abort("q", 1),
    "stats": lambda client: client.stats(),
}


def _waiting():
    """How many threads wait for a collector."""
    return sum(_is_busy(thread) for thread in threading.enumerate())


def _is_busy(thread):
    """Returns whether a thread of the client makes a call; an idle one waits in Python code."""
    if not thread.name.startswith("zeroxide_"):
        return False
    frame = sys._current_frames().get(thread.ident)
    while frame is not None:
        if frame.f_code.co_name == "run":
            top = sys._current_frames().get(thread.ident)
            return top is not None and top.f_code.co_name != "_worker"
        frame = frame.f_back
    return False


async def _until(condition):
    async with asyncio.timeout(PATIENCE):
        while not condition():
            await asyncio.sleep(0.001)


@pytest.mark.parametrize("name", CALLS)
def test_a_cancelled_task_ends_its_call(silent, name):
    async def main():
        client = AsyncClient(silent, timeout_s=10 * PATIENCE)
        task = asyncio.ensure_future(CALLS[name](client))
        await _until(lambda: _waiting() == 1)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await _until(lambda: not _waiting())
        await client.close()

    began = time.monotonic()
    asyncio.run(main())
    assert time.monotonic() - began < PATIENCE


def test_the_default_executor_stays_free(silent):
    # Threads of earlier tests have been told to end, but may still be there.
    earlier = set(threading.enumerate())

    async def main():
        client = AsyncClient(silent, timeout_s=10 * PATIENCE)
        # There are more calls than threads.
        tasks = [asyncio.create_task(client.info()) for _ in range(100)]
        await _until(lambda: _waiting() == 8)
        async with asyncio.timeout(PATIENCE):
            assert await asyncio.to_thread(lambda: 1) == 1
        later = set(threading.enumerate()) - earlier
        assert sum(thread.name.startswith("zeroxide_") for thread in later) == 8
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        await _until(lambda: not _waiting())

    asyncio.run(main())


def test_the_call_continues_for_the_other_task(silent):
    """Two tasks wait for the beginning of one follower: only the second one ends it."""

    async def main():
        client = AsyncClient(silent, timeout_s=10 * PATIENCE)
        rows = client.follow()
        first, second = (asyncio.ensure_future(rows.__aenter__()) for _ in range(2))
        await _until(lambda: _waiting() == 1)
        first.cancel()
        await asyncio.wait([first])
        await asyncio.sleep(0.2)
        assert _waiting() == 1 and not second.done()
        second.cancel()
        await asyncio.wait([second])
        await _until(lambda: not _waiting())

    asyncio.run(main())


@pytest.mark.parametrize("values", [[b"x" * 100] * 100])
def test_a_cancelled_producer_accepts_no_more_rows(silent, values):
    async def main():
        producer = AsyncProducer(silent, max_unacked_rows=10)
        task = asyncio.ensure_future(producer.send_batch(values))
        await _until(lambda: _waiting() == 1)
        task.cancel()
        await asyncio.wait([task])
        await _until(lambda: not _waiting())
        assert producer.stats()["rows"] < len(values)
        with pytest.raises(zmq.pipeline.NotAcknowledged):
            await producer.close(0)

    asyncio.run(main())


@pytest.mark.parametrize("busy", [0, 8])
def test_a_cancelled_producer_says_how_many_rows_it_accepted(silent, busy):
    """Also if the call had not begun, because all threads had calls to wait for."""

    async def main():
        producer = AsyncProducer(silent, max_unacked_rows=10)
        others = [asyncio.ensure_future(producer.send_batch([b"x"] * 100)) for _ in range(busy)]
        await _until(lambda: _waiting() == busy and (not busy or producer.stats()["rows"] == 10))
        before = producer.stats()["rows"]

        async def send():
            try:
                await producer.send_batch([b"x"] * 100)
            except asyncio.CancelledError as error:
                return error.sent

        task = asyncio.ensure_future(send())
        await asyncio.sleep(0)
        await _until(lambda: _waiting() == min(busy + 1, 8) and producer.stats()["rows"] == 10)
        task.cancel()
        assert await task == producer.stats()["rows"] - before == (0 if busy else 10)
        for other in others:
            other.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        with pytest.raises(zmq.pipeline.NotAcknowledged):
            await producer.close(0)

    asyncio.run(main())


def test_ctrl_c_ends_the_program(silent):
    script = f"""
    import asyncio, zeroxide.asyncio

    async def main():
        async with zeroxide.asyncio.Client({silent!r}, timeout_s={10 * PATIENCE}) as client:
            print("waits", flush=True)
            await client.info()

    asyncio.run(main())
    """
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdout.readline() == "waits\n"
        os.kill(process.pid, signal.SIGINT)
        _, told = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
    assert "KeyboardInterrupt" in told


# ---- the end of the program ----------------------------------------------------------

LEFT = """
import asyncio, sys
from zeroxide.pipeline import AsyncClient
from test_client_cancelling import _until, _waiting

client = AsyncClient(sys.argv[1], timeout_s=3600)

async def main():
    task = loop.create_task(client.info())
    await _until(_waiting)
    return task

loop = asyncio.new_event_loop()
task = loop.run_until_complete(main())
if "close" in sys.argv:
    loop.close()
print("end", flush=True)
"""


@pytest.mark.parametrize("loop", ["close", "leave"])
def test_a_loop_that_is_gone_does_not_keep_the_program(silent, loop):
    """No task was cancelled, so the call still waits when the interpreter ends."""
    done = subprocess.run(
        [sys.executable, "-c", LEFT, silent, loop],
        capture_output=True,
        text=True,
        timeout=2 * PATIENCE,
        cwd=Path(__file__).parent,
    )
    assert (done.returncode, done.stdout) == (0, "end\n")
    # asyncio reports the unfinished task; there are no other reports.
    assert "Event loop is closed" not in done.stderr
