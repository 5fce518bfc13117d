"""vsock, tipc and sctp: transports that need a kernel with their protocol, and work as tcp and ipc do there."""

import asyncio
import itertools
import socket
import threading

import pytest
from support import eventually

pytestmark = pytest.mark.zeroxide_only

SCHEMES = ("vsock", "tipc", "sctp")
# The last one is more than SCTP takes at once.
BODIES = [b"", b"x", b"y" * 70_000, b"z" * 400_000]

services = itertools.count(20_000)


def lacks(scheme):
    """What the kernel lacks for the transport, if anything. `tools/other_kernel.py` runs one that lacks nothing."""
    families = {
        "vsock": (socket.AF_VSOCK, socket.SOCK_STREAM, 0),
        "tipc": (socket.AF_TIPC, socket.SOCK_STREAM, 0),
        "sctp": (socket.AF_INET, socket.SOCK_STREAM, 132),
    }
    try:
        with socket.socket(*families[scheme]) as probe:
            if scheme == "vsock":
                probe.bind((1, socket.VMADDR_PORT_ANY))
    except OSError as error:
        return f"no {scheme} in this kernel: {error.strerror}"
    return None


@pytest.fixture(params=SCHEMES)
def scheme(request):
    if reason := lacks(request.param):
        pytest.skip(reason)
    return request.param


@pytest.fixture
def ends(scheme):
    """An endpoint to bind to, and a function that makes of a bound socket what others connect to."""
    return ends_of(scheme)


def ends_of(scheme):
    if scheme == "tipc":
        number = next(services)
        return f"tipc://{{{number},0,9}}", lambda bound: f"tipc://{{{number},3}}@0.0.0"
    if scheme == "vsock":
        return "vsock://*:*", lambda bound: bound.last_endpoint.decode().replace("*", "1")
    return "sctp://127.0.0.1:*", lambda bound: bound.last_endpoint.decode()


@pytest.fixture
def pair(context, ends):
    def pair(bound_type, connected_type, **options):
        at, to = ends
        near, far = context.socket(bound_type), context.socket(connected_type)
        for end in (near, far):
            for name, value in options.items():
                setattr(end, name, value)
        near.bind(at)
        far.connect(to(near))
        far.wait_connected()
        return near, far

    return pair


PAIRS = [
    ("PUSH", "PULL"),
    ("PULL", "PUSH"),
    ("REP", "REQ"),
    ("DEALER", "DEALER"),
    ("PAIR", "PAIR"),
    ("CHANNEL", "CHANNEL"),
    ("GATHER", "SCATTER"),
    ("SERVER", "CLIENT"),
    ("ROUTER", "DEALER"),
    ("PUB", "SUB"),
    ("SUB", "XPUB"),
    ("RADIO", "DISH"),
]
SP_PAIRS = [
    ("PAIR", "PAIR"),
    ("PUSH", "PULL"),
    ("PUB", "SUB"),
    ("REQ", "REP"),
    ("SURVEYOR", "RESPONDENT"),
    ("BUS", "BUS"),
]


@pytest.mark.cell(transport="{scheme}", types="{types[0]} {types[1]}", peer="zeroxide")
@pytest.mark.parametrize("types", PAIRS, ids="-".join)
def test_bodies_of_every_size_between_all_types(zmq, pair, types):
    near, far = pair(*(getattr(zmq, name) for name in types))
    silent = ("PULL", "SUB", "GATHER", "REP", "SERVER", "ROUTER")
    sender, receiver = (far, near) if types[0] in silent else (near, far)
    if "SUB" in types:
        receiver.subscribe(b"")
    if "DISH" in types:
        receiver.join("group")
    if types == ("SUB", "XPUB"):
        assert sender.recv() == b"\x01"
    extra = {"group": "group"} if "DISH" in types else {}

    def heard():
        sender.send(b"first", **extra)
        return receiver.poll(20)

    if types[0] in ("PUB", "RADIO"):
        eventually(heard)
        sender.send(b"last", **extra)
        while receiver.recv() != b"last":
            pass
    for body in BODIES:
        sender.send(body, **extra)
        assert receiver.recv_multipart()[-1] == body
        if types[1] == "REQ":
            near.send(body)
            assert far.recv() == body


@pytest.mark.cell(transport="{scheme}", types="PEER", peer="zeroxide")
def test_peers(zmq, context, ends):
    at, to = ends
    one, other = context.socket(zmq.PEER), context.socket(zmq.PEER)
    other.bind(at)
    routing_id = one.connect_peer(to(other))
    for body in BODIES:
        one.send(body, routing_id=routing_id)
        frame = other.recv(copy=False)
        assert frame.bytes == body
        other.send(body, routing_id=frame.routing_id)
        assert one.recv() == body


@pytest.mark.cell(transport="{scheme}", types="STREAM", peer="zeroxide")
def test_plain_bytes(zmq, context, ends):
    at, to = ends
    near, far = context.socket(zmq.STREAM), context.socket(zmq.STREAM)
    near.bind(at)
    far.connect(to(near))
    (there, _), (here, _) = far.recv_multipart(), near.recv_multipart()
    far.send_multipart([there, b"plain"])
    assert near.recv_multipart() == [here, b"plain"]


@pytest.mark.cell(transport="{scheme}", types="{types[0]} {types[1]}", peer="zeroxide", sp=True)
@pytest.mark.parametrize("types", SP_PAIRS, ids="-".join)
def test_scalability_protocols(zmq, pair, types):
    near, far = pair(*(getattr(zmq, name) for name in types), wire_protocol=zmq.SP)
    near.wait_connected()
    if "SUB" in types:
        far.subscribe(b"")
    if "SURVEYOR" in types:
        near.survey_timeout = 0
    for body in BODIES:
        near.send(body)
        assert far.recv() == body
        if types[0] not in ("PUSH", "PUB"):
            far.send(body)
            assert near.recv() == body


def test_messages_stay_whole_and_in_order(zmq, pair):
    push, pull = pair(zmq.PUSH, zmq.PULL)
    wanted = [[b"%d" % n, b"." * (n % 300)] for n in range(3000)]
    thread = threading.Thread(target=lambda: [push.send_multipart(parts) for parts in wanted])
    thread.start()
    assert [pull.recv_multipart() for _ in wanted] == wanted
    thread.join()


def test_the_last_words_of_a_socket_arrive(zmq, context, pair):
    pull, push = pair(zmq.PULL, zmq.PUSH)
    push.linger = -1
    for n in range(50):
        push.send(b"%d" % n + b"." * 20_000)
    push.close()
    assert [pull.recv().rstrip(b".") for _ in range(50)] == [b"%d" % n for n in range(50)]


def test_a_peer_that_comes_back_is_found(zmq, context, ends, pair):
    at, _ = ends
    pull, push = pair(zmq.PULL, zmq.PUSH, reconnect_ivl=20)
    again = at if at.startswith("tipc") else pull.last_endpoint.decode()
    monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    pull.close()
    assert monitor.poll(10_000)
    push.disable_monitor()

    def rebound():
        successor = context.socket(zmq.PULL)
        try:
            successor.bind(again)
        except zmq.ZMQError:
            successor.close()
            return None
        return successor

    successor = eventually(rebound)
    push.send(b"found")
    assert successor.recv() == b"found"


def test_a_peer_that_ends_is_noticed(zmq, pair):
    near, far = pair(zmq.DEALER, zmq.DEALER)
    monitor = near.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    far.close()
    assert monitor.poll(10_000)
    near.disable_monitor()


def test_curve_within(zmq, context, ends):
    at, to = ends
    public, secret = zmq.curve_keypair()
    server, client = context.socket(zmq.REP), context.socket(zmq.REQ)
    server.curve_server, server.curve_secretkey = True, secret
    client.curve_serverkey = public
    client.curve_publickey, client.curve_secretkey = zmq.curve_keypair()
    server.bind(at)
    client.connect(to(server))
    client.send(b"secret" * 10_000)
    server.send(server.recv())
    assert client.recv() == b"secret" * 10_000


def test_asyncio(zmq, ends):
    import zeroxide.asyncio

    async def run():
        at, to = ends
        with zeroxide.asyncio.Context() as context:
            rep, req = context.socket(zmq.REP), context.socket(zmq.REQ)
            rep.bind(at)
            req.connect(to(rep))
            for n in range(100):
                await req.send(b"%d" % n)
                await rep.send(await rep.recv())
                assert await req.recv() == b"%d" % n

    asyncio.run(asyncio.wait_for(run(), 30))


def test_a_monitor_names_the_endpoint(zmq, context, ends):
    at, to = ends
    rep, req = context.socket(zmq.REP), context.socket(zmq.REQ)
    monitor = rep.get_monitor_socket(zmq.EVENT_ALL)
    rep.bind(at)
    req.connect(to(rep))
    events = {}
    while zmq.EVENT_HANDSHAKE_SUCCEEDED not in events:
        event = monitor.recv_multipart()
        events[int.from_bytes(event[0][:2], "little")] = event[1].decode()
    assert events[zmq.EVENT_ACCEPTED] == rep.last_endpoint.decode()
    rep.disable_monitor()


def test_many_connections(zmq, context, ends):
    at, to = ends
    router = context.socket(zmq.ROUTER)
    router.bind(at)
    dealers = [context.socket(zmq.DEALER) for _ in range(100)]
    for number, dealer in enumerate(dealers):
        dealer.connect(to(router))
        dealer.send(b"%d" % number)
    for _ in dealers:
        router.send_multipart(router.recv_multipart())
    assert [dealer.recv() for dealer in dealers] == [b"%d" % n for n in range(100)]


@pytest.mark.cell(transport="{scheme}", types="REQ REP", peer="libzmq")
@pytest.mark.parametrize("ours_binds", [True, False])
def test_libzmq_as_the_peer(zmq, context, ends, scheme, ours_binds):
    """libzmq has tipc, as pyzmq's wheels do."""
    libzmq = pytest.importorskip("zmq")
    if not libzmq.has(scheme):
        pytest.skip(f"no {scheme} in libzmq {libzmq.zmq_version()}")
    at, to = ends
    with libzmq.Context() as other:
        kinds = [(context, zmq), (other, libzmq)]
        (near_context, near), (far_context, far) = kinds if ours_binds else kinds[::-1]
        rep, req = near_context.socket(near.REP), far_context.socket(far.REQ)
        rep.linger = req.linger = 0
        rep.rcvtimeo = req.rcvtimeo = 10_000
        rep.bind(at)
        req.connect(to(rep))
        for body in BODIES:
            req.send(body)
            rep.send(rep.recv())
            assert req.recv() == body
        rep.close()
        req.close()


def test_a_socket_of_its_own_kind_can_be_adopted(zmq, context, scheme, ends):
    at, to = ends
    if scheme == "tipc":
        pytest.skip("a service has no endpoint to read from a descriptor")
    family, protocol = (socket.AF_VSOCK, 0) if scheme == "vsock" else (socket.AF_INET, 132)
    listener = socket.socket(family, socket.SOCK_STREAM, protocol)
    any_address = (socket.VMADDR_CID_ANY, socket.VMADDR_PORT_ANY)
    listener.bind(any_address if scheme == "vsock" else ("127.0.0.1", 0))
    listener.listen()
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.use_fd = listener.detach()
    pull.bind(at)
    push.connect(to(pull))
    push.send(b"hello")
    assert pull.recv() == b"hello"
