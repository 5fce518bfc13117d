"""Sockets of asyncio: cancelling loses no message."""

import asyncio
import random
import sys
import weakref

import pytest
from loops import run_in, turns
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only


FORMS = {
    "recv": b"0",
    "recv_multipart": [b"0"],
    "recv_string": "0",
    "recv_json": 0,
    "recv_batch": [b"0"],
    "__anext__": b"0",
}


def serve(socket):
    """Serves the waiting calls: a message counts as queued a moment before it can be received."""
    while socket.stats()["queued_in"]:
        socket.recv().cancel()


@pytest.mark.parametrize("form", FORMS)
def test_cancelled_between_result_and_wakeup(run, pipe, form):
    """A task is cancelled after its call is done, but before the task continues."""
    pull, push = pipe

    async def main():
        task = asyncio.ensure_future(_await(getattr(pull, form)()))
        await turns()
        push._shadow_sock.send(b"0")
        while not pull.stats()["queued_in"]:
            pass
        serve(pull)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await getattr(pull, form)() == FORMS[form]
        assert await pull.poll(0) == 0

    run(main())


@pytest.mark.parametrize("parts", [1, 3])
def test_done_and_cancelled_in_one_turn(zmq, pipe, parts):
    """The same is forced for several tasks: their messages are received again, in order."""
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
        serve(pull)
        assert all(future.done() for future in futures)
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        assert all(task.cancelled() for task in tasks)
        assert all(future.cancelled() for future in futures)
        assert [await pull.recv() for _ in range(2 * parts)] == [*messages[0], *messages[1]]
        assert await pull.poll(0) == 0

    run_in("asyncio", main())


async def _await(future):
    return await future


def test_a_returned_message_wakes_every_kind_of_call(zmq, pipe):
    pull, push = pipe
    blocking = pull._shadow_sock

    async def main():
        task = asyncio.ensure_future(_await(pull.recv_multipart(copy=False)))
        await turns()
        push._shadow_sock.send_multipart([b"a", b"b"])
        while not pull.stats()["queued_in"]:
            pass
        serve(pull)
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
def test_a_message_that_a_callback_got_is_not_returned(run, pipe, removed):
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
        serve(pull)
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


def test_calls_that_do_not_wait_come_after_those_that_wait(run, zmq, pipe):
    """Waiting calls come first, and a call that does not wait gets the remaining messages."""
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


def test_parts_do_not_overtake_waiting_calls(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=1)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=1)

    async def main():
        blocking, room = pull._shadow_sock, 0
        while (waiting := push.send(b"fill")).done():
            room += 1
        # While calls wait, there is no room for one that does not.
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


def test_a_returned_reply_does_not_answer_a_later_request(zmq, sockets):
    req = sockets.bound(zmq.REQ, req_relaxed=1, req_correlate=1)
    rep = sockets.connected(zmq.REP, req)

    async def main():
        await req.send(b"1")
        task = asyncio.ensure_future(_await(req.recv()))
        await turns()
        await rep.send(await rep.recv())
        while not req.stats()["queued_in"]:
            pass
        serve(req)
        task.cancel()
        await asyncio.wait([task])
        assert task.cancelled()
        await req.send(b"2")
        await rep.send(await rep.recv())
        assert await req.recv() == b"2"

    run_in("asyncio", main())


def test_other_calls_are_served_when_one_raises_a_base_exception(zmq, pipe):
    """A BaseException that is not an Exception propagates out of the loop."""
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


def test_a_returned_message_keeps_its_sender(zmq, sockets):
    """The messages of an undelivered batch are received again one by one."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)

    async def main():
        task = asyncio.ensure_future(_await(pull.recv_batch()))
        await turns()
        await push.send_batch([b"1", b"2"])
        while pull.stats()["queued_in"] < 2:
            pass
        # Serves the waiting calls immediately.
        with pytest.raises(zmq.Again):
            await pull.recv(zmq.DONTWAIT)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        for body in (b"1", b"2"):
            frame = await pull.recv(copy=False)
            assert frame.bytes == body
            assert frame["Socket-Type"] == "PUSH"

    run_in("asyncio", main())


def test_parts_come_back_to_the_thread_that_received_them(run, pipe):
    """It does not matter which thread releases the futures."""
    pull, push = pipe

    async def main():
        waiting = pull.recv(copy=False)
        await push.send_multipart([b"1", b"2"])
        await asyncio.wait([waiting])
        await asyncio.to_thread(waiting._undo.give_back)
        assert await pull.recv() == b"1"
        assert pull.rcvmore
        frame = await pull.recv(copy=False)
        assert frame.bytes == b"2" and frame["Socket-Type"] == "PUSH"

    run(main())


def test_an_error_of_one_call_does_not_reach_another(zmq, aio, sockets, context):
    """An error that occurs while a call joins the waiting ones goes to the loop."""

    class Own(asyncio.Future):
        def set_result(self, result):
            raise OSError("full")

    class Socket(aio.Socket):
        _Future = Own

    push = sockets.bound(zmq.PUSH)

    async def main():
        told = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, event: told.append(str(event["exception"])))
        pull = Socket(context, zmq.PULL)
        pull.connect(push.last_endpoint.decode())
        first = pull.recv()
        push._shadow_sock.send(b"x")
        while not pull.stats()["queued_in"]:
            pass
        # This call joins the waiting calls, which serves them.
        second = pull.recv()
        assert not first.done() and not second.done()
        await turns()
        assert set(told) == {"full"}
        # The message is not lost either.
        assert pull._shadow_sock.recv(zmq.DONTWAIT) == b"x"
        pull.close()

    run_in("asyncio", main())


@pytest.mark.parametrize("kind", ["recv", "send", "poll"])
def test_other_calls_expire_although_the_future_of_one_refuses(zmq, aio, sockets, context, kind):
    class Own(asyncio.Future):
        refuses = False

        def set_result(self, result):
            if self.refuses:
                raise OSError("full")
            super().set_result(result)

        def set_exception(self, error):
            if self.refuses:
                raise OSError("full")
            super().set_exception(error)

    class Socket(aio.Socket):
        _Future = Own

    async def main():
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        loop.set_exception_handler(lambda _, event: told.set_result(str(event["exception"])))
        dealer = Socket(context, zmq.DEALER)
        dealer.rcvtimeo = dealer.sndtimeo = 50
        call = {
            "recv": dealer.recv,
            "send": lambda: dealer.send(b"x"),
            "poll": lambda: dealer.poll(50),
        }[kind]
        first, second = call(), call()
        dealer.rcvtimeo = dealer.sndtimeo = 100
        third = dealer.recv()
        first.refuses = True
        async with asyncio.timeout(PATIENCE):
            assert await told == "full"
            if kind == "poll":
                assert await second == 0
            else:
                with pytest.raises(zmq.Again):
                    await second
            # The timer for the next deadline is set, too.
            with pytest.raises(zmq.Again):
                await third
        assert not first.done()
        dealer.close()

    run_in("asyncio", main())


def test_other_polls_are_answered_although_the_future_of_one_refuses(zmq, aio, sockets, context):
    class Own(asyncio.Future):
        refuses = False

        def set_result(self, result):
            if self.refuses:
                raise OSError("full")
            super().set_result(result)

    class Socket(aio.Socket):
        _Future = Own

    push = sockets.bound(zmq.PUSH)

    async def main():
        loop = asyncio.get_running_loop()
        told = loop.create_future()
        loop.set_exception_handler(lambda _, event: told.set_result(str(event["exception"])))
        pull = Socket(context, zmq.PULL)
        pull.connect(push.last_endpoint.decode())
        first, second = pull.poll(), pull.poll()
        first.refuses = True
        push._shadow_sock.send(b"x")
        async with asyncio.timeout(PATIENCE):
            assert await told == "full"
            assert await second == zmq.POLLIN
        assert not first.done()
        pull.close()

    run_in("asyncio", main())


def test_the_end_of_the_program_comes_before_other_errors(zmq, aio, sockets, context, monkeypatch):
    class End(SystemExit):
        pass

    class Own(asyncio.Future):
        error = None

        def set_result(self, result):
            if self.error is not None:
                raise self.error
            super().set_result(result)

    class Socket(aio.Socket):
        _Future = Own

    printed = []
    monkeypatch.setattr(sys, "unraisablehook", lambda told: printed.append(str(told.exc_value)))
    push, pull = sockets.bound(zmq.PUSH), Socket(context, zmq.PULL)
    pull.connect(push.last_endpoint.decode())
    polls = []

    async def wait():
        polls.extend(pull.poll() for _ in range(4))
        polls[0].error, polls[1].error, polls[2].error = OSError("full"), End(), OSError("late")
        push._shadow_sock.send(b"x")
        await asyncio.sleep(PATIENCE)

    async def answer():
        return await polls[3]

    with asyncio.Runner() as runner:
        with pytest.raises(End):
            runner.run(wait())
        assert runner.run(answer()) == zmq.POLLIN
    assert printed == ["full", "late"]
    pull.close()


def test_a_message_that_no_longer_fits_goes_to_the_next_call(run, pipe):
    pull, push = pipe

    async def main():
        buffer = memoryview(bytearray(10))
        into = pull.recv_into(buffer)
        buffer.release()
        await push.send(b"x")
        with pytest.raises(ValueError):
            await into
        assert await pull.recv() == b"x"

    run(main())
