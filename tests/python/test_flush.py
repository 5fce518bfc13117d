"""Waiting until all messages have been handed to the kernel."""

import pytest
from support import Background

pytestmark = pytest.mark.zeroxide_only


def test_nothing_to_wait_for(zmq, context, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.flush()
    pull.flush(0)
    with context.socket(zmq.PUB) as pub:
        pub.bind("inproc://flush")
        pub.send(b"")
        pub.flush()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_flushed_messages_survive_an_immediate_close(zmq, sockets, transport):
    """After a flush, even ``close(linger=0)`` loses no message."""
    pull = sockets.bound(zmq.PULL, transport)
    for size in (10, 10_000):
        with sockets.connected(zmq.PUSH, pull) as push:
            count = 500 if size == 10 else 20
            for number in range(count):
                push.send_multipart([b"%d" % number, b"x" * size])
            flushing = Background(push.flush)
            for number in range(count):
                assert pull.recv_multipart() == [b"%d" % number, b"x" * size]
            flushing.result()
            push.send(b"last")
            push.flush()
            push.close(linger=0)
            assert pull.recv() == b"last"


def test_reports_the_remaining_messages(zmq, context):
    with context.socket(zmq.PUSH) as push:
        for port in (1, 2):
            push.connect(f"tcp://127.0.0.1:{port}")
        for _ in range(6):
            push.send(b"")
        for timeout in (0, 10, 10.5):
            with pytest.raises(zmq.NotFlushed) as caught:
                push.flush(timeout)
            assert caught.value.remaining == {
                "tcp://127.0.0.1:1": 3,
                "tcp://127.0.0.1:2": 3,
            }
            assert isinstance(caught.value, zmq.Again)
            assert "3 to tcp://127.0.0.1:1" in str(caught.value)


def test_waits_for_the_peer(zmq, context, sockets):
    endpoint = f"ipc://{sockets.directory}/later"
    push = context.socket(zmq.PUSH)
    push.reconnect_ivl = 1
    push.connect(endpoint)
    push.send(b"early")
    flushing = Background(push.flush)
    with context.socket(zmq.PULL) as pull:
        pull.bind(endpoint)
        flushing.result()
        assert pull.recv() == b"early"


def test_slow_peer(zmq, sockets):
    """A peer that takes no messages fills the buffers in between; the other messages remain."""
    pull = sockets.bound(zmq.PULL, rcvhwm=1)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=0)
    body = b"x" * 1_000_000
    for _ in range(50):
        push.send(body)
    with pytest.raises(zmq.NotFlushed) as caught:
        push.flush(50)
    [left] = caught.value.remaining.values()
    assert 0 < left <= 50
    flushing = Background(push.flush)
    for _ in range(50):
        assert pull.recv() == body
    flushing.result()


def test_end_of_the_context(zmq):
    context = zmq.Context()
    push = context.socket(zmq.PUSH)
    push.connect("tcp://127.0.0.1:1")
    push.send(b"")
    flushing = Background(push.flush)
    context.shutdown()
    with pytest.raises(zmq.ContextTerminated):
        flushing.result()
    push.close(linger=0)
    context.term()
