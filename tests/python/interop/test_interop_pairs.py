"""Every pair of socket types against libzmq: either side binding, tcp and ipc."""

import pytest
from patterns import BODIES, ORDERED_PAIRS, converse, prepare


@pytest.mark.cell(transport="{transport}", types="{ours} {theirs}", peer="libzmq")
@pytest.mark.parametrize("binds", ["we bind", "they bind"])
@pytest.mark.parametrize(("ours", "theirs"), ORDERED_PAIRS)
def test_pair(zmq, sockets, lasting_peer, transport, ours, theirs, binds):
    one = sockets.context.socket(getattr(zmq, ours))
    other = lasting_peer.socket(getattr(zmq, theirs))
    try:
        prepare(zmq, one, other)
        first, second = (one, other) if binds == "we bind" else (other, one)
        first.bind(sockets.endpoint(transport))
        second.connect(first.last_endpoint.decode())
        converse(zmq, one, other)
    finally:
        other.close()


@pytest.mark.cell(transport="{transport}", types="STREAM", peer="libzmq")
@pytest.mark.parametrize("binds", ["we bind", "they bind"])
def test_streams(zmq, sockets, lasting_peer, transport, binds):
    """Raw bytes between two STREAM sockets: connecting, bytes in chunks of any size, disconnecting."""
    one = sockets.context.socket(zmq.STREAM)
    other = lasting_peer.socket(zmq.STREAM)
    try:
        first, second = (one, other) if binds == "we bind" else (other, one)
        first.bind(sockets.endpoint(transport))
        second.connect(first.last_endpoint.decode())
        names = {}
        for socket in (one, other):
            names[socket], notice = socket.recv_multipart()
            assert len(names[socket]) == 5 and notice == b""
        for sender, receiver in ((one, other), (other, one)):
            for body in filter(None, BODIES):
                sender.send_multipart([names[sender], body])
                heard = b""
                while len(heard) < len(body):
                    name, piece = receiver.recv_multipart()
                    assert name == names[receiver] and piece
                    heard += piece
                assert heard == body
        one.send_multipart([names[one], b""])
        assert other.recv_multipart() == [names[other], b""]
    finally:
        other.close()


@pytest.mark.parametrize("ours", ["PUSH", "REQ", "SUB", "PAIR"])
def test_incompatible_types(zmq, sockets, lasting_peer, ours):
    """An incompatible libzmq peer is refused, and a compatible one is served."""
    fitting = {"PUSH": "PULL", "REQ": "REP", "SUB": "PUB", "PAIR": "PAIR"}[ours]
    one = sockets.bound(getattr(zmq, ours))
    unfit = lasting_peer.socket(zmq.DEALER if ours != "REQ" else zmq.PUSH)
    other = lasting_peer.socket(getattr(zmq, fitting))
    try:
        unfit.connect(one.last_endpoint.decode())
        other.connect(one.last_endpoint.decode())
        converse(zmq, one, other)
    finally:
        unfit.close()
        other.close()


@pytest.mark.parametrize("size", [244, 245, 246, 253, 254, 255, 256, 300])
def test_topics_around_a_long_frame(zmq, sockets, lasting_peer, size):
    """A subscription is one byte, or a command name, longer than its topic."""
    topic = b"t" * size
    xpub = sockets.bound(zmq.XPUB)
    sub = lasting_peer.socket(zmq.SUB)
    try:
        sub.connect(xpub.last_endpoint.decode())
        sub.subscribe(topic)
        assert xpub.recv() == b"\x01" + topic
        xpub.send(topic + b"!")
        assert sub.recv() == topic + b"!"
        sub.unsubscribe(topic)
        assert xpub.recv() == b"\x00" + topic
    finally:
        sub.close()
    xpub = lasting_peer.socket(zmq.XPUB)
    try:
        xpub.bind("tcp://127.0.0.1:*")
        sub = sockets.connected(zmq.SUB, xpub)
        sub.subscribe(topic)
        assert xpub.recv() == b"\x01" + topic
        sub.unsubscribe(topic)
        assert xpub.recv() == b"\x00" + topic
    finally:
        xpub.close()
