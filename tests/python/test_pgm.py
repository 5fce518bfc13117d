"""epgm and pgm from Python; `interop/test_interop_pgm.py` has networks with losses."""

import asyncio
import errno
import os

import pytest

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture
def endpoint(request):
    """A group that no other test uses."""
    high, low = divmod(os.getpid() % 65536, 256)
    return f"epgm://lo;239.254.{high}.{low}:{20_000 + hash(request.node.name) % 10_000}"


def test_it_is_built_in(zmq):
    assert zmq.has("epgm") and zmq.has("pgm")


@pytest.mark.cell(transport="epgm", types="PUB SUB", peer="zeroxide")
def test_messages_and_statistics(zmq, sockets, endpoint):
    pub, sub = sockets.context.socket(zmq.PUB), sockets.context.socket(zmq.SUB)
    sub.rate = pub.rate = 1_000_000
    sub.subscribe("b")
    sub.bind(endpoint)
    with pub.connect(endpoint):
        for size in (0, 1, 300, 20_000):
            pub.send_multipart([b"a", b"x" * size])
            pub.send_multipart([b"b", b"y" * size])
            assert sub.recv_multipart() == [b"b", b"y" * size]
        assert pub.flush() is None
    dropped = sub.stats()["dropped"]
    assert (dropped["gap"], dropped["filtered"]) == (0, 4)


def test_asyncio(zmq, endpoint):
    import zeroxide.asyncio

    async def work():
        with zeroxide.asyncio.Context() as context:
            pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
            sub.subscribe(b"")
            sub.bind(endpoint)
            pub.bind(endpoint)
            await pub.send(b"one")
            assert await sub.recv() == b"one"
            context.destroy(linger=0)

    asyncio.run(work())


def test_a_sender_is_an_event(zmq, sockets, endpoint):
    sub = sockets.context.socket(zmq.SUB)
    events = sub.monitor_events(zmq.Event.ACCEPTED | zmq.Event.GAP)
    sub.bind(endpoint)
    pub = sockets.context.socket(zmq.PUB)
    pub.bind(endpoint)
    event = next(events)
    assert (event.kind, event.endpoint) == (zmq.Event.ACCEPTED, endpoint)


OTHERS = "PAIR REQ REP DEALER ROUTER PUSH PULL STREAM SERVER CLIENT RADIO DISH SCATTER GATHER PEER CHANNEL DGRAM"
SP = "PAIR REQ REP PUB SUB PUSH PULL SURVEYOR RESPONDENT BUS"


@pytest.mark.cell(transport="{scheme}", types="{kind}", peer="refused")
@pytest.mark.parametrize("scheme", ["epgm", "pgm"])
@pytest.mark.parametrize("kind", OTHERS.split())
def test_other_types_are_refused(zmq, context, endpoint, scheme, kind):
    socket = context.socket(getattr(zmq, kind))
    for call in (socket.bind, socket.connect):
        with pytest.raises(zmq.ZMQError, match="from PUB and XPUB to SUB and XSUB") as caught:
            call(endpoint.replace("epgm", scheme))
        assert caught.value.errno == zmq.ENOCOMPATPROTO


@pytest.mark.cell(transport="{scheme}", types="{kind}", peer="refused", sp=True)
@pytest.mark.parametrize("scheme", ["epgm", "pgm"])
@pytest.mark.parametrize("kind", SP.split())
def test_sp_is_refused(zmq, context, endpoint, scheme, kind):
    socket = context.socket(getattr(zmq, kind))
    socket.wire_protocol = zmq.SP
    for call in (socket.bind, socket.connect):
        with pytest.raises(zmq.ZMQError) as caught:
            call(endpoint.replace("epgm", scheme))
        assert caught.value.errno == zmq.ENOCOMPATPROTO


def test_an_address_without_a_group_is_refused(zmq, sockets):
    pub = sockets.context.socket(zmq.PUB)
    with pytest.raises(zmq.ZMQError, match="interface;group:port") as caught:
        pub.connect("epgm://127.0.0.1:5555")
    assert caught.value.errno == errno.EINVAL
