"""Closing and terminating: every call returns, and every message is accounted for."""

import contextlib
import itertools
import threading

import pytest
from support import Background

BLOCKING = {
    "recv": lambda zmq, s: s.recv(),
    "recv_multipart": lambda zmq, s: s.recv_multipart(copy=False),
    "recv_into": lambda zmq, s: s.recv_into(bytearray(1)),
    "send": lambda zmq, s: s.send(b""),
    "send_multipart": lambda zmq, s: s.send_multipart([b"", b""]),
    "poll": lambda zmq, s: s.poll(),
    "zmq_poll": lambda zmq, s: zmq.zmq_poll([(s, zmq.POLLIN)]),
}
OURS = {
    "send_batch": lambda zmq, s: s.send_batch([b""]),
    "recv_batch": lambda zmq, s: s.recv_batch(),
}


@pytest.mark.parametrize(
    "name", [*BLOCKING, *(pytest.param(name, marks=pytest.mark.zeroxide_only) for name in OURS)]
)
def test_term_ends_waiting(zmq, name):
    """The waiting call raises, its thread closes the socket, and term returns."""
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)

    def wait():
        try:
            (BLOCKING | OURS)[name](zmq, socket)
        finally:
            socket.close(linger=0)

    waiting = Background(wait)
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        waiting.result()


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", [*BLOCKING, *OURS])
def test_close_ends_waiting(zmq, context, name):
    socket = zmq.Context().socket(zmq.DEALER)
    waiting = Background((BLOCKING | OURS)[name], zmq, socket)
    socket.close()
    with pytest.raises(zmq.ZMQError) as caught:
        waiting.result()
    assert caught.value.errno in (zmq.ENOTSOCK, zmq.ENOTSUP)
    socket.context.term()


def test_after_term(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.DEALER)
    socket.linger = 0
    ended = Background(context.term)
    with pytest.raises(zmq.ContextTerminated):
        socket.recv()
    for call in (
        lambda: socket.send(b""),
        lambda: socket.recv(zmq.DONTWAIT),
        lambda: socket.set(zmq.LINGER, 1),
        lambda: socket.get(zmq.LINGER),
        lambda: socket.bind("inproc://late"),
        lambda: socket.connect("inproc://late"),
    ):
        with pytest.raises(zmq.ContextTerminated):
            call()
    assert not socket.closed
    socket.close()
    ended.result()
    assert context.closed and socket.closed


def test_term_waits_for_sockets(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    ended = Background(context.term)
    ended.join(0.05)
    assert ended.is_alive()
    socket.close()
    ended.result()


def test_without_linger_messages_are_dropped(zmq):
    for linger in (0, 10):
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("tcp://127.0.0.1:1")
        socket.linger = linger
        socket.send(b"never to arrive")
        socket.close()
        context.term()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("size", [1, 1000, 100_000])
def test_with_linger_all_arrive(zmq, sockets, transport, size):
    pull = sockets.bound(zmq.PULL, transport)
    endpoint = pull.last_endpoint.decode()
    count = 200

    def send():
        with zmq.Context() as context, context.socket(zmq.PUSH) as push:
            push.connect(endpoint)
            for number in range(count):
                push.send_multipart([b"%d" % number, b"x" * size])

    sending = Background(send)
    for number in range(count):
        assert pull.recv_multipart() == [b"%d" % number, b"x" * size]
    sending.result()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_messages_that_arrived_before_the_sender_left_are_read(zmq, sockets, transport):
    pull = sockets.bound(zmq.PULL, transport, rcvhwm=1)
    with zmq.Context() as context, context.socket(zmq.PUSH) as push:
        push.connect(pull.last_endpoint.decode())
        for number in range(100):
            push.send(b"%d" % number)
    for number in range(100):
        assert pull.recv() == b"%d" % number


def test_linger_of_the_closing_call_counts(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    socket.linger = -1
    socket.connect("tcp://127.0.0.1:1")
    socket.send(b"never to arrive")
    socket.close(linger=0)
    context.term()


def test_term_again(zmq):
    context = zmq.Context()
    context.term()
    context.term()
    context.destroy()


@pytest.mark.zeroxide_only
def test_term_from_many_threads(zmq):
    context = zmq.Context()
    for thread in [Background(context.term) for _ in range(8)]:
        thread.result()
    assert context.closed


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("ending", ["close", "term", "both"])
def test_race(zmq, directory, ending):
    """Eight threads use two sockets while these are closed and the context ends."""
    transports = itertools.cycle(["tcp://127.0.0.1:*", f"ipc://{directory}/race", "inproc://race"])
    expected = {zmq.ENOTSOCK, zmq.ENOTSUP, zmq.ETERM}

    def use(socket, start, call):
        start.wait()
        with contextlib.suppress(zmq.Again):
            while True:
                try:
                    call(socket)
                except zmq.Again:
                    continue
                except zmq.ZMQError as error:
                    assert error.errno in expected, error
                    break
        if ending == "term":
            socket.close(linger=0)

    calls = [
        lambda s: s.send_multipart([b"a", b"b"], zmq.DONTWAIT),
        lambda s: s.recv_multipart(),
        lambda s: s.poll(),
        lambda s: s.set(zmq.LINGER, 0),
    ]
    for _ in range(100):
        context = zmq.Context()
        context.linger = 0
        one, other = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
        one.bind(next(transports))
        other.connect(one.last_endpoint.decode())
        start = threading.Barrier(9)
        users = [Background(use, s, start, call) for s in (one, other) for call in calls]
        start.wait()
        if ending != "term":
            one.close()
            other.close(linger=0)
        if ending != "close":
            context.term()
        for user in users:
            user.result()
        context.term()
