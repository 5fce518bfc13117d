"""The writers to a log as plain Python; a dictionary replaces the collector."""

import pickle
from dataclasses import dataclass, field
from datetime import UTC, datetime

import pyarrow as pa
import pytest
from pyspark.sql.types import BinaryType, LongType, StringType, StructField, StructType

from zeroxide.pipeline import Refused
from zeroxide.spark import _transactions as transactions
from zeroxide.spark._schema import spark_schema
from zeroxide.spark._transactions import Staged
from zeroxide.spark._writers import Task
from zeroxide.spark.source import ZeroMQDataSource

VALUE = spark_schema(["value"])
LOG = {"endpoint": "tcp://127.0.0.1:9", "socket": "log"}


@dataclass
class FakeCollector:
    """A collector's client in memory."""

    rows: list = field(default_factory=list)
    staged: dict = field(default_factory=dict)
    published: dict = field(default_factory=dict)
    clients: int = 0
    fails: bool = False
    refuses: list = field(default_factory=list)
    most_attempts: int = 65_536

    def stage(self, query, batch, partition, attempt, part, record_batch):
        if self.fails:
            raise ConnectionError("no peer there")
        if self.refuses:
            raise Refused("not now", self.refuses.pop(0))
        parts = self.staged.setdefault((query, batch), {}).setdefault((partition, attempt), [])
        assert part == len(parts)
        parts.append(record_batch)

    def publish(self, query, batch, parts):
        if self.refuses:
            raise Refused("not now", self.refuses.pop(0))
        last, *offsets = self.published.get(query, (-1, 0, 0))
        if batch == last:
            return *offsets, True
        if batch < last:
            return 0, 0, True
        first = len(self.rows)
        for partition, attempt, count in parts:
            staged = self.staged[query, batch][partition, attempt]
            assert count == len(staged)
            for record_batch in staged:
                self.rows += record_batch.to_pylist()
        self.published[query] = batch, first, len(self.rows)
        self.staged.pop((query, batch))
        return first, len(self.rows), False

    def abort(self, query, batch, attempts):
        if self.fails:
            raise ConnectionError("no peer there")
        if self.refuses:
            raise Refused("not now", self.refuses.pop(0))
        assert len(attempts) <= self.most_attempts
        for attempt in attempts:
            self.staged[query, batch].pop(attempt)

    def values(self):
        return [row["value"] for row in self.rows]

    def close(self):
        self.clients -= 1


@pytest.fixture
def collector(monkeypatch):
    fake = FakeCollector()

    def connect(options):
        fake.clients += 1
        return fake

    monkeypatch.setattr(transactions, "connect", connect)
    yield fake
    assert fake.clients == 0


@pytest.fixture
def task(monkeypatch):
    """Makes the code under test run as a given task."""

    def become(partition=0, attempt=0, query="q", batch=0):
        current = Task(partition, attempt, query, batch)
        monkeypatch.setattr(Task, "current", classmethod(lambda cls: current))

    become()
    return become


def writer(schema=VALUE, **options):
    return ZeroMQDataSource(LOG | options).writer(schema, False)


def stream_writer(schema=VALUE, **options):
    return ZeroMQDataSource(LOG | options).streamWriter(schema=schema, overwrite=False)


def batch(**columns):
    return pa.record_batch(columns)


def test_no_row_is_visible_before_the_commit(collector, task):
    write = writer()
    messages = [write.write(iter([batch(value=["a", "b"])])), None]
    assert collector.rows == []
    # The driver has its own writer.
    pickle.loads(pickle.dumps(write)).commit(pickle.loads(pickle.dumps(messages)))
    assert collector.values() == [b"a", b"b"]


def test_an_attempt_that_was_not_chosen_is_not_published(collector, task):
    write = stream_writer()
    lost = write.write(iter([batch(value=["a"])]))
    # Spark counts attempts from 0 again in a repeated stage.
    chosen = write.write(iter([batch(value=["b"])]))
    assert (lost.partition, lost.query, lost.batch) == (chosen.partition, "q", 0)
    stream_writer().commit([chosen], 0)
    assert collector.values() == [b"b"]
    assert not collector.staged


def test_a_task_that_failed_halfway_leaves_no_rows(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "PART_ROWS", 1)

    def fails():
        yield batch(value=["a"])
        yield batch(value=["b"])
        raise RuntimeError("as planned")

    write = stream_writer()
    with pytest.raises(RuntimeError, match="as planned"):
        write.write(fails())
    task(attempt=1)
    stream_writer().commit([write.write(iter([batch(value=["a"])]))], 0)
    assert collector.values() == [b"a"]


def test_a_replayed_batch_is_published_once(collector, task):
    for _ in range(2):
        stream_writer().commit([stream_writer().write(iter([batch(value=["a"])]))], 0)
    task(batch=1)
    stream_writer().commit([stream_writer().write(iter([batch(value=["b"])]))], 1)
    assert collector.values() == [b"a", b"b"]


@pytest.mark.parametrize("make", [stream_writer, lambda: writer(queryName="q", batchId="0")])
def test_an_older_batch_is_an_error(collector, task, make):
    task(batch=1)
    stream_writer().commit([stream_writer().write(iter([batch(value=["a"])]))], 1)
    task(batch=0)
    write = make()
    messages = [write.write(iter([batch(value=["b"])]))]
    with pytest.raises(RuntimeError) as error:
        write.publish(messages)
    for said in ("batch 0 of query q", LOG["endpoint"], "checkpoint", "'queryName'", "another"):
        assert said in str(error.value)
    assert collector.values() == [b"a"]
    # A batch without rows cannot miss any.
    write.publish([Staged("q", 0, 0, 5, 1, 0)])


def test_each_write_of_a_batch_needs_its_own_name(collector, task):
    """As `docs/spark/writing.md` says: the log cannot tell a second write from a repetition."""
    for name in ("one", "one", "two"):
        write = writer(queryName=name, batchId="0", topic=name)
        write.commit([write.write(iter([batch(value=["a"])]))])
    assert collector.values() == [b"a", b"a"]


@pytest.mark.parametrize("make", [stream_writer, lambda: writer(queryName="q", batchId="0")])
@pytest.mark.parametrize("values", [["a"], ["a", "b", "c"]])
def test_a_replayed_batch_with_another_number_of_rows(collector, task, make, values):
    for _ in range(2):
        write = make()
        write.publish([write.write(iter([batch(value=["a", "b"])]))])
    write = make()
    message = write.write(iter([batch(value=values)]))
    with pytest.raises(RuntimeError, match=rf"with 2 rows, and has {len(values)} now") as error:
        write.publish([message])
    for said in ("Restore the checkpoint", "give each of these writes its own option 'queryName'"):
        assert said in str(error.value)
    assert collector.values() == [b"a", b"b"]


def test_a_batch_that_joined_the_publishing_of_another_attempt(collector, task, monkeypatch):
    """Collectors of earlier versions answer as if these rows had been published."""
    monkeypatch.setattr(collector, "publish", lambda query, batch, parts: (0, 30, False))
    write = stream_writer()
    message = write.write(iter([batch(value=["a"] * 40)]))
    with pytest.raises(RuntimeError, match=r"with 30 rows, and has 40 now"):
        write.publish([message])


def test_the_same_rows_in_other_arrow_batches(collector, task, caplog):
    """The number of rows of the log is that of batches, so a repetition may have another one."""
    one, two = batch(value=["a"]), batch(value=["b"])
    for batches in ([one, two], [pa.concat_batches([one, two])]):
        write = stream_writer(frame="arrow")
        write.commit([write.write(iter(batches))], 0)
    assert "with 2 rows, and has 1 now" in caplog.text


def test_a_part_that_is_refused_temporarily(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "PAUSE_S", 0.01)
    collector.refuses = ["failed", "too-many", "full", "read-only", "closing"]
    stream_writer().commit([stream_writer().write(iter([batch(value=["a"])]))], 0)
    assert collector.values() == [b"a"]
    collector.refuses = ["full"] * 100
    with pytest.raises(Refused, match="not now"):
        stream_writer(ackTimeoutMs="50").write(iter([batch(value=["a"])]))
    assert 90 < len(collector.refuses) < 100


def test_a_commit_that_is_refused_temporarily(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "PAUSE_S", 0.01)
    write = stream_writer()
    messages = [write.write(iter([batch(value=["a"])]))]
    collector.refuses = ["denied"]
    with pytest.raises(Refused, match="not now"):
        write.commit(messages, 0)
    collector.refuses = ["full", "closing", "failed"]
    write.commit(messages, 0)
    assert collector.values() == [b"a"]


@pytest.mark.parametrize("code", ["denied", "version", "malformed", "corrupt"])
def test_a_part_that_is_refused_permanently(collector, task, code):
    collector.refuses = [code] * 2
    with pytest.raises(Refused, match="not now"):
        stream_writer().write(iter([batch(value=["a"])]))
    assert collector.refuses == [code]


def test_partitions_in_order(collector, task):
    write, messages = stream_writer(), []
    for partition in (1, 0):
        task(partition=partition)
        messages.insert(0, write.write(iter([batch(value=[f"{partition}"])])))
    stream_writer().commit(messages, 0)
    assert collector.values() == [b"0", b"1"]


def test_small_batches_share_a_part(collector, task):
    batches = [batch(value=[b"%d" % number]) for number in range(10)]
    sent = writer().write(iter(batches))
    assert (sent.parts, sent.rows) == (1, 10)


def test_parts_have_a_size(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "PART_BYTES", 100)
    sent = writer().write(iter([batch(value=["x" * 60])] * 5))
    assert (sent.parts, sent.rows) == (5, 5)
    monkeypatch.setattr(transactions, "PART_ROWS", 4)
    sent = writer().write(iter([batch(value=["x"])] * 10))
    assert (sent.parts, sent.rows) == (3, 10)


def test_without_rows_the_collector_is_not_asked(collector, task):
    collector.fails = True
    write = writer()
    sent = write.write(iter([batch(value=pa.array([], pa.binary()))]))
    assert (sent.parts, sent.rows) == (0, 0)
    write.commit([sent, None])
    assert collector.published == {}


def test_abort_discards_staged_rows(collector, task):
    write = stream_writer()
    sent = write.write(iter([batch(value=["a"])]))
    write.abort([sent, None], 0)
    assert not collector.staged["q", 0]
    # The error about an unavailable collector does not hide the reason of the failure.
    collector.fails = True
    write.abort([sent], 0)


def test_an_abort_that_is_refused_for_now_is_repeated(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "PAUSE_S", 0)
    write = stream_writer()
    sent = write.write(iter([batch(value=["a"])]))
    collector.refuses = ["too-many", "failed"]
    write.abort([sent], 0)
    assert not collector.staged["q", 0] and not collector.refuses


def test_many_attempts_are_discarded_in_several_requests(collector, task, monkeypatch):
    monkeypatch.setattr(transactions, "ATTEMPTS", 2)
    collector.most_attempts = 2
    write = stream_writer()
    sent = [write.write(iter([batch(value=["a"])])) for _ in range(5)]
    write.abort(sent, 0)
    assert not collector.staged["q", 0]


def test_columns(collector, task):
    header = spark_schema(["headers"])["headers"]
    schema = StructType(
        [
            StructField("extra", LongType()),
            header,
            StructField("value", StringType()),
            spark_schema(["timestamp"])["timestamp"],
            StructField("key", BinaryType()),
        ]
    )
    noon = datetime(2013, 1, 1, 12, tzinfo=UTC)
    rows = batch(
        extra=[1, 2],
        headers=[[{"key": "h", "value": b"1"}], None],
        value=["a", "b"],
        timestamp=pa.array([noon, None], pa.timestamp("us", "Europe/Berlin")),
        key=[b"k", None],
    )
    write = writer(schema, topic="t")
    write.commit([write.write(iter([rows]))])
    first, second = collector.rows
    assert first == {
        "value": b"a",
        "key": b"k",
        "headers": [{"key": "h", "value": b"1"}],
        "timestamp": noon,
        "topic": "t",
    }
    assert (second["key"], second["headers"]) == (None, None)
    assert second["timestamp"] > noon


def test_arrow_frames(collector, task):
    schema = StructType([StructField("id", LongType())])
    write = writer(schema, frame="arrow")
    rows = batch(id=[1, 2])
    write.commit([write.write(iter([rows]))])
    (value,) = collector.values()
    assert pa.ipc.open_stream(value).read_all().to_batches() == [rows]


def test_null_values_are_refused(collector, task):
    with pytest.raises(ValueError, match="null in 1 of 2 rows"):
        writer().write(iter([batch(value=["a", None])]))


def test_a_timestamp_is_one():
    columns = [StructField("value", StringType()), StructField("timestamp", LongType())]
    with pytest.raises(ValueError, match="'timestamp' is bigint, not timestamp"):
        writer(StructType(columns))


def test_a_batch_write_is_a_separate_transaction(collector, task):
    # Called from foreachBatch, where the query may write more than once per batch.
    for _ in range(2):
        write = writer()
        write.commit([write.write(iter([batch(value=["a"])]))])
    assert collector.values() == [b"a", b"a"]


def test_a_batch_write_with_a_number_can_be_repeated(collector, task):
    for number in (3, 3, 4):
        write = writer(queryName="daily", batchId=str(number))
        write.commit([write.write(iter([batch(value=[f"{number}"])]))])
    assert collector.values() == [b"3", b"4"]
    with pytest.raises(ValueError, match=r"a stream numbers its batches"):
        stream_writer(queryName="daily", batchId="3")
    with pytest.raises(ValueError, match="'queryName' needs 'batchId'"):
        writer(queryName="daily")


def test_a_query_that_spark_does_not_name(collector, task):
    task(query=None)
    write = stream_writer(checkpointLocation="/x")
    assert write.write(iter([batch(value=["a"])])).query == "/x"
    assert stream_writer(queryName="n").write(iter([batch(value=["a"])])).query == "n"
    with pytest.raises(RuntimeError, match="set option 'queryName'"):
        stream_writer().write(iter([batch(value=["a"])]))
    task(batch=None)
    with pytest.raises(RuntimeError, match="use foreachBatch"):
        stream_writer().write(iter([batch(value=["a"])]))


def test_a_batch_with_another_number_is_not_published(collector, task):
    with pytest.raises(RuntimeError, match="no row of it was published"):
        stream_writer().commit([Staged("q", 1, 0, 5, 1, 1)], 2)
    assert not collector.published


def test_keys_do_not_appear_in_the_plan(monkeypatch):
    asked = {}

    class Client:
        def __init__(self, endpoint, **options):
            asked.update(options, endpoint=endpoint)

    collector = pytest.importorskip("zeroxide.pipeline")
    monkeypatch.setattr(collector, "Client", Client, raising=False)
    monkeypatch.setenv("KEY", "k" * 40)
    write = writer(**{"zmq.curve_serverkey": "s" * 40, "zmq.curve_secretkey": "env:KEY"})
    assert b"k" * 40 not in pickle.dumps(write)
    transactions.connect(write.options)
    assert asked == {
        "endpoint": LOG["endpoint"],
        "timeout_s": 10.0,
        "retries": 2,
        "server_key": "s" * 40,
        "secret_key": "k" * 40,
    }


def test_overwriting_is_refused():
    for options in (LOG, LOG | {"socket": "push"}):
        with pytest.raises(ValueError, match="append"):
            ZeroMQDataSource(options).writer(VALUE, True)


@pytest.fixture
def real(tmp_path):
    """A collector that accepts batches of at most this many bytes."""
    from zeroxide.pipeline import Collector

    opened = []

    def start(max_batch_bytes=16 << 20):
        opened.append(Collector(tmp_path / "log", max_batch_bytes=max_batch_bytes))
        return opened[-1]

    yield start
    for collector in opened:
        collector.close()


@pytest.mark.parametrize("frame", ["message", "arrow"])
@pytest.mark.parametrize("max_batch_bytes", [16 << 20, 100_000])
def test_batches_of_wide_rows_are_split_to_the_collectors_limit(real, task, frame, max_batch_bytes):
    if frame == "arrow" and max_batch_bytes < 1 << 20:
        pytest.skip("a table is a row, which cannot be split")
    collector = real(max_batch_bytes)
    rows = 25_000
    write = writer(endpoint=collector.endpoint, frame=frame)
    wide = batch(value=pa.array([b"%04000d" % number for number in range(rows)], pa.binary()))
    write.commit([write.write(iter([wide]))])
    stats = collector.stats()
    if frame == "message":
        assert stats["durable"] == rows
    assert stats["published"] == 1


def test_a_row_that_is_too_large_names_the_limit(real, task):
    collector = real(100_000)
    for size in (200_000, 80 << 20):
        write = writer(endpoint=collector.endpoint, ackTimeoutMs="20000")
        with pytest.raises(Refused, match="100000") as raised:
            write.write(iter([batch(value=pa.array([b"small", bytes(size)], pa.binary()))]))
        assert raised.value.code == "too-big"
