"""Objects shared by threads, between which the interpreter switches as often as possible.

With a free-threaded build of Python, the same tests check the extension's own locking.
"""

import itertools
import random
import sys
import threading

import pytest
from support import PATIENCE, Background

THREADS = 8


@pytest.fixture(autouse=True)
def restless():
    """Makes threads switch after a microsecond if another thread is ready."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def together(work, *, threads=THREADS):
    """Runs `work(number)` in several threads, which start at the same moment."""
    barrier = threading.Barrier(threads)

    def begin(number):
        barrier.wait(PATIENCE)
        return work(number)

    return [running.result() for running in [Background(begin, n) for n in range(threads)]]


def test_one_socket_of_all(zmq, sockets, transport):
    """No message is lost, duplicated or split, with every form of sending and receiving."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    each = 1000
    send = [
        lambda body: push.send(body),
        lambda body: push.send(body, copy=False),
        lambda body: push.send(zmq.Frame(body), copy=False),
        lambda body: push.send_multipart([body]),
        lambda body: push.send_batch([body]),
    ]
    receive = [
        lambda: [pull.recv()],
        lambda: [pull.recv(copy=False).bytes],
        lambda: pull.recv_multipart(),
        lambda: [pull.recv_multipart(copy=False)[0].bytes],
        lambda: list(pull.recv_batch(1)),
    ]

    def work(number):
        half = THREADS // 2
        chosen = random.Random(number)
        if number < half:
            for count in range(each):
                chosen.choice(send)(b"%d %d " % (number, count) * chosen.choice([1, 30, 3000]))
            return []
        return [body for _ in range(each) for body in chosen.choice(receive)()]

    received = list(itertools.chain.from_iterable(together(work)))
    heads = [tuple(map(int, body.split(b" ", 2)[:2])) for body in received]
    assert sorted(heads) == [(n, c) for n in range(THREADS // 2) for c in range(each)]
    for (number, count), body in zip(heads, received, strict=True):
        part = b"%d %d " % (number, count)
        assert body == part * (len(body) // len(part))


def test_one_context_of_all(zmq, context):
    """Sockets are created and closed in all threads; their messages do not mix."""

    def work(number):
        for turn in range(20):
            with context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
                endpoint = f"inproc://{number}-{turn}"
                one.bind(endpoint)
                other.connect(endpoint)
                other.send_multipart([b"%d" % number, b"%d" % turn])
                assert one.recv_multipart() == [b"%d" % number, b"%d" % turn]
                context.linger = 0
                assert context.linger == 0
                repr(context)

    together(work)


def test_one_poller_of_all(zmq, context):
    """Threads poll while others register and unregister."""
    poller = zmq.Poller()

    def work(number):
        with context.socket(zmq.PAIR) as one, context.socket(zmq.PAIR) as other:
            one.bind(f"inproc://poller-{number}")
            other.connect(f"inproc://poller-{number}")
            for _ in range(50):
                poller.register(one, zmq.POLLIN)
                other.send(b"x")
                assert one.poll(PATIENCE * 1000)
                poller.poll(0)
                assert one in poller
                assert one.recv() == b"x"
                poller.unregister(one)
                assert one not in poller

    # A socket may be unregistered and closed while another thread polls it; that poll raises.
    def tolerant(number):
        try:
            work(number)
        except zmq.ZMQError as error:
            assert error.errno in (zmq.ENOTSOCK, zmq.ENOTSUP)

    together(tolerant)


def test_one_frame_of_all(zmq, sockets):
    """Views, bytes, copies and sends of one frame, whose memory becomes private at the first view."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    for size in (20, 2000, 200_000):
        push.send(b"x" * size, copy=False)
        frame = pull.recv(copy=False)

        def work(number, frame=frame, size=size):
            for _ in range(20):
                assert len(frame) == size
                assert frame.bytes is frame.bytes
                assert frame.buffer.nbytes == size
                assert bytes(frame.fast_copy()) == b"x" * size
                push.send(frame, copy=bool(number % 2))
                assert pull.recv() == b"x" * size

        together(work)


def test_trackers(zmq, sockets):
    """A tracker that many threads wait for is done in all of them."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    trackers = [push.send(b"x" * 100_000, copy=False, track=True) for _ in range(20)]
    waiting = [Background(zmq.MessageTracker(*trackers).wait, PATIENCE) for _ in range(THREADS)]
    for _ in trackers:
        pull.recv()
    for one in waiting:
        one.result()


@pytest.mark.parametrize("ending", ["close", "term", "destroy"])
def test_closed_by_one_thread_while_all_use_it(zmq, ending):
    """Every waiting call raises; no thread crashes or hangs."""
    for turn in range(30):
        context = zmq.Context()
        context.linger = 0
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        pull.bind("inproc://ended")
        push.connect("inproc://ended")
        chosen = random.Random(turn).randrange(50)

        def work(number, context=context, pull=pull, push=push, chosen=chosen):
            try:
                for count in itertools.count():
                    if number == 0 and count == chosen:
                        if ending == "close":
                            pull.close()
                            push.close()
                        elif ending == "term":
                            Background(context.term)
                        else:
                            context.destroy(linger=0)
                    if number % 2:
                        push.send(b"x" * 100, zmq.DONTWAIT if number == 1 else 0)
                    else:
                        pull.recv(copy=bool(number % 4))
                        pull.poll(0)
                        pull.get(zmq.EVENTS)
            except zmq.Again:
                # Full: this thread is done, the others continue.
                return zmq.EAGAIN
            except zmq.ZMQError as error:
                return error.errno

        ends = together(work, threads=5)
        assert set(ends) <= {zmq.ENOTSOCK, zmq.ENOTSUP, zmq.ETERM, zmq.EAGAIN, zmq.Errno.EFAULT}
        pull.close()
        push.close()
        context.destroy(linger=0)


def test_options_of_one_socket(zmq, context):
    """Setting and reading options, and `repr`, from all threads."""
    with context.socket(zmq.DEALER) as socket:

        def work(number):
            for _ in range(200):
                socket.linger = number
                assert 0 <= socket.linger < THREADS
                socket.routing_id = b"%d" % number
                assert len(socket.routing_id) == 1
                socket.stats()
                repr(socket)

        together(work)


def test_monitor_of_one_socket(zmq, context, sockets):
    """Connections are made and closed while threads request the monitor."""
    pull = sockets.bound(zmq.PULL)

    def work(number):
        for _ in range(10):
            assert pull.get_monitor_socket() is not None
            push = context.socket(zmq.PUSH)
            push.linger = -1
            push.connect(pull.last_endpoint)
            push.send(b"x")
            push.close()
            pull.recv()

    together(work, threads=4)
    pull.disable_monitor()
