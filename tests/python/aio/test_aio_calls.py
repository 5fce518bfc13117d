"""Sockets of asyncio: every call, and the futures it returns."""

import asyncio
import gc
import weakref

import pytest
from loops import readable, turns
from support import PATIENCE

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
    """Replaces frames by their bytes."""
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


def test_a_call_supports_what_a_future_supports(run, pipe):
    """Attributes, weak references, and cycles that the garbage collector finds."""
    pull, push = pipe

    async def main():
        await push.send(b"x")
        for call in (pull.recv, lambda: push.send(b"x")):
            if call == pull.recv:
                await readable(pull)
            future = call()
            future.attribute = [future]
            assert future.attribute == [future] and vars(future)["attribute"][0] is future
            assert gc.is_tracked(future)
            alive = weakref.ref(future)
            assert alive() is future
            del future
            gc.collect()
            assert alive() is None

    run(main())


@pytest.mark.parametrize("value", [None, b"body", [1], (), (1, 2), ValueError("a value")])
def test_driving_a_call_by_hand_gets_its_result(run, pipe, value):
    pull, push = pipe

    async def main():
        for _ in range(2):
            await push.send(b"x")
            await readable(pull)
            call = pull.recv_serialized(lambda parts: value)
            for _ in range(2):
                with pytest.raises(StopIteration) as end:
                    next(call.__await__())
                assert end.value.value is value
            assert await call is value

    run(main())


def test_a_call_belongs_to_the_loop_it_was_made_in(run, pipe):
    pull, push = pipe

    async def main():
        loop = asyncio.get_running_loop()
        sent, unknown = push.send(b"x"), push.send(b"y")
        assert sent.get_loop() is loop
        names, called = [], loop.create_future()

        def elsewhere():
            names.append(sent.get_loop())
            if type(unknown).__name__ == "Ready":
                with pytest.raises(RuntimeError):
                    unknown.get_loop()

            async def within():
                names.append(sent.get_loop())

            asyncio.run(within())

        await asyncio.to_thread(elsewhere)
        assert names == [loop, loop]
        sent.add_done_callback(lambda _: called.set_result(asyncio.get_running_loop()))
        assert await called is loop
        assert await pull.recv() == b"x"

    run(main())


def test_the_first_part_waits_for_room(run, zmq, sockets, context):
    async def main():
        lonely = context.socket(zmq.PUSH)
        with pytest.raises(zmq.Again):
            await lonely.send(b"1", zmq.SNDMORE | zmq.DONTWAIT)
        with pytest.raises(zmq.Again):
            await lonely.send_multipart([b"1", b"2"], zmq.SNDMORE | zmq.DONTWAIT)
        first = lonely.send(b"1", zmq.SNDMORE)
        assert not first.done()
        pull = sockets.bound(zmq.PULL)
        lonely.connect(pull.last_endpoint.decode())
        await first
        await lonely.send_multipart([b"2", b"3"], zmq.SNDMORE)
        await lonely.send(b"4")
        assert await pull.recv_multipart() == [b"1", b"2", b"3", b"4"]
        lonely.close()

    run(main())


def test_the_first_part_raises_the_error(run, zmq, context):
    async def main():
        router = context.socket(zmq.ROUTER)
        router.router_mandatory = 1
        with pytest.raises(zmq.ZMQError) as caught:
            await router.send(b"nobody", zmq.SNDMORE)
        assert caught.value.errno == zmq.EHOSTUNREACH
        with pytest.raises(zmq.ZMQError) as caught:
            await context.socket(zmq.REP).send(b"x", zmq.SNDMORE)
        assert caught.value.errno == zmq.EFSM

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
