"""Sockets of asyncio: what zeroxide has, or does better."""

import asyncio
import gc
import random
import weakref

import pytest
from loops import LOOPS, CountingSelector, readable, run_in, subtree, turns
from support import PATIENCE, Background, Sockets, run_script

pytestmark = pytest.mark.zeroxide_only


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


# ---- batches and iteration ----------------------------------------------------------


def test_recv_batch(run, zmq, pipe):
    pull, push = pipe

    async def main():
        waiting = pull.recv_batch()
        assert not waiting.done()
        await push.send(b"a")
        assert await waiting == [b"a"]
        messages = [b"%d" % number for number in range(100)]
        assert await push.send_batch(messages) == 100
        received = []
        while len(received) < 100:
            batch = await pull.recv_batch(7)
            assert 1 <= len(batch) <= 7
            received += batch
        assert received == messages
        await push.send_multipart([b"x", b"y"])
        await push.send(b"z")
        received = await pull.recv_batch()
        while len(received) < 2:
            received += await pull.recv_batch()
        assert received == [[b"x", b"y"], b"z"]
        await push.send(b"z")
        assert await pull.recv_batch(multipart=True) == [[b"z"]]
        with pytest.raises(zmq.Again):
            await pull.recv_batch(timeout=5)
        with pytest.raises(zmq.Again):
            await pull.recv_batch(timeout=0)
        with pytest.raises(zmq.Again):
            await pull.recv_batch(flags=zmq.DONTWAIT)
        with pytest.raises(ValueError):
            pull.recv_batch(0)

    run(main())


def test_send_batch_waits(run, zmq, sockets):
    pull = sockets.bound(zmq.PULL, rcvhwm=10)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=10)
    body = b"x" * 10_000

    async def main():
        batch = push.send_batch([b"%06d" % number + body for number in range(1000)])
        behind = push.send(b"%06d" % 1000 + body)
        assert not batch.done() and not behind.done()
        numbers = [int((await pull.recv())[:6]) for _ in range(1001)]
        assert numbers == list(range(1001))
        assert await batch == 1000
        await behind
        assert await push.send_batch([]) == 0
        with pytest.raises(TypeError):
            await push.send_batch([b"x", "text"])

    run(main())


def test_send_batch_runs_out_of_time(run, zmq, sockets, context):
    lonely = context.socket(zmq.PUSH)

    async def main():
        lonely.sndtimeo = 5
        with pytest.raises(zmq.Again):
            await lonely.send_batch([b"x"])
        with pytest.raises(zmq.Again):
            await lonely.send_batch([b"x"], zmq.DONTWAIT)
        pull = sockets.bound(zmq.PULL, rcvhwm=1)
        push = sockets.connected(zmq.PUSH, pull, sndhwm=1, sndtimeo=50)
        sent = await push.send_batch([b"x" * 100_000] * 1000)
        assert 0 < sent < 1000

    run(main())


def test_async_for(run, zmq, pipe):
    pull, push = pipe

    async def consume():
        received = []
        async for message in pull:
            received.append(message)
            if message == b"last":
                break
        return received

    async def main():
        task = asyncio.ensure_future(consume())
        await turns()
        await push.send(b"a")
        await push.send_multipart([b"b", b"c"])
        await push.send(b"last")
        await push.send(b"not taken")
        assert await task == [b"a", [b"b", b"c"], b"last"]
        assert await pull.recv() == b"not taken"
        # Closing ends it, whether or not it waits.
        task = asyncio.ensure_future(consume())
        await turns()
        pull.close()
        assert await task == []
        assert await consume() == []

    run(main())


def test_async_with(run, zmq, aio):
    async def main():
        async with aio.Context() as context:
            async with context.socket(zmq.PULL) as pull:
                pull.bind("inproc://x")
                pending = pull.recv()
            assert pull.closed
            assert pending.cancelled()
            left_open = context.socket(zmq.PUB)
        assert context.closed and left_open.closed

    run(main())


# ---- what is there costs no turn ----------------------------------------------------


def test_what_is_there_costs_no_turn(run, zmq, pipe):
    pull, push = pipe

    async def main():
        loop, count = asyncio.get_running_loop(), 500
        for number in range(count):
            await push.send(b"%d" % number)
        turned = []
        for number in range(count):
            await readable(pull)
            loop.call_soon(turned.append, number)
            assert await pull.recv() == b"%d" % number
            assert not turned
            await asyncio.sleep(0)
            turned.clear()

    run(main())


def test_a_burst_wakes_the_loop_once(zmq, pipe):
    pull, push = pipe
    selector = CountingSelector()

    async def main():
        futures = [pull.recv() for _ in range(200)]
        await turns()
        before = selector.wakes
        blocking = push._shadow_sock
        for number in range(200):
            blocking.send(b"%d" % number)
        # Until all of it has arrived the loop stands still.
        while pull.stats()["queued_in"] < 200:
            pass
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(200)]
        assert selector.wakes - before <= 2

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


def test_nobody_waits_nobody_wakes(zmq, pipe):
    """Messages that nobody waits for leave the loop alone, before and after somebody did."""
    pull, push = pipe
    selector = CountingSelector()

    async def main():
        future = pull.recv()
        await push.send(b"x")
        await future
        cancelled = pull.recv()
        await turns()
        cancelled.cancel()
        push._shadow_sock.send(b"y")
        while not pull.stats()["queued_in"]:
            pass
        await turns(10)
        before = selector.wakes
        await turns(50)
        assert selector.wakes == before
        assert await pull.recv() == b"y"

    with asyncio.Runner(loop_factory=lambda: asyncio.SelectorEventLoop(selector)) as runner:
        runner.run(main())


def test_a_socket_that_never_waits_needs_no_descriptor(run, zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send(b"x")
        assert pull._shadow_sock.poll(PATIENCE * 1000)
        loop = asyncio.get_running_loop()
        add_reader, added = loop.add_reader, []
        if isinstance(loop, asyncio.BaseEventLoop):
            loop.add_reader = lambda *arguments: (added.append(arguments), add_reader(*arguments))
        assert await pull.recv() == b"x"
        assert not added

    run(main())


# ---- nothing is lost ----------------------------------------------------------------


FORMS = {
    "recv": b"0",
    "recv_multipart": [b"0"],
    "recv_string": "0",
    "recv_json": 0,
    "recv_batch": [b"0"],
    "__anext__": b"0",
}


@pytest.mark.parametrize("form", FORMS)
def test_cancelled_between_result_and_wakeup(run, pipe, form):
    """A task is cancelled when its call is done already, but before it goes on."""
    pull, push = pipe

    async def main():
        task = asyncio.ensure_future(_await(getattr(pull, form)()))
        await turns()
        push._shadow_sock.send(b"0")
        while not pull.stats()["queued_in"]:
            pass
        # Serves those that wait, here and now.
        late = pull.recv()
        assert pull.stats()["queued_in"] == 0
        task.cancel()
        late.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await getattr(pull, form)() == FORMS[form]
        assert await pull.poll(0) == 0

    run(main())


@pytest.mark.parametrize("parts", [1, 3])
def test_done_and_cancelled_in_one_turn(zmq, pipe, parts):
    """The same, made to happen, with several tasks: what they got is received in order."""
    pull, push = pipe

    async def main():
        messages = [[b"%d.%d" % (number, part) for part in range(parts)] for number in (1, 2)]
        tasks = [asyncio.ensure_future(_await(pull.recv())) for _ in range(2 * parts)]
        await turns()
        futures = [task._fut_waiter for task in tasks]
        for message in messages:
            push._shadow_sock.send_multipart(message)
        while pull.stats()["queued_in"] < 2:
            pass
        # Serves those that wait, here and now.
        late = pull.recv()
        assert all(future.done() for future in futures)
        for task in tasks:
            task.cancel()
        late.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert all(future.cancelled() for future in futures)
        assert [await pull.recv() for _ in range(2 * parts)] == [*messages[0], *messages[1]]
        assert await pull.poll(0) == 0

    run_in("asyncio", main())


async def _await(future):
    return await future


def test_what_is_given_back_is_seen_by_all(zmq, pipe):
    pull, push = pipe
    blocking = pull._shadow_sock

    async def main():
        task = asyncio.ensure_future(_await(pull.recv_multipart(copy=False)))
        await turns()
        push._shadow_sock.send_multipart([b"a", b"b"])
        while not pull.stats()["queued_in"]:
            pass
        pull.recv().cancel()
        assert await pull.poll(0) == 0
        task.cancel()
        await asyncio.wait([task])
        assert await pull.poll(0) == zmq.POLLIN
        assert blocking.poll(0) == zmq.POLLIN
        assert pull.get(zmq.EVENTS) & zmq.POLLIN
        frames = blocking.recv_multipart(copy=False)
        assert [frame.bytes for frame in frames] == [b"a", b"b"]
        assert frames[0].get("Socket-Type") == "PUSH"
        assert await pull.poll(0) == 0

    run_in("asyncio", main())


@pytest.mark.parametrize("removed", [False, True])
def test_what_a_callback_got_is_not_given_back(run, pipe, removed):
    pull, push = pipe

    async def main():
        got = []

        def take(future):
            got.append(future.result())

        future = pull.recv()
        future.add_done_callback(take)
        if removed:
            assert future.remove_done_callback(take) == 1
        task = asyncio.ensure_future(_await(future))
        await turns()
        push._shadow_sock.send(b"once")
        while not pull.stats()["queued_in"]:
            pass
        # Serves those that wait, here and now.
        pull.recv().cancel()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled() and future.cancelled() == removed
        assert got == ([] if removed else [b"once"])
        await push.send(b"last")
        if removed:
            got.append(await pull.recv())
        got.append(await pull.recv())
        assert got == [b"once", b"last"]
        assert await pull.poll(0) == 0

    run(main())


@pytest.mark.parametrize("cancels", ["futures", "tasks"])
def test_ten_thousand_receivers_and_random_cancellations(run, zmq, sockets, cancels):
    count = 10_000
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    chance = random.Random(1)
    received = []

    async def receive():
        received.append(await pull.recv())

    def take(future):
        if not future.cancelled():
            received.append(future.result())

    def begin():
        if cancels == "tasks":
            return asyncio.ensure_future(receive())
        future = pull.recv()
        future.add_done_callback(take)
        return future

    async def main():
        waiting = [begin() for _ in range(count)]
        sent = 0
        while len(received) < count:
            for _ in range(min(100, count - sent)):
                await push.send(b"%d" % sent)
                sent += 1
            for place in chance.sample(range(count), 150):
                waiting[place].cancel()
                waiting[place] = begin()
            pull.get(zmq.EVENTS)
            await asyncio.sleep(0)
        for future in waiting:
            future.cancel()
        await asyncio.wait(waiting)
        assert sorted(int(body) for body in received) == list(range(count))
        assert await pull.poll(0) == 0

    run(main())


def test_cancelled_calls_are_forgotten(run, pipe):
    pull, _ = pipe

    async def main():
        alive = []
        for _ in range(2000):
            future = pull.recv()
            alive.append(weakref.ref(future))
            future.cancel()
            del future
        await turns()
        assert not any(reference() for reference in alive)

    run(main())


def test_not_waiting_behind_those_that_wait(run, zmq, pipe):
    """Those that wait come first, and what is left is there for a call that does not."""
    pull, push = pipe

    async def main():
        waiting = pull.recv()
        await push.send(b"a")
        await push.send(b"b")
        while pull.stats()["queued_in"] < 2:
            pass
        assert await pull.recv(zmq.DONTWAIT) == b"b"
        assert waiting.done()
        assert await waiting == b"a"

    run(main())


def test_parts_do_not_overtake_those_that_wait(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=1)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=1)

    async def main():
        blocking, room = pull._shadow_sock, 0
        while (waiting := push.send(b"fill")).done():
            room += 1
        # With those that wait there is no room for one that does not.
        push.send(b"0", zmq.SNDMORE)
        with pytest.raises(zmq.Again):
            await push.send(b"1", zmq.DONTWAIT)
        for _ in range(room):
            assert blocking.recv(zmq.DONTWAIT) == b"fill"
        parts = push.send(b"1")
        await asyncio.wait([waiting])
        assert blocking.recv(zmq.DONTWAIT) == b"fill"
        await parts
        assert await pull.recv_multipart() == [b"0", b"1"]

    run_in("asyncio", main())


def test_a_reply_that_was_given_back_answers_no_later_request(zmq, sockets):
    req = sockets.bound(zmq.REQ, req_relaxed=1, req_correlate=1)
    rep = sockets.connected(zmq.REP, req)

    async def main():
        await req.send(b"1")
        task = asyncio.ensure_future(_await(req.recv()))
        await turns()
        await rep.send(await rep.recv())
        while not req.stats()["queued_in"]:
            pass
        # Serves those that wait, here and now.
        req.recv().cancel()
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await req.send(b"2")
        await rep.send(await rep.recv())
        assert await req.recv() == b"2"

    run_in("asyncio", main())


def test_the_others_are_served_when_one_ends_it_all(zmq, pipe):
    """What is no Exception goes to whoever runs the loop."""
    pull, push = pipe

    class End(SystemExit):
        pass

    def end(_):
        raise End

    calls = []

    async def wait():
        calls.extend([pull.recv_serialized(end), pull.recv()])
        await push.send(b"0")
        await push.send(b"1")
        await asyncio.sleep(PATIENCE)

    async def other():
        async with asyncio.timeout(PATIENCE):
            return await calls[1]

    with asyncio.Runner() as runner:
        with pytest.raises(End):
            runner.run(wait())
        assert calls[0].cancelled()
        assert runner.run(other()) == b"1"


# ---- other handles, threads, loops --------------------------------------------------


def test_cancelled_calls_with_a_programs_own_futures(run, zmq, aio, context):
    class Future(asyncio.Future):
        pass

    class Socket(aio.Socket):
        _Future = Future

    async def main():
        with context.socket(zmq.PULL, socket_class=Socket) as pull:
            alive = []
            for _ in range(2000):
                future = pull.recv()
                alive.append(weakref.ref(future))
                future.cancel()
                del future
            await turns()
            assert sum(reference() is not None for reference in alive) < 200

    run(main())


def test_a_subclass_with_coroutines(run, zmq, aio, context):
    class Socket(aio.Socket):
        async def recv(self, *arguments, **options):
            return (await super().recv(*arguments, **options)).upper()

    async def main():
        with context.socket(zmq.PULL, socket_class=Socket) as pull:
            pull.bind("inproc://upper")
            with context.socket(zmq.PUSH) as push:
                push.connect("inproc://upper")
                await push.send(b"a")
                await push.send(b"b")
                assert await pull.recv() == b"A"
                assert await pull.recv_string() == "B"

    run(main())


def test_terminating_raises(run, zmq, aio):
    async def main():
        context = aio.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        poller = aio.Poller()
        poller.register(pull, zmq.POLLIN)
        calls = [pull.recv(), pull.recv_string(), pull.poll(), push.send(b"x"), poller.poll()]
        await turns()
        Background(context.term)
        for call in calls:
            with pytest.raises(zmq.ContextTerminated):
                await call
        with pytest.raises(zmq.ContextTerminated):
            await pull.recv()
        with pytest.raises(zmq.ContextTerminated):
            await push.send(b"x")
        pull.close()
        push.close()

    run(main())


def test_closed_by_another_handle(run, pipe):
    pull, _ = pipe

    async def main():
        futures = [pull.recv(), pull.poll(), pull.__anext__()]
        await turns()
        pull._shadow_sock.close()
        with pytest.raises(asyncio.CancelledError):
            await futures[0]
        with pytest.raises(asyncio.CancelledError):
            await futures[1]
        with pytest.raises(StopAsyncIteration):
            await futures[2]

    run(main())


def test_closed_in_another_thread(run, pipe):
    pull, _ = pipe

    async def main():
        future = pull.recv()
        await turns()
        await asyncio.to_thread(pull.close)
        with pytest.raises(asyncio.CancelledError):
            await future

    run(main())


def test_another_thread_receives_too(run, pipe):
    """One message each, whoever is faster."""
    pull, push = pipe
    count = 400

    async def main():
        taken = []

        def receive():
            while (body := pull._shadow_sock.recv()) != b"end":
                taken.append(body)

        thread = Background(receive)
        mine = []

        async def receive_here():
            while (body := await pull.recv()) != b"end":
                mine.append(body)

        task = asyncio.ensure_future(receive_here())
        for number in range(count):
            await push.send(b"%d" % number)
            if number % 20 == 0:
                await asyncio.sleep(0)
        await push.send(b"end")
        await push.send(b"end")
        await task
        await asyncio.to_thread(thread.result)
        assert sorted(int(body) for body in mine + taken) == list(range(count))

    run(main())


def test_two_loops_at_once(zmq, pipe):
    pull, push = pipe
    count, received = 1000, []

    async def receive():
        while (body := await pull.recv()) != b"end":
            received.append(int(body))

    async def send():
        for number in range(count):
            await push.send(b"%d" % number)
        await push.send(b"end")
        await push.send(b"end")

    threads = [Background(run_in, loop, receive()) for loop in (LOOPS[0], LOOPS[-1])]
    run_in("asyncio", send())
    for thread in threads:
        thread.result()
    assert sorted(received) == list(range(count))


def test_nobody_waits_behind_a_loop_that_was_closed(zmq, pipe):
    pull, push = pipe
    left = []

    async def wait():
        await pull.poll(1)

    async def leave():
        left.append(pull.recv())

    async def main():
        await push.send(b"x")
        await readable(pull)
        return await pull.recv(zmq.DONTWAIT)

    loop = asyncio.new_event_loop()
    # This loop has waited before, so that it is known already.
    with asyncio.Runner() as runner:
        runner.run(wait())
        loop.run_until_complete(leave())
        loop.close()
        assert runner.run(main()) == b"x"


def test_a_loop_that_is_asked_may_use_the_socket(zmq, pipe):
    """Whether a loop is closed may be a question to Python code."""
    pull, _ = pipe
    seen = []

    class Loop(asyncio.SelectorEventLoop):
        asking = False

        def is_closed(self):
            if self.asking:
                self.asking = False
                seen.append(len(pull._recv_futures))
            return super().is_closed()

    async def wait():
        pull.recv().cancel()
        await turns()

    with asyncio.Runner(loop_factory=Loop) as one, asyncio.Runner() as other:
        one.run(wait())
        one.get_loop().asking = True
        other.run(wait())
    assert seen == [0]


def test_a_pending_call_keeps_its_socket(run, zmq, sockets, context):
    push = sockets.bound(zmq.PUSH)

    async def main():
        pending = sockets.connected(zmq.PULL, push).recv()
        gc.collect()
        await push.send(b"x")
        assert await pending == b"x"

    with pytest.warns(ResourceWarning):
        run(main())
        gc.collect()


def test_a_forgotten_socket_is_closed(run, zmq, context):
    async def main():
        pull = context.socket(zmq.PULL)
        pull.recv().cancel()
        await turns()
        blocking = zmq.Socket.shadow(pull.underlying)
        blocking._shadow_obj = None
        with pytest.warns(ResourceWarning):
            del pull
            gc.collect()
        assert blocking.closed

    run(main())


def test_sockets_and_loops_are_collected(zmq, aio):
    """A loop that was never closed, with calls that wait, is garbage like anything else."""
    context = aio.Context()
    sockets = [context.socket(zmq.PULL)]

    def leave():
        loop = asyncio.new_event_loop()
        pull = sockets[0]

        async def wait():
            return [pull.recv(), pull.poll()]

        loop.run_until_complete(wait())
        return weakref.ref(loop)

    with pytest.warns(ResourceWarning):
        loop = leave()
        sockets.pop().close()
        gc.collect()
        gc.collect()
    assert loop() is None
    context.term()


def test_outside_of_a_loop(zmq, pipe):
    pull, push = pipe
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    try:
        with pytest.warns(RuntimeWarning, match="loop"):
            future = pull.recv()
        push.send(b"x")
        assert loop.run_until_complete(future) == b"x"
        assert loop.run_until_complete(push.send(b"y")) is None
    finally:
        asyncio.set_event_loop(None)
        loop.close()


def test_loops_without_readers(zmq, pipe):
    """A loop that cannot watch descriptors says so, and nothing is left behind."""
    pull, push = pipe

    class Loop(asyncio.SelectorEventLoop):
        def add_reader(self, *_arguments):
            raise NotImplementedError

    async def main():
        with pytest.raises(NotImplementedError):
            pull.recv()
        await push.send(b"x")
        assert pull._shadow_sock.poll(PATIENCE * 1000)
        assert await pull.recv() == b"x"

    with asyncio.Runner(loop_factory=Loop) as runner:
        runner.run(main())


# ---- descriptors --------------------------------------------------------------------


def test_the_descriptor_in_a_loop_of_ones_own(run, zmq, pipe):
    """Level-true: one message per event, however many are there, is enough."""
    pull, push = (socket._shadow_sock for socket in pipe)
    count = 100

    async def main():
        loop, received = asyncio.get_running_loop(), []
        done = loop.create_future()

        def on_readable():
            if pull.poll(0):
                received.append(pull.recv())
            if len(received) == count:
                done.set_result(None)

        loop.add_reader(pull.fileno(), on_readable)
        for number in range(count):
            push.send(b"%d" % number)
        await done
        loop.remove_reader(pull.fileno())
        assert received == [b"%d" % number for number in range(count)]

    run(main())


def test_the_descriptor_beside_calls_that_wait(run, zmq, pipe):
    """Somebody else watches the socket's own descriptor, and asks for events."""
    pull, push = pipe

    async def main():
        loop, seen = asyncio.get_running_loop(), []
        loop.add_reader(pull.fileno(), lambda: seen.append(pull.get(zmq.EVENTS)))
        futures = [pull.recv() for _ in range(50)]
        for number in range(50):
            await push.send(b"%d" % number)
            await asyncio.sleep(0)
        assert await asyncio.gather(*futures) == [b"%d" % number for number in range(50)]
        loop.remove_reader(pull.fileno())

    run(main())


def test_descriptors_are_given_back(run, zmq, aio):
    import os

    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    async def main():
        context = aio.Context()
        warm = context.socket(zmq.PULL)
        warm.recv().cancel()
        before = descriptors()
        for _ in range(50):
            with context.socket(zmq.PULL) as pull:
                pull.recv()
                handle = aio.Socket.from_socket(pull._shadow_sock)
                handle.recv()
                del handle
                await turns(2)
        gc.collect()
        assert descriptors() <= before + 5
        context.destroy()

    run(main())


# ---- programs -----------------------------------------------------------------------


def test_no_noise_at_the_end(zmq):
    """A program that ends with calls under way ends quietly, and soon."""
    _, errors = run_script(
        zmq.__name__,
        """
        import asyncio, zeroxide.asyncio
        async def main():
            context = zeroxide.asyncio.Context()
            pull = context.socket(zmq.PULL)
            pull.bind("tcp://127.0.0.1:*")
            main.kept = [pull, pull.recv(), asyncio.ensure_future(wait(pull))]
            await asyncio.sleep(0)
        async def wait(pull):
            async for _ in pull:
                pass
        asyncio.run(main())
        """,
    )
    assert errors == ""


def test_a_fork_in_a_loop(zmq):
    """A child lets go of the sockets it was born with, and of its parent's loop."""
    output, _ = run_script(
        zmq.__name__,
        """
        import asyncio, gc, os, zeroxide.asyncio
        async def main():
            context = zeroxide.asyncio.Context()
            pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
            pull.bind("inproc://x")
            push.connect("inproc://x")
            pending = pull.recv()
            await asyncio.sleep(0)
            child = os.fork()
            if not child:
                pull.close()
                del pull, push, context, pending
                gc.collect()
                os._exit(0)
            assert os.waitpid(child, 0)[1] == 0
            await push.send(b"x")
            print(await pending)
            context.destroy(linger=0)
        asyncio.run(main())
        """,
    )
    assert output == "b'x'\n"


def test_a_fork_beside_a_watcher(zmq):
    """What its child does with a watcher, or has to drop, is nothing to its parent."""
    output, _ = run_script(
        zmq.__name__,
        """
        import gc, os, select
        context = zmq.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://x")
        push.connect("inproc://x")
        watcher = zmq._native.Watcher(pull)
        watcher.watch()
        assert not pull.poll(0)
        push.send(b"x")
        child = os.fork()
        if not child:
            watcher.clear()
            watcher.rest()
            del watcher
            gc.collect()
            os._exit(0)
        assert os.waitpid(child, 0)[1] == 0
        print(len(select.select([watcher.fileno()], [], [], 0)[0]))
        context.destroy(linger=0)
        """,
    )
    assert output == "1\n"


def test_a_burst_between_processes(run, zmq, sockets):
    """Nothing is missed when the sender is not of this loop."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    count = 20_000

    async def main():
        blocking = push._shadow_sock

        def send():
            for number in range(count):
                blocking.send(b"%d" % number)

        thread = Background(send)
        for number in range(count):
            assert await pull.recv() == b"%d" % number
        await asyncio.to_thread(thread.result)

    run(main())
