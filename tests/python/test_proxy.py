"""Proxies: messages passed on between two sockets."""

import struct

import pytest
from support import Background, finish_script, start_script


def test_proxy(zmq):
    context = zmq.Context()
    front, back, capture, seen = (
        context.socket(kind) for kind in (zmq.ROUTER, zmq.DEALER, zmq.PUSH, zmq.PULL)
    )
    front.bind("inproc://front")
    back.bind("inproc://back")
    seen.bind("inproc://seen")
    capture.connect("inproc://seen")

    def run():
        try:
            return zmq.proxy(front, back, capture)
        finally:
            for socket in (front, back, capture):
                socket.close(linger=0)

    proxy = Background(run)
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
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_deprecated_name(zmq):
    context = zmq.Context()
    front, back = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    front.bind("inproc://front")
    back.bind("inproc://back")

    def run():
        try:
            zmq.device(zmq.STREAMER, front, back)
        finally:
            front.close(linger=0)
            back.close(linger=0)

    device = Background(run)
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.connect("inproc://front")
        pull.connect("inproc://back")
        push.send(b"through")
        assert pull.recv() == b"through"
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        device.result()


@pytest.fixture(params=["REP", "PAIR", "DEALER"])
def steering(request, zmq):
    """The type of a control socket, and of the one that gives orders."""
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
        if kind == zmq.REP:
            return steer.recv_multipart()
        # Everything before STATISTICS is carried out once it is answered.
        steer.send(b"STATISTICS")
        return steer.recv_multipart()

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
    assert counts[:2] == [2, 12]  # messages and bytes in at the front
    assert counts[6:] == [2, 12]  # and out at the back
    steer.send(b"TERMINATE")
    assert proxy.result() == 0


def test_proxy_of_publishers(zmq):
    context = zmq.Context()
    front, back = context.socket(zmq.XSUB), context.socket(zmq.XPUB)
    front.bind("inproc://front")
    back.bind("inproc://back")

    def run():
        try:
            zmq.proxy(front, back)
        finally:
            front.close(linger=0)
            back.close(linger=0)

    proxy = Background(run)
    with context.socket(zmq.XPUB) as pub, context.socket(zmq.SUB) as sub:
        pub.connect("inproc://front")
        sub.connect("inproc://back")
        sub.subscribe(b"a")
        assert pub.recv() == b"\x01a"
        pub.send(b"b")
        pub.send(b"a")
        assert sub.recv() == b"a"
        sub.unsubscribe(b"a")
        assert pub.recv() == b"\x00a"
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()


def test_a_capture_misses_nothing(zmq):
    # More than fits into the queues on the way: whoever captures sets the pace.
    context = zmq.Context()
    front, back, capture, seen = (
        context.socket(kind) for kind in (zmq.PULL, zmq.PUSH, zmq.PUSH, zmq.PULL)
    )
    front.bind("inproc://front")
    back.bind("inproc://back")
    seen.bind("inproc://seen")
    capture.connect("inproc://seen")

    def run():
        try:
            zmq.proxy(front, back, capture)
        finally:
            for socket in (front, back, capture):
                socket.close(linger=0)

    proxy = Background(run)
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
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()


def test_one_socket_at_both_ends(zmq):
    context = zmq.Context()
    echo = context.socket(zmq.ROUTER)
    echo.bind("inproc://echo")

    def run():
        try:
            zmq.proxy(echo, echo)
        finally:
            echo.close(linger=0)

    proxy = Background(run)
    with context.socket(zmq.DEALER) as dealer:
        dealer.connect("inproc://echo")
        for number in range(100):
            dealer.send_multipart([b"", b"%d" % number, b"back"])
        for number in range(100):
            assert dealer.recv_multipart() == [b"", b"%d" % number, b"back"]
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()


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
    """Both ways at once, with more messages than the queues hold."""
    context = zmq.Context()
    front, back = context.socket(zmq.DEALER), context.socket(zmq.DEALER)
    front.bind("inproc://front")
    back.bind("inproc://back")

    def run():
        try:
            zmq.proxy(front, back)
        finally:
            front.close(linger=0)
            back.close(linger=0)

    proxy = Background(run)
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
    context.term()
    with pytest.raises(zmq.ContextTerminated):
        proxy.result()
