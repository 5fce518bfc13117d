"""udp against a libzmq that was built with its draft sockets. It binds in the background, so the first datagrams may get lost."""

import contextlib
import errno
import socket as plain

import pytest
from libzmq_library import LIBRARY
from peer import Peer, RemoteError

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="build it with: python3 tools/libzmq_drafts.py"
)

BODIES = [b"", b"x", b"y" * 69, b"z" * 70, b"v" * 1400, b"w" * 8000]
GROUPS = ["g", "", "x" * 127]


@pytest.fixture(scope="module")
def libzmq():
    """A process with libzmq's draft sockets."""
    peer = Peer("libzmq_drafts")
    yield peer
    peer.close()


@pytest.fixture
def theirs(libzmq):
    """Makes sockets of libzmq."""
    made = []

    def make(kind, **options):
        made.append(libzmq.socket(kind, rcvtimeo=50, **options))
        return made[-1]

    yield make
    for other in made:
        other.close()


@pytest.fixture(params=["127.0.0.1", "lo;239.255.77.20"], ids=["unicast", "multicast"])
def endpoint(request):
    """An address whose port is free."""
    with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        return f"udp://{request.param}:{probe.getsockname()[1]}"


def meet(send, receive):
    """Sends until something arrives, then receives the rest."""
    for _ in range(600):
        send()
        if receive() is not None:
            break
    while receive() is not None:
        pass


def their_next(socket):
    """What a socket of libzmq receives within its timeout."""
    with contextlib.suppress(RemoteError):
        return socket.recv_multipart()
    return None


def our_next(socket):
    return socket.recv_multipart() if socket.poll(50) else None


@pytest.mark.cell(transport="udp", types="RADIO DISH", peer="libzmq with drafts")
def test_dish_of_theirs(zmq, sockets, theirs, endpoint):
    dish, radio = theirs(zmq.DISH), sockets.context.socket(zmq.RADIO)
    for group in GROUPS:
        dish.join(group.encode())
    dish.bind(endpoint)
    radio.connect(endpoint)
    meet(lambda: radio.send(b"anybody?", group="g"), lambda: their_next(dish))
    dish.set("rcvtimeo", 30_000)
    for body in BODIES:
        for group in GROUPS:
            radio.send(b"filtered", group="other")
            radio.send(body, group=group)
            assert dish.recv_labelled() == [body, 0, group.encode()]


@pytest.mark.cell(transport="udp", types="DISH RADIO", peer="libzmq with drafts")
def test_radio_of_theirs(zmq, sockets, theirs, endpoint):
    radio, dish = theirs(zmq.RADIO), sockets.context.socket(zmq.DISH)
    for group in GROUPS:
        dish.join(group)
    dish.bind(endpoint)
    radio.connect(endpoint)
    meet(lambda: radio.send(b"anybody?", group=b"g"), lambda: our_next(dish))
    for body in BODIES:
        for group in GROUPS:
            radio.send(b"filtered", group=b"other")
            radio.send(body, group=group.encode())
            frame = dish.recv(copy=False)
            assert (frame.bytes, frame.group) == (body, group)
    assert dish.stats()["dropped"]["filtered"] == len(BODIES) * len(GROUPS)


@pytest.mark.cell(transport="udp", types="DGRAM", peer="libzmq with drafts")
def test_dgram_of_theirs(zmq, sockets, theirs):
    with plain.socket(plain.AF_INET, plain.SOCK_DGRAM) as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    one = sockets.context.socket(zmq.DGRAM)
    one.bind("udp://127.0.0.1:*")
    other = theirs(zmq.DGRAM)
    other.bind(f"udp://127.0.0.1:{port}")
    address = b"127.0.0.1:%d" % port
    meet(lambda: one.send_multipart([address, b"anybody?"]), lambda: their_next(other))
    other.set("rcvtimeo", 30_000)
    for body in BODIES:
        one.send_multipart([address, body])
        sender, heard = other.recv_multipart()
        # Their addresses end with a zero byte.
        assert (sender, heard) == (one.last_endpoint.removeprefix(b"udp://") + b"\0", body)
        other.send(sender, 2)
        other.send(body + b"!")
        assert one.recv_multipart() == [address, body + b"!"]
        # Ours may have one, too.
        one.send_multipart([address + b"\0", body])
        assert other.recv_multipart()[1] == body


def test_what_neither_allows(zmq, theirs):
    for kind, call in [(zmq.RADIO, "bind"), (zmq.DISH, "connect"), (zmq.PUB, "bind")]:
        socket = theirs(kind)
        with pytest.raises(RemoteError) as refused:
            getattr(socket, call)("udp://127.0.0.1:5555")
        assert refused.value.errno in (zmq.ENOCOMPATPROTO, errno.EPROTONOSUPPORT)
