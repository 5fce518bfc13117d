"""Closing within a time: the report says what was not delivered, and to whom."""

import asyncio
import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest
from support import Background, eventually, lasting_endpoint, run_script

import zeroxide.asyncio as aio

pytestmark = pytest.mark.zeroxide_only

NOBODY = "tcp://127.0.0.1:1"


def unsent(context, kind, count=3):
    socket = context.socket(kind)
    socket.connect(NOBODY)
    for _ in range(count):
        socket.send(b"four")
    return socket


def test_nothing_was_lost(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"message")
    report = push.close(timeout=-1)
    assert not report and report == zmq.Undelivered()
    assert (report.messages, report.bytes, report.peers) == (0, 0, ())
    assert repr(report) == "<Undelivered: everything was delivered>"
    assert push.closed and pull.recv() == b"message"


def test_a_report_names_the_peers(zmq, context):
    push = unsent(context, zmq.PUSH)
    report = push.close(timeout=20)
    assert report
    assert report.peers == (
        zmq.UndeliveredPeer(endpoint=NOBODY, address="", routing_id=b"", messages=3, bytes=12),
    )
    assert (report.messages, report.bytes) == (3, 12)
    assert str(report) == f"3 messages (12 bytes) were not delivered: 3 to {NOBODY}"
    assert push.close() is None
    assert push.close(timeout=0) == report


def test_a_report_names_the_address(zmq, context):
    router = context.socket(zmq.ROUTER)
    router.bind("tcp://127.0.0.1:*")
    with zmq.Context() as other, other.socket(zmq.DEALER) as dealer:
        dealer.set(zmq.ROUTING_ID, b"name")
        dealer.set(zmq.RCVHWM, 1)
        dealer.set(zmq.LINGER, 0)
        dealer.connect(router.last_endpoint)
        dealer.send(b"here")
        assert router.recv_multipart()[0] == b"name"
        endpoint = router.last_endpoint.decode()
        for _ in range(8):
            router.send_multipart([b"name", bytes(8 << 20)])
        report = router.close(timeout=20)
    [peer] = report.peers
    assert (peer.endpoint, peer.routing_id) == (endpoint, b"name")
    assert peer.address.startswith("127.0.0.1:")
    assert f"{peer.messages} to {peer.address} at {endpoint}" in str(report)


def test_linger_and_timeout_exclude_each_other(zmq, context):
    push = unsent(context, zmq.PUSH)
    for close in (push.close, aio.Socket(push).close):
        with pytest.raises(TypeError, match="linger or timeout"):
            close(0, timeout=1)
    with pytest.raises(TypeError, match="timeout takes a number"):
        push.close(timeout="soon")
    with pytest.raises(TypeError):
        push.close(0, 1)
    assert not push.closed
    push.close(linger=0)


@pytest.mark.parametrize(("linger", "whole"), [(0.5, 1), (Fraction(5, 2), 3), (-1.0, -1), (0.0, 0)])
def test_a_fraction_of_a_millisecond_is_rounded_up(zmq, linger, whole):
    # A linger of 0 discards messages.
    lingers = []

    class Own(zmq.Socket):
        def set(self, option, value):
            lingers.append((option, value))
            super().set(option, value)

    context = zmq.Context()
    socket = context.socket(zmq.PUSH, Own)
    context.destroy(linger)
    assert socket.closed and lingers == [(zmq.LINGER, whole)]


@pytest.mark.parametrize(
    "arguments", [{"linger": "1"}, {"linger": float("nan")}, {"timeout": "1"}, {"timeout": [1]}]
)
def test_a_refused_close_changes_nothing(zmq, arguments):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    with pytest.raises((TypeError, ValueError), match=f"{next(iter(arguments))} takes "):
        socket.close(**arguments)
    assert not socket.closed and "(1 socket)" in repr(context)
    context.destroy(linger=0.5)
    assert socket.closed and context.closed


def test_a_refused_destroy_changes_nothing(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    for linger in ("1", [1]):
        with pytest.raises(TypeError, match="linger takes milliseconds"):
            context.destroy(linger)
    with pytest.raises(ValueError, match="linger takes milliseconds"):
        context.destroy(float("nan"))
    assert not socket.closed and not context.closed
    context.destroy(linger=0)


def test_a_refused_call_of_asyncio_changes_nothing(zmq):
    async def main():
        context = aio.Context()
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://refused-close")
        push.connect("inproc://refused-close")
        waiting = pull.recv()
        for arguments in ({"linger": "1"}, {"timeout": "1"}, {"linger": 0, "timeout": 1}):
            with pytest.raises(TypeError, match="takes "):
                pull.close(**arguments)
        with pytest.raises(TypeError, match="timeout takes "):
            context.term(timeout="1")
        await push.send(b"still there")
        assert await waiting == b"still there"
        context.destroy(linger=0.5)
        assert pull.closed and push.closed

    asyncio.run(main())


def test_a_context_reports_for_its_sockets(zmq):
    context = zmq.Context()
    unsent(context, zmq.PUSH).close(linger=0)
    unsent(context, zmq.DEALER).close()
    left_open = unsent(context, zmq.PUSH)
    report = context.term(timeout=20)
    assert (report.messages, report.bytes) == (9, 36)
    assert [peer.endpoint for peer in report.peers] == [NOBODY]
    assert context.closed and left_open.closed
    assert context.term(timeout=0) == report
    assert context.term() is None
    with zmq.Context() as fresh:
        assert not fresh.term(timeout=20)


def test_a_waiting_call_ends_before_the_time_is_up(zmq):
    context = zmq.Context()
    pull = context.socket(zmq.PULL)
    pull.bind("tcp://127.0.0.1:*")

    def receive():
        with pull, pytest.raises(zmq.ContextTerminated):
            pull.recv()

    waiting = Background(receive)
    assert not context.term(timeout=-1)
    waiting.result()


def test_a_signal_handler_that_raises_ends_the_wait(zmq, context):
    """The socket is closed, the rest of its messages keep their time, and the context can end."""

    class Stop(Exception):
        pass

    def stop(*_):
        raise Stop

    push = unsent(context, zmq.PUSH)
    unbound = context.socket(zmq.PUSH)
    unbound.connect("inproc://nobody")
    unbound.send(b"four")
    before = signal.signal(signal.SIGUSR1, stop)
    try:
        for socket in (push, unbound):
            closing = threading.Thread(
                target=lambda socket=socket: (
                    eventually(lambda: socket.closed),
                    os.kill(os.getpid(), signal.SIGUSR1),
                )
            )
            closing.start()
            with pytest.raises(Stop):
                socket.close(timeout=-1)
            closing.join()
            assert socket.closed
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert push.close(timeout=0).messages == 3
    assert context.term(timeout=20).messages == 4


def test_asyncio_goes_on_while_it_waits(zmq):
    async def main():
        endpoint = lasting_endpoint()
        context = aio.Context()
        push = context.socket(zmq.PUSH)
        push.reconnect_ivl = 1
        push.connect(endpoint)
        await push.send(b"early")
        # All threads of the executor are busy, so the wait has not begun yet.
        loop, gate = asyncio.get_running_loop(), threading.Event()
        loop.set_default_executor(ThreadPoolExecutor(1))
        busy = loop.run_in_executor(None, gate.wait)
        closing = push.close(timeout=30_000)
        closed = push.closed and not closing.done()
        gate.set()
        await busy
        assert closed
        with zmq.Context() as other, other.socket(zmq.PULL) as pull:
            pull.bind(endpoint)
            assert not await closing
            assert pull.recv() == b"early"
        push = context.socket(zmq.PUSH)
        push.connect(NOBODY)
        await push.send(b"lost")
        assert (await push.close(timeout=20)).messages == 1
        assert push.close() is None
        ending = context.term(timeout=20)
        report = await ending
        assert (report.messages, report.peers[0].endpoint) == (1, NOBODY)
        assert context.closed
        other = aio.Context()
        assert other.term() is None

    asyncio.run(main())


def test_a_calls_future_is_cancelled_by_a_close_in_time(zmq):
    async def main():
        async with aio.Context() as context:
            pull = context.socket(zmq.PULL)
            waiting = pull.recv()
            assert not await pull.close(timeout=20)
            with pytest.raises(asyncio.CancelledError):
                await waiting

    asyncio.run(main())


def test_greenlets_go_on_while_one_waits():
    gevent = pytest.importorskip("gevent")
    green = pytest.importorskip("zeroxide.green")
    context = green.Context()
    push = unsent(context, green.PUSH)
    turns = []
    gevent.spawn(lambda: turns.append(push.closed))
    assert push.close(timeout=50).messages == 3
    assert turns == [True] or turns == [False]
    assert context.term(timeout=20).messages == 3


def test_an_inherited_socket_reports_nothing(zmq, context):
    push = unsent(context, zmq.PUSH)
    child = os.fork()
    if child == 0:
        ok = not push.close(timeout=-1) and not context.term(timeout=-1)
        os._exit(0 if ok else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert push.close(timeout=0).messages == 3


def test_a_program_that_ends_says_nothing_twice(zmq):
    """Messages that a program knows to be lost are not reported at its end again."""
    output, errors = run_script(
        zmq.__name__,
        f"""
        context = zmq.Context()
        socket = context.socket(zmq.PUSH)
        socket.connect("{NOBODY}")
        socket.send(b"lost")
        print(socket.close(timeout=10).messages)
        """,
    )
    assert (output, errors) == ("1\n", "")
