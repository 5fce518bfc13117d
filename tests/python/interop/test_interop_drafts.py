"""The draft sockets against a libzmq that was built with them: either side binding, tcp, ipc and ws."""

import contextlib
import errno
import importlib

import pytest
from libzmq_library import LIBRARY
from peer import Peer, RemoteError
from support import eventually

pytestmark = pytest.mark.skipif(
    not LIBRARY.exists(), reason="build it with: python3 tools/libzmq_drafts.py"
)

CURVE = pytest.mark.skipif(
    LIBRARY.exists() and not importlib.import_module("libzmq_drafts").has("curve"),
    reason="libzmq was built without libsodium (Debian: libsodium-dev)",
)

BODIES = [b"", b"x", b"y" * 69, b"z" * 70, b"v" * 256, b"w" * 9000, b"u" * 300_000]


@pytest.fixture(params=["tcp", "ipc", "ws"])
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def libzmq():
    """A process with libzmq's draft sockets."""
    peer = Peer("libzmq_drafts")
    yield peer
    peer.close()


@pytest.fixture
def pair(zmq, sockets, libzmq, transport, request):
    """Makes our socket and one of libzmq, connected; `binds` says which one binds."""
    made = []

    def make(ours, theirs, *, we_bind, before=lambda one, other: None, **options):
        one = sockets.context.socket(getattr(zmq, ours))
        other = libzmq.socket(getattr(zmq, theirs), **options)
        made.append(other)
        before(one, other)
        first, second = (one, other) if we_bind else (other, one)
        first.bind(sockets.endpoint(transport))
        second.connect(first.last_endpoint.decode())
        return one, other

    yield make
    for other in made:
        other.close()


either = pytest.mark.parametrize("we_bind", [True, False], ids=["we bind", "they bind"])


@either
@pytest.mark.cell(transport="{transport}", types="SERVER CLIENT", peer="libzmq with drafts")
def test_client_of_theirs(pair, we_bind):
    server, client = pair("SERVER", "CLIENT", we_bind=we_bind)
    for body in BODIES:
        client.send(body)
        frame = server.recv(copy=False)
        assert frame.bytes == body
        server.send(body + b"!", routing_id=frame.routing_id)
        assert client.recv() == body + b"!"
    with pytest.raises(RemoteError) as refused:
        client.send(b"part", 2)
    assert refused.value.errno == errno.EINVAL


@either
@pytest.mark.cell(transport="{transport}", types="CLIENT SERVER", peer="libzmq with drafts")
def test_server_of_theirs(pair, we_bind):
    client, server = pair("CLIENT", "SERVER", we_bind=we_bind)
    for body in BODIES:
        client.send(body)
        heard, routing_id, _ = server.recv_labelled()
        assert heard == body and routing_id != 0
        server.send(body + b"!", routing_id=routing_id)
        assert client.recv() == body + b"!"


@pytest.mark.cell(transport="{transport}", types="PEER", peer="libzmq with drafts")
def test_peers_from_our_side(zmq, sockets, libzmq, transport):
    other = libzmq.socket(zmq.PEER)
    try:
        other.bind(sockets.endpoint(transport))
        one = sockets.context.socket(zmq.PEER)
        routing_id = one.connect_peer(other.last_endpoint.decode())
        for body in BODIES:
            one.send(body, routing_id=routing_id)
            heard, theirs, _ = other.recv_labelled()
            assert heard == body
            other.send(body + b"!", routing_id=theirs)
            frame = one.recv(copy=False)
            assert (frame.bytes, frame.routing_id) == (body + b"!", routing_id)
    finally:
        other.close()


@pytest.mark.cell(transport="{transport}", types="PEER", peer="libzmq with drafts")
def test_peers_from_their_side(zmq, sockets, libzmq, transport):
    one = sockets.bound(zmq.PEER, transport)
    other = libzmq.socket(zmq.PEER)
    try:
        theirs = other.connect_peer(one.last_endpoint.decode())
        other.send(b"hello", routing_id=theirs)
        frame = one.recv(copy=False)
        one.send(b"back", routing_id=frame.routing_id)
        assert other.recv_labelled()[:2] == [b"back", theirs]
    finally:
        other.close()


@either
@pytest.mark.cell(transport="{transport}", types="RADIO DISH", peer="libzmq with drafts")
def test_dish_of_theirs(pair, we_bind):
    def join(_, dish):
        dish.join(b"before")

    radio, dish = pair("RADIO", "DISH", we_bind=we_bind, before=join)
    # libzmq's DISH meets a RADIO that has connected to it only inside of its own calls.
    eventually(lambda: dish.look() or radio.count_subscribed("before"))
    dish.join(b"after")
    for body in BODIES:
        radio.send(b"filtered", group="before that")
        radio.send(body, group="before")
        assert dish.recv_labelled() == [body, 0, b"before"]
    radio.wait_subscribed("after", timeout=30_000)
    radio.send(b"x", group="after")
    assert dish.recv_labelled() == [b"x", 0, b"after"]
    dish.leave(b"before")
    radio.send(b"last", group="after")
    assert dish.recv() == b"last"
    longest = "g" * 255
    dish.join(longest.encode())
    radio.wait_subscribed(longest, timeout=30_000)
    radio.send(b"long", group=longest)
    assert dish.recv_labelled() == [b"long", 0, longest.encode()]


@either
@pytest.mark.cell(transport="{transport}", types="DISH RADIO", peer="libzmq with drafts")
def test_radio_of_theirs(pair, we_bind):
    def join(dish, _):
        dish.join("g")
        dish.rcvtimeo = 50

    dish, radio = pair("DISH", "RADIO", we_bind=we_bind, before=join)
    # Their RADIO drops what it sends before it has processed the JOIN.
    for _ in range(600):
        radio.send(b"anybody?", group=b"g")
        if dish.poll(50):
            break
    while dish.poll(100):
        assert dish.recv() == b"anybody?"
    dish.rcvtimeo = 30_000
    for body in BODIES:
        radio.send(b"not joined", group=b"gg")
        radio.send(body, group=b"g")
        frame = dish.recv(copy=False)
        assert (frame.bytes, frame.group) == (body, "g")


@either
@pytest.mark.parametrize(("ours", "theirs"), [("SCATTER", "GATHER"), ("GATHER", "SCATTER")])
@pytest.mark.cell(transport="{transport}", types="{ours} {theirs}", peer="libzmq with drafts")
def test_one_way(pair, ours, theirs, we_bind):
    one, other = pair(ours, theirs, we_bind=we_bind)
    sender, receiver = (one, other) if ours == "SCATTER" else (other, one)
    for body in BODIES:
        sender.send(body)
        assert receiver.recv() == body


@either
@pytest.mark.cell(transport="{transport}", types="CHANNEL", peer="libzmq with drafts")
def test_channels(pair, we_bind):
    one, other = pair("CHANNEL", "CHANNEL", we_bind=we_bind)
    for body in BODIES:
        one.send(body)
        assert other.recv() == body
        other.send(body)
        assert one.recv() == body


@either
def test_our_hello(pair, we_bind):
    def greet(client, _):
        client.hello_msg = b"hello"

    client, server = pair("CLIENT", "SERVER", we_bind=we_bind, before=greet)
    client.send(b"first")
    assert [server.recv(), server.recv()] == [b"hello", b"first"]


@either
def test_their_hello(pair, we_bind):
    dealer, _ = pair("DEALER", "ROUTER", we_bind=we_bind, hello_msg=b"hello")
    assert dealer.recv() == b"hello"


def test_a_peer_of_theirs_that_leaves(zmq, sockets, libzmq, transport):
    server = sockets.context.socket(zmq.SERVER)
    server.disconnect_msg = b"gone"
    server.bind(sockets.endpoint(transport))
    client = libzmq.socket(zmq.CLIENT)
    client.connect(server.last_endpoint.decode())
    client.send(b"hello")
    hello = server.recv(copy=False)
    client.close()
    gone = server.recv(copy=False)
    assert (gone.bytes, gone.routing_id) == (b"gone", hello.routing_id)


def test_their_peer_learns_that_we_left(zmq, sockets, libzmq, transport):
    server = libzmq.socket(zmq.SERVER, disconnect_msg=b"gone")
    try:
        server.bind(sockets.endpoint(transport))
        client = sockets.context.socket(zmq.CLIENT)
        client.connect(server.last_endpoint.decode())
        client.send(b"hello")
        hello = server.recv_labelled()
        client.close()
        assert server.recv_labelled()[:2] == [b"gone", hello[1]]
    finally:
        server.close()


@pytest.fixture
def encrypted(zmq, pair):
    """Like `pair`, with CURVE: the side that binds is the server."""
    server, client = zmq.curve_keypair(), zmq.curve_keypair()

    ends = [
        {"curve_server": 1, "curve_publickey": server[0], "curve_secretkey": server[1]},
        {
            "curve_publickey": client[0],
            "curve_secretkey": client[1],
            "curve_serverkey": server[0],
        },
    ]

    def make(ours, theirs, *, we_bind, before=lambda one, other: None):
        mine, others = ends if we_bind else reversed(ends)

        def secure(one, other):
            for name, value in mine.items():
                setattr(one, name, value)
            before(one, other)

        return pair(ours, theirs, we_bind=we_bind, before=secure, **others)

    return make


@CURVE
@either
@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("SCATTER", "GATHER"), ("GATHER", "SCATTER"), ("CHANNEL", "CHANNEL"), ("CLIENT", "SERVER")],
)
def test_encrypted_messages(encrypted, ours, theirs, we_bind):
    one, other = encrypted(ours, theirs, we_bind=we_bind)
    sender, receiver = (other, one) if ours == "GATHER" else (one, other)
    for body in BODIES:
        sender.send(body)
        assert receiver.recv() == body


@CURVE
@either
def test_encrypted_replies(encrypted, we_bind):
    server, client = encrypted("SERVER", "CLIENT", we_bind=we_bind)
    for body in BODIES:
        client.send(body)
        server.send(server.recv(copy=False))
        assert client.recv() == body


@CURVE
@either
def test_encrypted_groups_of_ours(encrypted, we_bind):
    radio, dish = encrypted(
        "RADIO", "DISH", we_bind=we_bind, before=lambda _, dish: dish.join(b"g")
    )
    eventually(lambda: dish.look() or radio.count_subscribed("g"))
    for body in BODIES:
        radio.send(b"filtered", group="gg")
        radio.send(body, group="g")
        assert dish.recv_labelled() == [body, 0, b"g"]


@CURVE
@either
def test_encrypted_groups_of_theirs(encrypted, we_bind):
    dish, radio = encrypted("DISH", "RADIO", we_bind=we_bind, before=lambda dish, _: dish.join("g"))
    for _ in range(600):
        radio.send(b"anybody?", group=b"g")
        if dish.poll(50):
            break
    while dish.poll(100):
        assert dish.recv() == b"anybody?"
    for body in BODIES:
        radio.send(body, group=b"g")
        assert dish.recv() == body


@CURVE
def test_encrypted_peers(zmq, sockets, libzmq, transport):
    (server_public, server_secret), (public, secret) = zmq.curve_keypair(), zmq.curve_keypair()
    one = sockets.context.socket(zmq.PEER)
    one.curve_server = 1
    one.curve_publickey, one.curve_secretkey = server_public, server_secret
    one.bind(sockets.endpoint(transport))
    other = libzmq.socket(
        zmq.PEER, curve_publickey=public, curve_secretkey=secret, curve_serverkey=server_public
    )
    try:
        theirs = other.connect_peer(one.last_endpoint.decode())
        for body in BODIES:
            other.send(body, routing_id=theirs)
            one.send(one.recv(copy=False))
            assert other.recv_labelled()[:2] == [body, theirs]
    finally:
        other.close()


def test_we_learn_that_their_server_left(zmq, sockets, libzmq, fixed_endpoint, transport):
    endpoint = fixed_endpoint(transport)
    client = sockets.context.socket(zmq.CLIENT)
    client.hiccup_msg, client.reconnect_ivl = b"hiccup", 10
    client.connect(endpoint)
    for _ in range(2):
        server = libzmq.socket(zmq.SERVER)
        try:
            eventually(lambda server=server: bound(server, endpoint))
            client.send(b"hello")
            heard, routing_id, _ = server.recv_labelled()
            server.send(heard, routing_id=routing_id)
            assert client.recv() == b"hello"
        finally:
            server.close()
        assert client.recv() == b"hiccup"


def test_their_client_learns_that_we_left(zmq, sockets, libzmq, fixed_endpoint, transport):
    endpoint = fixed_endpoint(transport)
    client = libzmq.socket(zmq.CLIENT, hiccup_msg=b"hiccup", reconnect_ivl=10)
    try:
        client.connect(endpoint)
        for _ in range(2):
            with sockets.context.socket(zmq.SERVER) as server:
                server.bind(endpoint)
                client.send(b"hello")
                server.send(server.recv(copy=False))
                assert client.recv() == b"hello"
            assert client.recv() == b"hiccup"
    finally:
        client.close()


def bound(socket, endpoint):
    """Binds, unless a closed socket has not left the address yet."""
    with contextlib.suppress(RemoteError):
        socket.bind(endpoint)
        return True
    return False
