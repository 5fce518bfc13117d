"""Waiting for many objects at once, ZeroMQ sockets or not."""

import errno
import os
import resource
import selectors
import socket as tcp

import pytest
from support import Background


def test_ready_ones_in_order(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    other, _ = sockets.pair(zmq.PULL, zmq.PUSH)
    push.poll(flags=zmq.POLLOUT)
    poller = zmq.Poller()
    poller.register(other, zmq.POLLIN)
    poller.register(push)
    poller.register(pull, zmq.POLLIN)
    assert poller.poll(0) == [(push, zmq.POLLOUT)]
    push.send(b"")
    pull.poll()
    assert poller.poll() == [(push, zmq.POLLOUT), (pull, zmq.POLLIN)]
    pull.recv()
    poller.modify(push, zmq.POLLIN)
    assert poller.poll(1) == []


def test_registering(zmq, context):
    poller = zmq.Poller()
    with context.socket(zmq.PULL) as one, context.socket(zmq.PULL) as other:
        poller.register(one, zmq.POLLIN)
        poller.register(other)
        assert one in poller and other in poller
        assert poller.sockets == [(one, zmq.POLLIN), (other, zmq.POLLIN | zmq.POLLOUT)]
        poller.register(one, zmq.POLLOUT)
        assert poller.sockets == [(one, zmq.POLLOUT), (other, zmq.POLLIN | zmq.POLLOUT)]
        poller.register(one, 0)
        assert one not in poller
        poller.register(one, 0)
        poller.unregister(other)
        assert poller.sockets == []
        with pytest.raises(KeyError):
            poller.unregister(other)


def test_nothing_to_wait_for(zmq):
    assert zmq.Poller().poll(10) == []
    assert zmq.zmq_poll([], 10) == []


def test_timeouts(zmq, context):
    with context.socket(zmq.PULL) as pull:
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        for timeout in (0, 1, 1.5):
            assert poller.poll(timeout) == []


def test_wakes_for_a_later_message(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    for timeout in (None, -1, 20_000):
        poller = zmq.Poller()
        poller.register(pull, zmq.POLLIN)
        waiting = Background(poller.poll, timeout)
        push.send(b"")
        assert waiting.result() == [(pull, zmq.POLLIN)]
        pull.recv()


def test_descriptors(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    reader, writer = os.pipe()
    ours, theirs = tcp.socketpair()
    with ours, theirs, os.fdopen(reader, "rb") as file:
        poller = zmq.Poller()
        for item in (reader, ours, pull):
            poller.register(item, zmq.POLLIN)
        assert poller.poll(0) == []
        os.write(writer, b"x")
        assert poller.poll() == [(reader, zmq.POLLIN)]
        theirs.send(b"x")
        push.send(b"")
        pull.poll()
        # An object that is not a zeroxide socket is returned as its descriptor.
        assert poller.poll() == [
            (reader, zmq.POLLIN),
            (ours.fileno(), zmq.POLLIN),
            (pull, zmq.POLLIN),
        ]
        poller.unregister(ours)
        poller.register(ours, zmq.POLLOUT)
        assert (ours.fileno(), zmq.POLLOUT) in poller.poll()
        poller.register(file, zmq.POLLIN)
        assert (reader, zmq.POLLIN) in poller.poll()
        os.close(writer)


def test_objects_that_cannot_be_polled(zmq):
    with pytest.raises(TypeError):
        zmq.zmq_poll([("text", zmq.POLLIN)], 0)

    class Broken:
        def fileno(self):
            return "no number"

    with pytest.raises(ValueError):
        zmq.zmq_poll([(Broken(), zmq.POLLIN)], 0)


@pytest.mark.zeroxide_only
def test_closed_sockets_alone_are_not_waited_for_without_end(zmq, context):
    socket = context.socket(zmq.PULL)
    socket.close()
    assert zmq.zmq_poll([(socket, zmq.POLLIN)], 10) == []
    with pytest.raises(zmq.ZMQError) as caught:
        zmq.zmq_poll([(socket, zmq.POLLIN)], -1)
    assert caught.value.errno == zmq.ENOTSOCK


@pytest.mark.zeroxide_only
def test_closed_sockets_of_python_are_not_waited_for_without_end(zmq, context):
    one, other = tcp.socketpair()
    pull = context.socket(zmq.PULL)
    for closed in (one, other, pull):
        closed.close()
    for items in ([one], [-1], [one, pull]):
        with pytest.raises(zmq.ZMQError, match="everything to wait for is closed") as caught:
            zmq.zmq_poll([(item, zmq.POLLIN) for item in items], -1)
        assert caught.value.errno == zmq.ENOTSOCK


@pytest.mark.zeroxide_only
def test_a_greenlet_polls_beside_closed_sockets_of_python(zmq):
    green = pytest.importorskip("zeroxide.green")
    one, other = tcp.socketpair()
    with green.Context() as context, context.socket(zmq.PULL) as pull:
        pull.bind("inproc://closed-beside-python")
        one.close()
        other.close()
        with context.socket(zmq.PUSH) as push:
            push.connect("inproc://closed-beside-python")
            items = [(one, zmq.POLLIN), (-1, zmq.POLLIN), (pull, zmq.POLLIN)]
            assert green.zmq_poll(items, 0) == green.zmq_poll(items, 1) == []
            assert green.zmq_poll(items[:2], 1) == []
            with pytest.raises(zmq.ZMQError) as caught:
                green.zmq_poll(items[:2], -1)
            assert caught.value.errno == zmq.ENOTSOCK
            push.send(b"x")
            assert green.zmq_poll(items, 20_000) == [(pull, zmq.POLLIN)]
            assert green.select([one, pull], [one], [-1], 20) == ([pull], [], [])


@pytest.mark.zeroxide_only
def test_a_greenlet_does_not_wait_for_closed_sockets_either(zmq):
    green = pytest.importorskip("zeroxide.green")
    context = green.Context()
    socket, pull, push = (context.socket(kind) for kind in (zmq.PULL, zmq.PULL, zmq.PUSH))
    pull.bind("inproc://closed-beside")
    push.connect("inproc://closed-beside")
    socket.close()
    push.send(b"x")
    assert green.zmq_poll([(socket, zmq.POLLIN), (pull, zmq.POLLIN)], 20_000) == [
        (pull, zmq.POLLIN)
    ]
    pull.recv()
    assert green.zmq_poll([(socket, zmq.POLLIN), (pull, zmq.POLLIN)], 10) == []
    with pytest.raises(zmq.ZMQError) as caught:
        green.zmq_poll([(socket, zmq.POLLIN)], -1)
    assert caught.value.errno == zmq.ENOTSOCK
    context.destroy(linger=0)


def test_select(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    reader, writer = os.pipe()
    push.poll(flags=zmq.POLLOUT)
    assert zmq.select([pull, reader], [push], [pull], 0) == ([], [push], [])
    push.send(b"")
    os.write(writer, b"x")
    pull.poll()
    readable, writable, broken = zmq.select([pull, push, reader], [pull, push], [])
    assert set(readable) == {pull, reader}
    assert (writable, broken) == ([push], [])
    assert zmq.select([], [], [], 0.01) == ([], [], [])
    os.close(reader)
    os.close(writer)


def test_direct(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"")
    assert zmq.zmq_poll([(pull, zmq.POLLIN), (push, zmq.POLLIN)], timeout=-1) == [
        (pull, zmq.POLLIN)
    ]


def test_descriptor_of_a_socket(zmq, sockets, transport):
    """The usual loop: wait for the descriptor, then receive all messages."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    selector = selectors.DefaultSelector()
    selector.register(pull, selectors.EVENT_READ)
    assert pull.fileno() == pull.fd
    received = 0
    for round_number in range(200):
        for _ in range(round_number % 7):
            push.send(b"")
        while received < round_number % 7:
            while not pull.events & zmq.POLLIN:
                selector.select()
            pull.recv(zmq.DONTWAIT)
            received += 1
        received = 0
    selector.close()


@pytest.mark.zeroxide_only
def test_errors_of_a_descriptor_that_is_not_open(zmq):
    from zeroxide.poll import trouble_of

    unused = resource.getrlimit(resource.RLIMIT_NOFILE)[0] - 1
    with pytest.raises(OSError, match="Bad file descriptor") as caught:
        trouble_of(unused, zmq.POLLERR)
    assert caught.value.errno == errno.EBADF
    with pytest.raises(ValueError, match="-1 is not a file descriptor"):
        trouble_of(-1, zmq.POLLERR)
