"""Signals end blocking calls if their handler raises, and lose no message otherwise."""

import _thread
import contextlib
import itertools
import os
import resource
import signal
import socket
import threading

import pytest
from support import Background, finish_script, start_script


class Interruption(Exception):
    """The exception that the handlers raise."""


@contextlib.contextmanager
def alarms(raise_at=None, interval=0.02):
    """Signals at an interval; the handler counts, and may raise at a certain number.

    With `raise_at` above 1, the call under test has waited for at least one full interval
    when the exception occurs, and has been resumed before.
    """
    ticks = itertools.count(1)
    seen = []

    def handler(number, frame):
        seen.append(next(ticks))
        if seen[-1] == raise_at:
            raise Interruption

    before = signal.signal(signal.SIGALRM, handler)
    signal.setitimer(signal.ITIMER_REAL, interval, interval)
    try:
        yield seen
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


BLOCKING = {
    "recv": lambda zmq, s: s.recv(),
    "recv into a frame": lambda zmq, s: s.recv(copy=False),
    "recv_multipart": lambda zmq, s: s.recv_multipart(),
    "recv_into": lambda zmq, s: s.recv_into(bytearray(1)),
    "send": lambda zmq, s: s.send(b""),
    "send without copying": lambda zmq, s: s.send(b"x" * 100_000, copy=False),
    "send_multipart": lambda zmq, s: s.send_multipart([b"", b""]),
    "poll": lambda zmq, s: s.poll(),
    "poll with a timeout": lambda zmq, s: s.poll(60_000),
    "zmq_poll": lambda zmq, s: zmq.zmq_poll([(s, zmq.POLLIN)]),
    "select": lambda zmq, s: zmq.select([s], [], []),
}


@pytest.fixture
def dealer(zmq):
    """A socket without timeouts, on which every call blocks."""
    with zmq.Context() as context, context.socket(zmq.DEALER) as socket:
        socket.linger = 0
        yield socket


@pytest.mark.parametrize("name", BLOCKING)
def test_a_handler_may_end_the_call(zmq, dealer, name):
    with pytest.raises(Interruption), alarms(raise_at=3):
        BLOCKING[name](zmq, dealer)
    dealer.bind("inproc://still-good")


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", ["send_batch", "recv_batch"])
def test_a_handler_may_end_a_batch(zmq, dealer, name):
    calls = {"send_batch": lambda: dealer.send_batch([b""]), "recv_batch": dealer.recv_batch}
    with pytest.raises(Interruption), alarms(raise_at=3):
        calls[name]()


@pytest.mark.zeroxide_only
def test_a_handler_may_end_flush(zmq, dealer):
    dealer.connect("tcp://127.0.0.1:1")
    dealer.send(b"")
    with pytest.raises(Interruption), alarms(raise_at=3):
        dealer.flush()


def test_a_handler_may_end_a_proxy(zmq, dealer):
    other = dealer.context.socket(zmq.DEALER)
    with other, pytest.raises(Interruption), alarms(raise_at=3):
        zmq.proxy(dealer, other)


@pytest.mark.zeroxide_only
def test_a_handler_may_interrupt_term(zmq):
    context = zmq.Context()
    socket = context.socket(zmq.PUSH)
    with pytest.raises(Interruption), alarms(raise_at=3):
        context.term()
    assert not context.closed
    socket.close()
    context.term()
    assert context.closed


@pytest.mark.zeroxide_only
def test_a_handler_may_end_a_wait_for_memory(zmq, dealer):
    dealer.connect("tcp://127.0.0.1:1")
    tracker = dealer.send(b"x" * 100_000, copy=False, track=True)
    with pytest.raises(Interruption), alarms(raise_at=3):
        tracker.wait()


@pytest.mark.zeroxide_only
def test_timeouts_are_kept_in_spite_of_signals(zmq, dealer):
    dealer.rcvtimeo = dealer.sndtimeo = 100
    with alarms(interval=0.01) as seen:
        for call in (dealer.recv, dealer.recv_multipart, lambda: dealer.send(b"")):
            with pytest.raises(zmq.Again):
                call()
        assert dealer.poll(100) == 0
        assert zmq.zmq_poll([(dealer, zmq.POLLIN)], 100) == []
    assert seen


def test_calls_continue_after_a_signal(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    with alarms(interval=0.005) as seen:
        for number in range(20):
            enough = len(seen) + 3
            sender = Background(send_after, seen, enough, push, b"%d" % number)
            assert pull.recv() == b"%d" % number
            sender.result()


def send_after(seen, enough, push, body):
    waiting = threading.Event()
    while len(seen) < enough:
        waiting.wait(0.001)
    push.send(body)


def test_no_message_is_lost_under_many_signals(zmq, sockets, transport):
    """With a thousand signals per second, every message arrives once and in order."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    total = 30_000
    sender = Background(lambda: [push.send(b"%d" % number) for number in range(total)])
    with alarms(interval=0.001):
        for number in range(total):
            assert pull.recv() == b"%d" % number
    sender.result()


def interrupt_soon():
    # The main thread is probably waiting by then; if not, it is interrupted anyway.
    return Background(lambda: threading.Event().wait(0.1) or _thread.interrupt_main())


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("name", BLOCKING)
def test_interrupt_main(zmq, dealer, name):
    """`interrupt_main` sets the flag that a signal sets, but sends no signal."""
    with pytest.raises(KeyboardInterrupt):
        interrupt_soon()
        BLOCKING[name](zmq, dealer)
    assert signal.set_wakeup_fd(-1) == -1


@pytest.mark.zeroxide_only
def test_interrupt_main_while_other_threads_wait_on_the_same_socket(zmq, context):
    sockets = [context.socket(zmq.DEALER) for _ in range(2)]
    others = [Background(socket.recv) for socket in sockets]
    for call in (sockets[0].recv, lambda: zmq.proxy(*sockets), lambda: zmq.select(sockets, [], [])):
        with pytest.raises(KeyboardInterrupt):
            interrupt_soon()
            call()
    for waited_for, other in zip(sockets, others, strict=True):
        waited_for.close()
        with pytest.raises(zmq.ZMQError):
            other.result()


@pytest.mark.zeroxide_only
def test_interrupt_main_beside_a_descriptor(zmq, dealer, sockets):
    """In other kinds of waits: on a connection that the thread reads directly, and on a descriptor of the program."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "tcp")
    push.send(b"1")
    assert pull.recv() == b"1"
    mine, _theirs = ends = socket.socketpair()
    for call in (pull.recv, lambda: zmq.zmq_poll([(dealer, zmq.POLLIN), (mine, zmq.POLLIN)])):
        with pytest.raises(KeyboardInterrupt):
            interrupt_soon()
            call()
    for end in ends:
        end.close()


@pytest.mark.zeroxide_only
def test_a_long_wait_is_one(zmq, dealer):
    """A thread that waits for a long time sleeps: it does not wake up repeatedly to check for signals."""
    dealer.rcvtimeo = 1100

    def sleeps():
        before = resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw
        with pytest.raises(zmq.Again):
            dealer.recv()
        return resource.getrusage(resource.RUSAGE_THREAD).ru_nvcsw - before

    # One short wait and the long one; another thread may hold the GIL occasionally.
    assert min(sleeps() for _ in range(2)) <= 3


@pytest.fixture
def wakeup():
    """Sets the program's wakeup descriptor; yields the descriptor to read from."""
    heard, written = socket.socketpair()
    heard.setblocking(False)
    written.setblocking(False)
    before = signal.set_wakeup_fd(written.fileno())
    yield heard, written
    signal.set_wakeup_fd(before)
    heard.close()
    written.close()


def test_a_programs_wakeup_descriptor_still_gets_signals(zmq, dealer, wakeup):
    """The descriptor that a program set with `set_wakeup_fd` gets the signals that arrive during a call."""
    heard, written = wakeup
    with alarms(interval=0.02) as seen:
        dealer.poll(200)
    told = heard.recv(1000)
    assert set(told) == {signal.SIGALRM}
    assert len(told) >= len(seen)
    assert signal.set_wakeup_fd(written.fileno()) == written.fileno()


@pytest.mark.zeroxide_only
def test_interrupt_main_with_a_wakeup_descriptor(zmq, dealer, wakeup):
    heard, _ = wakeup
    with pytest.raises(KeyboardInterrupt):
        interrupt_soon()
        dealer.recv()
    assert heard.recv(1000) == bytes([signal.SIGINT])


@pytest.mark.zeroxide_only
def test_a_descriptor_that_a_handler_sets_stays(zmq, dealer, wakeup):
    """A handler that runs during a call may itself wait, and may set a wakeup descriptor permanently."""
    _, written = wakeup
    signal.set_wakeup_fd(-1)
    calls = itertools.count(1)

    def handler(number, frame):
        assert dealer.poll(80) == 0
        if next(calls) == 3:
            signal.set_wakeup_fd(written.fileno())
            raise Interruption

    before = signal.signal(signal.SIGALRM, handler)
    try:
        signal.setitimer(signal.ITIMER_REAL, 0.1, 0.1)
        with pytest.raises(Interruption):
            dealer.recv()
        assert signal.set_wakeup_fd(written.fileno()) == written.fileno()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("leaves", ["its own", "none"])
def test_signals_are_handled_after_a_handler_sets_a_descriptor(zmq, dealer, wakeup, leaves):
    """An event loop that runs and ends in a handler does this."""
    _, written = wakeup
    signal.set_wakeup_fd(-1)
    handled = threading.Event()

    def handler(number, frame):
        signal.set_wakeup_fd(written.fileno())
        if leaves == "none":
            signal.set_wakeup_fd(-1)
        handled.set()

    before = signal.signal(signal.SIGALRM, handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            signal.setitimer(signal.ITIMER_REAL, 0.2)
            Background(lambda: handled.wait() and interrupt_soon())
            dealer.recv()
    finally:
        signal.signal(signal.SIGALRM, before)


@pytest.mark.zeroxide_only
def test_a_full_wakeup_descriptor_warns_only_if_that_is_enabled(zmq):
    script = start_script(
        zmq.__name__,
        """
        import signal, socket
        heard, written = ends = socket.socketpair()
        for end in ends:
            end.setblocking(False)
        signal.set_wakeup_fd(written.fileno(), warn_on_full_buffer=False)
        zmq.Context().socket(zmq.DEALER).poll(120)
        try:
            while True:
                written.send(bytes(1000))
        except BlockingIOError:
            pass
        signal.signal(signal.SIGALRM, lambda *_: None)
        signal.raise_signal(signal.SIGALRM)
        """,
    )
    _, errors = finish_script(script)
    assert errors == ""


@pytest.mark.zeroxide_only
def test_signals_of_a_child_do_not_reach_its_parent(zmq):
    """Forked by a thread while the main thread waits: in the child, the descriptor is not in use."""
    script = start_script(
        zmq.__name__,
        """
        import os, signal, threading
        socket = zmq.Context().socket(zmq.DEALER)

        def fork():
            threading.Event().wait(0.2)
            child = os.fork()
            if not child:
                os._exit(0 if signal.set_wakeup_fd(-1) == -1 else 1)
            print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
            os._exit(0)

        threading.Thread(target=fork).start()
        socket.recv()
        """,
    )
    output, _ = finish_script(script)
    assert output == "0\n"


@pytest.mark.parametrize("call", ["recv()", "send(b'')", "poll()"])
def test_control_c(zmq, call):
    script = start_script(
        zmq.__name__,
        f"""
        context = zmq.Context()
        socket = context.socket(zmq.DEALER)
        socket.linger = 0
        try:
            print("ready", flush=True)
            while True:
                socket.{call}
        except KeyboardInterrupt:
            print("interrupted")
        socket.close()
        context.term()
        """,
    )
    assert script.stdout.readline() == "ready\n"
    os.kill(script.pid, signal.SIGINT)
    output, _ = finish_script(script)
    assert output == "interrupted\n"


def test_other_threads_do_not_take_signals(zmq, context):
    """I/O threads block all signals: the handler runs in the main thread at once."""
    with context.socket(zmq.PULL) as socket:
        socket.bind("tcp://127.0.0.1:*")
        waiting = Background(socket.recv)
        with pytest.raises(Interruption), alarms(raise_at=2):
            while True:
                signal.pause()
        socket.close() if zmq.__name__ != "zmq" else None
        with context.socket(zmq.PUSH) as push:
            if zmq.__name__ == "zmq":
                push.connect(socket.last_endpoint.decode())
                push.send(b"")
                waiting.result()
            else:
                with pytest.raises(zmq.ZMQError):
                    waiting.result()
