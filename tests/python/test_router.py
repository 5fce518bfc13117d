"""ROUTER, DEALER and STREAM: messages with an address."""

import contextlib
import select
import socket as tcp

import pytest
from support import attend, eventually


def test_addresses(zmq, sockets, transport):
    router = sockets.bound(zmq.ROUTER, transport)
    named = sockets.connected(zmq.DEALER, router, routing_id=b"named")
    nameless = sockets.connected(zmq.DEALER, router)
    named.send(b"from named")
    assert router.recv_multipart() == [b"named", b"from named"]
    nameless.send_multipart([b"from", b"nameless"])
    address, *body = router.recv_multipart()
    assert body == [b"from", b"nameless"]
    assert len(address) == 5 and address[0] == 0
    router.send_multipart([address, b"to nameless"])
    router.send_multipart([b"named", b"to", b"named"])
    assert nameless.recv_multipart() == [b"to nameless"]
    assert named.recv_multipart() == [b"to", b"named"]


@pytest.mark.parametrize("name", [b"\0", b"\0\0", b"\0" * 4, b"\0" + b"x" * 15, b"\0" * 255])
def test_names_that_begin_with_a_zero_byte(zmq, sockets, transport, name):
    router = sockets.bound(zmq.ROUTER, transport)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=name)
    dealer.send(b"hello")
    assert router.recv_multipart() == [name, b"hello"]
    router.send_multipart([name, b"back"])
    assert dealer.recv() == b"back"


def test_a_generated_name_of_another_router_is_taken_as_it_is(zmq, sockets):
    first, dealer = sockets.pair(zmq.ROUTER, zmq.DEALER)
    dealer.send(b"")
    generated, _ = first.recv_multipart()
    second = sockets.bound(zmq.ROUTER)
    proxy = sockets.connected(zmq.DEALER, second, routing_id=generated)
    proxy.send(b"for another")
    assert second.recv_multipart() == [generated, b"for another"]


def test_unknown_address_is_dropped(zmq, sockets):
    router, dealer = sockets.pair(zmq.ROUTER, zmq.DEALER)
    dealer.send(b"")
    address, _ = router.recv_multipart()
    router.send_multipart([b"nobody", b"lost"])
    router.send_multipart([address, b"found"])
    assert dealer.recv() == b"found"


def test_mandatory(zmq, sockets, transport):
    router, dealer = sockets.pair(zmq.ROUTER, zmq.DEALER, transport)
    router.router_mandatory = 1
    with pytest.raises(zmq.ZMQError) as caught:
        router.send_multipart([b"nobody", b"refused"])
    assert caught.value.errno == zmq.EHOSTUNREACH
    dealer.send(b"")
    address, _ = router.recv_multipart()
    router.send_multipart([address, b"accepted"])
    assert dealer.recv() == b"accepted"


def test_mandatory_and_full(zmq, context):
    with context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        router.router_mandatory = 1
        router.sndhwm = dealer.rcvhwm = 2
        router.bind("inproc://full")
        dealer.routing_id = b"d"
        dealer.connect("inproc://full")
        dealer.send(b"")
        router.recv_multipart()
        for _ in range(4):
            router.send_multipart([b"d", b"x"], zmq.DONTWAIT)
        with pytest.raises(zmq.Again):
            router.send_multipart([b"d", b"x"], zmq.DONTWAIT)


def test_duplicate_address(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    first = sockets.connected(zmq.DEALER, router, routing_id=b"same")
    first.send(b"first")
    assert router.recv_multipart() == [b"same", b"first"]
    second = sockets.connected(zmq.DEALER, router, routing_id=b"same")
    second.send(b"second")
    first.send(b"still first")
    assert router.recv_multipart() == [b"same", b"still first"]
    router.send_multipart([b"same", b"to first"])
    assert first.recv() == b"to first"


def test_handover(zmq, sockets):
    router = sockets.bound(zmq.ROUTER, router_handover=1)
    first = sockets.connected(zmq.DEALER, router, routing_id=b"same")
    first.send(b"first")
    assert router.recv_multipart() == [b"same", b"first"]
    second = sockets.connected(zmq.DEALER, router, routing_id=b"same")
    second.send(b"second")
    assert router.recv_multipart() == [b"same", b"second"]
    router.send_multipart([b"same", b"to second"])
    assert second.recv() == b"to second"


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("handover", [0, 1])
def test_two_peers_with_one_name_do_not_take_it_from_each_other(zmq, sockets, transport, handover):
    router = sockets.bound(zmq.ROUTER, transport, router_handover=handover, router_mandatory=1)
    dealers = []
    for number in range(3):
        dealer = sockets.connected(zmq.DEALER, router, routing_id=b"same", reconnect_ivl=1)
        dealer.send(b"%d" % number)
        eventually(lambda: len(router.stats()["peers"]) == number + 1)  # noqa: B023
        dealers.append(dealer)
    ends = [peer.monitor_events(zmq.EVENT_DISCONNECTED) for peer in (router, *dealers)]
    in_line = dealers if not handover else dealers[::-1]
    for turn, dealer in enumerate(in_line):
        eventually(lambda: waiting(router) == 2 - turn)  # noqa: B023
        for _ in range(100):
            router.send_multipart([b"same", b"yours"])
            assert dealer.recv() == b"yours"
            dealer.send(b"mine")
            while (message := router.recv_multipart()) != [b"same", b"mine"]:
                # The message that it sent while it waited.
                assert message == [b"same", b"%d" % dealers.index(dealer)]
        for end in ends:
            with pytest.raises(zmq.Again):
                end.recv(timeout=0)
        ends = []
        dealer.close()
    assert not any(router.stats()["dropped"].values())


def waiting(router):
    return sum(peer["waiting"] for peer in router.stats()["peers"])


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("handover", [0, 1])
def test_the_owner_of_another_key_cannot_take_a_name(zmq, sockets, handover):
    """This holds even without a list of keys."""
    public, secret = zmq.curve_keypair()
    router = sockets.bound(
        zmq.ROUTER,
        router_handover=handover,
        router_mandatory=1,
        curve_server=1,
        curve_publickey=public,
        curve_secretkey=secret,
    )
    owners = [zmq.curve_keypair() for _ in range(2)]

    def dealer(owner):
        return sockets.connected(
            zmq.DEALER,
            router,
            routing_id=b"same",
            curve_serverkey=public,
            curve_publickey=owners[owner][0],
            curve_secretkey=owners[owner][1],
        )

    first = dealer(0)
    first.send(b"first")
    assert router.recv_multipart() == [b"same", b"first"]
    thief = dealer(1)
    thief.send(b"stolen")
    eventually(lambda: waiting(router) == 1)
    again = dealer(0)
    again.send(b"again")
    eventually(lambda: waiting(router) == 2)
    one, other = (again, first) if handover else (first, again)
    router.send_multipart([b"same", b"secret"])
    assert one.recv() == b"secret"
    one.close()
    eventually(lambda: waiting(router) == 1)
    router.send_multipart([b"same", b"secret"])
    assert other.recv() == b"secret"
    # The name is free now, so any peer may have it.
    other.close()
    messages = iter(router.recv_multipart, [b"same", b"stolen"])
    assert set(map(tuple, messages)) <= {(b"same", b"first"), (b"same", b"again")}
    assert not thief.poll(0)


@pytest.mark.parametrize("name", [b"chosen", b"\0\0"])
def test_connect_routing_id(zmq, context, sockets, name):
    dealer = sockets.bound(zmq.DEALER)
    with context.socket(zmq.ROUTER) as router:
        router.connect_routing_id = name
        router.connect(dealer.last_endpoint.decode())
        router.send_multipart([name, b"hello"])
        assert dealer.recv() == b"hello"
        dealer.send(b"back")
        assert router.recv_multipart() == [name, b"back"]


def test_probe(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    prober = sockets.connected(zmq.DEALER, router, routing_id=b"prober", probe_router=1)
    assert not prober.closed
    assert router.recv_multipart() == [b"prober", b""]


def test_address_alone_is_ignored(zmq, sockets):
    router, dealer = sockets.pair(zmq.ROUTER, zmq.DEALER)
    dealer.send(b"")
    address, _ = router.recv_multipart()
    router.send(address)
    router.send_multipart([address, b""])
    assert dealer.recv_multipart() == [b""]


def test_dealer_shares_and_collects(zmq, context, sockets):
    servers = [sockets.bound(zmq.REP) for _ in range(3)]
    with context.socket(zmq.DEALER) as dealer:
        for server in servers:
            dealer.connect(server.last_endpoint.decode())
        for number in range(9):
            dealer.send_multipart([b"", b"%d" % number])
        for server in servers:
            for _ in range(3):
                server.send(server.recv())
        answers = [dealer.recv_multipart() for _ in range(9)]
        assert sorted(int(body) for _, body in answers) == list(range(9))


# ---- STREAM -------------------------------------------------------------------------


def test_stream_serves_plain_tcp(zmq, sockets):
    stream = sockets.bound(zmq.STREAM)
    port = int(stream.last_endpoint.rpartition(b":")[2])
    with tcp.create_connection(("127.0.0.1", port)) as client:
        identity, notice = stream.recv_multipart()
        assert notice == b""
        client.sendall(b"hello")
        assert stream.recv_multipart() == [identity, b"hello"]
        stream.send_multipart([identity, b"world"])
        assert client.recv(5) == b"world"
        stream.send_multipart([identity, b""])
        while not select.select([client], [], [], 0.02)[0]:
            attend(zmq, stream)
        assert client.recv(1) == b""


def test_stream_connects_to_plain_tcp(zmq, context):
    with tcp.create_server(("127.0.0.1", 0)) as server, context.socket(zmq.STREAM) as stream:
        stream.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        client, _ = server.accept()
        with client:
            identity, notice = stream.recv_multipart()
            assert notice == b""
            stream.send_multipart([identity, b"hello"])
            assert client.recv(5) == b"hello"
        assert stream.recv_multipart() == [identity, b""]


def test_stream_needs_no_last_part(zmq, sockets):
    """zmq_socket(3): SNDMORE is required for the routing id, and ignored for the data."""
    stream = sockets.bound(zmq.STREAM)
    port = int(stream.last_endpoint.rpartition(b":")[2])
    with tcp.create_connection(("127.0.0.1", port)) as client:
        identity, _ = stream.recv_multipart()
        for body in (b"one", b"two"):
            stream.send(identity, zmq.SNDMORE)
            stream.send(body, zmq.SNDMORE)
        stream.send_multipart([identity, b"!"], zmq.SNDMORE)
        stream.send(identity, zmq.SNDMORE)
        stream.send(b"", zmq.SNDMORE)
        client.settimeout(20)
        received = b""
        while len(received) < 7:
            attend(zmq, stream)
            received += client.recv(7)
        assert received == b"onetwo!"
        attend(zmq, stream)
        assert client.recv(1) == b""


def test_stream_that_closes_its_own_connection_does_not_make_another(zmq, context):
    with tcp.create_server(("127.0.0.1", 0)) as server, context.socket(zmq.STREAM) as stream:
        stream.reconnect_ivl = 10
        stream.connect(f"tcp://127.0.0.1:{server.getsockname()[1]}")
        client, _ = server.accept()
        with client:
            identity, _ = stream.recv_multipart()
            stream.send_multipart([identity, b"bye"])
            stream.send_multipart([identity, b""])
            attend(zmq, stream)
            assert client.recv(3) == b"bye"
            while not select.select([client], [], [], 0.02)[0]:
                attend(zmq, stream)
            assert client.recv(1) == b""
            # Another connection would come within this time.
            assert not select.select([server], [], [], 0.3)[0]
            assert not stream.poll(0)


def test_stream_to_an_unknown_connection(zmq, sockets):
    stream = sockets.bound(zmq.STREAM)
    with pytest.raises(zmq.ZMQError) as caught:
        stream.send_multipart([b"nobody", b"x"])
    assert caught.value.errno == zmq.EHOSTUNREACH


def test_stream_without_notices(zmq, sockets):
    stream = sockets.bound(zmq.STREAM, stream_notify=0)
    port = int(stream.last_endpoint.rpartition(b":")[2])
    with tcp.create_connection(("127.0.0.1", port)) as client:
        client.sendall(b"hello")
        assert stream.recv_multipart()[1] == b"hello"


def test_stream_carries_many_bytes(zmq, sockets):
    stream = sockets.bound(zmq.STREAM)
    port = int(stream.last_endpoint.rpartition(b":")[2])
    data = bytes(i % 251 for i in range(1_000_000))
    with tcp.create_connection(("127.0.0.1", port)) as client:
        identity, _ = stream.recv_multipart()
        stream.send_multipart([identity, data])
        received = bytearray()
        while len(received) < len(data):
            received += client.recv(65536)
        assert received == data
        sent = 0
        back = bytearray()
        client.setblocking(False)
        while len(back) < len(data):
            if sent < len(data):
                with contextlib.suppress(BlockingIOError):
                    sent += client.send(data[sent : sent + 65536])
            if stream.poll(1):
                back += stream.recv_multipart()[1]
        assert back == data


def test_names_of_lost_peers_are_free(zmq, sockets):
    router = sockets.bound(zmq.ROUTER, router_mandatory=1)
    for number in range(20):
        dealer = sockets.connected(zmq.DEALER, router, routing_id=b"same")
        dealer.send(b"%d" % number)
        assert router.recv_multipart() == [b"same", b"%d" % number]
        dealer.close()

        def gone():
            try:
                router.send_multipart([b"same", b""])
            except zmq.ZMQError as error:
                return error.errno == zmq.EHOSTUNREACH
            return False

        eventually(gone)
