"""The live reader as plain Python: real sockets, no JVM."""

import os
import tempfile
import time
import uuid
from itertools import pairwise

import pytest
from pyspark import TaskContext

import zeroxide as zmq
from zeroxide.spark import _claims as claims
from zeroxide.spark import _live as live
from zeroxide.spark import _sockets as sockets
from zeroxide.spark._live import EndpointPartition
from zeroxide.spark._schema import arrow_schema
from zeroxide.spark.source import ZeroMQDataSource


def read(endpoint, columns=None, **options):
    """All rows of one partition, and their batches."""
    source = ZeroMQDataSource(
        {"mode": "live", "endpoint": endpoint, "timeoutMs": "60000"} | options
    )
    schema = source.schema()
    reader = source.reader(schema)
    (partition,) = reader.partitions()
    batches = list(reader.read(partition))
    for batch in batches:
        assert batch.schema.equals(arrow_schema(schema))
        batch.validate(full=True)
    return [row for batch in batches for row in batch.to_pylist()], batches


def values(rows):
    return [row["value"] for row in rows]


def test_until_the_end_of_the_stream(bound, background):
    push, endpoint = bound(zmq.PUSH)
    bodies = [b"%d" % number for number in range(50_000)]

    def feed():
        for first in range(0, len(bodies), 1000):
            push.send_batch(bodies[first : first + 1000])
        push.send(b"")
        push.send(b"END")

    background(feed)
    started = time.time()
    rows, batches = read(endpoint, endOfStream="END")
    assert values(rows) == [*bodies, b""]
    assert {row["topic"] for row in rows} == {None}
    stamps = [row["timestamp"].timestamp() for row in rows]
    assert all(earlier <= later for earlier, later in pairwise(stamps))
    assert started - 1 <= stamps[0] <= stamps[-1] <= time.time() + 1
    assert len(batches) < 100


def test_messages_after_the_end_are_not_read(bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_batch([b"a", b"END", b"b", b"END", b"c"]))
    rows, _ = read(endpoint, endOfStream="END")
    assert values(rows) == [b"a"]


def test_max_rows_takes_no_more(bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_batch([b"x"] * 500))
    rows, _ = read(endpoint, maxRows="300")
    assert len(rows) == 300


def test_max_bytes(bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_batch([b"x" * 1000] * 500))
    rows, _ = read(endpoint, maxBytes="100000")
    assert 100 <= len(rows) <= 200


def test_timeout_ends_a_partition_with_the_received_rows(bound, background, caplog):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_batch([b"a", b"b"]))
    started = time.monotonic()
    rows, _ = read(endpoint, timeoutMs="3000", endOfStream="END")
    assert time.monotonic() - started > 2.9
    assert values(rows) == [b"a", b"b"]
    # Other limits were set, so reaching the timeout is logged.
    assert "ended by timeoutMs after 2 messages" in caplog.text


def test_no_messages(bound):
    _, endpoint = bound(zmq.PUSH)
    assert read(endpoint, timeoutMs="200")[0] == []


def test_sub_with_prefixes(bound, background):
    xpub, endpoint = bound(zmq.XPUB)

    def feed():
        assert {xpub.recv(), xpub.recv()} == {b"\x01a", b"\x01b"}
        for topic in (b"a1", b"b1", b"c1", b"a2"):
            xpub.send_multipart([topic, b"v" + topic])
        xpub.send_multipart([b"a", b"END"])

    background(feed)
    rows, _ = read(endpoint, socket="sub", subscribe="a,b", endOfStream="END")
    assert [(row["topic"], row["value"]) for row in rows] == [
        ("a1", b"va1"),
        ("b1", b"vb1"),
        ("a2", b"va2"),
    ]


def test_bound_reader(context, background, tmp_path):
    endpoint = f"ipc://{tmp_path}/flights"
    push = context.socket(zmq.PUSH)
    push.connect(endpoint)
    background(lambda: push.send_batch([b"a", b"END"]))
    assert values(read(endpoint, attach="bind", endOfStream="END")[0]) == [b"a"]


def test_frames(bound, background):
    push, endpoint = bound(zmq.PUSH)
    messages = [[b"a"], [b"b", b"c", b"d"]]
    background(lambda: push.send_batch([*messages, [b"END"]]))
    rows, _ = read(endpoint, includeFrames="true", endOfStream="END")
    assert [row["frames"] for row in rows] == messages
    assert values(rows) == [b"a", b"d"]


def test_unexpected_frames_fail_the_read(bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_multipart([b"a", b"b"]))
    with pytest.raises(ValueError, match="includeFrames=true"):
        read(endpoint)


def test_batches_follow_the_size_of_messages(bound, background):
    push, endpoint = bound(zmq.PUSH)
    body = bytes(1 << 20)
    background(lambda: push.send_batch([*[body] * 60, b"END"]))
    rows, batches = read(endpoint, endOfStream="END")
    assert len(rows) == 60
    assert max(batch.nbytes for batch in batches[1:]) < 3 * live.BATCH_BYTES


def test_batches_that_are_too_large_for_a_column_are_split(bound, background, monkeypatch):
    monkeypatch.setattr(live, "COLUMN_BYTES", 250)
    push, endpoint = bound(zmq.PUSH)
    bodies = [b"%03d" % number * size for number, size in enumerate([30, 30, 30, 200, 1, 1])]
    background(lambda: push.send_batch([*bodies, b"END"]))
    rows, batches = read(endpoint, endOfStream="END")
    assert values(rows) == bodies
    assert [batch.num_rows for batch in batches] == [2, 1, 1, 2]


def test_a_message_no_column_holds(bound, background, monkeypatch):
    monkeypatch.setattr(live, "COLUMN_BYTES", 50)
    monkeypatch.setattr(live, "LARGEST", 100)
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send_batch([bytes(101), b"END"]))
    with pytest.raises(ValueError, match=r"101 bytes, .*zmq\.maxmsgsize"):
        read(endpoint, endOfStream="END")


def test_socket_options_reach_the_socket(bound, background, monkeypatch):
    seen = []
    close = zmq.Socket.close

    def closing(socket, *arguments, **more):
        if not socket.closed and socket.type == zmq.PULL:
            seen.append((socket.rcvhwm, socket.routing_id, socket.maxmsgsize))
        return close(socket, *arguments, **more)

    monkeypatch.setattr(zmq.Socket, "close", closing)
    monkeypatch.setenv("READER_NAME", "seven")
    _, endpoint = bound(zmq.PUSH)
    zmq_options = {"zmq.rcvhwm": "7", "zmq.ROUTING_ID": "env:READER_NAME", "zmq.maxmsgsize": "99"}
    read(endpoint, timeoutMs="100", **zmq_options)
    assert seen == [(7, b"seven", 99)]


def test_a_socket_option_with_a_bad_value(bound):
    with pytest.raises(ValueError, match=r"zmq\.rcvhwm' is 'many'; it should be a whole number"):
        read(bound(zmq.PUSH)[1], **{"zmq.rcvhwm": "many"})
    with pytest.raises(ValueError, match=r"zmq\.rcvhwm' cannot be '-5'"):
        read(bound(zmq.PUSH)[1], **{"zmq.rcvhwm": "-5"})
    with pytest.raises(ValueError, match="no NOT_SET in the environment"):
        read(bound(zmq.PUSH)[1], **{"zmq.routing_id": "env:NOT_SET"})


def test_one_partition_per_endpoint():
    reader = ZeroMQDataSource({"mode": "live", "endpoint": "tcp://a:1,tcp://b:2"}).reader(
        ZeroMQDataSource({"mode": "live", "endpoint": "tcp://a:1"}).schema()
    )
    partitions = reader.partitions()
    assert all(isinstance(partition, EndpointPartition) for partition in partitions)
    assert [partition.endpoint for partition in partitions] == ["tcp://a:1", "tcp://b:2"]


def test_an_abandoned_read_closes_its_socket(bound, background):
    push, endpoint = bound(zmq.PUSH)
    source = ZeroMQDataSource({"mode": "live", "endpoint": endpoint})
    reader = source.reader(source.schema())
    background(lambda: push.send_batch([b"x"] * 100))
    rows = reader.read(reader.partitions()[0])
    next(rows)
    rows.close()
    assert not [s for s in sockets.context()._sockets if not s.closed and s.type == zmq.PULL]


def test_a_second_attempt_refuses_to_read(bound, monkeypatch):
    # The constructor registers itself there.
    monkeypatch.setattr(TaskContext, "_taskContext", None)
    task = TaskContext()
    task._attemptNumber, task._localProperties = 1, {}
    with pytest.raises(RuntimeError, match="cannot be repeated: with mode=live"):
        read(bound(zmq.PUSH)[1])


def test_a_partition_is_read_once(bound, background):
    push, endpoint = bound(zmq.PUSH)
    background(lambda: push.send(b"END"))
    source = ZeroMQDataSource({"mode": "live", "endpoint": endpoint, "endOfStream": "END"})
    reader = source.reader(source.schema())
    (partition,) = reader.partitions()
    assert list(reader.read(partition)) == []
    with pytest.raises(RuntimeError, match="was already read by this query"):
        list(reader.read(partition))


def claim_name(number):
    return f"{uuid.UUID(int=number).hex}-0-None"


@pytest.fixture
def claimed(monkeypatch, tmp_path):
    """The folder of claims, which does not exist yet."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path / f"zeroxide-live-{os.getuid()}"


def test_claims_are_forgotten_after_a_day(claimed):
    assert claims.claim(claim_name(1))
    assert not claims.claim(claim_name(1))
    os.utime(claimed / claim_name(1), (0, 0))
    assert claims.claim(claim_name(2))
    assert [file.name for file in claimed.iterdir()] == [claim_name(2)]


def test_only_claims_are_forgotten(claimed):
    assert claims.claim(claim_name(1))
    (claimed / "notes").write_text("mine")
    (claimed / claim_name(2)).mkdir()
    (claimed / claim_name(3)).symlink_to(claimed / "notes")
    for file in claimed.iterdir():
        os.utime(file, (0, 0), follow_symlinks=False)
    assert claims.claim(claim_name(4))
    left = {file.name for file in claimed.iterdir()}
    assert left == {"notes", *map(claim_name, (2, 3, 4))}


def test_a_folder_of_claims_that_others_could_change_is_refused(claimed, monkeypatch, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / claim_name(1)).touch()
    os.utime(elsewhere / claim_name(1), (0, 0))

    claimed.symlink_to(elsewhere)
    with pytest.raises(
        PermissionError, match=f"{claimed} is not a folder: remove it, or set TMPDIR"
    ):
        claims.claim(claim_name(2))
    assert [file.name for file in elsewhere.iterdir()] == [claim_name(1)]

    claimed.unlink()
    claimed.touch()
    with pytest.raises(PermissionError, match="is not a folder"):
        claims.claim(claim_name(2))

    claimed.unlink()
    claimed.mkdir()
    for mode in (0o720, 0o702):
        claimed.chmod(mode)
        with pytest.raises(PermissionError, match="can be changed by other users"):
            claims.claim(claim_name(2))
    claimed.chmod(0o755)
    assert claims.claim(claim_name(2))

    stranger = os.getuid() + 1
    (tmp_path / f"zeroxide-live-{stranger}").mkdir()
    monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(PermissionError, match="belongs to another user"):
        claims.claim(claim_name(2))


def test_stream_reads_name_the_option_they_need():
    source = ZeroMQDataSource({"mode": "live", "endpoint": "tcp://a:1"})
    with pytest.raises(ValueError, match="a socket gives nothing twice"):
        source.streamReader(source.schema()).initialOffset()
