"""Sockets of asyncio: an immediate result that no code has seen goes back to the socket."""

import asyncio
import contextlib
import gc
import subprocess
import sys
import textwrap
import weakref

import pytest
from loops import readable, run_in, subtree, turns
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only

LOOPS = ["asyncio", "tornado"]


@pytest.fixture(params=LOOPS)
def aio(request, zmq):
    """The module of the sockets."""
    if request.param == "asyncio":
        return subtree(zmq, "asyncio")
    pytest.importorskip("tornado")
    return subtree(zmq, "eventloop.future")


def _into(pull):
    return pull.recv_into(bytearray(10))


def _serialized(pull):
    # The function takes the list apart. The message must stay whole.
    return pull.recv_serialized(lambda parts: parts.pop())


# The receiving calls.
FORMS = {
    "recv": lambda pull: pull.recv(),
    "recv, copy=False": lambda pull: pull.recv(copy=False),
    "recv_multipart": lambda pull: pull.recv_multipart(),
    "recv_multipart, copy=False": lambda pull: pull.recv_multipart(copy=False),
    "recv_string": lambda pull: pull.recv_string(),
    "recv_json": lambda pull: pull.recv_json(),
    "recv_serialized": _serialized,
    "recv_into": _into,
    "recv_batch": lambda pull: pull.recv_batch(),
    "recv_batch, one": lambda pull: pull.recv_batch(1, multipart=True),
    "recv_batch_arrow": lambda pull: pull.recv_batch_arrow(),
    "__anext__": lambda pull: pull.__anext__(),
    "NOBLOCK": lambda pull: pull.recv(1),
}


@pytest.fixture(params=FORMS)
def receive(request):
    return FORMS[request.param]


async def _await(call):
    return await call


async def _arrived(pull, count):
    while pull.stats()["queued_in"] < count:
        await asyncio.sleep(0)


async def _all(pull):
    """Returns the messages that have arrived."""
    messages = []
    while await pull.poll(0):
        messages.append(await pull.recv_multipart())
    return messages


@pytest.mark.parametrize("parts", [1, 3])
def test_a_dropped_result_goes_back(zmq, pipe, receive, parts):
    pull, push = pipe

    async def main():
        messages = [[b"%d" % number] * parts for number in range(3)]
        await push.send_batch(messages)
        await _arrived(pull, 3)
        receive(pull)
        assert await _all(pull) == messages

    run_in("asyncio", main())


@pytest.mark.parametrize("how", ["task", "thrown", "group"])
def test_a_task_that_is_cancelled_before_its_first_step(zmq, pipe, receive, how):
    pull, push = pipe

    async def main():
        messages = [[b"1", b"2"], [b"3"]]
        await push.send_batch(messages)
        await _arrived(pull, 2)
        call = receive(pull)
        if how == "thrown":
            with pytest.raises(KeyError):
                call.throw(KeyError)
            assert call.cancelled() and call.done()
            with pytest.raises(asyncio.CancelledError):
                call.result()
            with pytest.raises(asyncio.CancelledError):
                await call
        elif how == "task":
            task = asyncio.create_task(call)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
        else:
            with pytest.raises(ExceptionGroup):
                async with asyncio.TaskGroup() as group:
                    group.create_task(call)
                    raise KeyError
        del call
        assert await _all(pull) == messages

    run_in("asyncio", main())


async def _raise():
    raise KeyError


def test_dropped_results_keep_their_order(zmq, pipe):
    """The order is kept whichever future is dropped first, even if a message was received twice."""
    pull, push = pipe

    async def main():
        await push.send_batch([b"1", b"2", b"3", b"4"])
        await _arrived(pull, 4)
        first, second, third = pull.recv(), pull.recv_multipart(), pull.recv_batch(1)
        del second
        second = pull.recv_string()
        assert "'2'" in repr(second)
        del third, first, second
        assert await _all(pull) == [[b"1"], [b"2"], [b"3"], [b"4"]]

    run_in("asyncio", main())


def test_dropped_batches_keep_their_order(zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send_batch([b"%d" % number for number in range(6)])
        await _arrived(pull, 6)
        first, second = pull.recv_batch(2), pull.recv_batch(2)
        del first
        # Received again, in pieces.
        one, other = pull.recv(), pull.recv_batch(1)
        del second, one, other
        assert await _all(pull) == [[b"%d" % number] for number in range(6)]

    run_in("asyncio", main())


def test_dropped_parts_keep_their_order(zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send_batch([[b"1", b"2", b"3"], [b"4"]])
        await _arrived(pull, 2)
        first, second = pull.recv(), pull.recv(copy=False)
        del first, second
        assert pull.rcvmore
        assert await pull.recv() == b"1"
        pull.recv_multipart()
        assert await pull.recv_multipart() == [b"2", b"3"]
        assert await pull.recv() == b"4"

    run_in("asyncio", main())


def test_a_message_keeps_its_sender(zmq, pipe):
    pull, push = pipe

    async def main():
        for receive in FORMS.values():
            await push.send(b"1")
            await _arrived(pull, 1)
            receive(pull)
            frame = await pull.recv(copy=False)
            assert frame.bytes == b"1"
            assert frame["Socket-Type"] == "PUSH"

    run_in("asyncio", main())


def test_a_result_that_was_seen_stays(zmq, pipe):
    pull, push = pipe

    async def main():
        seen = []

        def see(call):
            seen.append(call.result())

        await push.send_batch([b"%d" % number for number in range(7)])
        await _arrived(pull, 7)
        # Each of these calls hands out the message.
        call = pull.recv()
        assert (call.result(), call.result(), await call) == (b"0", b"0", b"0")
        call = pull.recv()
        assert await call == b"1" and call.result() == b"1"
        with pytest.raises(KeyError):
            call.throw(KeyError)
        assert call.result() == b"1"
        pull.recv().add_done_callback(see)
        await turns()
        assert seen == [b"2"]
        assert await asyncio.create_task(pull.recv()) == b"3"
        assert await asyncio.gather(pull.recv(), pull.recv()) == [b"4", b"5"]
        assert await asyncio.wait_for(pull.recv(), 0) == b"6"
        del call
        assert await _all(pull) == []

    run_in("asyncio", main())


async def _gathered(pull):
    with contextlib.suppress(KeyError):
        await asyncio.gather(_raise(), pull.recv())


async def _shielded(pull):
    outer = asyncio.shield(pull.recv())
    outer.cancel()
    await asyncio.wait([outer])


async def _waited(pull):
    await asyncio.wait([pull.recv()])


async def _wait_cancelled(pull):
    task = asyncio.create_task(asyncio.wait_for(pull.recv(), 0))
    task.cancel()
    await asyncio.wait([task])


async def _time_is_over(pull):
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(0):
            call = pull.recv()
            await asyncio.sleep(PATIENCE)
            await call


FUNCTIONS = [_gathered, _shielded, _waited, _wait_cancelled, _time_is_over]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_what_a_function_of_asyncio_does_not_hand_out_goes_back(zmq, pipe, function):
    pull, push = pipe

    async def main():
        await push.send_batch([b"1", b"2"])
        await _arrived(pull, 2)
        await function(pull)
        await turns()
        gc.collect()
        assert await _all(pull) == [[b"1"], [b"2"]]

    run_in("asyncio", main())


@pytest.mark.parametrize("function", [_gathered, _shielded])
def test_a_message_that_arrives_later_goes_back_too(zmq, pipe, function):
    """The result of a waiting call is set, but no code asks for it."""
    pull, push = pipe

    async def main():
        await function(pull)
        await push.send_batch([b"1", b"2"])
        await _arrived(pull, 1)
        await turns()
        gc.collect()
        assert await pull.recv() == b"1"
        assert await pull.recv() == b"2"

    run_in("asyncio", main())


def test_a_result_that_waited_and_is_dropped_goes_back(zmq, pipe, receive):
    pull, push = pipe

    async def main():
        if receive is FORMS["NOBLOCK"]:
            return
        call = receive(pull)
        await push.send_multipart([b"1", b"2"])
        while not call.done():
            await asyncio.sleep(0)
        del call
        assert await _all(pull) == [[b"1", b"2"]]

    run_in("asyncio", main())


def test_when_the_turn_is_over(zmq, pipe, receive):
    """A result goes back, too, if other tasks have their turn before it is returned."""
    pull, push = pipe

    async def main():
        messages = [[b"%d" % number] for number in range(3)]
        await push.send_batch(messages)
        await _arrived(pull, 3)
        ordinary, seen = zmq._native.Ready, set()
        until = asyncio.get_running_loop().time() + PATIENCE
        while len(seen) < 2 and asyncio.get_running_loop().time() < until:
            call = receive(pull)
            seen.add(type(call) is ordinary)
            del call
        assert seen == {True, False}
        await turns()
        gc.collect()
        assert await _all(pull) == messages

    run_in("asyncio", main())


def test_a_returned_message_wakes_a_call_that_waits(zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send(b"1")
        await _arrived(pull, 1)
        call = pull.recv()
        waiting = asyncio.create_task(_await(pull.recv()))
        await turns()
        assert not waiting.done()
        del call
        assert await waiting == b"1"

    run_in("asyncio", main())


def test_a_full_queue_takes_it_back(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=1)
    push = sockets.connected(zmq.PUSH, pull, sndhwm=1)

    async def main():
        sent = []
        while push.send(b"%d" % len(sent)).done():
            sent.append([b"%d" % len(sent)])
        call = pull.recv()
        # The send that waited takes the room of that message.
        await turns()
        del call
        sent.append([b"%d" % len(sent)])
        assert await _all(pull) == sent

    run_in("asyncio", main())


def test_a_closed_socket_takes_nothing_back(zmq, pipe, receive):
    pull, push = pipe

    async def main():
        await push.send(b"1")
        await _arrived(pull, 1)
        call = receive(pull)
        pull.close()
        del call
        gc.collect()

    run_in("asyncio", main())


def test_a_reply_that_is_not_taken_is_still_due(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)

    async def main():
        await req.send(b"1")
        await readable(rep)
        rep.recv()
        assert await rep.recv() == b"1"
        await rep.send(b"2")
        await readable(req)
        req.recv()
        with pytest.raises(zmq.ZMQError):
            await req.send(b"too early")
        assert await req.recv() == b"2"

    run_in("asyncio", main())


def test_a_function_that_fails_has_had_the_message(zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send_batch([b"{", b"2"])
        await _arrived(pull, 2)
        with pytest.raises(ValueError):
            await pull.recv_json()
        assert await pull.recv_json() == 2

    run_in("asyncio", main())


def test_circles_give_it_back(zmq, pipe):
    pull, push = pipe

    async def main():
        await push.send_batch([b"1", b"2"])
        await _arrived(pull, 2)
        call = pull.recv()
        call.circle = call
        del call
        gc.collect()
        assert await _all(pull) == [[b"1"], [b"2"]]

    run_in("asyncio", main())


def test_a_socket_and_its_call_are_collected(zmq, aio, context):
    class Socket(aio.Socket):
        call = None

    async def main():
        pull, push = Socket(context, zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://circle")
        push.connect("inproc://circle")
        await push.send(b"1")
        pull.call = pull.recv()
        gone = weakref.ref(pull)
        del pull
        gc.collect()
        assert gone() is None

    run_in("asyncio", main())


def test_sends_that_found_room_have_left(zmq, pipe):
    """A send has nothing to give back: the message is sent, even if the future is dropped."""
    pull, push = pipe

    async def main():
        push.send(b"1")
        task = asyncio.create_task(push.send(b"2"))
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await _arrived(pull, 2)
        assert await _all(pull) == [[b"1"], [b"2"]]

    run_in("asyncio", main())


@pytest.mark.parametrize("keep", ["module.call = pull.recv()", "module.step = wait(pull.recv())"])
def test_at_the_end_of_the_program(keep):
    script = f"""
    import asyncio, sys
    import zeroxide as zmq, zeroxide.asyncio

    module = sys.modules[__name__]

    def wait(call):
        try:
            yield
        finally:
            call.throw(KeyError)

    async def main():
        context = zeroxide.asyncio.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://end")
        push.connect("inproc://end")
        await push.send(b"1")
        {keep}
        if hasattr(module, "step"):
            next(module.step)
        module.sockets = pull, push
        context.linger = 0

    asyncio.run(main())
    print("done")
    """
    done = subprocess.run(
        [sys.executable, "-X", "dev", "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert (done.returncode, done.stdout) == (0, "done\n"), done.stderr
