"""ZMQStream and tornado's futures: the same on pyzmq and zeroxide."""

import asyncio
import gc
import importlib
import logging
import os
import warnings

import pytest
from loops import run_in, subtree, turns
from support import PATIENCE, Sockets

pytest.importorskip("tornado")


def run(main):
    return run_in("asyncio", main)


@pytest.fixture
def ZMQStream(zmq):
    return subtree(zmq, "eventloop.zmqstream").ZMQStream


@pytest.fixture
def pair(zmq, sockets, ZMQStream):
    """Creates a stream over PULL and one over PUSH, in the running loop."""

    def make():
        pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
        return ZMQStream(pull), ZMQStream(push)

    return make


class Log:
    """Records the arguments of callbacks, and waits for them."""

    def __init__(self):
        self.entries = []
        self._changed = asyncio.Event()

    def __call__(self, *arguments):
        self.entries.append(arguments[0] if len(arguments) == 1 else arguments)
        self._changed.set()

    async def until(self, count):
        async with asyncio.timeout(PATIENCE):
            while len(self.entries) < count:
                self._changed.clear()
                await self._changed.wait()
        return self.entries


def test_receiving_and_sending(zmq, pair):
    async def main():
        pull, push = pair()
        received, sent = Log(), Log()
        assert not pull.receiving() and not push.sending()
        pull.on_recv(received)
        assert pull.receiving()
        push.on_send(sent)
        push.send(b"a")
        assert push.sending()
        push.send_multipart([b"b", b"c"])
        push.send_string("æ")
        push.send_unicode("æ")
        push.send_json({"a": 1})
        push.send_pyobj([1])
        assert (await received.until(6))[:4] == [
            [b"a"],
            [b"b", b"c"],
            ["æ".encode()],
            ["æ".encode()],
        ]
        assert all(len(parts) == 1 for parts in received.entries[4:])
        assert [entry[1] for entry in await sent.until(6)] == [None] * 6
        assert sent.entries[1][0] == [b"b", b"c"]
        assert not push.sending()
        with pytest.raises(TypeError):
            push.send_string(b"bytes")
        pull.close()
        push.close()

    run(main())


def test_frames_and_trackers(zmq, pair):
    async def main():
        pull, push = pair()
        received, sent = Log(), Log()
        pull.on_recv(received, copy=False)
        push.send_multipart([b"x" * 100_000, b"y"], copy=False, track=True, callback=sent)
        (frames,) = await received.until(1)
        assert all(isinstance(frame, zmq.Frame) for frame in frames)
        assert frames[1].bytes == b"y"
        ((_, tracker),) = await sent.until(1)
        assert isinstance(tracker, zmq.MessageTracker)
        pull.close()
        push.close()

    run(main())


def test_callbacks_with_the_stream(zmq, pair):
    async def main():
        pull, push = pair()
        received, sent = Log(), Log()
        pull.on_recv_stream(received)
        push.on_send_stream(sent)
        push.send(b"x")
        assert await received.until(1) == [(pull, [b"x"])]
        assert await sent.until(1) == [(push, [b"x"], None)]
        pull.on_recv_stream(None)
        assert not pull.receiving()
        push.on_send_stream(None)
        pull.close()
        push.close()

    run(main())


def test_stopping(zmq, pair):
    async def main():
        pull, push = pair()
        received, sent = Log(), Log()
        pull.on_recv(received)
        push.send(b"1", callback=sent)
        await received.until(1)
        pull.stop_on_recv()
        push.send(b"2")
        await sent.until(2)
        push.stop_on_send()
        assert pull.socket.poll(PATIENCE * 1000)
        await turns(10)
        assert received.entries == [[b"1"]]
        pull.on_recv(received)
        assert await received.until(2) == [[b"1"], [b"2"]]
        pull.close()
        push.close()

    run(main())


def test_a_message_that_arrived_before_the_callback_was_set(zmq, sockets, ZMQStream):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for number in range(5):
        push.send(b"%d" % number)
    assert pull.poll(PATIENCE * 1000)

    async def main():
        stream = ZMQStream(pull)
        await turns(5)
        received = Log()
        stream.on_recv(received)
        assert await received.until(5) == [[b"%d" % number] for number in range(5)]
        stream.close()

    run(main())


def test_one_message_per_turn(zmq, sockets, ZMQStream):
    """Streams take turns."""
    pairs = [sockets.pair(zmq.PULL, zmq.PUSH) for _ in range(2)]
    for name, (pull, push) in zip("ab", pairs, strict=True):
        for number in range(3):
            push.send_string(f"{name}{number}")
        # All messages have arrived.
        assert pull.poll(PATIENCE * 1000)

    async def main():
        received = Log()
        streams = [ZMQStream(pull) for pull, _ in pairs]
        for stream in streams:
            stream.on_recv(lambda parts: received(parts[0].decode()))
        await received.until(6)
        assert sorted(received.entries) == ["a0", "a1", "a2", "b0", "b1", "b2"]
        assert received.entries[:2] in (["a0", "b0"], ["b0", "a0"])
        for stream in streams:
            stream.close()

    run(main())


def test_flush(zmq, sockets, ZMQStream):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)

    async def main():
        receiver, sender = ZMQStream(pull), ZMQStream(push)
        received, sent = Log(), Log()
        assert receiver.flush() == 0
        assert sender.flush() == 0
        sender.on_send(sent)
        for number in range(5):
            sender.send(b"%d" % number)
        assert push.poll(PATIENCE * 1000, zmq.POLLOUT)
        # No message was sent before the loop ran, or before this call.
        assert sent.entries == []
        assert sender.flush(limit=2) == 2
        assert len(sent.entries) == 2
        assert sender.flush(zmq.POLLIN) == 0
        assert sender.flush(zmq.POLLOUT) == 3
        assert len(sent.entries) == 5
        assert not sender.sending()
        receiver.on_recv(received)
        count = 0
        while count < 5:
            assert pull.poll(PATIENCE * 1000)
            count += receiver.flush(zmq.POLLIN)
        assert received.entries == [[b"%d" % number] for number in range(5)]
        await turns(10)
        assert len(received.entries) == 5
        receiver.close()
        sender.close()

    run(main())


def test_flush_discards_messages_without_a_callback(zmq, sockets, ZMQStream):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"old")

    async def main():
        stream = ZMQStream(pull)
        assert pull.poll(PATIENCE * 1000)
        assert stream.flush() == 1
        received = Log()
        stream.on_recv(received)
        push.send(b"new")
        assert await received.until(1) == [[b"new"]]
        stream.close()

    run(main())


def test_callbacks_may_be_coroutines(zmq, pair):
    async def main():
        pull, push = pair()
        received, sent = Log(), Log()

        async def on_recv(parts):
            await asyncio.sleep(0)
            received(parts)

        async def on_send(parts, status):
            sent(status)

        pull.on_recv(on_recv)
        push.send(b"x", callback=on_send)
        assert await received.until(1) == [[b"x"]]
        assert await sent.until(1) == [None]
        pull.close()
        push.close()

    run(main())


@pytest.mark.parametrize("coroutine", [False, True])
def test_a_callback_that_raises(zmq, pair, caplog, coroutine):
    async def main():
        pull, push = pair()
        asyncio.get_running_loop().set_exception_handler(lambda *_: None)
        received = Log()

        def plain(parts):
            received(parts)
            raise ValueError("oops")

        async def later(parts):
            plain(parts)

        pull.on_recv(later if coroutine else plain)
        push.send(b"1")
        await received.until(1)
        pull.on_recv(received)
        push.send(b"2")
        assert await received.until(2) == [[b"1"], [b"2"]]
        pull.close()
        push.close()

    with caplog.at_level(logging.ERROR):
        run(main())
    assert "oops" in caplog.text


@pytest.mark.zeroxide_only
def test_a_refused_close_changes_nothing(zmq, pair):
    async def main():
        pull, push = pair()
        received = Log()
        pull.on_recv(received)
        for linger in ("1", float("nan")):
            with pytest.raises((TypeError, ValueError), match="linger takes milliseconds"):
                pull.close(linger)
        push.send(b"still there")
        assert await received.until(1) == [[b"still there"]]
        pull.close(linger=0.5)
        push.close(linger=2.0)
        assert pull.closed() and push.closed()

    run(main())


def test_closing(zmq, pair):
    async def main():
        pull, push = pair()
        closed = Log()
        pull.set_close_callback(lambda: closed(1))
        socket = pull.socket
        assert not pull.closed()
        pull.close()
        assert pull.closed() and socket.closed and pull.socket is None
        assert closed.entries == [1]
        pull.close()
        assert closed.entries == [1]
        for call in (lambda: pull.on_recv(closed), pull.flush, lambda: pull.on_send(None)):
            with pytest.raises(OSError):
                call()
        # The socket is closed directly.
        push.set_close_callback(lambda: closed(2))
        push.socket.close()
        with pytest.warns(UserWarning):
            assert push.closed()
        assert push.socket is None
        assert closed.entries == [1, 2]

    run(main())


def test_closing_in_a_callback(zmq, pair):
    async def main():
        pull, push = pair()
        received, closed = Log(), Log()

        def on_recv(parts):
            received(parts)
            pull.close()

        pull.set_close_callback(lambda: closed(1))
        pull.on_recv(on_recv)
        push.send(b"1")
        push.send(b"2")
        assert await closed.until(1) == [1]
        await turns(10)
        assert received.entries == [[b"1"]]
        push.close()

    run(main())


def test_a_loop_that_closes_its_descriptors(zmq, sockets, ZMQStream):
    """The socket is closed, and no descriptor is closed twice, because its number may be in use again."""
    from tornado.ioloop import IOLoop

    loop = IOLoop(make_current=False)
    stream = ZMQStream(sockets.bound(zmq.PULL), loop)
    stream.on_recv(print)
    socket = stream.socket
    loop.close(all_fds=True)
    assert socket.closed
    files = [os.open(os.devnull, os.O_RDONLY) for _ in range(8)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert stream.closed()
    del stream, socket
    gc.collect()
    for file in files:
        os.close(file)


def test_linked_methods(zmq, pair):
    async def main():
        pull, push = pair()
        for name in ("bind", "connect", "setsockopt", "getsockopt", "bind_to_random_port"):
            assert getattr(pull, name) == getattr(pull.socket, name)
        pull.setsockopt(zmq.LINGER, 0)
        assert pull.getsockopt(zmq.LINGER) == 0
        assert isinstance(pull.poller, zmq.Poller)
        pull.close()
        push.close()

    run(main())


def test_over_an_async_socket(zmq, ZMQStream):
    aio = subtree(zmq, "asyncio")

    async def main():
        with aio.Context() as context:
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            pull.bind("inproc://x")
            push.connect("inproc://x")
            with pytest.warns(RuntimeWarning) as warned:
                stream = ZMQStream(pull)
            if zmq.__name__ == "zeroxide":
                assert f"and {pull} is asynchronous" in str(warned[0].message)
            assert type(stream.socket) is zmq.Socket
            received = Log()
            stream.on_recv(received)
            await push.send(b"x")
            assert await received.until(1) == [[b"x"]]
            stream.close()
            pull.close()
            push.close()

    run(main())


def test_deprecated_errors(zmq, pair, caplog):
    async def main():
        pull, push = pair()
        pull.on_err(print)
        pull.stop_on_err()
        pull.close()
        push.close()

    run(main())


def test_request_and_reply(zmq, sockets, ZMQStream):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)

    async def main():
        server, client = ZMQStream(rep), ZMQStream(req)
        replies = Log()
        server.on_recv(lambda parts: server.send_multipart([part.upper() for part in parts]))
        client.on_recv(replies)
        for number in range(5):
            client.send_multipart([b"a", b"%d" % number])
            await replies.until(number + 1)
        assert replies.entries == [[b"A", b"%d" % number] for number in range(5)]
        server.close()
        client.close()

    run(main())


# ---- tornado's futures --------------------------------------------------------------


@pytest.fixture
def future_module(zmq):
    return subtree(zmq, "eventloop.future")


def test_futures(zmq, future_module, directory):
    async def main():
        with future_module.Context() as context:
            context.linger = 0
            sockets = Sockets(zmq, context, directory)
            pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
            assert type(pull) is future_module.Socket
            pending = pull.recv()
            assert not pending.done()
            await push.send(b"x")
            assert await pending == b"x"
            await push.send_multipart([b"a", b"b"])
            assert await pull.recv_multipart() == [b"a", b"b"]
            json = pull.recv_json()
            await push.send_json([1])
            assert await json == [1]
            pull.rcvtimeo = 5
            with pytest.raises(zmq.Again):
                await pull.recv()
            pull.rcvtimeo = -1
            cancelled = pull.recv()
            assert cancelled.cancel()
            assert cancelled.cancelled()
            with pytest.raises(future_module.CancelledError):
                await cancelled
            waiting = pull.poll()
            poller = future_module.Poller()
            poller.register(pull, zmq.POLLIN)
            polled = poller.poll()
            await push.send(b"y")
            assert await waiting == zmq.POLLIN
            assert await polled == [(pull, zmq.POLLIN)]
            assert await poller.poll(0) == [(pull, zmq.POLLIN)]
            assert await pull.recv() == b"y"
            assert await poller.poll(5) == []
            last = pull.recv()
            pull.close()
            push.close()
            with pytest.raises(future_module.CancelledError):
                await last

    run(main())


def test_in_tornados_coroutines(zmq, future_module, directory):
    from tornado import gen, ioloop

    @gen.coroutine
    def main():
        with future_module.Context() as context:
            pull, push = Sockets(zmq, context, directory).pair(zmq.PULL, zmq.PUSH, "inproc")
            yield push.send(b"x")
            received = yield pull.recv()
            assert received == b"x"
            future = pull.recv_multipart()
            yield [push.send(b"y"), push.send(b"z")]
            first = yield future
            second = yield gen.with_timeout(ioloop.IOLoop.current().time() + PATIENCE, pull.recv())
            assert [first, second] == [[b"y"], b"z"]
            pull.close()
            push.close()

    loop = ioloop.IOLoop(make_current=False)
    loop.run_sync(main, timeout=PATIENCE)
    loop.close()


def handlers():
    from tornado.ioloop import IOLoop

    return len(IOLoop.current().handlers), len(os.listdir("/proc/self/fd"))


def test_polling_a_blocking_socket_leaves_nothing_behind(zmq, future_module, sockets, caplog):
    async def main():
        poller = future_module.Poller()
        poller.register(sockets.bound(zmq.PULL), zmq.POLLIN)
        await poller.poll(1)
        await turns()
        before = handlers()
        for _ in range(10):
            assert await poller.poll(1) == []
        await turns()
        assert handlers() == before

    run(main())
    assert not caplog.records


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("elsewhere", [False, True])
def test_dropped_handles_leave_nothing_behind(zmq, future_module, sockets, elsewhere):
    async def main():
        pull = sockets.bound(zmq.PULL)
        await asyncio.to_thread(gc.collect)
        before = handlers()
        dropped = [future_module.Socket.from_socket(pull) for _ in range(10)]
        for handle in dropped:
            handle.recv().cancel()
        del handle
        await turns()
        assert handlers() > before
        await asyncio.to_thread(dropped.clear) if elsewhere else dropped.clear()
        gc.collect()
        await turns()
        assert handlers() == before

    run(main())


def test_shims(zmq):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ioloop = importlib.import_module(f"{zmq.__name__}.eventloop.ioloop")
        ioloop.install()
    assert ioloop.ZMQIOLoop is ioloop.IOLoop
    assert subtree(zmq, "eventloop").IOLoop is ioloop.IOLoop


def test_the_shim_of_gevent(zmq):
    pytest.importorskip("gevent")
    green = subtree(zmq, "green.eventloop.zmqstream")
    assert issubclass(green.ZMQStream, subtree(zmq, "eventloop.zmqstream").ZMQStream)
