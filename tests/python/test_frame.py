"""Frames: a frame is one part of a message, in shared memory."""

import copy
import gc
import io
import weakref

import pytest


def test_objects_that_make_a_frame(zmq):
    assert zmq.Frame().bytes == b""
    for data in (b"bytes", bytearray(b"bytes"), memoryview(b"bytes")):
        frame = zmq.Frame(data)
        assert frame.bytes == bytes(frame) == frame.buffer.tobytes() == b"bytes"
        assert len(frame) == 5
        assert not frame.more
    for data in ("text", 5, [b""]):
        with pytest.raises((TypeError, ValueError)):
            zmq.Frame(data)


@pytest.mark.parametrize("copied", [True, False, None])
def test_forms(zmq, copied):
    body = b"x" * 100_000
    frame = zmq.Frame(body, copy=copied)
    assert frame.bytes == body
    assert frame.bytes is frame.bytes
    assert zmq.Frame(body, copy_threshold=1).bytes == body


def test_buffer(zmq):
    frame = zmq.Frame(b"abcdef")
    view = memoryview(frame)
    assert (view.format, view.ndim, view.nbytes, view.c_contiguous) == ("B", 1, 6, True)
    assert bytes(view[1:3]) == b"bc"
    assert bytearray(frame) == b"abcdef"
    assert b"".join([b"", frame]) == b"abcdef"


def test_view_is_the_same_while_it_lives(zmq):
    frame = zmq.Frame(b"abc")
    view = frame.buffer
    assert frame.buffer is view


@pytest.mark.parametrize("size", [10, 1000, 100_000, 4_000_000])
def test_view_can_be_written_to(zmq, sockets, transport, size):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send(b"x" * size)
    frame = pull.recv(copy=False)
    frame.buffer[0] = ord("y")
    assert frame.bytes[:2] == b"yx"
    push.send(frame)
    assert pull.recv()[:2] == b"yx"


@pytest.mark.zeroxide_only
def test_writing_does_not_change_shared_bytes(zmq, sockets):
    """Over inproc, pyzmq gives the receiver the sender's own object, even if it is immutable."""
    one, other = sockets.pair(zmq.PAIR, zmq.PAIR, "inproc")
    body = b"x" * 100_000
    one.send(body, copy=False)
    frame = other.recv(copy=False)
    plain = frame.fast_copy()
    frame.buffer[0] = ord("y")
    assert body[0] == plain.bytes[0] == ord("x")


def test_earlier_views_stay_valid(zmq):
    frame = zmq.Frame(b"x" * 100_000)
    held = io.BytesIO()
    held.write(frame)
    view = memoryview(frame)
    view[0] = ord("y")
    held.seek(0)
    assert held.write(frame) == 100_000
    assert held.getvalue()[:2] == b"yx"


def test_buffer_outlives_the_frame(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"0123456789" * 10_000)
    view = memoryview(pull.recv(copy=False))
    gc.collect()
    pull.close()
    assert bytes(view[-10:]) == b"0123456789"


def test_repr(zmq):
    assert repr(zmq.Frame(b"")) == "<zmq.Frame(b'')>"
    assert repr(zmq.Frame(b"x" * 16)) == str(zmq.Frame(b"x" * 16))
    for size, text in {
        16: "b'xxxxxxxxxxxxxxxx'",
        17: "b'xxxxxxxxxxxx'...17B",
        999: "b'xxxxxxxxxxxx'...999B",
        2500: "b'xxxxxxxxxxxx'...2kB",
        3 << 20: "b'xxxxxxxxxxxx'...3MB",
    }.items():
        assert repr(zmq.Frame(b"x" * size)) == f"<zmq.Frame({text})>"

    class Special(zmq.Frame):
        pass

    assert f"{__name__}." in repr(Special(b"a")) and "Special(b'a')>" in repr(Special(b"a"))


def test_identity_is_equality(zmq):
    one, other = zmq.Frame(b"same"), zmq.Frame(b"same")
    assert one != other
    assert one == one
    assert len({one, other}) == 2


def test_copies_share(zmq):
    frame = zmq.Frame(b"x" * 100_000, copy=False, track=True)
    copies = [copy.copy(frame)]
    if zmq.__name__ != "zmq":
        copies.append(frame.fast_copy())
    for other in copies:
        assert other is not frame
        assert other.bytes == frame.bytes
        assert other.tracker is frame.tracker


def test_send_again_and_again(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    frame = zmq.Frame(b"again")
    for _ in range(3):
        assert push.send(frame) is None
        push.send_multipart([frame, frame])
    for _ in range(3):
        assert pull.recv() == b"again"
        assert pull.recv_multipart() == [b"again", b"again"]


def test_forward(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for size in (1, 100, 100_000):
        push.send_multipart([b"head", b"x" * size])
        push.send_multipart(pull.recv_multipart(copy=False))
        assert pull.recv_multipart() == [b"head", b"x" * size]


def test_received_frames(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"a", b"b"])
    first = pull.recv(copy=False)
    assert first.more and first.get(zmq.MORE) == 1
    second = pull.recv(copy=False, track=True)
    assert not second.more and second.get(zmq.MORE) == 0
    assert second.tracker.done
    assert first.tracker is None


def test_metadata(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"me")
    dealer.send(b"hello")
    identity, body = router.recv_multipart(copy=False)
    assert identity.bytes == b"me"
    for frame in (identity, body):
        assert frame.get("Socket-Type") == frame["Socket-Type"] == "DEALER"
        assert frame["Peer-Address"] == "127.0.0.1"
    assert body["Identity"] == "me"
    if zmq.__name__ != "zmq":
        assert body["Routing-Id"] == "me"
    assert body[b"Socket-Type"] == "DEALER"
    with pytest.raises(zmq.ZMQError) as caught:
        body.get("User-Id")
    assert caught.value.errno == zmq.EINVAL
    with pytest.raises(zmq.ZMQError):
        _ = zmq.Frame(b"never sent")["Socket-Type"]


def test_options_of_a_frame(zmq):
    frame = zmq.Frame(b"x")
    assert frame.get(zmq.MORE) == 0
    with pytest.raises(zmq.ZMQError):
        frame.get(99)
    with pytest.raises(zmq.ZMQError) as caught:
        frame.set(zmq.MORE, 1)
    assert caught.value.errno == zmq.EINVAL


def test_labels(zmq):
    frame = zmq.Frame(b"x")
    assert frame.group == frame.get("group") == ""
    with pytest.raises(zmq.ZMQError, match="no routing id") as caught:
        _ = frame.routing_id
    assert caught.value.errno == zmq.EINVAL
    frame.routing_id = 2**32 - 1
    frame.group = "gr\u00fcn"
    for each in (frame, frame.fast_copy()):
        assert (each.routing_id, each.group) == (2**32 - 1, "gr\u00fcn")
        assert (each["routing_id"], each["group"]) == (2**32 - 1, "gr\u00fcn")
    frame.set("routing_id", 7)
    frame.set("group", b"g")
    assert (frame.routing_id, frame.group) == (7, "g")
    for name, value in [
        ("routing_id", 0),
        ("routing_id", -1),
        ("routing_id", 2**32),
        ("group", "x" * 256),
        ("group", b"a\0"),
    ]:
        with pytest.raises(zmq.ZMQError) as caught:
            setattr(frame, name, value)
        assert caught.value.errno == zmq.EINVAL
    for name in ("routing_id", "group"):
        with pytest.raises(TypeError, match=name):
            setattr(frame, name, [])
    assert (frame.routing_id, frame.group) == (7, "g")


def test_frame_releases_its_memory(zmq):
    frame = zmq.Frame(b"x" * 100)
    gone = weakref.ref(frame)
    del frame
    assert gone() is None
