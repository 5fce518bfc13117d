"""Mistakes with the pipeline: the error names the argument, what it takes, and the likely fix."""

import asyncio

import pytest

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")

from zeroxide import ZMQError  # noqa: E402


@pytest.fixture
def collector(directory):
    with pipeline.Collector(directory / "log") as collector:
        yield collector


@pytest.fixture
def client(collector):
    with pipeline.Client(collector.endpoint) as client:
        yield client


@pytest.fixture
def producer(collector):
    with pipeline.Producer(collector.endpoint, name="p") as producer:
        yield producer


CLIENT = {
    "offset_at('yesterday')": (TypeError, "timestamp takes a datetime", "not 'yesterday'"),
    "fetch_tables('earliest', 3)": (TypeError, "start takes an offset", "Client.info().earliest"),
    "fetch_tables(0, 'latest')": (TypeError, "end takes an offset", "Client.info().latest"),
    "fetch_tables(-5, 0)": (ValueError, "start takes an offset of 0 or more, not -5"),
    "fetch_tables(5, 2)": (ValueError, "there are no offsets from 5 to 2"),
    "follow(start=1.5)": (TypeError, "start takes an offset, a datetime", "not 1.5"),
    "follow(start=True)": (TypeError, "start takes an offset, a datetime", "not True"),
    "follow(start='first')": (ValueError, "start must be an offset, a datetime", "not 'first'"),
    "follow(start=-1)": (ValueError, "start takes an offset of 0 or more, not -1"),
    "follow(timeout_s='1')": (TypeError, "timeout_s takes a number, not '1'"),
    "follow(timeout_s=-1)": (ValueError, "timeout_s must be at least 0, not -1"),
    "follow(max_bytes=0)": (ValueError, "max_bytes must be at least 1"),
    "follow(group=5)": (TypeError, "group takes a name, which is a str, not 5"),
    "follow(topics=[1])": (TypeError, "topics takes a topic, which is a str, or a list", "not [1]"),
    "fetch_tables(0, 1, topics=5)": (TypeError, "topics takes a topic, which is a str", "not 5"),
    "fetch_tables(0, 1, max_bytes='x')": (TypeError, "max_bytes takes a number of bytes", "'x'"),
    "fetch_tables(0, 1, headers=1)": (TypeError, "headers takes True or False, not 1"),
    "fetch_tables(0, 2**70)": (ValueError, "end takes an offset, not 1180591620717411303424"),
    "offset_at(float('nan'))": (ValueError, "timestamp takes a datetime", "not nan"),
    "offset_after('x', 1)": (TypeError, "start takes an offset, which is an int, not 'x'"),
    "committed(5)": (TypeError, "group takes a name, which is a str, not 5"),
    "drop_group(5)": (TypeError, "group takes the name of a group, which is a str, not 5"),
    "publish('q', 0, [5])": (TypeError, "parts takes a list of (partition, attempt, number of"),
    "abort('q', 'x')": (TypeError, "batch takes a whole number, not 'x'"),
    "commit(2, 'etl')": (TypeError, "group takes a name, which is a str, not 2"),
    "commit('etl', '2')": (TypeError, "offset takes an offset, which is an int, not '2'"),
    "commit('etl', 99)": (pipeline.Refused, "cannot have read up to 99: the log ends at 0"),
}


@pytest.mark.parametrize("call", CLIENT)
def test_mistakes_with_a_client(client, call):
    kind, *parts = CLIENT[call]
    with pytest.raises(kind) as raised:
        eval(f"client.{call}")
    for part in parts:
        assert part in str(raised.value)


def test_a_range_of_an_empty_log(client):
    assert list(client.fetch_tables(0, client.info().latest)) == []
    with pytest.raises(pipeline.DataLoss) as raised:
        list(client.fetch_tables(0, 1))
    assert "has no rows (the next one gets offset 0)" in str(raised.value)
    assert "not written yet" in str(raised.value)


PRODUCER = {
    "send(5)": (TypeError, "rows hold bytes or str, not int", "json.dumps"),
    "send({'a': 1})": (TypeError, "rows hold bytes or str, not dict"),
    "send(b'x', topic=5)": (TypeError, "rows hold bytes or str, not int"),
    "send_batch([1])": (TypeError, "rows hold bytes or str, not int"),
    "send(b'x', headers=5)": (TypeError, "headers are a dict, or a list of pairs", "not 5"),
    "send(b'x', timestamp=2**62)": (ValueError, "a timestamp of the years 1 to 9999"),
    "send(b'x', timestamp=1e12)": (ValueError, "a timestamp of the years 1 to 9999"),
    "send_batch([{'value': b'x', 'timestamp': -(2**62)}])": (
        ValueError,
        "a timestamp of the years 1 to 9999",
    ),
    "send(b'x', timestamp=2**70)": (ValueError, "a timestamp is a whole number of microseconds"),
    "send_batch(5)": (TypeError, "send_batch takes a list of values", "not 5"),
    "flush('x')": (TypeError, "timeout_s takes a number, not 'x'"),
    "send_batch('text')": (TypeError, "send_batch takes many values; send takes one"),
    "send_batch({'value': b''})": (TypeError, "send_batch takes many values; send takes one"),
    "send_batch(bytearray(b'x'))": (TypeError, "send_batch takes many values; send takes one"),
    "send_batch([{'valu': b''}])": (ValueError, "a row has value, key, topic", "not 'valu'"),
    "send_batch(iter([{'valu': b''}]))": (ValueError, "a row has value, key, topic", "not 'valu'"),
    "send_batch([{'value': b'', 5: b''}])": (ValueError, "a row has value, key, topic", "not 5"),
    "send_batch([{'value': None}])": (ValueError, "a row without a value", "must have"),
}


@pytest.mark.parametrize("call", PRODUCER)
def test_mistakes_with_a_producer(producer, call):
    kind, *parts = PRODUCER[call]
    with pytest.raises(kind) as raised:
        eval(f"producer.{call}")
    for part in parts:
        assert part in str(raised.value)


MADE = {
    "Producer('127.0.0.1:5555')": (ZMQError, "tcp://127.0.0.1:5555"),
    "Client('127.0.0.1:5555')": (ZMQError, "tcp://127.0.0.1:5555"),
    "Producer('tpc://a:1')": (ZMQError, "no transport is called 'tpc'"),
    "Client('tpc://a:1')": (ZMQError, "no transport is called 'tpc'"),
    "Producer(None)": (TypeError, "endpoint takes text such as 'tcp://collector:5555', not None"),
    "Client(None)": (TypeError, "endpoint takes text such as 'tcp://collector:5555', not None"),
    "Producer('tcp://a:1', name=5)": (TypeError, "name takes a name, which is a str, not 5"),
    "Producer('tcp://a:1', linger=5)": (TypeError, "no option 'linger'; did you mean 'linger_ms'?"),
    "Producer('tcp://a:1', linger_ms='x')": (TypeError, "linger_ms takes a number, not 'x'"),
    "Client('tcp://a:1', timout_s=5)": (TypeError, "no option 'timout_s'; did you mean"),
    "Client('tcp://a:1', timeout_s='5')": (TypeError, "timeout_s takes a number, not '5'"),
    "Client('tcp://a:1', timeout_s=-1)": (ValueError, "timeout_s must be at least 0, not -1"),
    "Client('tcp://a:1', retries=-1)": (ValueError, "retries must be at least 0, not -1"),
    "Client('tcp://a:1', retries='x')": (TypeError, "retries takes a whole number, not 'x'"),
    "Producer('tcp://a:1', spool=5)": (TypeError, "spool takes a path, which is a str or", "not 5"),
    "Producer('tcp://a:1', linger_ms=None)": (TypeError, "linger_ms takes a number, not None"),
    "Producer('tcp://a:1', batch_rows='x')": (TypeError, "batch_rows takes a whole number"),
    "Producer('tcp://a:1', on_delivery=5)": (TypeError, "on_delivery takes a function of a Deliv"),
    "Collector(5)": (TypeError, "directory takes a path, which is a str or a Path, not 5"),
    "Collector(directory, flush_rows='x')": (TypeError, "flush_rows takes a whole number, not 'x'"),
    "Collector(directory, subscribe=[5])": (TypeError, "subscribe takes addresses", "not 5"),
    "Collector(directory, roles='x')": (TypeError, "roles takes a dict such as", "not 'x'"),
    "Collector(directory, rentention_bytes=1)": (TypeError, "did you mean 'retention_bytes'?"),
    "Collector(directory, retention_bytes='much')": (TypeError, "'100G', not 'much'"),
    "Collector(directory, retention_bytes=-1)": (ValueError, "must be at least 1 bytes, not -1"),
    "Collector(directory, retention_hours='x')": (TypeError, "retention_hours takes a number"),
    "Collector(directory, flush_ms='x')": (TypeError, "flush_ms takes a number, not 'x'"),
    "Collector(directory, pull='tcp://*:1')": (TypeError, "pull is a list of addresses"),
    "Collector(directory, allow='*')": (ValueError, "allow requires secret_key"),
}


@pytest.mark.parametrize("call", MADE)
def test_mistakes_at_the_start(directory, call):
    kind, *parts = MADE[call]
    with pytest.raises(kind) as raised:
        eval(f"pipeline.{call}")
    for part in parts:
        assert part in str(raised.value)


def test_sizes_may_be_text(directory):
    with pipeline.Collector(directory / "log", max_batch_bytes="2M", retention_bytes="1G") as one:
        assert one.stats()["max_batch_bytes"] == 2 << 20


# ---- the end -------------------------------------------------------------------------

NOBODY = "tcp://127.0.0.1:1"


def close_blocking(limit, **options):
    producer = pipeline.Producer(NOBODY, **options)
    producer.send(b"x")
    producer.close(limit)


def close_with(limit, **options):
    with pipeline.Producer(NOBODY, **options) as producer:
        producer.send(b"x")
        producer.close(limit)


def close_asyncio(limit, **options):
    async def main():
        producer = pipeline.AsyncProducer(NOBODY, **options)
        await producer.send(b"x")
        await producer.close(limit)

    asyncio.run(main())


def close_green(limit, **options):
    green = pytest.importorskip("zeroxide.green")
    producer = green.Producer(NOBODY, **options)
    producer.send(b"x")
    producer.close(limit)


FORMS = {
    "blocking": close_blocking,
    "with": close_with,
    "asyncio": close_asyncio,
    "green": close_green,
}
LOST = "not sent again, because this producer is closed; a spool would keep them"
any_form = pytest.mark.parametrize("close", FORMS.values(), ids=FORMS)


@any_form
def test_the_end_of_a_producer_whose_collector_is_gone(close):
    with pytest.raises(pipeline.CollectorGone) as raised:
        # Long enough for a busy machine to accept the row before.
        close(None, timeout_s=1)
    assert str(raised.value).endswith(f"; 1 row is not acknowledged, and {LOST}")


@any_form
def test_the_end_of_a_producer_after_its_time(close):
    with pytest.raises(pipeline.NotAcknowledged) as raised:
        close(0.1)
    assert str(raised.value) == f"not acknowledged after 0.1 s: 1 row at {NOBODY}; {LOST}"


@any_form
def test_the_end_of_a_producer_with_a_spool(directory, close):
    close(None, timeout_s=0.1, spool=directory)
    # The next follower still gets the row.
    again = pipeline.Producer(NOBODY, spool=directory)
    assert again.stats()["unacknowledged"] == 1
    again.close(0)


def test_a_flush_that_fails_does_not_end_the_producer():
    producer = pipeline.Producer(NOBODY, timeout_s=0.1)
    producer.send(b"x")
    with pytest.raises(pipeline.CollectorGone, match=r"and sent as soon as it is back$"):
        producer.flush()
    producer = pipeline.Producer(NOBODY)
    producer.send_batch([b"x", b"y"])
    with pytest.raises(pipeline.NotAcknowledged) as raised:
        producer.flush(0)
    expected = f"not acknowledged after 0 s: 2 rows at {NOBODY}; this producer keeps trying"
    assert str(raised.value) == expected
    with pytest.raises(pipeline.NotAcknowledged, match="not sent again"):
        producer.close(0)
