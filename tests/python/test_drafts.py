"""CLIENT, SERVER, PEER, RADIO, DISH, SCATTER, GATHER and CHANNEL: the types that are drafts in libzmq."""

import asyncio
import threading

import pytest
from certificates import Authority

pytestmark = pytest.mark.zeroxide_only

BODIES = [b"", b"x" * 69, b"y" * 70, b"z" * 100_000]


def errno_of(zmq, call):
    with pytest.raises(zmq.ZMQError) as caught:
        call()
    return caught.value.errno


each = pytest.mark.parametrize("transport", ["tcp", "ipc", "inproc", "ws", "tls+tcp", "wss"])


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server", "IP:127.0.0.1")


@pytest.fixture
def sockets(sockets, authority, identity):
    """Sockets that have a certificate and trust it, for the transports that need one."""
    context = sockets.context
    context.tls_certificate, context.tls_key = map(bytes, identity)
    context.tls_ca = bytes(authority.certificate)
    return sockets


@pytest.mark.cell(transport="{transport}", types="SERVER CLIENT", peer="zeroxide")
@each
def test_replies_go_to_the_client_that_asked(zmq, sockets, transport):
    server = sockets.bound(zmq.SERVER, transport)
    clients = [sockets.connected(zmq.CLIENT, server) for _ in range(3)]
    for body in BODIES:
        for client in clients:
            client.send(body)
        for _ in clients:
            frame = server.recv(copy=False)
            assert frame.bytes == body and not frame.more
            server.send(b"%d" % frame.routing_id, routing_id=frame.routing_id)
        replies = {client.recv() for client in clients}
        assert len(replies) == 3


def test_a_received_frame_is_addressed_already(zmq, sockets):
    server = sockets.bound(zmq.SERVER)
    client = sockets.connected(zmq.CLIENT, server)
    client.send(b"one")
    server.send(server.recv(copy=False))
    assert client.recv() == b"one"
    client.send(b"two")
    server.send_multipart(server.recv_multipart(copy=False))
    assert client.recv() == b"two"
    client.send_string("three")
    [frame] = server.recv_multipart(copy=False)
    server.send_json({"n": 3}, routing_id=frame.routing_id)
    assert client.recv_json() == {"n": 3}


def test_batches_of_frames(zmq, sockets):
    server = sockets.bound(zmq.SERVER)
    client = sockets.connected(zmq.CLIENT, server)
    bodies = [b"%d" % n for n in range(500)]
    assert client.send_batch(bodies) == 500
    heard = []
    while len(heard) < 500:
        frames = server.recv_batch(copy=False)
        assert server.send_batch(frames) == len(frames)
        heard += frames
    assert [frame.bytes for frame in heard] == bodies
    echoed = []
    while len(echoed) < 500:
        echoed += client.recv_batch(multipart=True, copy=False)
    assert [frame.bytes for [frame] in echoed] == bodies
    # A generator's frames keep their address as well.
    client.send(b"again")
    frame = server.recv(copy=False)
    assert server.send_batch(frame for _ in range(3)) == 3
    assert [client.recv() for _ in range(3)] == [b"again"] * 3


def test_a_client_that_left_is_unreachable(zmq, sockets):
    server = sockets.bound(zmq.SERVER, disconnect_msg=b"gone")
    client = sockets.connected(zmq.CLIENT, server)
    client.send(b"hello")
    hello = server.recv(copy=False)
    client.close()
    gone = server.recv(copy=False)
    assert (gone.bytes, gone.routing_id) == (b"gone", hello.routing_id)
    assert errno_of(zmq, lambda: server.send(gone)) == zmq.EHOSTUNREACH
    assert errno_of(zmq, lambda: server.send(b"to whom?")) == zmq.EHOSTUNREACH


@pytest.mark.cell(transport="{transport}", types="PEER", peer="zeroxide")
@each
def test_peers(zmq, sockets, transport):
    one, other = sockets.context.socket(zmq.PEER), sockets.bound(zmq.PEER, transport)
    routing_id = one.connect_peer(other.last_endpoint)
    one.send(b"early", routing_id=routing_id)
    frame = other.recv(copy=False)
    other.send(b"back", routing_id=frame.routing_id)
    assert one.recv(copy=False).routing_id == routing_id
    one.disconnect_peer(routing_id)
    assert errno_of(zmq, lambda: one.disconnect_peer(routing_id)) == zmq.EHOSTUNREACH
    assert errno_of(zmq, lambda: one.send(b"late", routing_id=routing_id)) == zmq.EHOSTUNREACH
    one.immediate = 1
    assert errno_of(zmq, lambda: one.connect_peer(other.last_endpoint)) == zmq.EFAULT


@pytest.mark.cell(transport="{transport}", types="RADIO DISH", peer="zeroxide")
@each
def test_groups(zmq, sockets, transport):
    radio = sockets.bound(zmq.RADIO, transport)
    dish = sockets.context.socket(zmq.DISH)
    dish.join("a")
    dish.join(b"bytes")
    dish.connect(radio.last_endpoint)
    assert radio.wait_subscribed("a") == radio.wait_subscribed(b"bytes") == 1
    for body in BODIES:
        radio.send(b"no member", group="ab")
        radio.send(body, group="a")
        frame = dish.recv(copy=False)
        assert (frame.bytes, frame.group) == (body, "a")
    radio.send(frame)
    radio.send_string("text", group="bytes")
    assert (dish.recv(), dish.recv_string()) == (BODIES[-1], "text")
    dish.leave("a")
    for group in ("a", "never joined", "x" * 256, "a\0"):
        assert errno_of(zmq, lambda group=group: dish.leave(group)) == zmq.EINVAL
    assert errno_of(zmq, lambda: dish.join("bytes")) == zmq.EINVAL
    assert errno_of(zmq, lambda: radio.join("a")) == zmq.ENOTSUP
    with pytest.raises(TypeError, match="group"):
        dish.join(5)
    assert radio.stats()["no_subscriber"] == len(BODIES)


@each
def test_a_radio_that_connects(zmq, sockets, transport):
    dish = sockets.bound(zmq.DISH, transport)
    dish.join("a")
    radio = sockets.connected(zmq.RADIO, dish)
    dish.join("b")
    radio.wait_subscribed("a")
    radio.wait_subscribed("b")
    radio.send(b"no member", group="ab")
    for group in ("b", "a"):
        radio.send(b"body", group=group)
        assert dish.recv(copy=False).group == group


@pytest.mark.cell(transport="{transport}", types="SCATTER GATHER", peer="zeroxide")
@pytest.mark.cell(transport="{transport}", types="CHANNEL", peer="zeroxide")
@each
def test_scattered_work_and_channels(zmq, sockets, transport):
    gather = sockets.bound(zmq.GATHER, transport)
    scatter = sockets.connected(zmq.SCATTER, gather)
    one = sockets.bound(zmq.CHANNEL, transport)
    other = sockets.connected(zmq.CHANNEL, one)
    for body in BODIES:
        scatter.send(body)
        assert gather.recv() == body
        one.send(body)
        other.send(other.recv() + b"!")
        assert one.recv() == body + b"!"


@pytest.mark.parametrize("kind", ["SERVER", "CLIENT", "RADIO", "SCATTER", "PEER", "CHANNEL"])
def test_messages_have_one_part(zmq, context, kind):
    with context.socket(getattr(zmq, kind)) as socket:
        for call in (
            lambda: socket.send(b"a", zmq.SNDMORE),
            lambda: socket.send_multipart([b"a", b"b"]),
            lambda: socket.send_multipart([b"a"], zmq.SNDMORE),
            lambda: socket.send_batch([[b"a", b"b"]]),
        ):
            assert errno_of(zmq, call) == zmq.EINVAL
        assert socket.thread_safe == 1


def test_a_server_is_shared_by_threads(zmq, sockets):
    server = sockets.bound(zmq.SERVER)

    def work():
        while (frame := server.recv(copy=False)).bytes:
            server.send(frame)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    clients = [sockets.connected(zmq.CLIENT, server) for _ in range(4)]
    for n in range(50):
        for client in clients:
            client.send(b"%d" % (n + 1))
        assert [client.recv() for client in clients] == [b"%d" % (n + 1)] * 4
    for _ in threads:
        clients[0].send(b"")
    for thread in threads:
        thread.join()


def test_poll(zmq, sockets):
    server = sockets.bound(zmq.SERVER)
    client = sockets.connected(zmq.CLIENT, server)
    poller = zmq.Poller()
    poller.register(server, zmq.POLLIN)
    assert poller.poll(0) == []
    client.send(b"x")
    assert poller.poll() == [(server, zmq.POLLIN)]
    assert server.poll(flags=zmq.POLLIN | zmq.POLLOUT) == zmq.POLLIN | zmq.POLLOUT
    assert server.recv() == b"x"
    assert server.events == zmq.POLLOUT


def test_curve(zmq, sockets):
    public, secret = zmq.curve_keypair()
    own = zmq.curve_keypair()
    radio = sockets.context.socket(zmq.RADIO)
    radio.secure_server(secret, [own[0]])
    radio.bind("tcp://127.0.0.1:*")
    dish = sockets.context.socket(zmq.DISH)
    dish.secure_client(public, own[1])
    dish.join("g")
    dish.connect(radio.last_endpoint)
    radio.wait_subscribed("g")
    radio.send(b"secret", group="g")
    assert dish.recv(copy=False).group == "g"
    server = sockets.context.socket(zmq.SERVER)
    server.secure_server(secret, [own[0]])
    server.bind("tcp://127.0.0.1:*")
    client = sockets.context.socket(zmq.CLIENT)
    client.secure_client(public, own[1])
    client.connect(server.last_endpoint)
    client.send(b"x")
    server.send(server.recv(copy=False))
    assert client.recv() == b"x"


def test_asyncio(zmq):
    azmq = pytest.importorskip(f"{zmq.__name__}.asyncio")

    async def talk():
        with azmq.Context() as context:
            server, client = context.socket(zmq.SERVER), context.socket(zmq.CLIENT)
            client.connect(server.bind("inproc://asyncio-server").addr)
            waiting = asyncio.ensure_future(server.recv(copy=False))
            await client.send(b"1")
            frame = await waiting
            await server.send(b"one", routing_id=frame.routing_id)
            assert await client.recv() == b"one"
            # A message that did not reach its task is received again, with its sender.
            await client.send(b"2")
            await server.poll()
            server.recv().cancel()
            [frame] = await server.recv_batch(copy=False)
            await server.send(frame)
            assert await client.recv() == b"2"
            for call in (
                server.send(b"x"),
                client.send(b"x", routing_id=1),
                client.send(b"x", zmq.SNDMORE),
            ):
                with pytest.raises(zmq.ZMQError):
                    await call
            radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
            dish.join("g")
            dish.connect(radio.bind("inproc://asyncio-radio").addr)
            await radio.wait_subscribed("g")
            await radio.send(b"x", group="g")
            [frame] = await dish.recv_multipart(copy=False)
            assert (frame.bytes, frame.group) == (b"x", "g")
            context.destroy(linger=0)

    asyncio.run(talk())


def test_waiting_sends_keep_their_addressees(zmq):
    azmq = pytest.importorskip(f"{zmq.__name__}.asyncio")

    async def talk():
        with azmq.Context() as context:
            server, client = context.socket(zmq.SERVER), context.socket(zmq.CLIENT)
            server.sndhwm = client.rcvhwm = 1
            client.connect(server.bind("inproc://asyncio-full").addr)
            await client.send(b"hello")
            routing_id = (await server.recv(copy=False)).routing_id
            sends = [
                asyncio.ensure_future(server.send(b"%d" % n, routing_id=routing_id))
                for n in range(10)
            ]
            assert [await client.recv() for _ in sends] == [b"%d" % n for n in range(10)]
            await asyncio.gather(*sends)
            context.destroy(linger=0)

    asyncio.run(talk())


def test_greenlets(zmq):
    gevent = pytest.importorskip("gevent")
    green = pytest.importorskip(f"{zmq.__name__}.green")
    with green.Context() as context:
        server, client = context.socket(zmq.SERVER), context.socket(zmq.CLIENT)
        client.connect(server.bind("inproc://green-server").addr)
        echo = gevent.spawn(lambda: server.send(server.recv_batch(copy=False)[0]))
        client.send(b"x")
        assert client.recv() == b"x"
        echo.join()
        context.destroy(linger=0)


def test_a_dish_joins_again(zmq, sockets, context):
    dish = context.socket(zmq.DISH)
    dish.reconnect_ivl = 1
    dish.join("g")
    radio = sockets.bound(zmq.RADIO, "ipc")
    endpoint = radio.last_endpoint
    dish.connect(endpoint)
    for n in range(3):
        radio.wait_subscribed("g")
        radio.send(b"%d" % n, group="g")
        assert dish.recv() == b"%d" % n
        radio.close()
        radio = context.socket(zmq.RADIO)
        radio.bind(endpoint)


def test_words_of_connections(zmq, sockets, transport):
    router = sockets.context.socket(zmq.ROUTER)
    router.router_notify = zmq.RouterNotify.CONNECT | zmq.RouterNotify.DISCONNECT
    router.hello_msg = b"welcome"
    router.disconnect_msg = b"gone"
    router.bind(sockets.endpoint(transport))
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"d")
    assert dealer.recv() == b"welcome"
    assert router.recv_multipart() == [b"d", b""]
    dealer.close()
    assert sorted(router.recv_multipart() for _ in range(2)) == [[b"d", b""], [b"d", b"gone"]]
    assert (router.hello_msg, router.disconnect_msg) == (b"welcome", b"gone")
