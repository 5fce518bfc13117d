"""Proxies: messages forwarded between two sockets."""

import contextlib
import struct

import pytest
from support import Background, finish_script, start_script


@contextlib.contextmanager
def passing(zmq, front, back, capture=None, run=None):
    """A context with a proxy between sockets of these types, bound to inproc://front and inproc://back, that ends
    with the context. Captured messages go to inproc://seen."""
    context = zmq.Context()
    sockets = [context.socket(front)]
    sockets += sockets if back is None else [context.socket(back)]
    for socket, name in zip(sockets, ["front", "back"], strict=True):
        socket.bind(f"inproc://{name}")
    if capture is not None:
        sockets.append(context.socket(capture))
        sockets[-1].connect("inproc://seen")

    def work():
        try:
            (run or zmq.proxy)(*sockets)
        finally:
            for socket in sockets:
                socket.close(linger=0)

    proxy = Background(work)
    # After a failure, there are sockets for which term() would wait.
    yield context
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()


def test_proxy(zmq):
    with passing(zmq, zmq.ROUTER, zmq.DEALER, zmq.PUSH) as context:
        seen = context.socket(zmq.PULL)
        seen.bind("inproc://seen")
        with context.socket(zmq.REQ) as req, context.socket(zmq.REP) as rep, seen:
            req.connect("inproc://front")
            rep.connect("inproc://back")
            for number in range(100):
                req.send_multipart([b"question", b"%d" % number])
                assert rep.recv_multipart() == [b"question", b"%d" % number]
                rep.send(b"answer")
                assert req.recv() == b"answer"
                assert seen.recv_multipart()[-2:] == [b"question", b"%d" % number]
                assert seen.recv_multipart()[-1] == b"answer"


@pytest.mark.filterwarnings("error")
def test_old_name(zmq):
    def device(front, back):
        zmq.device(zmq.STREAMER, front, back)

    with (
        passing(zmq, zmq.PULL, zmq.PUSH, run=device) as context,
        context.socket(zmq.PUSH) as push,
        context.socket(zmq.PULL) as pull,
    ):
        push.connect("inproc://front")
        pull.connect("inproc://back")
        push.send(b"through")
        assert pull.recv() == b"through"


@pytest.fixture(params=["REP", "PAIR", "DEALER"])
def steering(request, zmq):
    """The types of the control socket and of the socket that sends commands."""
    other = {"REP": zmq.REQ, "PAIR": zmq.PAIR, "DEALER": zmq.DEALER}[request.param]
    return getattr(zmq, request.param), other


@pytest.mark.zeroxide_only
def test_steered(zmq, context, steering):
    kind, other = steering
    front, back, control = (context.socket(kind) for kind in (zmq.PULL, zmq.PUSH, kind))
    front.bind("inproc://front")
    back.bind("inproc://back")
    control.bind("inproc://control")
    proxy = Background(zmq.proxy_steerable, front, back, None, control)
    push, pull, steer = (context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, other))
    push.connect("inproc://front")
    pull.connect("inproc://back")
    steer.connect("inproc://control")

    def order(command):
        steer.send(command)
        assert steer.recv_multipart() == [b""]

    push.send(b"before")
    assert pull.recv() == b"before"
    order(b"PAUSE")
    push.send(b"during")
    assert pull.poll(50) == 0
    order(b"RESUME")
    assert pull.recv() == b"during"
    steer.send(b"STATISTICS")
    counts = [struct.unpack("=Q", part)[0] for part in steer.recv_multipart()]
    assert len(counts) == 8
    assert counts[:2] == [2, 12]  # messages and bytes received at the front
    assert counts[6:] == [2, 12]  # and sent at the back
    order(b"no such command")
    order(b"TERMINATE")
    assert proxy.result() == 0


@pytest.mark.zeroxide_only
def test_steered_without_replies(zmq, context):
    """A control socket that cannot send obeys nevertheless; libzmq's proxy ends with ENOTSUP."""
    front, back, control = (context.socket(kind) for kind in (zmq.PULL, zmq.PUSH, zmq.PULL))
    control.bind("inproc://control")
    proxy = Background(zmq.proxy_steerable, front, back, None, control)
    steer = context.socket(zmq.PUSH)
    steer.connect("inproc://control")
    for command in (b"PAUSE", b"STATISTICS", b"TERMINATE"):
        steer.send(command)
    assert proxy.result() == 0


def test_proxy_of_publishers(zmq):
    with (
        passing(zmq, zmq.XSUB, zmq.XPUB) as context,
        context.socket(zmq.XPUB) as pub,
        context.socket(zmq.SUB) as sub,
    ):
        pub.connect("inproc://front")
        sub.connect("inproc://back")
        sub.subscribe(b"a")
        assert pub.recv() == b"\x01a"
        pub.send(b"b")
        pub.send(b"a")
        assert sub.recv() == b"a"
        sub.unsubscribe(b"a")
        assert pub.recv() == b"\x00a"


def test_a_capture_misses_no_message(zmq):
    # More than fits into the queues, so the capturing socket sets the pace.
    with passing(zmq, zmq.PULL, zmq.PUSH, zmq.PUSH) as context:
        seen = context.socket(zmq.PULL)
        seen.bind("inproc://seen")
        push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
        push.connect("inproc://front")
        pull.connect("inproc://back")
        count = 8000

        def feed():
            for number in range(count):
                push.send_multipart([b"%d" % number, b""])

        feeder = Background(feed)
        drain = Background(lambda: [pull.recv_multipart()[0] for _ in range(count)])
        expected = [b"%d" % number for number in range(count)]
        assert [seen.recv_multipart()[0] for _ in range(count)] == expected
        assert drain.result() == expected
        feeder.result()
        for socket in (push, pull, seen):
            socket.close(linger=0)


def test_one_socket_at_both_ends(zmq):
    with passing(zmq, zmq.ROUTER, None) as context, context.socket(zmq.DEALER) as dealer:
        dealer.connect("inproc://front")
        for number in range(100):
            dealer.send_multipart([b"", b"%d" % number, b"back"])
        for number in range(100):
            assert dealer.recv_multipart() == [b"", b"%d" % number, b"back"]


@pytest.mark.zeroxide_only
def test_ctrl_c_ends_a_busy_proxy(zmq):
    process = start_script(
        zmq.__name__,
        """
        import threading
        context = zmq.Context()
        front, back = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        front.bind("inproc://front")
        back.bind("inproc://back")

        def peers():
            push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
            push.connect("inproc://front")
            pull.connect("inproc://back")
            said = False
            while True:
                push.send(b"")
                pull.recv()
                if not said:
                    print("busy", flush=True)
                    said = True

        threading.Thread(target=peers, daemon=True).start()
        try:
            zmq.proxy(front, back)
        except KeyboardInterrupt:
            print("interrupted", flush=True)
        import os
        os._exit(0)
        """,
    )
    assert process.stdout.readline() == "busy\n"
    process.send_signal(2)
    output, _ = finish_script(process)
    assert output == "interrupted\n"


def test_queues_between_every_pair(zmq):
    """In both directions at once, with more messages than the queues hold."""
    with passing(zmq, zmq.DEALER, zmq.DEALER) as context:
        one, two = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
        one.connect("inproc://front")
        two.connect("inproc://back")
        count = 5000

        def talk(socket):
            received = []
            sent = 0
            while len(received) < count:
                events = socket.poll(20_000, zmq.POLLIN | (zmq.POLLOUT if sent < count else 0))
                assert events
                if events & zmq.POLLOUT and sent < count:
                    socket.send(b"%d" % sent)
                    sent += 1
                if events & zmq.POLLIN:
                    received.append(int(socket.recv()))
            while sent < count:
                socket.send(b"%d" % sent)
                sent += 1
            return received

        other = Background(talk, two)
        assert talk(one) == list(range(count))
        assert other.result() == list(range(count))
        one.close(linger=0)
        two.close(linger=0)
