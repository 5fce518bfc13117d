"""Metrics from a query's progress."""

import json
from types import SimpleNamespace

import pytest

import zeroxide as zmq
from zeroxide.spark._offsets import Position, dump
from zeroxide.spark.metrics import TOPIC, MetricsListener, measure


def offsets(**positions):
    return json.dumps(dump({name: Position(name, at, 0) for name, at in positions.items()}))


def source(end, latest, rows=5, rate=2.5):
    return SimpleNamespace(
        endOffset=end,
        latestOffset=latest,
        numInputRows=rows,
        inputRowsPerSecond=float("nan"),
        processedRowsPerSecond=rate,
    )


def progress(*sources, batch=3):
    return SimpleNamespace(
        id="1-2-3",
        name="ticks",
        batchId=batch,
        timestamp="2026-01-01T00:00:00.000Z",
        durationMs={"triggerExecution": 250},
        sources=sources,
    )


ONE = progress(source(offsets(a=10, b=7), offsets(a=30, b=7)))


def test_lag():
    metrics = measure(ONE)
    assert (metrics.lag, metrics.rows, metrics.duration_ms) == (20, 5, 250)
    assert metrics.collectors["a"].lag == 20
    assert (metrics.input_rows_per_second, metrics.processed_rows_per_second) == (0.0, 2.5)


def test_several_sources_and_those_of_others():
    other = source('{"index": 5}', None, rows=1000)
    mixed = progress(source(offsets(a=10), offsets(a=11)), other, source(offsets(b=1), None))
    metrics = measure(mixed)
    assert (metrics.lag, metrics.rows) == (1, 10)
    assert metrics.collectors["b"].lag is None
    assert measure(progress(other, source(None, None))) is None


@pytest.mark.parametrize("order", [1, -1])
def test_a_collector_in_two_sources(order):
    behind, ahead = source(offsets(a=10), offsets(a=30)), source(offsets(a=30), offsets(a=30))
    metrics = measure(progress(*[behind, ahead][::order]))
    assert (metrics.lag, metrics.rows) == (20, 10)
    assert (metrics.collectors["a"].offset, metrics.collectors["a"].lag) == (10, 20)


def test_a_collector_under_another_name():
    moved = json.dumps(dump({"new": Position("a", 15, 0)}))
    assert measure(progress(source(offsets(a=10), moved))).collectors["a"].lag == 5


@pytest.fixture
def listener():
    listener = MetricsListener(publish="tcp://127.0.0.1:*")
    yield listener
    listener.close()


def test_the_newest_is_kept_until_the_query_ends(listener):
    listener.onQueryProgress(SimpleNamespace(progress=ONE))
    assert listener.latest["1-2-3"].batch == 3
    listener.onQueryTerminated(SimpleNamespace(id="1-2-3"))
    assert listener.latest == {}


def test_published(listener, context):
    sub = context.socket(zmq.SUB)
    sub.rcvtimeo = 60_000
    sub.connect(listener.endpoint)
    sub.subscribe(TOPIC)
    # A subscription takes a moment to arrive, and there is no event for it.
    while not sub.poll(20):
        listener.onQueryProgress(SimpleNamespace(progress=ONE))
    topic, body = sub.recv_multipart()
    assert topic == TOPIC
    assert json.loads(body)["collectors"]["a"] == {"offset": 10, "latest": 30, "lag": 20}


def test_prometheus(listener):
    listener.onQueryProgress(SimpleNamespace(progress=ONE))
    text = listener.prometheus()
    assert 'zeroxide_query_lag_rows{query="ticks",collector="a"} 20\n' in text
    assert 'zeroxide_query_offset{query="ticks",collector="b"} 7\n' in text
    assert 'zeroxide_query_batch_seconds{query="ticks"} 0.25\n' in text
    assert text.count("# TYPE") == 4
