"""ws against a libzmq that was built with its drafts, with either side binding."""

import pytest
from libzmq_library import LIBRARY
from peer import Peer
from support import eventually

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="build it with: python3 tools/libzmq_drafts.py"
)

BODIES = [b"", b"x", b"y" * 124, b"z" * 125, b"w" * 9000, b"v" * 65_535, b"u" * 300_000]


@pytest.fixture(scope="module")
def libzmq():
    peer = Peer("libzmq_drafts")
    yield peer
    peer.close()


@pytest.fixture
def pair(zmq, context, libzmq):
    """Makes our socket and one of libzmq, connected."""
    made = []

    def make(ours, theirs, *, we_bind, **options):
        one = context.socket(getattr(zmq, ours))
        other = libzmq.socket(getattr(zmq, theirs), **options)
        made.append(other)
        first, second = (one, other) if we_bind else (other, one)
        first.bind("ws://127.0.0.1:*/feed")
        second.connect(first.last_endpoint.decode())
        return one, other

    yield make
    for other in made:
        other.close()


either = pytest.mark.parametrize("we_bind", [True, False], ids=["we bind", "they bind"])


@pytest.mark.cell(transport="ws", types="REQ REP", peer="libzmq with drafts")
@either
def test_requests_and_replies(pair, we_bind):
    rep, req = pair("REP", "REQ", we_bind=we_bind)
    for body in BODIES:
        req.send(body)
        assert rep.recv() == body
        rep.send(body + b"!")
        assert req.recv() == body + b"!"


@pytest.mark.cell(transport="ws", types="XPUB SUB", peer="libzmq with drafts")
@either
def test_subscriptions(pair, we_bind):
    xpub, sub = pair("XPUB", "SUB", we_bind=we_bind, subscribe=b"a")
    # libzmq sends its subscriptions to a new peer during a call.
    eventually(lambda: sub.look() or xpub.poll(10))
    assert xpub.recv() == b"\x01a"
    for body in (b"b", b"a1"):
        xpub.send(body)
    assert sub.recv() == b"a1"


@pytest.mark.cell(transport="ws", types="SUB XPUB", peer="libzmq with drafts")
@either
def test_our_subscriptions(pair, we_bind):
    sub, xpub = pair("SUB", "XPUB", we_bind=we_bind)
    sub.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    for body in (b"b", b"a1"):
        xpub.send(body)
    assert sub.recv() == b"a1"


# In ms. A peer that answers each ping in time is connected for longer than QUIET.
BEATS = {"heartbeat_ivl": 50, "heartbeat_timeout": 3000}
QUIET = 4000


@pytest.fixture
def noticed(zmq):
    """Makes a function that says whether a socket loses its peer within some ms."""
    monitors = []

    def watch(socket):
        monitor = socket.get_monitor_socket(zmq.EVENT_DISCONNECTED)
        monitors.append(socket)
        return lambda limit: bool(monitor.poll(limit))

    yield watch
    for socket in monitors:
        socket.disable_monitor()


@either
def test_our_heartbeats(zmq, context, libzmq, noticed, we_bind):
    """They are pings of WebSocket, which libzmq answers; it ignores the PING of ZMTP over ws."""
    with context.socket(zmq.PULL) as pull:
        for name, value in BEATS.items():
            setattr(pull, name, value)
        is_lost = noticed(pull)
        push = libzmq.socket(zmq.PUSH)
        first, second = (pull, push) if we_bind else (push, pull)
        first.bind("ws://127.0.0.1:*/feed")
        second.connect(first.last_endpoint.decode())
        push.send(b"one")
        assert pull.recv() == b"one"
        assert not is_lost(QUIET)
        push.send(b"two")
        assert pull.recv() == b"two"
        libzmq.freeze()
        try:
            assert is_lost(30_000)
        finally:
            libzmq.thaw()
            push.close()


@either
def test_their_heartbeats(pair, noticed, we_bind):
    pull, push = pair("PULL", "PUSH", we_bind=we_bind, **BEATS)
    is_lost = noticed(pull)
    push.send(b"one")
    assert pull.recv() == b"one"
    assert not is_lost(QUIET)
    push.send(b"two")
    assert pull.recv() == b"two"
