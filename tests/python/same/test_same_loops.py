"""Streams of tornado, sockets of gevent."""

import asyncio

import pytest


@pytest.fixture
def stream(zmq, part, sockets, run):
    """Runs a coroutine function with a stream and the socket at its other end."""
    pytest.importorskip("tornado")
    zmqstream = part("eventloop.zmqstream")

    def work(body, kind=None, other=None):
        one, far = sockets.pair(
            zmq.PAIR if kind is None else kind, zmq.PAIR if other is None else other, "inproc"
        )

        async def main():
            stream = zmqstream.ZMQStream(one)
            try:
                return await body(stream, far)
            finally:
                stream.close()

        return run(main())

    return work


def test_stream_receives(stream):
    async def body(stream, far):
        came = asyncio.get_running_loop().create_future()
        stream.on_recv(came.set_result)
        assert stream.receiving()
        far.send_multipart([b"a", b"b"])
        return await came

    assert stream(body) == [b"a", b"b"]


def test_stream_receives_frames(zmq, stream):
    async def body(stream, far):
        came = asyncio.get_running_loop().create_future()
        stream.on_recv(came.set_result, copy=False)
        far.send(b"x")
        return await came

    (frame,) = stream(body)
    assert isinstance(frame, zmq.Frame)


def test_stream_names_itself(stream):
    async def body(stream, far):
        came = asyncio.get_running_loop().create_future()
        stream.on_recv_stream(lambda which, parts: came.set_result((which is stream, parts)))
        far.send(b"x")
        return await came

    assert stream(body) == (True, [b"x"])


def test_stream_sends(stream):
    async def body(stream, far):
        sent = asyncio.get_running_loop().create_future()
        stream.on_send(lambda parts, status: sent.set_result(parts))
        stream.send_multipart([b"a", b"b"])
        assert stream.sending()
        parts = await sent
        return parts, far.recv_multipart()

    assert stream(body) == ([b"a", b"b"], [b"a", b"b"])


@pytest.mark.parametrize(
    "method", ["send", "send_string", "send_unicode", "send_json", "send_pyobj"]
)
def test_stream_sends_forms(stream, method):
    async def body(stream, far):
        getattr(stream, method)(b"x" if method == "send" else "x")
        stream.flush()
        return far.recv() != b""

    assert stream(body)


def test_stream_stops(stream):
    async def body(stream, far):
        stream.on_recv(print)
        stream.stop_on_recv()
        assert not stream.receiving()
        stream.on_send(print)
        stream.stop_on_send()

    stream(body)


def test_stream_closes(zmq, stream):
    async def body(stream, far):
        closed = []
        stream.set_close_callback(lambda: closed.append(True))
        socket = stream.socket
        stream.close()
        assert stream.closed()
        assert socket.closed
        await asyncio.sleep(0)
        stream.close()
        return closed

    assert stream(body) in ([True], [])


def test_stream_requires_callables(stream):
    async def body(stream, far):
        with pytest.raises((AssertionError, TypeError)):
            stream.on_recv(5)

    stream(body)


def test_green(zmq, part):
    gevent = pytest.importorskip("gevent")
    green = part("green")
    with green.Context() as context:
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("inproc://green")
        push.connect("inproc://green")
        receiving = gevent.spawn(pull.recv)
        gevent.sleep(0)
        sending = gevent.spawn(push.send, b"x")
        gevent.joinall([receiving, sending], timeout=10)
        assert receiving.value == b"x"
        with gevent.Timeout(0.01, False):
            pull.recv()
        push.send(b"not lost")
        assert pull.recv() == b"not lost"
        push.close()
        pull.close()


def test_green_poller(zmq, part):
    gevent = pytest.importorskip("gevent")
    green = part("green")
    with green.Context() as context:
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        pull.bind("inproc://green-poller")
        push.connect("inproc://green-poller")
        poller = green.Poller()
        poller.register(pull, zmq.POLLIN)
        assert poller.poll(0) == []
        polling = gevent.spawn(poller.poll, 10_000)
        gevent.spawn(push.send, b"x")
        assert polling.get(timeout=10) == [(pull, zmq.POLLIN)]
        push.close()
        pull.close()


def test_green_classes(zmq, part):
    pytest.importorskip("gevent")
    green = part("green")
    assert issubclass(green.Socket, zmq.Socket)
    assert issubclass(green.Context, zmq.Context)
    assert green.PUSH is zmq.PUSH
    with green.Context() as context, context.socket(zmq.PUSH) as socket:
        assert repr(socket).startswith("<zmq.green.Socket(zmq.PUSH)")
