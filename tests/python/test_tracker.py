"""Sending without copying, and when the memory is free again."""

import gc
import sys
import threading
import weakref

import pytest
from support import eventually

BIG = 1_000_000


class Array(bytearray):
    """A buffer that supports weak references, so that a test sees its end."""


def test_copies_have_nothing_to_track(zmq, sockets):
    _pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    assert push.send(b"x") is None
    assert push.send(b"x", track=True) is None
    small = push.send(b"x", copy=False, track=True)
    assert small.done
    small.wait(0)
    assert push.send_multipart([b"x", b"y"], copy=False, track=True).done


def test_done_when_the_peer_has_it(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    tracker = push.send(b"x" * BIG, copy=False, track=True)
    assert isinstance(tracker, zmq.MessageTracker)
    assert len(pull.recv()) == BIG
    tracker.wait(20)
    assert tracker.done


def test_not_done_while_queued(zmq, context):
    with context.socket(zmq.PUSH) as push:
        push.connect("tcp://127.0.0.1:1")
        body = Array(BIG)
        tracker = push.send(body, copy=False, track=True)
        assert not tracker.done
        with pytest.raises(zmq.NotDone):
            tracker.wait(0)
        with pytest.raises(zmq.NotDone):
            tracker.wait(timeout=0.01)
        gone = weakref.ref(body)
        del body
        gc.collect()
        assert gone() is not None
        push.close(linger=0)
        tracker.wait(20)
        assert tracker.done
        eventually(lambda: gone() is None)


def test_parts(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    tracker = push.send_multipart([b"a" * BIG, b"b", b"c" * BIG], copy=False, track=True)
    pull.recv_multipart()
    tracker.wait(20)


def test_tracked_frame(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    frame = zmq.Frame(b"x" * BIG, copy=False, track=True)
    assert isinstance(frame.tracker, zmq.MessageTracker)
    assert not frame.tracker.done
    tracker = push.send(frame, track=True)
    assert tracker is frame.tracker
    pull.recv()
    # The frame itself also references the memory.
    del frame
    gc.collect()
    tracker.wait(20)


def test_untracked_frame(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    frame = zmq.Frame(b"x" * BIG, copy=False)
    assert frame.tracker is None
    with pytest.raises(ValueError):
        push.send(frame, track=True)
    with pytest.raises(ValueError):
        zmq.MessageTracker(frame)
    assert push.send(frame) is None
    pull.recv()


def test_copied_frame_is_done(zmq):
    frame = zmq.Frame(b"x", copy=True, track=True)
    assert frame.tracker.done


def test_several_as_one(zmq, context):
    first, second = threading.Event(), threading.Event()
    with context.socket(zmq.PUSH) as push:
        push.connect("tcp://127.0.0.1:1")
        frame = zmq.Frame(b"x" * BIG, copy=False, track=True)
        sent = push.send(b"y" * BIG, copy=False, track=True)
        both = zmq.MessageTracker(first, zmq.MessageTracker(second), frame, sent)
        first.set()
        second.set()
        assert not both.done
        with pytest.raises(zmq.NotDone):
            both.wait(0.01)
        del frame
        gc.collect()
        push.close(linger=0)
        both.wait(20)
        assert both.done
    with pytest.raises(TypeError):
        zmq.MessageTracker(b"bytes")


def test_memory_is_released(zmq, sockets, transport):
    """Memory sent without copying is released once the message is received."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    gone = []
    for _ in range(50):
        body = Array(100_000)
        gone.append(weakref.ref(body))
        push.send(body, copy=False)
        del body
    for _ in range(50):
        assert len(pull.recv()) == 100_000
    # The next call releases the memory.
    eventually(lambda: (pull.poll(0), push.poll(0), all(ref() is None for ref in gone))[-1])


@pytest.mark.parametrize("size", [100, 10_000, BIG])
def test_bytes_are_not_leaked(zmq, sockets, size):
    """Whether a bytes object is copied or borrowed, no reference to it remains."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    body = bytes(bytearray(size))
    before = sys.getrefcount(body)
    for copied in (True, False):
        for _ in range(5):
            push.send(body, copy=copied)
        for _ in range(5):
            pull.recv()
    eventually(lambda: (push.poll(0), sys.getrefcount(body) == before)[-1])


def test_mutable_buffers_are_copied_at_once(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    body = bytearray(b"a" * BIG)
    push.send(body)
    body[:] = b"b" * BIG
    assert pull.recv() == b"a" * BIG
