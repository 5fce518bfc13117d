"""Calls to services: the engine and the service without Spark, then both with it."""

import mmap
import struct
import threading
from asyncio import CancelledError
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import SimpleNamespace

import pyarrow as pa
import pyarrow.compute as pc
import pytest
from pyspark.errors import PySparkException
from pyspark.sql import functions as f

import zeroxide as zmq
from zeroxide.spark import RpcError, RpcTimeout, Service, rpc
from zeroxide.spark._calls import Calls, _Request, _Service, _Work
from zeroxide.spark._ipc import from_stream, one_batch, to_stream

LOCAL = "tcp://127.0.0.1:*"


def calls(*services, window=4, timeout_s=60.0, retries=2, options=()):
    endpoints = tuple(getattr(service, "endpoint", service) for service in services)
    return Calls(endpoints, options, window, timeout_s, retries)


def bodies(count):
    return (b"%d" % number for number in range(count))


def upper(body):
    return body.upper()


@pytest.fixture
def service():
    """Starts services that end with the test."""
    started = []

    def start(fn, endpoint=LOCAL, **options):
        started.append(Service(fn, endpoint, **{"unit": "message"} | options))
        return started[-1]

    yield start
    for each in started:
        each.close()


@pytest.fixture
def mute(bound):
    """A service that takes requests and never replies."""
    return bound(zmq.ROUTER)


@pytest.mark.parametrize("window", [1, 4, 1000])
def test_replies_in_order(service, window):
    made = calls(service(lambda body: body + b"!", threads=3), window=window)
    assert list(made.make(bodies(3000))) == [b"%d!" % number for number in range(3000)]


def test_without_rows_no_request_is_sent():
    assert list(calls("tcp://127.0.0.1:9").make(bodies(0))) == []


def test_a_caller_may_stop_early(service):
    assert list(islice(calls(service(upper)).make(bodies(100)), 3)) == [b"0", b"1", b"2"]


def test_several_tasks_and_services(service):
    made = calls(*(service(upper) for _ in "abc"), window=6)
    with ThreadPoolExecutor() as pool:
        answers = pool.map(lambda _: list(made.make(bodies(1000))), range(4))
        assert list(answers) == [list(bodies(1000))] * 4


class Taking(_Service):
    """A service that takes every request, and replies on command."""

    def __init__(self, name):
        super().__init__(name, None, None)

    def take(self, request, deadline):
        self.pending[request.number] = request
        return True


def test_the_service_with_the_fewest_requests_gets_the_next():
    services = [Taking(name) for name in "abc"]
    work = _Work(calls("tcp://a:1", "tcp://b:1", "tcp://c:1"), services)

    def ask(count):
        for _ in range(count):
            number = len(asked).to_bytes(8, "big")
            asked.append(number)
            assert work._sent(_Request(number, b"", 0.0))
        return [len(service.pending) for service in services]

    asked = []
    assert ask(9) == [3, 3, 3]
    services[1].pending.clear()
    assert ask(2) == [3, 2, 3]
    # A service that did not reply in time is used last.
    services[1].silent = True
    assert ask(4) == [5, 2, 5]


def test_an_exception_of_the_function_reaches_the_caller(service):
    def fails(body):
        if body == b"3":
            raise LookupError("no such device: 3")
        return body

    started = service(fails)
    with pytest.raises(RpcError, match=r"(?s)service at tcp.*LookupError: no such device: 3"):
        list(calls(started).make(bodies(10)))
    # The service continues.
    assert list(calls(started).make(bodies(3))) == [b"0", b"1", b"2"]


@pytest.mark.parametrize("error", [SystemExit(3), CancelledError(), LookupError("\ud800")])
def test_no_exception_ends_the_service(service, error):
    def fails(body):
        if body == b"0":
            raise error
        return body

    started = service(fails)
    with pytest.raises(RpcError, match=type(error).__name__):
        list(calls(started, timeout_s=5.0, retries=0).make(bodies(1)))
    assert list(calls(started).make(iter([b"1"]))) == [b"1"]


def test_a_caller_that_leaves_does_not_end_the_service(context, service):
    """The option makes the reply an error."""
    caller, gone = context.socket(zmq.DEALER), threading.Event()

    def leaves(body):
        if body == b"first":
            caller.close(linger=0)
            assert monitor.poll(60_000)
            gone.set()
        return body

    started = service(leaves, options={"router_mandatory": "1"})
    monitor = started._router.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    caller.connect(started.endpoint)
    caller.send_multipart([b"", b"first"])
    assert gone.wait(60)
    assert list(calls(started).make(bodies(3))) == list(bodies(3))


def test_a_service_that_fails_reports_it(service, monkeypatch):
    started = service(upper, threads=2)

    def fail(message):
        raise zmq.ZMQError(zmq.ENOBUFS)

    broken = SimpleNamespace(
        recv_multipart=lambda: [b"caller", b"", b"request"], send_multipart=fail
    )
    monkeypatch.setattr(started, "_router", broken)
    with pytest.raises(zmq.ZMQError, match="No buffer space available"):
        started.wait()
    monkeypatch.undo()
    started.close()


def test_a_service_whose_threads_cannot_start_leaves_nothing(monkeypatch):
    begun = []

    def start(thread, real=threading.Thread.start):
        if begun:
            raise RuntimeError("can't start new thread")
        begun.append(thread)
        real(thread)

    monkeypatch.setattr(threading.Thread, "start", start)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        Service(upper, LOCAL, unit="message", threads=2)
    assert not begun[0].is_alive()


def test_a_function_must_return_something_to_send(service):
    with pytest.raises(RpcError, match="returned NoneType, not bytes or str"):
        list(calls(service(lambda body: None)).make(bodies(1)))
    with pytest.raises(RpcError, match="returned dict, not a pyarrow RecordBatch or Table"):
        body = to_stream(pa.record_batch({"a": [1]}))
        list(calls(service(lambda batch: {}, unit="batch")).make(iter([body])))
    assert list(calls(service(lambda body: "text")).make(bodies(1))) == [b"text"]


def test_requests_that_are_not_arrow_get_an_error(service):
    with pytest.raises(RpcError, match="ArrowInvalid"):
        list(calls(service(lambda batch: batch, unit="batch")).make(bodies(1)))


def test_a_silent_service_is_replaced(service, mute):
    # As many retries as a busy machine needs.
    made = calls(mute[1], service(upper), timeout_s=0.2, retries=1000)
    assert list(made.make(bodies(200))) == list(bodies(200))


def test_no_service_replies(mute):
    # A busy machine may need longer than this for the connection itself.
    for timeout_s in (0.05, 0.5, 5.0):
        made = calls(mute[1], timeout_s=timeout_s, retries=2)
        with pytest.raises(RpcTimeout) as error:
            list(made.make(bodies(1)))
        if "took a request" not in str(error.value):
            break
    assert f"not replied for {timeout_s:g} s; this was attempt 3" in str(error.value)


def test_no_service_is_available():
    made = calls("tcp://127.0.0.1:9", "tcp://127.0.0.1:10", timeout_s=0.1)
    with pytest.raises(RpcTimeout, match=r"none of tcp://127.0.0.1:9, tcp://127.0.0.1:10 took"):
        list(made.make(bodies(1)))


def test_a_late_service_is_waited_for(service, tmp_path):
    endpoint = f"ipc://{tmp_path}/late"
    with ThreadPoolExecutor() as pool:
        done = pool.submit(list, calls(endpoint).make(bodies(5)))
        service(upper, endpoint)
        assert done.result(60) == list(bodies(5))


def test_a_lost_service_is_replaced_at_once(service, context, tmp_path):
    router, endpoint = context.socket(zmq.ROUTER), f"ipc://{tmp_path}/lost"
    router.rcvtimeo = 60_000
    router.bind(endpoint)
    # A timeout that is longer than the test.
    made = calls(endpoint, timeout_s=600.0, retries=1)
    with ThreadPoolExecutor() as pool:
        done = pool.submit(list, made.make(bodies(4)))
        router.recv_multipart()
        router.close(linger=0)
        service(upper, endpoint)
        assert done.result(60) == list(bodies(4))


def test_a_service_that_is_lost_too_often(mute, context):
    router, endpoint = mute
    made = calls(endpoint, timeout_s=600.0, retries=0)
    with ThreadPoolExecutor() as pool:
        done = pool.submit(list, made.make(bodies(1)))
        router.recv_multipart()
        router.close(linger=0)
        with pytest.raises(RpcTimeout, match="was lost before it replied; this was attempt 1"):
            done.result(60)


def test_late_replies_do_not_count_twice(mute, background):
    router, endpoint = mute

    def answers_everything_twice():
        for _ in range(20):
            *envelope, body = router.recv_multipart()
            for _ in range(2):
                router.send_multipart([*envelope, body])

    background(answers_everything_twice)
    assert list(calls(endpoint).make(bodies(20))) == list(bodies(20))


def test_any_rep_socket_is_a_service(bound, background):
    rep, endpoint = bound(zmq.REP)

    def work():
        for _ in range(50):
            rep.send(rep.recv() + b"?")

    background(work)
    assert list(calls(endpoint).make(bodies(50))) == [b"%d?" % number for number in range(50)]


def test_malformed_replies(bound, background):
    rep, endpoint = bound(zmq.REP)
    background(lambda: rep.recv() and rep.send_multipart([b"a", b"b", b"c"]))
    with pytest.raises(RpcError, match="4 frames after the request's number"):
        list(calls(endpoint).make(bodies(1)))


def test_any_req_socket_is_a_caller(context, service):
    req = context.socket(zmq.REQ)
    req.rcvtimeo = 60_000
    req.connect(service(upper).endpoint)
    req.send(b"shout")
    assert req.recv() == b"SHOUT"
    req.send_multipart([b"a", b"b"])
    error, text = req.recv_multipart()
    assert error == b"error" and b"a request has one frame, this one has 2" in text


def test_a_message_without_an_envelope_is_dropped(context, service):
    dealer = context.socket(zmq.DEALER)
    dealer.rcvtimeo = 60_000
    dealer.connect(service(upper).endpoint)
    dealer.send(b"no envelope")
    dealer.send_multipart([b"", b"one"])
    assert dealer.recv_multipart() == [b"", b"ONE"]


def test_curve(service, monkeypatch):
    server_public, server_secret = zmq.curve_keypair()
    public, secret = zmq.curve_keypair()
    monkeypatch.setenv("SECRET", secret.decode())
    monkeypatch.setenv("SERVER_SECRET", server_secret.decode())
    started = service(upper, options={"curve_server": "1", "curve_secretkey": "env:SERVER_SECRET"})
    keys = {
        "curve_serverkey": server_public.decode(),
        "curve_publickey": public.decode(),
        "curve_secretkey": "env:SECRET",
    }
    assert list(calls(started, options=tuple(keys.items())).make(bodies(3))) == list(bodies(3))


def test_options_that_do_not_exist(service):
    wrong = {"curve_serverkye": "x"}
    with pytest.raises(ValueError, match=r"'curve_serverkye'; did you mean 'curve_serverkey'\?"):
        service(upper, options=wrong)
    with pytest.raises(ValueError, match="no socket option 'curve_serverkye'"):
        list(calls("tcp://127.0.0.1:9", options=tuple(wrong.items())).make(bodies(1)))
    with pytest.raises(ValueError, match="threads is 0; it should be at least 1"):
        service(upper, threads=0)


def test_streams():
    batch = pa.record_batch({"a": [1, 2], "b": ["x", None]})
    assert from_stream(to_stream(batch)) == batch
    assert from_stream(to_stream(batch.slice(1))) == batch.slice(1)
    assert from_stream(to_stream(batch.slice(0, 0))).num_rows == 0


def test_a_table_that_no_batch_holds():
    size = 1_200_000_000
    # Memory that is never touched does not exist.
    parts = [None, pa.py_buffer(struct.pack("<ii", 0, size)), pa.py_buffer(mmap.mmap(-1, size))]
    half = pa.Array.from_buffers(pa.binary(), 1, parts)
    with pytest.raises(ValueError, match="2 rows are more than one record batch holds"):
        one_batch(pa.table({"a": pa.chunked_array([half, half])}))
    assert one_batch(pa.table({"a": half})).num_rows == 1


# With Spark


def double(batch):
    return pa.record_batch({"id": batch["id"], "twice": pc.multiply(batch["id"], 2)})


@pytest.fixture
def small_batches(spark):
    spark.conf.set("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    yield
    spark.conf.unset("spark.sql.execution.arrow.maxRecordsPerBatch")


def test_batches(spark, service, small_batches):
    endpoints = [service(double, unit="batch").endpoint for _ in range(2)]
    frame = rpc(spark.range(10_000), ",".join(endpoints), "twice bigint, id bigint", timeout=60)
    assert frame.columns == ["twice", "id"]
    rows = frame.collect()
    # In the order of the requests.
    assert [row.id for row in rows] == list(range(10_000))
    assert all(row.twice == 2 * row.id for row in rows)


def test_a_service_may_change_the_number_of_rows(spark, service, small_batches):
    def even(batch):
        return pa.table(batch.filter(pc.equal(pc.bit_wise_and(batch["id"], 1), 0)))

    frame = rpc(spark.range(2_000), [service(even, unit="batch").endpoint], "id int", timeout=60)
    assert frame.agg(f.count("*"), f.sum("id")).first() == (1000, sum(range(0, 2000, 2)))


def test_messages(spark, service):
    rows = spark.range(5_000).select("id", f.concat(f.lit("a"), "id").alias("value"))
    endpoint = service(upper).endpoint
    answered = rpc(rows, endpoint, "id bigint, reply string", unit="message", timeout=60)
    assert all(row.reply == f"A{row.id}" for row in answered.collect())
    answered = rpc(rows, endpoint, "value binary", unit="message", window=1, timeout=60)
    assert answered.limit(1).first() == (b"A0",)


def test_inside_a_stream(spark, service, tmp_path):
    source = tmp_path / "in"
    spark.range(100).write.json(str(source))
    endpoint = service(double, unit="batch").endpoint
    stream = spark.readStream.schema("id bigint").json(str(source))
    query = (
        rpc(stream, endpoint, "id bigint, twice bigint", timeout=60)
        .writeStream.format("parquet")
        .option("path", str(tmp_path / "out"))
        .option("checkpointLocation", str(tmp_path / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    assert query.awaitTermination(60)
    out = spark.read.parquet(str(tmp_path / "out"))
    assert out.agg(f.count("*"), f.sum("twice")).first() == (100, 9900)


def test_errors_reach_the_query(spark, service):
    def fails(batch):
        raise LookupError("no model")

    endpoint = service(fails, unit="batch").endpoint
    with pytest.raises(PySparkException, match=r"(?s)RpcError.*LookupError: no model"):
        rpc(spark.range(1), endpoint, "id bigint", timeout=60).collect()
    endpoint = service(double, unit="batch").endpoint
    with pytest.raises(PySparkException, match="the reply has no column score, only id, twice"):
        rpc(spark.range(1), endpoint, "score double", timeout=60).collect()
    with pytest.raises(PySparkException, match="the reply does not fit struct<twice:tinyint>"):
        rpc(spark.range(200), endpoint, "twice tinyint", timeout=60).collect()


@pytest.mark.parametrize(
    ("value", "kind", "said"),
    [
        (None, "bigint NOT NULL", "'id' is null in 1 of 1 values.*leave NOT NULL out"),
        (1e300, "float", r"too large for a float.*such as 1e\+300: use double"),
        ({"a": 1}, "bigint", "Unsupported cast.*Convert column 'id'"),
    ],
)
def test_replies_that_do_not_fit_are_errors_of_the_call(spark, service, value, kind, said):
    endpoint = service(lambda batch: pa.record_batch({"id": [value]}), unit="batch").endpoint
    with pytest.raises(PySparkException, match=f"RpcError: .*{said}"):
        rpc(spark.range(1), endpoint, f"id {kind}", timeout=60).collect()


def test_wrong_arguments(spark):
    rows = spark.range(1)
    values = rows.selectExpr("id", "'a' AS value")
    with pytest.raises(ValueError, match="endpoint is empty"):
        rpc(rows, " , ", "id bigint")
    with pytest.raises(ValueError, match="batch, message"):
        rpc(rows, "tcp://a:1", "id bigint", unit="row")
    with pytest.raises(ValueError, match="at least 1"):
        rpc(rows, "tcp://a:1", "id bigint", window=0)
    with pytest.raises(ValueError, match="a number of seconds above 0"):
        rpc(rows, "tcp://a:1", "id bigint", timeout=0)
    with pytest.raises(ValueError, match="retries is -1"):
        rpc(rows, "tcp://a:1", "id bigint", retries=-1)
    with pytest.raises(ValueError, match="no socket option 'rcvhmw'; did you mean 'rcvhwm'"):
        rpc(rows, "tcp://a:1", "id bigint", options={"rcvhmw": "1"})
    with pytest.raises(ValueError, match="sends the column 'value'; there is id"):
        rpc(rows, "tcp://a:1", "reply binary", unit="message")
    with pytest.raises(ValueError, match="has none besides id, value"):
        rpc(values, "tcp://a:1", "id bigint", unit="message")
    with pytest.raises(ValueError, match="has a, b besides"):
        rpc(values, "tcp://a:1", "a binary, b binary", unit="message")
    with pytest.raises(ValueError, match="'a' is integer, not string or binary"):
        rpc(values, "tcp://a:1", "a int", unit="message")
    with pytest.raises(ValueError, match="batch, message"):
        Service(upper, LOCAL, unit="row")
