"""Frames and trackers."""

import copy
import gc
import threading

import pytest

BIG = 100_000


def test_nothing(zmq):
    frame = zmq.Frame()
    assert (frame.bytes, len(frame), frame.more, frame.tracker) == (b"", 0, False, None)


@pytest.mark.parametrize("data", [b"abc", bytearray(b"abc"), memoryview(b"abc")], ids=type)
@pytest.mark.parametrize("copied", [None, True, False])
def test_forms(zmq, data, copied):
    frame = zmq.Frame(data, copy=copied)
    assert frame.bytes == bytes(frame) == b"abc"
    assert len(frame) == 3
    assert frame.buffer == b"abc"
    assert bytes(frame.buffer) == b"abc"


@pytest.mark.parametrize("data", ["text", 5, [b"x"], object()], ids=repr)
def test_no_data(zmq, data):
    with pytest.raises(TypeError):
        zmq.Frame(data)


def test_positional_arguments(zmq):
    frame = zmq.Frame(b"abc", True, False, 0)
    assert isinstance(frame.tracker, zmq.MessageTracker)


def test_bytes_are_created_once(zmq):
    frame = zmq.Frame(b"abc" * 100)
    assert frame.bytes is frame.bytes
    assert type(frame.bytes) is bytes


def test_view(zmq):
    view = memoryview(zmq.Frame(b"0123456789"))
    assert (view.format, view.ndim, view.shape, view.itemsize) == ("B", 1, (10,), 1)
    assert view.contiguous
    assert bytes(view[2:4]) == b"23"
    assert view.tolist()[:2] == [48, 49]


def test_views_are_writable(zmq):
    frame = zmq.Frame(bytearray(b"abc"))
    assert not frame.buffer.readonly
    frame.buffer[0] = ord("x")
    assert frame.bytes == b"xbc"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "b''"),
        (16, "b'xxxxxxxxxxxxxxxx'"),
        (17, "b'xxxxxxxxxxxx'...17B"),
        (999, "b'xxxxxxxxxxxx'...999B"),
        (1000, "b'xxxxxxxxxxxx'...1kB"),
        (1_000_000, "b'xxxxxxxxxxxx'...1000kB"),
        (2_000_000, "b'xxxxxxxxxxxx'...2MB"),
    ],
)
def test_repr(zmq, size, text):
    frame = zmq.Frame(b"x" * size)
    assert repr(frame) == str(frame) == f"<zmq.Frame({text})>"


def test_repr_of_bytes_that_are_not_text(zmq):
    assert repr(zmq.Frame(b"\x00\xff'")) == '<zmq.Frame(b"\\x00\\xff\'")>'


def test_copies(zmq):
    frame = zmq.Frame(b"x" * BIG)
    other = copy.copy(frame)
    assert other is not frame
    assert other.bytes == frame.bytes
    assert len(other) == BIG


def test_not_equal_by_content(zmq):
    one, other = zmq.Frame(b"x"), zmq.Frame(b"x")
    assert one == one
    assert one != other
    assert {one, other, one} == {one, other}


def test_properties_by_number(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"a", b"b"])
    first, second = pull.recv_multipart(copy=False)
    assert first.get(zmq.MORE) == first[zmq.MORE] == 1
    assert second.get(zmq.MORE) == 0


def test_properties_by_name(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"x")
    frame = pull.recv(copy=False)
    assert frame.get("Socket-Type") == frame["Socket-Type"] == "PUSH"
    assert frame["Peer-Address"] == "127.0.0.1"


def test_routing_id_of_the_peer(zmq, sockets):
    dealer = sockets.bound(zmq.DEALER)
    other = sockets.connected(zmq.DEALER, dealer, routing_id=b"name")
    other.send(b"x")
    assert dealer.recv(copy=False)["Identity"] == "name"


@pytest.mark.parametrize("name", ["User-Id", "X-Unknown", "nonsense"])
def test_unknown_properties(zmq, sockets, name):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"x")
    frame = pull.recv(copy=False)
    with pytest.raises(zmq.ZMQError) as caught:
        frame.get(name)
    assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("number", [9999, -5])
def test_unknown_numbers(zmq, number):
    with pytest.raises(zmq.ZMQError):
        zmq.Frame(b"x").get(number)


@pytest.mark.differs("pyzmq's wheels have no drafts")
def test_drafts(zmq):
    assert zmq.Frame(b"x").group == ""


def test_send_keeps_the_frame(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    frame = zmq.Frame(b"x" * BIG)
    for copied in (True, False, True, False):
        push.send(frame, copy=copied)
    for _ in range(4):
        assert pull.recv() == b"x" * BIG
    assert frame.bytes == b"x" * BIG


def test_forwarded(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    there, here = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"a", b"b" * BIG])
    here.send_multipart(pull.recv_multipart(copy=False), copy=False)
    assert there.recv_multipart() == [b"a", b"b" * BIG]


def test_outlives_its_socket(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"x" * BIG)
    view = pull.recv(copy=False).buffer
    pull.close()
    push.close()
    gc.collect()
    assert bytes(view) == b"x" * BIG


def test_numpy(zmq, sockets):
    numpy = pytest.importorskip("numpy")
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(numpy.arange(1000, dtype="i4").reshape(10, 100), copy=False)
    array = numpy.frombuffer(pull.recv(copy=False), dtype="i4").reshape(10, 100)
    array += 1
    assert array[9, 99] == 1000


# ---- trackers -----------------------------------------------------------------------


def test_no_tracker_unless_requested(zmq, sockets):
    _pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    assert push.send(b"x" * BIG, copy=False) is None
    assert push.send(b"x" * BIG, copy=True, track=True) is None
    assert push.send(zmq.Frame(b"x")) is None


def test_small_messages_are_done_at_once(zmq, sockets):
    _pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    tracker = push.send(b"x", copy=False, track=True)
    assert tracker.done
    assert tracker.wait() is None
    assert tracker is zmq._FINISHED_TRACKER


def test_done_when_sent(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    tracker = push.send(b"x" * BIG, copy=False, track=True)
    pull.recv()
    tracker.wait(10)
    assert tracker.done is True


def test_not_done(zmq, context):
    with context.socket(zmq.PUSH) as push:
        push.connect("tcp://127.0.0.1:1")
        tracker = push.send(b"x" * BIG, copy=False, track=True)
        assert tracker.done is False
        for timeout in (0, 0.001):
            with pytest.raises(zmq.NotDone):
                tracker.wait(timeout)
        push.close(linger=0)
        tracker.wait(timeout=10)


def test_frame_with_tracker(zmq):
    frame = zmq.Frame(b"x" * BIG, copy=False, track=True)
    tracker = frame.tracker
    assert not tracker.done
    del frame
    gc.collect()
    tracker.wait(10)


def test_copied_frame_with_tracker(zmq):
    assert zmq.Frame(b"x" * BIG, copy=True, track=True).tracker.done


def test_tracker_of_the_untracked(zmq, sockets):
    _pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    frame = zmq.Frame(b"x" * BIG, track=False)
    with pytest.raises(ValueError):
        zmq.MessageTracker(frame)
    with pytest.raises(ValueError):
        push.send(frame, copy=False, track=True)


def test_tracker_of_nothing(zmq):
    assert zmq.MessageTracker().done


@pytest.mark.parametrize("thing", [5, "x", None])
def test_tracker_of_invalid_objects(zmq, thing):
    with pytest.raises(TypeError):
        zmq.MessageTracker(thing)


def test_tracker_of_events_and_trackers(zmq):
    one, other = threading.Event(), threading.Event()
    inner = zmq.MessageTracker(one)
    outer = zmq.MessageTracker(inner, other)
    assert (inner.done, outer.done) == (False, False)
    one.set()
    assert (inner.done, outer.done) == (True, False)
    with pytest.raises(zmq.NotDone):
        outer.wait(0.001)
    other.set()
    outer.wait()
    assert outer.done
