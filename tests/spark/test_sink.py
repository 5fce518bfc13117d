"""The writers as plain Python: real sockets, no JVM."""

import time
from datetime import UTC, datetime, timedelta, timezone

import pyarrow as pa
import pytest
from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

import zeroxide as zmq
from zeroxide.pipeline import Collector
from zeroxide.spark._schema import spark_schema
from zeroxide.spark._sink import Sent
from zeroxide.spark._writers import to_record_batches
from zeroxide.spark.source import ZeroMQDataSource

VALUE = spark_schema(["value"])


def writer(endpoint, schema=VALUE, **options):
    source = ZeroMQDataSource({"endpoint": endpoint, "flushTimeoutMs": "60000"} | options)
    return source.writer(schema, False)


def batch(**columns):
    return pa.record_batch(columns)


@pytest.fixture
def receive(background):
    """Receives a number of messages in the background."""

    def start(socket, count):
        messages = []

        def work():
            while len(messages) < count:
                messages.append(socket.recv_multipart())

        return messages, background(work)

    return start


def test_push(bound, receive):
    pull, endpoint = bound(zmq.PULL)
    bodies = [b"%d" % number for number in range(30_000)]
    messages, done = receive(pull, len(bodies))
    batches = [batch(value=bodies[first : first + 10_000]) for first in range(0, 30_000, 10_000)]
    sent = writer(endpoint).write(iter(batches))
    assert (sent.rows, sent.messages) == (30_000, 30_000)
    done.join()
    assert messages == [[body] for body in bodies]


def test_push_to_several(bound, receive):
    (one, first), (two, second) = bound(zmq.PULL), bound(zmq.PULL)
    got = receive(one, 500), receive(two, 500)
    writer(f"{first},{second}", waitPeers="2").write(iter([batch(value=["x"] * 1000)]))
    for _, done in got:
        done.join()


def test_dealer(bound, receive):
    router, endpoint = bound(zmq.ROUTER)
    messages, done = receive(router, 2)
    writer(endpoint, socket="dealer").write(iter([batch(value=[b"a", b"b"])]))
    done.join()
    assert [message[1:] for message in messages] == [[b"a"], [b"b"]]


def test_pub_waits_for_its_subscribers(bound, receive):
    sub, endpoint = bound(zmq.SUB)
    sub.subscribe(b"yes")
    messages, done = receive(sub, 5_000)
    schema = spark_schema(["value", "topic"])
    rows = batch(value=["v"] * 10_000, topic=["yes", "no"] * 5_000)
    writer(endpoint, schema, socket="pub").write(iter([rows]))
    done.join()
    assert messages == [[b"yes", b"v"]] * 5_000


def test_pub_counts_peers_and_not_subscriptions(bound, receive):
    (one, first), (other, second) = bound(zmq.SUB), bound(zmq.SUB)
    for topic in (b"a", b"b", b"c"):
        one.subscribe(topic)
    both = {"socket": "pub", "waitPeers": "2", "topic": "a"}
    for timeout_ms in (500, 5_000, 50_000):  # a busy machine may need longer to connect
        impatient = writer(f"{first},{second}", flushTimeoutMs=str(timeout_ms), **both)
        with pytest.raises(TimeoutError, match="of 2 peers") as error:
            impatient.write(iter([batch(value=["v"])]))
        if "1 of 2 peers" in str(error.value):
            break
    assert "1 of 2 peers" in str(error.value)
    other.subscribe(b"")
    got = receive(one, 1), receive(other, 1)
    writer(f"{first},{second}", **both).write(iter([batch(value=["v"])]))
    for messages, done in got:
        done.join()
        assert messages == [[b"a", b"v"]]


@pytest.mark.parametrize("socket", ["push", "pub"])
def test_a_log_that_is_not_named_as_one(tmp_path, socket):
    with Collector(tmp_path / "log") as collector:
        for timeout_ms in (500, 5_000, 50_000):  # a busy machine may need longer to connect
            impatient = writer(collector.endpoint, socket=socket, flushTimeoutMs=str(timeout_ms))
            with pytest.raises(TimeoutError, match="0 of 1 peers") as error:
                impatient.write(iter([batch(value=["v"])]))
            if "cannot talk" in str(error.value):
                break
    said = str(error.value)
    assert f"were at {collector.endpoint} (connecting" in said
    assert said.endswith("sent: to write to a collector's log, set option 'socket' to 'log'")


def test_bound_pub(context, receive, tmp_path):
    endpoint = f"ipc://{tmp_path}/answer"
    sub = context.socket(zmq.SUB)
    sub.subscribe(b"")
    sub.connect(endpoint)
    messages, done = receive(sub, 1)
    writer(endpoint, socket="pub", attach="bind").write(iter([batch(value=["v"])]))
    done.join()
    assert messages == [[b"v"]]


def test_the_topic_option_replaces_the_column(bound, receive):
    pull, endpoint = bound(zmq.PULL)
    messages, done = receive(pull, 1)
    schema = spark_schema(["value", "topic"])
    writer(endpoint, schema, topic="T").write(iter([batch(value=["v"], topic=["t"])]))
    done.join()
    assert messages == [[b"T", b"v"]]


def test_headers_for_receivers_that_drop_repetitions(bound, receive):
    pull, endpoint = bound(zmq.PULL)
    messages, done = receive(pull, 2)
    columns = spark_schema(["key", "value", "headers"])
    rows = batch(
        headers=[[{"key": "h", "value": b"1"}], None],
        value=["a", "b"],
        key=["k", None],
    )
    options = {"includeHeaders": "true", "queryName": "q"}
    writer(endpoint, columns, **options).write(iter([rows]))
    done.join()
    assert messages == [
        [b"", b"k", b"a", b"spark", b"q,0,0,0,0", b"h", b"1"],
        [b"", b"", b"b", b"spark", b"q,0,0,0,1"],
    ]


def test_arrow_frames(bound, receive):
    pull, endpoint = bound(zmq.PULL)
    messages, done = receive(pull, 2)
    schema = StructType([StructField("id", LongType()), StructField("name", StringType())])
    rows = [batch(id=[1, 2], name=["a", None]), batch(id=[3], name=["c"])]
    sent = writer(endpoint, schema, frame="arrow", topic="t").write(iter(rows))
    assert (sent.rows, sent.messages) == (3, 2)
    done.join()
    assert [topic for topic, _ in messages] == [b"t", b"t"]
    assert [pa.ipc.open_stream(body).read_all().to_batches()[0] for _, body in messages] == rows


def test_arrow_frames_with_headers(bound, receive):
    pull, endpoint = bound(zmq.PULL)
    messages, done = receive(pull, 2)
    options = {"frame": "arrow", "includeHeaders": "true", "queryName": "q", "batchId": "7"}
    rows = [batch(id=[1, 2]), batch(id=[3])]
    writer(endpoint, StructType([StructField("id", LongType())]), **options).write(iter(rows))
    done.join()
    marks = [pa.ipc.open_stream(body).schema.metadata[b"spark"] for (body,) in messages]
    assert marks == [b"q,7,0,0,0", b"q,7,0,0,2"]


def test_rows_in_versions_of_spark_without_batches():
    header = StructType([StructField("key", StringType()), StructField("value", BinaryType())])
    schema = StructType(
        [
            StructField("value", StringType()),
            StructField("headers", ArrayType(header)),
            StructField("timestamp", TimestampType()),
        ]
    )
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    local = noon.astimezone().replace(tzinfo=None)
    rows = [Row(value="a", headers=[Row(key="h", value=b"1")], timestamp=local)] * 10_001
    first, second = to_record_batches(iter(rows), schema)
    assert (first.num_rows, second.num_rows) == (10_000, 1)
    assert second.to_pylist() == [
        {"value": "a", "headers": [{"key": "h", "value": b"1"}], "timestamp": noon}
    ]


@pytest.fixture(params=[-5, 0, 9])
def zone(request, monkeypatch):
    """The time zone of the worker."""
    with monkeypatch.context() as patched:
        # POSIX counts to the west.
        patched.setenv("TZ", f"<zone>{-request.param}")
        time.tzset()
        yield timezone(timedelta(hours=request.param))
    time.tzset()


def test_times_at_any_depth_in_versions_of_spark_without_batches(zone):
    pair = StructType([StructField("t", TimestampType()), StructField("n", LongType())])
    kinds = {
        "flat": TimestampType(),
        "struct": pair,
        "array": ArrayType(TimestampType()),
        "map": MapType(TimestampType(), ArrayType(pair)),
        "plain": MapType(StringType(), LongType()),
    }
    schema = StructType([StructField(name, kind) for name, kind in kinds.items()])
    noon = datetime(2013, 1, 1, 12, tzinfo=zone)
    local = noon.replace(tzinfo=None)
    row = Row(
        flat=local,
        struct=Row(t=local, n=1),
        array=[local, None],
        map={local: [Row(t=local, n=2), None]},
        plain={"a": 1},
    )
    nulls = Row(**dict.fromkeys(kinds))
    (found,) = to_record_batches(iter([row, nulls]), schema)
    assert found.to_pylist() == [
        {
            "flat": noon,
            "struct": {"t": noon, "n": 1},
            "array": [noon, None],
            "map": [(noon, [{"t": noon, "n": 2}, None])],
            "plain": [("a", 1)],
        },
        dict.fromkeys(kinds),
    ]


@pytest.mark.parametrize("local", [datetime.min, datetime.max])
def test_the_first_and_the_last_time_of_python(zone, local):
    """In UTC, they may be in the year 0 or 10000."""
    schema = StructType([StructField("when", ArrayType(TimestampType()))])
    rows = iter([Row(when=[local])])
    try:
        wanted = local.replace(tzinfo=zone).astimezone(UTC)
    except OverflowError:
        with pytest.raises(ValueError, match="column 'when' has a time"):
            next(to_record_batches(rows, schema))
    else:
        (found,) = to_record_batches(rows, schema)
        assert found.to_pylist() == [{"when": [wanted]}]


def test_an_empty_partition_does_not_wait():
    # Waiting would end in an error after the timeout.
    assert writer("tcp://127.0.0.1:9").write(iter([])) == Sent(0, 0, 0, 0)


def test_without_a_peer(bound):
    late = writer("tcp://127.0.0.1:9", flushTimeoutMs="300")
    with pytest.raises(TimeoutError, match=r"0 of 1 peers.*nothing was sent"):
        late.write(iter([batch(value=["a"])]))


@pytest.mark.parametrize(("hwm", "said"), [("3", "took a message for {} ms"), ("0", "not yet")])
def test_a_peer_that_takes_no_messages(context, tmp_path, hwm, said):
    endpoint = f"ipc://{tmp_path}/stuck"
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 3
    pull.bind(endpoint)
    # A busy machine may need longer than this for the connection itself.
    for timeout_ms in (500, 5_000, 50_000):
        stuck = writer(endpoint, flushTimeoutMs=str(timeout_ms), **{"zmq.sndhwm": hwm})
        with pytest.raises(TimeoutError, match=r"\(option 'flushTimeoutMs'\)") as error:
            stuck.write(iter([batch(value=[bytes(1 << 20)] * 64)]))
        if "peers (option 'waitPeers')" not in str(error.value):
            break
    assert said.format(timeout_ms) in str(error.value)


def test_null_values_are_refused(bound):
    _pull, endpoint = bound(zmq.PULL)
    with pytest.raises(ValueError, match="null in 1 of 2 rows"):
        writer(endpoint).write(iter([batch(value=["a", None])]))


def test_framing_must_hold_the_columns():
    schema = spark_schema(["value", "topic"])
    with pytest.raises(ValueError, match="framing=single has no place for all of value, topic"):
        writer("tcp://a:1", schema, framing="single")
    with pytest.raises(ValueError, match="needs a column 'value'"):
        writer("tcp://a:1", StructType([StructField("id", LongType())]))
    assert writer("tcp://a:1", schema, framing="envelope").framing == "envelope"


def test_a_stream_writer_is_called_by_these_names():
    source = ZeroMQDataSource({"endpoint": "tcp://a:1"})
    schema = StructType([StructField("value", BinaryType())])
    stream = source.streamWriter(schema=schema, overwrite=False)
    stream.commit([Sent(1, 1, 0, 0), None], 7)
    stream.abort([None], 7)
