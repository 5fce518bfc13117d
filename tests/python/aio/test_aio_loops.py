"""Sockets of asyncio: loops, handles, and a program's own classes."""

import asyncio
import threading

import pytest
from loops import LOOPS, readable, run_in, subtree, turns
from support import PATIENCE, attend

# ---- handles, loops -----------------------------------------------------------------


def test_from_socket(run, zmq, aio):
    context = zmq.Context()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind("inproc://x")
    push.connect("inproc://x")

    async def main():
        asynchronous = aio.Socket.from_socket(pull)
        assert asynchronous.underlying == pull.underlying
        assert asynchronous.type == zmq.PULL
        future = asynchronous.recv()
        push.send(b"x")
        assert await future == b"x"
        assert await aio.Socket(pull).poll(0) == 0
        push.send(b"y")
        await readable(asynchronous)
        assert pull.recv(zmq.NOBLOCK) == b"y"
        shadow = aio.Socket.shadow(pull.underlying)
        push.send(b"z")
        assert await shadow.recv() == b"z"

    run(main())
    context.destroy(linger=0)


def test_a_blocking_handle_of_an_async_socket(run, zmq, pipe):
    pull, push = pipe

    async def main():
        blocking = zmq.Socket.shadow(pull.underlying)
        await push.send(b"x")
        await readable(pull)
        assert blocking.recv() == b"x"
        assert not isinstance(blocking, type(pull))
        assert pull._shadow_sock.underlying == pull.underlying
        assert zmq.Socket(shadow=pull).underlying == pull.underlying

    run(main())


def test_a_socket_outlives_loops(zmq, pipe):
    pull, push = pipe

    async def exchange(number):
        future = pull.recv()
        await turns()
        await push.send(b"%d" % number)
        assert await future == b"%d" % number

    for number in range(6):
        run_in(LOOPS[number % len(LOOPS)], exchange(number))


@pytest.mark.zeroxide_only
def test_a_call_that_waited_in_a_closed_loop_takes_no_message(zmq, pipe):
    pull, push = pipe

    async def leave():
        return pull.recv()

    async def receive():
        await push.send(b"x")
        return await pull.recv()

    abandoned = [run_in("asyncio", leave()) for _ in range(3)]
    assert run_in("asyncio", receive()) == b"x"
    assert not any(future.done() and not future.cancelled() for future in abandoned)


def test_a_loop_in_a_thread(run, zmq, pipe):
    pull, push = pipe
    results = []

    async def receive():
        results.append(await pull.recv())

    async def send():
        await push.send(b"x")

    thread = threading.Thread(target=lambda: run_in("asyncio", receive()))
    thread.start()
    run(send())
    thread.join(PATIENCE)
    assert results == [b"x"]


def test_with_blocks(run, zmq, aio):
    async def main():
        with aio.Context() as context:
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            with pull, push, pull.bind("inproc://x"), push.connect("inproc://x"):
                await push.send(b"x")
                assert await pull.recv() == b"x"
            assert pull.closed and push.closed
        assert context.closed

    run(main())


def test_contexts(zmq, aio):
    context = aio.Context()
    assert isinstance(context, zmq.Context)
    assert context._socket_class is aio.Socket
    socket = context.socket(zmq.PUB)
    assert type(socket) is aio.Socket
    assert isinstance(socket, zmq.Socket)
    assert socket.context is context
    blocking = context.socket(zmq.PUB, socket_class=zmq.Socket)
    assert type(blocking) is zmq.Socket
    blocking.close()
    assert repr(socket).startswith(f"<{zmq.__name__}.asyncio.Socket(zmq.PUB)")
    shared = aio.Context.instance()
    assert isinstance(shared, aio.Context)
    assert aio.Context.instance() is shared
    assert zmq.Context.instance() is not shared
    assert aio.Context.shadow(context.underlying).underlying == context.underlying
    socket.close()
    shared.term()
    context.term()


def test_two_tasks_of_one_socket(run, zmq, sockets):
    """One task may wait for the reply before the other has sent the request."""
    rep, req = sockets.pair(zmq.REP, zmq.REQ)

    async def serve():
        while (request := await rep.recv()) != b"end":
            await rep.send(request.upper())
        await rep.send(b"END")

    async def main():
        server = asyncio.ensure_future(serve())
        for request in (b"a", b"b", b"end"):
            reply = asyncio.ensure_future(req.recv())
            await turns()
            assert not reply.done()
            await req.send(request)
            assert await reply == request.upper()
        await server

    run(main())


def test_dealers_and_a_router(run, zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    dealers = [sockets.connected(zmq.DEALER, router) for _ in range(5)]

    async def serve(count):
        for _ in range(count):
            await router.send_multipart(await router.recv_multipart())

    async def ask(dealer, number):
        for turn in range(20):
            await dealer.send_multipart([b"%d" % number, b"%d" % turn])
            assert await dealer.recv_multipart() == [b"%d" % number, b"%d" % turn]

    async def main():
        await asyncio.gather(serve(100), *(ask(*item[::-1]) for item in enumerate(dealers)))

    run(main())


def test_asking_for_events_does_not_disturb_waiting_calls(run, zmq, pipe):
    pull, push = pipe

    async def main():
        futures = [pull.recv() for _ in range(10)]
        for number in range(10):
            await push.send(b"%d" % number)
            pull.get(zmq.EVENTS)
            push.get(zmq.EVENTS)
            await asyncio.sleep(0)
            pull.getsockopt(zmq.EVENTS)
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(10)]

    run(main())


def test_publish_and_subscribe(run, zmq, sockets):
    publisher = sockets.bound(zmq.XPUB)
    subscriber = sockets.connected(zmq.SUB, publisher)

    async def main():
        subscriber.subscribe("a")
        assert await publisher.recv() == b"\x01a"
        received = subscriber.recv_multipart()
        await publisher.send_multipart([b"b", b"1"])
        await publisher.send_multipart([b"a", b"2"])
        assert await received == [b"a", b"2"]

    run(main())


def test_monitors(run, zmq, context):
    monitor_module = subtree(zmq, "utils.monitor")
    pull = context.socket(zmq.PULL)

    async def main():
        monitor = pull.get_monitor_socket()
        assert isinstance(monitor, type(pull))
        event = monitor_module.recv_monitor_message(monitor)
        pull.bind("tcp://127.0.0.1:*")
        assert (await event)["event"] == zmq.EVENT_LISTENING
        attend(zmq, pull)
        pull.disable_monitor()
        assert (await monitor_module.recv_monitor_message(monitor))["event"] == (
            zmq.EVENT_MONITOR_STOPPED
        )
        monitor.close()

    run(main())


# ---- subclasses ---------------------------------------------------------------------


def test_subclasses(run, zmq, aio):
    log = []

    class Socket(aio.Socket):
        def _deserialize(self, recvd, load):
            log.append("deserialize")
            return super()._deserialize(recvd, load)

        def send(self, data, flags=0, **kwargs):
            log.append("send")
            return super().send(data, flags, **kwargs)

        async def recv_upper(self):
            return (await self.recv()).upper()

    class Context(aio.Context):
        _socket_class = Socket

    async def main():
        with Context() as context:
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            assert type(pull) is Socket
            pull.bind("inproc://x")
            push.connect("inproc://x")
            await push.send_string("abc")
            assert await pull.recv_string() == "abc"
            future = pull.recv_json()
            await push.send_json([1])
            assert await future == [1]
            task = asyncio.ensure_future(pull.recv_upper())
            await turns()
            await push.send(b"abc")
            assert await task == b"ABC"
            pull.close()
            push.close()
        assert log == ["send", "deserialize", "deserialize", "send", "send"]

    run(main())


def test_a_programs_own_futures(run, zmq, aio):
    class Future(asyncio.Future):
        pass

    class Socket(aio.Socket):
        _Future = Future

    async def main():
        with aio.Context() as context:
            pull = context.socket(zmq.PULL, socket_class=Socket)
            push = context.socket(zmq.PUSH, socket_class=Socket)
            pull.bind("inproc://x")
            push.connect("inproc://x")
            future = pull.recv()
            assert type(future) is Future
            sent = push.send(b"x")
            assert type(sent) is Future
            await sent
            assert await future == b"x"
            pull.close()
            push.close()

    run(main())


def test_calls_in_another_loop_are_cancelled_although_one_loop_fails(zmq, aio, context):
    class Loop(asyncio.SelectorEventLoop):
        fails = False

        def is_running(self):
            if self.fails:
                raise OSError("broken")
            return super().is_running()

    pull = aio.Socket(context, zmq.PULL)

    async def begin():
        return [pull.recv()]

    loops = [Loop(), Loop()]
    (_,), (second,) = [loop.run_until_complete(begin()) for loop in loops]
    loops[0].fails = True
    with pytest.raises(OSError, match="broken"):
        pull.close()
    assert second.cancelled()
    loops[0].fails = False
    for loop in loops:
        loop.close()


def test_private_names(zmq, aio):
    future = subtree(zmq, "_future")
    assert issubclass(aio.Socket, future._AsyncSocket)
    assert issubclass(aio.Poller, future._AsyncPoller)
    assert issubclass(aio.Socket, future._Async)
    assert aio.Socket._poller_class is aio.Poller
    assert aio.Poller._socket_class is aio.Socket


def test_deprecated_names(zmq, aio):
    assert set(aio.__all__) >= {"Context", "Socket", "Poller", "ZMQEventLoop", "install"}
    with pytest.warns(DeprecationWarning):
        aio.install()
    loop = aio.ZMQEventLoop()
    assert isinstance(loop, asyncio.AbstractEventLoop)
    loop.close()
    with aio.Context() as context, pytest.warns(DeprecationWarning):
        aio.Socket(context, zmq.PUB, io_loop=object()).close()
