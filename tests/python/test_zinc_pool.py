"""The threads of the example `zinc` that run handlers."""

import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from support import PATIENCE, eventually

pytest.importorskip("pycrdt")
sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.zinc.pool import HandlerPool

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture
def pool() -> Iterator[HandlerPool]:
    pool = HandlerPool(threads=4, room=100)
    yield pool
    pool.close()


def test_each_lane_keeps_its_order(pool) -> None:
    seen: dict[int, list[int]] = {lane: [] for lane in range(10)}
    running = dict.fromkeys(seen, 0)
    overlaps = []

    def handler(lane: int, number: int) -> None:
        running[lane] += 1
        if running[lane] > 1:
            overlaps.append(lane)
        seen[lane].append(number)
        running[lane] -= 1

    for number in range(500):
        for lane in seen:
            pool.call(lane, handler, lane, number)
    eventually(lambda: pool.load == 0)
    assert all(numbers == list(range(500)) for numbers in seen.values())
    assert overlaps == []


def test_a_slow_handler_delays_no_other_lane(pool) -> None:
    is_over, done = threading.Event(), threading.Event()
    threads = set()
    # Three lanes hold three of the four threads.
    for lane in ("one", "two", "three"):
        pool.call(lane, is_over.wait, PATIENCE)
        pool.call(lane, is_over.wait, PATIENCE)
    for number in range(100):
        pool.call(number, lambda: threads.add(threading.current_thread().name))
    pool.call("last", done.set)
    assert done.wait(PATIENCE)
    assert len(threads) == 1
    assert pool.load == 6
    is_over.set()


def test_all_threads_share_the_load(pool) -> None:
    together = threading.Barrier(4)
    for lane in range(4):
        pool.call(lane, together.wait, PATIENCE)
    # The barrier opens only when four handlers run at the same time.
    eventually(lambda: pool.load == 0)
    assert not together.broken


def test_a_failing_handler_is_logged_and_the_next_one_runs(pool, caplog) -> None:
    done = threading.Event()
    pool.call("lane", lambda: 1 / 0)
    pool.call("lane", done.set)
    assert done.wait(PATIENCE)
    assert "a handler of lane failed" in caplog.text


def test_the_reader_waits_while_handlers_are_behind(pool) -> None:
    is_over = threading.Event()
    assert pool.wait_for_room(0)
    for _ in range(100):
        pool.call("lane", is_over.wait, PATIENCE)
    assert not pool.wait_for_room(0)
    is_over.set()
    assert pool.wait_for_room(PATIENCE)
