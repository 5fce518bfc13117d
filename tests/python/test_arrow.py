"""Tables over sockets: with any Arrow library, or none."""

import asyncio
import random
import subprocess
import sys

import pytest

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture(scope="session")
def pa():
    return pytest.importorskip("pyarrow")


@pytest.fixture
def table(pa):
    return pa.table(
        {
            "number": pa.array([1, 2, None]),
            "text": ["x", "y", "a longer text"],
            "list": [[1], [], None],
            "word": pa.array(["a", "b", "a"]).dictionary_encode(),
        }
    )


def test_a_table_is_a_message(zmq, sockets, transport, pa, table):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send_arrow(table)
    received = pull.recv_arrow()
    assert pa.table(received) == table
    assert (len(received), received.num_rows, received.num_batches) == (3, 3, 1)
    assert received.column_names == table.column_names
    assert "3 rows: number, text, list, word" in repr(received)
    assert received.nbytes > 0
    push.send_arrow(received)
    assert pa.table(pull.recv_arrow()) == table


def test_every_form_of_a_table(zmq, sockets, pa, table):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    batches = pa.concat_tables([table, table])
    push.send_arrow(batches)
    received = pull.recv_arrow()
    assert received.num_batches == 2
    assert pa.table(received).equals(batches)
    assert [pa.table(batch) for batch in received.batches()] == [table, table]
    assert pa.record_batch(received).num_rows == 6
    assert pa.schema(received) == table.schema
    for data, expected in [
        (table.to_batches()[0], table),
        (table.to_reader(), table),
        (table.slice(1, 1), table.slice(1, 1)),
        (table.slice(0, 0), table.slice(0, 0)),
        (pa.array([1, 2]), pa.table({"value": [1, 2]})),
        (pa.chunked_array([[1], [2, 3]]), pa.table({"value": [1, 2, 3]})),
        (table.to_struct_array().combine_chunks(), table),
        (pa.table({}), pa.table({})),
    ]:
        push.send_arrow(data)
        assert pa.table(pull.recv_arrow()).equals(expected)


def test_pandas_and_other_libraries(zmq, sockets, pa):
    pandas = pytest.importorskip("pandas", minversion="2.2")
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_arrow(pandas.DataFrame({"a": [1, 2]}))
    assert pa.table(pull.recv_arrow()).column("a").to_pylist() == [1, 2]


def test_objects_that_are_not_tables_are_refused(zmq, sockets, pa):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for thing in (7, b"bytes", None, object()):
        with pytest.raises(TypeError, match="does not support the Arrow C data interface"):
            push.send_arrow(thing)
    rows_of_nulls = pa.array([None, {"a": 1}], pa.struct({"a": pa.int64()}))
    with pytest.raises(ValueError, match="null as a whole"):
        push.send_arrow(rows_of_nulls)
    for body in (b"", b"hello", b"\xff" * 100, b"\x00" * 8):
        push.send(body)
        with pytest.raises(ValueError, match="not a table"):
            pull.recv_arrow()
    with pytest.raises(zmq.Again):
        pull.recv_arrow(zmq.DONTWAIT)


def test_malicious_tables_are_refused(zmq, sockets, pa, table):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_arrow(table)
    message = pull.recv()
    made_up = random.Random(7)
    for _ in range(2000):
        body = bytearray(message)
        for _ in range(made_up.randint(1, 4)):
            body[made_up.randrange(len(body))] = made_up.randrange(256)
        push.send(body)
        try:
            received = pull.recv_arrow()
        except ValueError:
            continue
        pa.table(received).validate(full=True)


def test_messages_become_rows(zmq, sockets, transport, pa):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    bodies = [b"%d" % number for number in range(500)]
    push.send_batch(bodies)
    received = []
    while len(received) < 500:
        rows = pa.table(pull.recv_batch_arrow(500 - len(received)))
        assert rows.schema == pa.schema([pa.field("value", pa.binary(), nullable=False)])
        received += rows.column("value").to_pylist()
    assert received == bodies


def test_rows_become_messages(zmq, sockets, pa):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for column in (
        pa.array([b"a", b"bb"]),
        pa.array(["a", "bb"]),
        pa.array([b"a", b"bb"], pa.large_binary()),
        pa.array(["a", "bb"], pa.large_string()),
        pa.array(["a", "bb"], pa.string_view()),
        pa.chunked_array([[b"a"], [b"bb"]]),
    ):
        for data in (column, pa.table({"other": [1, 2], "value": column})):
            assert push.send_batch_arrow(data) == 2
            assert [pull.recv(), pull.recv()] == [b"a", b"bb"]
    assert push.send_batch_arrow(pa.array([], pa.binary())) == 0
    parts = pa.table({"frames": [[b"a", b"b"], [b"c"]]})
    assert push.send_batch_arrow(parts) == 2
    assert [pull.recv_multipart(), pull.recv_multipart()] == [[b"a", b"b"], [b"c"]]
    for data, complaint in [
        (pa.table({"text": ["a"]}), "no column named value"),
        (pa.array([1]), "not bytes or text"),
        (pa.array([b"a", None]), "a null"),
        (pa.table({"frames": [[b"a"], []]}), "at least one part"),
        (pa.table({"frames": [b"a"]}), "not a list"),
    ]:
        with pytest.raises(ValueError, match=complaint):
            push.send_batch_arrow(data)


def test_parts_limits_and_times(zmq, sockets, pa):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_batch([[b"topic", b"one"], [b"two"], [b"x" * 1000] * 3])
    received = []
    while len(received) < 3:
        rows = pa.table(pull.recv_batch_arrow(3 - len(received), frames=True))
        received += rows.to_pylist()
    assert received == [
        {"value": b"one", "frames": [b"topic", b"one"]},
        {"value": b"two", "frames": [b"two"]},
        {"value": b"x" * 1000, "frames": [b"x" * 1000] * 3},
    ]
    push.send_batch([b"y" * 1000] * 300)
    counts = []
    while sum(counts) < 300:
        counts.append(len(pull.recv_batch_arrow(max_bytes=20_000)))
    assert max(counts) <= 80
    push.send_multipart([b"first", b"second", b"third"])
    assert pull.recv() == b"first"
    rest = pa.table(pull.recv_batch_arrow(frames=True)).to_pylist()
    assert rest == [{"value": b"third", "frames": [b"second", b"third"]}]
    for call in (
        lambda: pull.recv_batch_arrow(timeout=0),
        lambda: pull.recv_batch_arrow(timeout=20),
        lambda: pull.recv_batch_arrow(flags=zmq.DONTWAIT),
    ):
        with pytest.raises(zmq.Again):
            call()
    for wrong in ({"max_rows": 0}, {"max_bytes": 0}, {"max_rows": -1}):
        with pytest.raises(ValueError, match="at least 1"):
            pull.recv_batch_arrow(**wrong)


@pytest.mark.parametrize("frames", [False, True])
def test_a_message_that_does_not_fit_does_not_affect_others(zmq, sockets, pa, frames):
    """Over inproc, with memory that is never touched, so the gigabyte is never allocated."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    huge = bytes((1 << 30) + 1)
    for body in (b"a", b"b", huge, b"c", huge, huge, b"d"):
        push.send(body, copy=False)

    def values():
        return pa.table(pull.recv_batch_arrow(frames=frames))["value"].to_pylist()

    def fails():
        with pytest.raises(ValueError, match="1 GiB"):
            pull.recv_batch_arrow(frames=frames)

    assert values() == [b"a", b"b"]
    fails()
    assert values() == [b"c"]
    # Every way of receiving gets the remaining messages.
    assert len(pull.recv(copy=False)) == len(huge)
    fails()
    assert values() == [b"d"]


def test_rows_without_a_receiver_are_refused(zmq, context, pa):
    push = context.socket(zmq.PUSH)
    push.sndtimeo = 0
    with pytest.raises(zmq.Again):
        push.send_batch_arrow(pa.array([b"a"]))


def test_asyncio(zmq, pa, table):
    async def main():
        with zmq.asyncio.Context() as context:
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            pull.rcvtimeo = push.sndtimeo = 20_000
            port = pull.bind_to_random_port("tcp://127.0.0.1")
            push.connect(f"tcp://127.0.0.1:{port}")
            receiving = asyncio.ensure_future(pull.recv_arrow())
            await push.send_arrow(table)
            assert pa.table(await receiving) == table
            assert await push.send_batch_arrow(pa.array([b"a", b"b"])) == 2
            rows = []
            while len(rows) < 2:
                rows += pa.table(await pull.recv_batch_arrow(frames=True)).to_pylist()
            assert rows == [{"value": b"a", "frames": [b"a"]}, {"value": b"b", "frames": [b"b"]}]
            pull.close(0)
            push.close(0)

    import zeroxide.asyncio  # noqa: F401

    asyncio.run(main())


def test_gevent(zmq):
    pytest.importorskip("gevent")
    pytest.importorskip("pyarrow")
    code = """if True:
        import gevent, pyarrow as pa
        import zeroxide.green as zmq
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.rcvtimeo = 20_000
        port = pull.bind_to_random_port("tcp://127.0.0.1")
        push.connect(f"tcp://127.0.0.1:{port}")
        waiting = gevent.spawn(pull.recv_batch_arrow, 1)
        gevent.sleep(0)
        assert push.send_batch_arrow(pa.array([b"a"])) == 1
        assert pa.table(waiting.get()).to_pylist() == [{"value": b"a"}]
        context.destroy(0)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_no_arrow_library_is_needed(zmq, tmp_path):
    code = """if True:
        import sys
        for name in ("pyarrow", "pandas", "polars", "numpy", "nanoarrow"):
            sys.modules[name] = None
        import zeroxide as zmq
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.rcvtimeo = 20_000
        pull.bind("inproc://here")
        push.connect("inproc://here")
        push.send_batch([b"a", b"b"])
        rows = pull.recv_batch_arrow()
        assert rows.num_rows == 2 and rows.column_names == ["value"]
        push.send_arrow(rows)
        again = pull.recv_arrow()
        schema, array = again.__arrow_c_array__()
        assert "arrow_schema" in repr(schema) and "arrow_array" in repr(array)
        assert "arrow_array_stream" in repr(again.__arrow_c_stream__())
        class Foreign:
            def __arrow_c_array__(self, requested_schema=None):
                return schema, array
        push.send_batch_arrow(Foreign())
        assert [pull.recv(), pull.recv()] == [b"a", b"b"]
        try:
            push.send_batch_arrow(Foreign())
        except ValueError as error:
            assert "already consumed or released" in str(error)
        else:
            raise AssertionError("an array is taken once")
        class Wrong:
            def __arrow_c_stream__(self, requested_schema=None):
                return schema
        try:
            push.send_arrow(Wrong())
        except Exception as error:
            assert "arrow_schema" in str(error) or "name" in str(error), error
        else:
            raise AssertionError("a schema is no stream")
        context.destroy(0)
    """
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
