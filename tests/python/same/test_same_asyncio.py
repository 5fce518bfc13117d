"""Sockets of asyncio."""

import asyncio
import gc
import inspect
import os
import pickle
import time

import pytest


@pytest.fixture
def aio(part):
    return part("asyncio")


@pytest.fixture
def pair(zmq, aio, run, directory):
    """Runs a coroutine function with a connected pair of sockets."""

    def work(body, one=None, other=None, endpoint="inproc://pair"):
        async def main():
            context = aio.Context()
            with (
                context,
                context.socket(zmq.PUSH if one is None else one) as first,
                context.socket(zmq.PULL if other is None else other) as second,
            ):
                second.linger = first.linger = 0
                second.bind(endpoint)
                first.connect(second.last_endpoint)
                return await body(first, second)

        return run(main())

    return work


def test_classes(zmq, aio):
    assert issubclass(aio.Context, zmq.Context)
    assert issubclass(aio.Socket, zmq.Socket)
    assert issubclass(aio.Poller, zmq.Poller)
    assert aio.Context._socket_class is aio.Socket


def test_made_without_a_loop(zmq, aio):
    with aio.Context() as context, context.socket(zmq.PUSH) as socket:
        assert type(socket) is aio.Socket
        assert socket.context is context


def test_round_trip(pair):
    async def body(push, pull):
        await push.send(b"x")
        return await pull.recv()

    assert pair(body) == b"x"


@pytest.mark.parametrize("endpoint", ["tcp://127.0.0.1:*", "inproc://there"])
def test_receive_first(pair, endpoint):
    async def body(push, pull):
        receiving = asyncio.ensure_future(pull.recv())
        await asyncio.sleep(0)
        assert not receiving.done()
        await push.send(b"x")
        return await receiving

    assert pair(body, endpoint=endpoint) == b"x"


def test_calls_return_futures(pair):
    async def body(push, pull):
        sending = push.send(b"x")
        assert inspect.isawaitable(sending)
        assert isinstance(sending, asyncio.Future)
        assert await sending is None
        receiving = pull.recv()
        assert isinstance(receiving, asyncio.Future)
        return await receiving

    assert pair(body) == b"x"


def test_multipart(pair):
    async def body(push, pull):
        await push.send_multipart([b"a", b"b"])
        await push.send_multipart([b"c"], copy=False)
        return await pull.recv_multipart(), await pull.recv_multipart(copy=False)

    first, second = pair(body)
    assert first == [b"a", b"b"]
    assert [frame.bytes for frame in second] == [b"c"]


def test_parts(zmq, pair):
    async def body(push, pull):
        await push.send(b"a", zmq.SNDMORE)
        await push.send(b"b")
        first = await pull.recv()
        more = pull.rcvmore
        return first, more, await pull.recv(), pull.get(zmq.RCVMORE)

    assert pair(body) == (b"a", 1, b"b", 0)


def test_texts_and_objects(pair):
    async def body(push, pull):
        await push.send_string("grüße")
        await push.send_json({"a": 1}, sort_keys=True)
        await push.send_pyobj((1, 2))
        await push.send_serialized(b"s", lambda body: [body])
        return (
            await pull.recv_string(),
            await pull.recv_json(),
            await pull.recv_pyobj(),
            await pull.recv_serialized(len),
        )

    assert pair(body) == ("grüße", {"a": 1}, (1, 2), 1)


def test_objects_that_arrive_later(pair):
    async def body(push, pull):
        waiting = [pull.recv_json(), pull.recv_string(), pull.recv_pyobj()]
        await push.send_json(1)
        await push.send_string("two")
        await push.send_pyobj(3)
        return [await future for future in waiting]

    assert pair(body) == [1, "two", 3]


def test_what_cannot_be_read(pair):
    async def body(push, pull):
        await push.send(b"{")
        with pytest.raises(ValueError):
            await pull.recv_json()
        waiting = pull.recv_json()
        await push.send(b"[")
        with pytest.raises(ValueError):
            await waiting

    pair(body)


def test_into(pair):
    async def body(push, pull):
        target = bytearray(5)
        await push.send(b"abc")
        assert await pull.recv_into(target) == 3
        return bytes(target)

    assert pair(body) == b"abc\0\0"


def test_frames(zmq, pair):
    async def body(push, pull):
        await push.send(zmq.Frame(b"x"), copy=False)
        return await pull.recv(copy=False)

    assert pair(body).bytes == b"x"


def test_tracked(zmq, pair):
    async def body(push, pull):
        tracker = await push.send(b"x" * 100_000, copy=False, track=True)
        assert isinstance(tracker, zmq.MessageTracker)
        await pull.recv()
        gc.collect()
        tracker.wait(10)

    pair(body)


def test_many_at_once(pair):
    async def body(push, pull):
        waiting = [pull.recv() for _ in range(20)]
        for number in range(20):
            await push.send(b"%d" % number)
        return [await future for future in waiting]

    # Served in the order of the calls.
    assert pair(body) == [b"%d" % number for number in range(20)]


def test_gather(pair):
    async def body(push, pull):
        results = await asyncio.gather(
            *(pull.recv() for _ in range(5)), *(push.send(b"%d" % n) for n in range(5))
        )
        return results

    assert pair(body) == [b"0", b"1", b"2", b"3", b"4", None, None, None, None, None]


def test_cancelled_receive_loses_no_message(pair):
    async def body(push, pull):
        first = pull.recv()
        first.cancel()
        await asyncio.sleep(0)
        await push.send(b"x")
        assert first.cancelled()
        return await pull.recv()

    assert pair(body) == b"x"


def test_timed_out_receive_loses_no_message(pair):
    async def body(push, pull):
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(pull.recv(), 0.01)
        await push.send(b"x")
        return await pull.recv()

    assert pair(body) == b"x"


@pytest.mark.parametrize("method", ["recv", "recv_multipart", "recv_string"])
def test_receive_timeout(zmq, pair, method):
    async def body(push, pull):
        pull.rcvtimeo = 5
        with pytest.raises(zmq.Again):
            await getattr(pull, method)()

    pair(body)


def test_send_timeout(zmq, aio, run):
    async def main():
        with aio.Context() as context, context.socket(zmq.PUSH) as push:
            push.sndtimeo = 5
            with pytest.raises(zmq.Again):
                await push.send(b"x")

    run(main())


def test_without_waiting(zmq, pair):
    async def body(push, pull):
        with pytest.raises(zmq.Again):
            await pull.recv(zmq.DONTWAIT)
        await push.send(b"x", zmq.DONTWAIT)
        return await pull.recv(flags=zmq.DONTWAIT)

    assert pair(body, endpoint="inproc://dontwait") == b"x"


def test_errors_come_when_awaited(zmq, aio, run):
    async def main():
        with aio.Context() as context, context.socket(zmq.REQ) as req:
            future = req.recv(zmq.DONTWAIT)
            with pytest.raises(zmq.ZMQError) as caught:
                await future
            assert caught.value.errno == zmq.EFSM

    run(main())


def test_wrong_types_raise(pair):
    async def body(push, pull):
        with pytest.raises(TypeError):
            await push.send("text")
        with pytest.raises(TypeError):
            await push.send_multipart([b"a", "text"])
        await push.send(b"goes on")
        return await pull.recv()

    assert pair(body) == b"goes on"


def test_closing_cancels(pair):
    async def body(push, pull):
        waiting = pull.recv()
        pull.close()
        await asyncio.sleep(0)
        assert waiting.cancelled()

    pair(body)


def test_closed(zmq, pair):
    async def body(push, pull):
        push.close()
        with pytest.raises(zmq.ZMQError):
            await push.send(b"x")

    pair(body)


def test_poll(zmq, pair):
    async def body(push, pull):
        assert await pull.poll(0) == 0
        assert await pull.poll(timeout=2) == 0
        assert await push.poll(1000, zmq.POLLOUT) == zmq.POLLOUT
        waiting = asyncio.ensure_future(pull.poll(5000))
        await push.send(b"x")
        assert await waiting == zmq.POLLIN
        return await pull.recv()

    assert pair(body) == b"x"


def test_poller(zmq, aio, pair):
    async def body(push, pull):
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        assert await poller.poll(0) == []
        assert await poller.poll(timeout=2) == []
        waiting = asyncio.ensure_future(poller.poll(5000))
        await push.send(b"x")
        assert await waiting == [(pull, zmq.POLLIN)]
        poller.register(push, zmq.POLLOUT)
        assert dict(await poller.poll(1000)) == {pull: zmq.POLLIN, push: zmq.POLLOUT}

    pair(body)


@pytest.mark.parametrize("call", ["poller", "poll", "recv"])
def test_a_message_that_arrives_in_time_while_the_loop_is_busy(zmq, aio, pair, call):
    async def body(push, pull):
        pull.rcvtimeo = 200
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        calls = {
            "poller": (lambda: poller.poll(200), [(pull, zmq.POLLIN)]),
            "poll": (lambda: pull.poll(200), zmq.POLLIN),
            "recv": (pull.recv, b"x"),
        }
        begin, result = calls[call]
        waiting = asyncio.ensure_future(begin())
        await asyncio.sleep(0)
        await push.send(b"x")
        time.sleep(0.3)
        assert await waiting == result

    pair(body)


def test_poller_of_descriptors(zmq, aio, run):
    async def main():
        reading, writing = os.pipe()
        poller = aio.Poller()
        poller.register(reading, zmq.POLLIN)
        assert await poller.poll(1) == []
        waiting = asyncio.ensure_future(poller.poll(5000))
        await asyncio.sleep(0)
        os.write(writing, b"x")
        assert await waiting == [(reading, zmq.POLLIN)]
        os.close(reading)
        os.close(writing)

    run(main())


def test_shadow(zmq, aio, context, run):
    async def main():
        with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
            pull.bind("inproc://shadow")
            push.connect("inproc://shadow")
            own = aio.Socket(pull)
            other = aio.Socket.from_socket(push)
            assert (own.underlying, own.type) == (pull.underlying, zmq.PULL)
            waiting = own.recv()
            push.send(b"sync")
            assert await waiting == b"sync"
            await other.send(b"async")
            assert pull.recv() == b"async"

    run(main())


def test_blocking_handle(zmq, pair):
    async def body(push, pull):
        await push.send(b"x")
        blocking = zmq.Socket.shadow(pull)
        assert type(blocking) is zmq.Socket
        assert blocking.poll(1000) == zmq.POLLIN
        return blocking.recv()

    assert pair(body) == b"x"


def test_contexts_share(zmq, aio, context):
    shadow = aio.Context.shadow(context)
    assert shadow.underlying == context.underlying
    assert aio.Context(context).underlying == context.underlying
    with shadow.socket(zmq.PULL) as socket:
        assert type(socket) is aio.Socket


def test_instances_differ(zmq, aio):
    own, blocking = aio.Context.instance(), zmq.Context.instance()
    assert type(own) is aio.Context
    assert own is not blocking
    own.term()
    blocking.term()


def test_one_loop_after_the_other(zmq, aio, run):
    context = aio.Context()
    push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
    pull.bind("inproc://loops")
    push.connect("inproc://loops")

    async def main():
        waiting = asyncio.ensure_future(pull.recv())
        await asyncio.sleep(0)
        await push.send(b"x")
        return await waiting

    assert [run(main()) for _ in range(3)] == [b"x"] * 3
    context.destroy(linger=0)


def test_async_with(zmq, aio, run):
    async def main():
        with aio.Context() as context:
            with context.socket(zmq.PUSH) as socket:
                pass
            assert socket.closed

    run(main())


def test_repr(zmq, aio):
    with aio.Context() as context, context.socket(zmq.PUSH) as socket:
        assert "zmq.PUSH" in repr(socket)
        assert "1 socket" in repr(context)


def test_subclass(zmq, aio, run):
    class Own(aio.Socket):
        async def twice(self, body):
            await self.send(body)
            await self.send(body)

    class Context(aio.Context):
        _socket_class = Own

    async def main():
        with (
            Context() as context,
            context.socket(zmq.PUSH) as push,
            context.socket(zmq.PULL) as pull,
        ):
            pull.bind("inproc://sub")
            push.connect("inproc://sub")
            await push.twice(b"x")
            return await pull.recv(), await pull.recv()

    assert run(main()) == (b"x", b"x")


def test_request_and_reply(zmq, pair):
    async def body(req, rep):
        async def serve():
            for _ in range(3):
                await rep.send(b"re:" + await rep.recv())

        serving = asyncio.ensure_future(serve())
        answers = []
        for number in range(3):
            await req.send(b"%d" % number)
            answers.append(await req.recv())
        await serving
        return answers

    assert pair(body, zmq.REQ, zmq.REP) == [b"re:0", b"re:1", b"re:2"]


def test_monitor(zmq, part, pair):
    monitoring = part("utils.monitor")

    async def body(push, pull):
        monitor = pull.get_monitor_socket()
        assert inspect.isawaitable(monitor.poll(0))
        push.disconnect(pull.last_endpoint)
        push.connect(pull.last_endpoint)
        event = await monitoring.recv_monitor_message(monitor)
        pull.disable_monitor()
        return event

    event = pair(body, endpoint="tcp://127.0.0.1:*")
    assert event["event"] in zmq.Event
    assert event["endpoint"].startswith(b"tcp://127.0.0.1:")


def test_io_loop_is_deprecated(zmq, aio, context, run):
    async def main():
        loop = asyncio.get_running_loop()
        with pytest.warns(DeprecationWarning), context.socket(zmq.PULL) as pull:
            aio.Socket(pull, io_loop=loop)

    run(main())


def test_pickles_of_an_overridden_recv(zmq, part, run):
    aio = part("asyncio")

    class Reversing(aio.Socket):
        def recv(self, flags=0):
            return asyncio.ensure_future(self.reversed(super().recv(flags)))

        async def reversed(self, recvd):
            return (await recvd)[::-1]

    async def program():
        with aio.Context() as context, context.socket(zmq.PUSH) as push:
            push.bind("inproc://pickles")
            with Reversing(context, zmq.PULL) as pull:
                pull.connect("inproc://pickles")
                await push.send(pickle.dumps([1])[::-1])
                assert await pull.recv_pyobj() == [1]

    run(program())


def test_multipart_calls_of_an_overridden_recv(zmq, part, run):
    """Asynchronous sockets do not receive parts by `recv`, in either library."""
    aio = part("asyncio")

    class Reversing(aio.Socket):
        async def recv(self, *args, **kwargs):
            return (await super().recv(*args, **kwargs))[::-1]

    async def program():
        with aio.Context() as context, context.socket(zmq.PUSH) as push:
            push.bind("inproc://overridden")
            with Reversing(context, zmq.PULL) as pull:
                pull.connect("inproc://overridden")
                await push.send_multipart([b"ab", b"cd"])
                assert await pull.recv_multipart() == [b"ab", b"cd"]

    run(program())
