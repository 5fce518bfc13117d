"""Sockets of asyncio: what pyzmq and zeroxide have in common."""

import asyncio
import os
import threading

import pytest
from loops import LOOPS, readable, run_in, subtree, turns
from support import PATIENCE, Sockets, attend


@pytest.fixture(params=LOOPS)
def run(request):
    """Runs a coroutine."""
    return lambda main: run_in(request.param, main)


@pytest.fixture
def aio(zmq):
    return subtree(zmq, "asyncio")


@pytest.fixture
def context(aio):
    context = aio.Context()
    context.linger = 0
    yield context
    context.destroy(linger=0)


@pytest.fixture
def sockets(zmq, context, directory):
    return Sockets(zmq, context, directory)


@pytest.fixture
def pipe(zmq, sockets):
    """A PULL and a PUSH socket."""
    return sockets.pair(zmq.PULL, zmq.PUSH)


# ---- every form ---------------------------------------------------------------------


FORMS = {
    "recv": (
        lambda s: s.send(b"body"),
        lambda s: s.recv(),
        b"body",
    ),
    "recv frame": (
        lambda s: s.send(b"body", copy=False),
        lambda s: s.recv(copy=False),
        b"body",
    ),
    "multipart": (
        lambda s: s.send_multipart([b"a", b"", b"c"]),
        lambda s: s.recv_multipart(),
        [b"a", b"", b"c"],
    ),
    "multipart frames": (
        lambda s: s.send_multipart([b"a", bytearray(b"b")], copy=False),
        lambda s: s.recv_multipart(copy=False),
        [b"a", b"b"],
    ),
    "string": (
        lambda s: s.send_string("æ"),
        lambda s: s.recv_string(),
        "æ",
    ),
    "string with encoding": (
        lambda s: s.send_string("æ", encoding="latin-1"),
        lambda s: s.recv_string(encoding="latin-1"),
        "æ",
    ),
    "json": (
        lambda s: s.send_json({"a": [1, None]}),
        lambda s: s.recv_json(),
        {"a": [1, None]},
    ),
    "pyobj": (
        lambda s: s.send_pyobj((1, {2})),
        lambda s: s.recv_pyobj(),
        (1, {2}),
    ),
    "serialized": (
        lambda s: s.send_serialized([1, 2], lambda items: [b"%d" % i for i in items]),
        lambda s: s.recv_serialized(lambda frames: [int(f) for f in frames]),
        [1, 2],
    ),
    "serialized frames": (
        lambda s: s.send_serialized([1], lambda items: [b"%d" % i for i in items], copy=False),
        lambda s: s.recv_serialized(lambda frames: [int(f.bytes) for f in frames], copy=False),
        [1],
    ),
}


def plain(received):
    """Frames as their bytes."""
    if isinstance(received, list):
        return [plain(part) for part in received]
    return getattr(received, "bytes", received)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("waits", [True, False], ids=["waits", "is there"])
def test_forms(run, pipe, form, waits):
    pull, push = pipe
    send, receive, expected = FORMS[form]

    async def main():
        if waits:
            future = asyncio.ensure_future(receive(pull))
            assert not future.done()
            await send(push)
            assert plain(await future) == expected
        else:
            await send(push)
            await readable(pull)
            future = receive(pull)
            await turns()
            assert future.done()
            assert plain(await future) == expected

    run(main())


@pytest.mark.parametrize("waits", [True, False], ids=["waits", "is there"])
def test_recv_into(run, pipe, waits):
    pull, push = pipe

    async def main():
        buffer = bytearray(5)
        if waits:
            future = pull.recv_into(buffer)
            await push.send(b"abc")
        else:
            await push.send(b"abc")
            await readable(pull)
            future = pull.recv_into(buffer)
        assert await future == 3
        assert buffer == b"abc\0\0"
        await push.send(b"xyz")
        assert await pull.recv_into(memoryview(buffer)[1:], nbytes=2) == 3
        assert buffer == b"axy\0\0"

    run(main())


def test_parts_one_at_a_time(run, zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send(b"a", zmq.SNDMORE)
        await push.send(b"b")
        assert await pull.recv() == b"a"
        assert pull.rcvmore
        assert await pull.recv() == b"b"
        assert not pull.rcvmore
        first, second = pull.recv(), pull.recv()
        await push.send_multipart([b"c", b"d"])
        assert [await first, await second] == [b"c", b"d"]
        future = pull.recv(copy=False)
        await push.send_multipart([b"e", b"f"])
        frame = await future
        assert frame.more
        assert await pull.recv_multipart() == [b"f"]

    run(main())


def test_tracking(run, pipe):
    pull, push = pipe

    async def main():
        assert await push.send(b"small") is None
        tracker = await push.send(b"x" * 100_000, copy=False, track=True)
        assert await pull.recv() == b"small"
        frame = await pull.recv(copy=False, track=True)
        assert frame.tracker is not None and frame.tracker.done
        assert len(frame) == 100_000
        tracker.wait(PATIENCE)
        tracker = await push.send_multipart([b"a", b"b"], copy=False, track=True)
        assert await pull.recv_multipart() == [b"a", b"b"]
        tracker.wait(PATIENCE)

    run(main())


# ---- futures ------------------------------------------------------------------------


def test_a_call_is_a_future(run, pipe):
    pull, push = pipe

    async def main():
        pending = pull.recv()
        assert isinstance(pending, asyncio.Future)
        assert asyncio.isfuture(pending)
        assert asyncio.ensure_future(pending) is pending
        sent = push.send(b"x")
        assert isinstance(sent, asyncio.Future)
        assert asyncio.isfuture(sent)
        assert asyncio.ensure_future(sent) is sent
        assert sent.done() and not sent.cancelled() and sent.exception() is None
        assert sent.result() is None
        assert not sent.cancel()
        assert sent.get_loop() is asyncio.get_running_loop()
        with pytest.raises(asyncio.InvalidStateError):
            sent.set_result(1)
        with pytest.raises(asyncio.InvalidStateError):
            sent.set_exception(ValueError())
        assert await pending == b"x"
        assert await pending == b"x"

    run(main())


def test_callbacks_run_in_the_loop(run, pipe):
    pull, push = pipe

    async def main():
        seen = []
        sent = push.send(b"x")
        sent.add_done_callback(seen.append)
        assert seen == []
        await turns()
        assert seen == [sent]
        received = pull.recv()
        received.add_done_callback(seen.append)
        await received
        await turns()
        assert seen == [sent, received]

    run(main())


def test_with_asyncios_functions(run, pipe):
    pull, push = pipe

    async def main():
        await asyncio.gather(*(push.send(b"%d" % i) for i in range(5)))
        assert await asyncio.gather(*(pull.recv() for _ in range(5))) == [
            b"%d" % i for i in range(5)
        ]
        done, pending = await asyncio.wait([push.send(b"a"), push.send(b"b")])
        assert len(done) == 2 and not pending
        assert await asyncio.wait_for(pull.recv(), PATIENCE) == b"a"
        assert await asyncio.shield(pull.recv()) == b"b"
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv(), 0.001)
        done, pending = await asyncio.wait([pull.recv(), pull.recv()], timeout=0.001)
        assert not done and len(pending) == 2
        await push.send(b"c")
        done, pending = await asyncio.wait(pending, return_when=asyncio.FIRST_COMPLETED)
        assert [future.result() for future in done] == [b"c"]
        for future in pending:
            future.cancel()
        results = []
        for number in range(3):
            await push.send(b"%d" % number)
        for next_one in asyncio.as_completed([pull.recv(), pull.recv(), pull.recv()]):
            results.append(await next_one)
        assert sorted(results) == [b"0", b"1", b"2"]
        task = asyncio.ensure_future(asyncio.wait_for(pull.recv_multipart(), PATIENCE))
        await push.send_multipart([b"x", b"y"])
        assert await task == [b"x", b"y"]

    run(main())


def test_receivers_are_served_in_order(run, pipe):
    pull, push = pipe

    async def main():
        order = []
        futures = [pull.recv() for _ in range(20)]
        for number, future in enumerate(futures):
            future.add_done_callback(lambda _, number=number: order.append(number))
        for number in range(20):
            await push.send(b"%d" % number)
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(20)]
        await turns()
        assert order == list(range(20))

    run(main())


def test_different_calls_wait_in_one_queue(run, pipe):
    pull, push = pipe

    async def main():
        calls = [pull.recv(), pull.recv_multipart(), pull.recv_string(), pull.recv_json()]
        for body in (b"a", b"b", b"c", b"4"):
            await push.send(body)
        assert await asyncio.gather(*calls) == [b"a", [b"b"], "c", 4]

    run(main())


def test_senders_wait_in_order(run, zmq, sockets):
    pull = sockets.bound(zmq.PULL, rcvhwm=1)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=1)
    body = b"x" * 100_000

    async def main():
        futures = []
        while not futures or futures[-1].done():
            futures.append(push.send(b"%06d" % len(futures) + body))
        futures += [push.send(b"%06d" % (len(futures) + more) + body) for more in range(5)]
        numbers = [int((await pull.recv())[:6]) for _ in futures]
        assert numbers == list(range(len(futures)))
        await asyncio.gather(*futures)

    run(main())


def test_sending_waits_for_a_peer(run, zmq, sockets, context):
    push = context.socket(zmq.PUSH)

    async def main():
        futures = [push.send(b"a"), push.send_multipart([b"b", b"c"]), push.send_json(4)]
        await turns()
        assert not any(future.done() for future in futures)
        pull = sockets.bound(zmq.PULL)
        push.connect(pull.last_endpoint.decode())
        assert await pull.recv_multipart() == [b"a"]
        assert await pull.recv_multipart() == [b"b", b"c"]
        assert await pull.recv_json() == 4
        await asyncio.gather(*futures)

    run(main())


# ---- cancelling ---------------------------------------------------------------------


def test_a_cancelled_call_takes_no_message(run, pipe):
    pull, push = pipe

    async def main():
        futures = [pull.recv() for _ in range(5)]
        assert futures[0].cancel()
        assert futures[3].cancel()
        for number in range(3):
            await push.send(b"%d" % number)
        received = await asyncio.gather(*futures, return_exceptions=True)
        assert [r for r in received if isinstance(r, bytes)] == [b"0", b"1", b"2"]
        assert isinstance(received[0], asyncio.CancelledError)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv_multipart(), 0.001)
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv_string(), 0.001)
        await push.send_string("last")
        assert await pull.recv_string() == "last"

    run(main())


def test_a_cancelled_send_sends_nothing(run, zmq, sockets, context):
    push = context.socket(zmq.PUSH)

    async def main():
        futures = [push.send(b"%d" % number) for number in range(4)]
        futures[1].cancel()
        futures[2].cancel()
        pull = sockets.bound(zmq.PULL)
        push.connect(pull.last_endpoint.decode())
        assert [await pull.recv(), await pull.recv()] == [b"0", b"3"]

    run(main())


@pytest.mark.parametrize(
    "call",
    [
        "recv",
        "recv_multipart",
        pytest.param("recv_string", marks=pytest.mark.zeroxide_only),
        "poll",
    ],
)
def test_closing_cancels(run, pipe, call):
    pull, _push = pipe

    async def main():
        futures = [getattr(pull, call)() for _ in range(3)]
        task = asyncio.ensure_future(asyncio.wait(futures))
        await turns()
        pull.close()
        await task
        assert all(future.cancelled() for future in futures)
        assert pull.closed

    run(main())


def test_closing_cancels_senders(run, zmq, context):
    push = context.socket(zmq.PUSH)

    async def main():
        future = push.send(b"x")
        await turns()
        push.close()
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_a_closed_socket_raises(run, zmq, pipe):
    pull, push = pipe
    pull.close()
    push.close()

    async def main():
        with pytest.raises(zmq.ZMQError) as caught:
            pull.recv()
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            await pull.recv(zmq.DONTWAIT)
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            await push.send(b"x")
        assert caught.value.errno == zmq.ENOTSOCK
        with pytest.raises(zmq.ZMQError) as caught:
            pull.poll()
        assert caught.value.errno == zmq.ENOTSUP

    run(main())


# ---- time-outs and flags ------------------------------------------------------------


def test_timeouts(run, zmq, pipe, context):
    pull, push = pipe

    async def main():
        pull.rcvtimeo = 5
        for call in (pull.recv, pull.recv_multipart, pull.recv_string):
            with pytest.raises(zmq.Again):
                await call()
        results = await asyncio.gather(pull.recv(), pull.recv(), return_exceptions=True)
        assert [type(result) for result in results] == [zmq.Again, zmq.Again]
        lonely = context.socket(zmq.PUSH)
        lonely.sndtimeo = 5
        for call in (lonely.send, lonely.send_string):
            with pytest.raises(zmq.Again):
                await call("x" if call == lonely.send_string else b"x")
        pull.rcvtimeo = int(PATIENCE * 1000)
        future = pull.recv()
        await push.send(b"in time")
        assert await future == b"in time"

    run(main())


def test_dontwait(run, zmq, pipe, context):
    pull, push = pipe
    lonely = context.socket(zmq.PUSH)

    async def main():
        for call in (pull.recv, pull.recv_multipart, pull.recv_string, pull.recv_json):
            with pytest.raises(zmq.Again):
                await call(zmq.DONTWAIT)
        future = pull.recv(zmq.NOBLOCK)
        assert future.done()
        assert isinstance(future.exception(), zmq.Again)
        with pytest.raises(zmq.Again):
            await lonely.send(b"x", zmq.DONTWAIT)
        await push.send(b"x", zmq.DONTWAIT)
        await readable(pull)
        assert await pull.recv(zmq.DONTWAIT) == b"x"

    run(main())


def test_mistakes_are_in_the_future(run, zmq, pipe):
    pull, push = pipe

    async def main():
        for call in (lambda: push.send("text"), lambda: push.send_multipart(["text"])):
            future = call()
            with pytest.raises(TypeError):
                await future
        await push.send(b"not json")
        with pytest.raises(ValueError):
            await pull.recv_json()
        future = pull.recv_json()
        await push.send(b"not json")
        with pytest.raises(ValueError):
            await future
        future = pull.recv_serialized(lambda frames: 1 / 0)
        await push.send(b"x")
        with pytest.raises(ZeroDivisionError):
            await future

    run(main())


# ---- polling ------------------------------------------------------------------------


def test_poll(run, zmq, pipe):
    pull, push = pipe

    async def main():
        assert await pull.poll(0) == 0
        assert await pull.poll(5) == 0
        assert await push.poll(None, zmq.POLLOUT) == zmq.POLLOUT
        assert await push.poll(0, zmq.POLLIN | zmq.POLLOUT) == zmq.POLLOUT
        future = pull.poll()
        assert not future.done()
        await push.send(b"x")
        assert await future == zmq.POLLIN
        assert await pull.poll(timeout=0) == zmq.POLLIN
        assert await pull.recv() == b"x"
        future = pull.poll()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_poll_for_writing(run, zmq, sockets, context):
    push = context.socket(zmq.PUSH)

    async def main():
        assert await push.poll(0, zmq.POLLOUT) == 0
        future = push.poll(None, zmq.POLLOUT)
        pull = sockets.bound(zmq.PULL)
        push.connect(pull.last_endpoint.decode())
        assert await future == zmq.POLLOUT

    run(main())


def test_poller(run, zmq, aio, sockets):
    one, to_one = sockets.pair(zmq.PULL, zmq.PUSH)
    two, to_two = sockets.pair(zmq.PULL, zmq.PUSH)

    async def main():
        poller = aio.Poller()
        assert await poller.poll(0) == []
        assert await poller.poll(5) == []
        poller.register(one, zmq.POLLIN)
        poller.register(two, zmq.POLLIN)
        assert await poller.poll(0) == []
        assert await poller.poll(5) == []
        future = poller.poll()
        await to_two.send(b"x")
        assert await future == [(two, zmq.POLLIN)]
        await to_one.send(b"x")
        await readable(one)
        assert await poller.poll() == [(one, zmq.POLLIN), (two, zmq.POLLIN)]
        await one.recv()
        await two.recv()
        future = poller.poll()
        await turns()
        future.cancel()
        with pytest.raises(asyncio.CancelledError):
            await future
        poller.register(to_one, zmq.POLLOUT)
        assert await poller.poll() == [(to_one, zmq.POLLOUT)]

    run(main())


def test_poller_with_descriptors_and_blocking_sockets(run, zmq, aio, sockets, context):
    reader, writer = os.pipe()
    blocking = zmq.Context(context).socket(zmq.PULL, socket_class=zmq.Socket)
    blocking.bind("tcp://127.0.0.1:*")
    push = sockets.connected(zmq.PUSH, blocking)

    async def main():
        poller = aio.Poller()
        poller.register(reader, zmq.POLLIN)
        poller.register(blocking, zmq.POLLIN)
        future = poller.poll()
        os.write(writer, b"x")
        assert await future == [(reader, zmq.POLLIN)]
        os.read(reader, 1)
        future = poller.poll()
        await push.send(b"x")
        assert await future == [(blocking, zmq.POLLIN)]
        assert blocking.recv() == b"x"
        poller.unregister(blocking)
        poller.register(writer, zmq.POLLOUT)
        assert await poller.poll() == [(writer, zmq.POLLOUT)]

    try:
        run(main())
    finally:
        blocking.close()
        os.close(reader)
        os.close(writer)


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
def test_what_waited_in_a_closed_loop_takes_nothing(zmq, pipe):
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


def test_asking_for_events_disturbs_nobody(run, zmq, pipe):
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
