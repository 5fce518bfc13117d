"""Proxies: messages passed on between two sockets."""

import struct

import pytest
from support import Background


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


@pytest.mark.zeroxide_only
def test_steered(zmq, context):
    front, back, control = (context.socket(kind) for kind in (zmq.PULL, zmq.PUSH, zmq.REP))
    front.bind("inproc://front")
    back.bind("inproc://back")
    control.bind("inproc://control")
    proxy = Background(zmq.proxy_steerable, front, back, None, control)
    push, pull, steer = (context.socket(kind) for kind in (zmq.PUSH, zmq.PULL, zmq.REQ))
    push.connect("inproc://front")
    pull.connect("inproc://back")
    steer.connect("inproc://control")

    def order(command):
        steer.send(command)
        return steer.recv_multipart()

    push.send(b"before")
    assert pull.recv() == b"before"
    order(b"PAUSE")
    push.send(b"during")
    assert pull.poll(50) == 0
    order(b"RESUME")
    assert pull.recv() == b"during"
    counts = [struct.unpack("=Q", part)[0] for part in order(b"STATISTICS")]
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
