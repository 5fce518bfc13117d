"""Undoing binds and connects, and inproc names."""

import errno
import os
import shutil
import socket as system
import subprocess
import sys
import tempfile
import time

import pytest
from support import eventually


@pytest.fixture
def endpoint(sockets, zmq, transport):
    """Returns an endpoint that is currently free."""
    with sockets.bound(zmq.DEALER, transport) as socket:
        endpoint = socket.last_endpoint.decode()
        socket.unbind(endpoint)
    return endpoint


def gone(zmq, call, endpoint):
    with pytest.raises(zmq.ZMQError) as caught:
        call(endpoint)
    assert caught.value.errno == errno.ENOENT


def arrived(zmq, socket, count):
    """Waits until a socket has this many messages, received ones included. libzmq has no counters, so it gets a while."""
    if zmq.__name__ == "zmq":
        time.sleep(0.2)
        return

    def is_there():
        stats = socket.stats()
        return stats["received"] + stats["queued_in"] == count

    eventually(is_there)


def test_unbind_undoes_a_connect(zmq, context, endpoint):
    socket = context.socket(zmq.DEALER)
    socket.connect(endpoint)
    socket.unbind(endpoint)
    gone(zmq, socket.unbind, endpoint)
    gone(zmq, socket.disconnect, endpoint)


def test_disconnect_undoes_a_bind(zmq, sockets, transport):
    one = sockets.bound(zmq.DEALER, transport)
    endpoint = one.last_endpoint.decode()
    one.disconnect(endpoint)
    gone(zmq, one.disconnect, endpoint)
    gone(zmq, one.unbind, endpoint)


def test_disconnect_of_a_bind_ends_its_connections(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send(b"before")
    assert pull.recv() == b"before"
    pull.disconnect(pull.last_endpoint.decode())
    assert pull.poll(0) == 0


@pytest.mark.parametrize(
    ("receiver", "sender"),
    [
        ("PULL", "PUSH"),
        ("DEALER", "DEALER"),
        ("ROUTER", "DEALER"),
        ("REP", "DEALER"),
        ("PAIR", "PAIR"),
        ("SUB", "PUB"),
        ("XPUB", "XSUB"),
    ],
)
def test_what_has_arrived_before_an_unbind_is_received(zmq, sockets, transport, receiver, sender):
    near = sockets.bound(getattr(zmq, receiver), transport)
    if receiver == "SUB":
        near.subscribe(b"")
    far = sockets.connected(getattr(zmq, sender), near, routing_id=b"far")
    # The subscription is sent meanwhile.
    assert near.poll(300 if receiver == "SUB" else 0) == 0
    for number in range(5):
        far.send_multipart([*([b""] if receiver == "REP" else []), b"%d" % number])
    name = [b"far"] if receiver == "ROUTER" else []
    assert near.recv_multipart() == [*name, b"0"]
    if receiver == "REP":
        near.send(b"a reply")
    arrived(zmq, near, 5)
    near.unbind(near.last_endpoint)
    for number in range(1, 5):
        assert near.recv_multipart() == [*name, b"%d" % number]
        if receiver == "REP":
            near.send(b"a reply")
    assert near.poll(0, zmq.POLLIN) == 0


def test_what_has_arrived_before_a_disconnect_is_dropped(zmq, sockets, transport):
    push, pull = sockets.pair(zmq.PUSH, zmq.PULL, transport)
    for number in range(5):
        push.send(b"%d" % number)
    assert pull.recv() == b"0"
    arrived(zmq, pull, 5)
    pull.disconnect(push.last_endpoint)
    assert pull.poll(100) == 0


def test_every_connect_to_an_endpoint_is_undone_at_once(zmq, context, endpoint):
    socket = context.socket(zmq.PUSH)
    socket.connect(endpoint)
    socket.connect(endpoint)
    socket.disconnect(endpoint)
    gone(zmq, socket.disconnect, endpoint)


@pytest.mark.parametrize("size", [1, 256, 257, 4096])
def test_inproc_names_of_every_length(zmq, context, size):
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    endpoint = "inproc://" + "x" * size
    one.bind(endpoint)
    other.connect(endpoint)
    one.send(b"x")
    assert other.recv() == b"x"


def test_ipc_at_the_name_of_an_empty_file(zmq, context, directory):
    """Programs make an empty file to reserve a unique name."""
    descriptor, path = tempfile.mkstemp(dir=directory)
    os.close(descriptor)
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    one.bind(f"ipc://{path}")
    other.connect(f"ipc://{path}")
    one.send(b"x")
    assert other.recv() == b"x"


@pytest.mark.differs("pyzmq removes the file and what is in it")
def test_ipc_at_the_name_of_a_file_with_content(zmq, context, directory):
    file = directory / "file"
    file.write_bytes(b"precious")
    socket = context.socket(zmq.PAIR)
    with pytest.raises(zmq.ZMQError) as caught:
        socket.bind(f"ipc://{file}")
    assert caught.value.errno == zmq.EADDRINUSE
    assert file.read_bytes() == b"precious"


def test_unbind_at_the_connecting_end_over_inproc(zmq, context):
    one, other = context.socket(zmq.PAIR), context.socket(zmq.PAIR)
    one.bind("inproc://unbind-connecting")
    other.connect("inproc://unbind-connecting")
    other.unbind("inproc://unbind-connecting")
    for socket in (one, other):
        with pytest.raises(zmq.Again):
            socket.send(b"nobody", zmq.DONTWAIT)


@pytest.mark.parametrize("host", ["*", "127.0.0.1"])
def test_a_wildcard_does_not_name_the_endpoint_it_resolved_to(zmq, context, host):
    socket = context.socket(zmq.PULL)
    wildcard = f"tcp://{host}:*"
    socket.bind(wildcard)
    for call in (socket.unbind, socket.disconnect):
        gone(zmq, call, wildcard)
    port = socket.last_endpoint.decode().rpartition(":")[2]
    if host == "*":
        gone(zmq, socket.unbind, f"tcp://*:{port}")
    socket.unbind(socket.last_endpoint)


def test_an_ipc_wildcard_does_not_name_the_endpoint_it_resolved_to(
    zmq, context, directory, monkeypatch
):
    monkeypatch.chdir(directory)
    socket = context.socket(zmq.PULL)
    socket.bind("ipc://*")
    gone(zmq, socket.unbind, "ipc://*")
    socket.unbind(socket.last_endpoint)


def test_an_interface_name_means_its_address(zmq, sockets):
    socket = sockets.bound(zmq.PULL)
    port = socket.last_endpoint.decode().rpartition(":")[2]
    socket.unbind(f"tcp://localhost:{port}")
    gone(zmq, socket.unbind, socket.last_endpoint)


def port_of(socket):
    return socket.last_endpoint.decode().rpartition(":")[2]


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_brackets_may_be_around_any_host(zmq, context, sockets, host):
    pull, push = sockets.bound(zmq.PULL), context.socket(zmq.PUSH)
    endpoint = f"tcp://[{host}]:{port_of(pull)}"
    push.connect(endpoint)
    assert push.last_endpoint.decode() == endpoint
    push.send(b"x")
    assert pull.recv() == b"x"
    push.disconnect(endpoint)


def test_brackets_may_be_around_a_source(zmq, context, sockets):
    pull, push = sockets.bound(zmq.PULL), context.socket(zmq.PUSH)
    push.connect(f"tcp://[127.0.0.3]:0;[127.0.0.1]:{port_of(pull)}")
    push.send(b"x")
    assert pull.recv(copy=False)["Peer-Address"] == "127.0.0.3"


@pytest.mark.parametrize(
    ("host", "bound"), [("127.0.0.1", "127.0.0.1"), ("lo", "127.0.0.1"), ("*", "0.0.0.0")]
)
def test_brackets_may_be_around_a_host_to_bind_to(zmq, context, host, bound):
    socket = context.socket(zmq.PULL)
    socket.bind(f"tcp://[{host}]:*")
    assert socket.last_endpoint.decode() == f"tcp://{bound}:{port_of(socket)}"
    socket.unbind(socket.last_endpoint)


def has_ipv6():
    """Whether the loopback interface has an IPv6 address."""
    try:
        with system.create_server(("::1", 0), family=system.AF_INET6):
            return True
    except OSError:
        return False


@pytest.mark.skipif(not has_ipv6(), reason="no IPv6 here")
def test_with_ipv6_an_interface_name_means_its_ipv6_address(zmq, context):
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.ipv6 = push.ipv6 = 1
    pull.bind("tcp://lo:*")
    port = port_of(pull)
    assert pull.last_endpoint.decode() == f"tcp://[::1]:{port}"
    push.connect(f"tcp://lo:0;[::1]:{port}")
    push.send(b"x")
    assert pull.recv(copy=False)["Peer-Address"] == "::1"


@pytest.mark.parametrize("host", ["127.0.0.1%lo", "[127.0.0.1%lo]"])
def test_an_ipv4_address_may_have_a_zone(zmq, context, host):
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind(f"tcp://{host}:*")
    assert pull.last_endpoint.decode() == f"tcp://127.0.0.1:{port_of(pull)}"
    endpoint = f"tcp://{host}:{port_of(pull)}"
    push.connect(endpoint)
    push.send(b"x")
    assert pull.recv() == b"x"
    push.disconnect(endpoint)
    with pytest.raises(zmq.ZMQError):
        pull.bind("tcp://127.0.0.1%no-such0:*")


LATE = """
import importlib, subprocess, sys

zmq = importlib.import_module(sys.argv[1])
with zmq.Context() as context:
    context.linger, context.rcvtimeo = 0, 20_000
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind("tcp://127.0.0.1:*")
    port = pull.last_endpoint.decode().rpartition(":")[2]
    push.connect("tcp://late0:0;127.0.0.1:" + port)
    push.send(b"x")
    assert not pull.poll(200)
    for words in ("link add late0 type veth peer name late1", "addr add 10.9.9.1/24 dev late0",
                  "link set late0 up", "link set late1 up"):
        subprocess.run(["ip", *words.split()], check=True)
    print(pull.recv(copy=False)["Peer-Address"])
    context.destroy(linger=0)
"""


def in_own_network(*words):
    """Runs a program in a network of its own, whose loopback interface is up."""
    start = ["unshare", "--net", "sh", "-c", 'ip link set lo up && exec "$@"', "sh"]
    return subprocess.run([*start, *words], capture_output=True, text=True, timeout=60)


def test_an_interface_to_connect_from_may_appear_later(zmq):
    if not all(map(shutil.which, ("unshare", "ip"))):
        pytest.skip("needs unshare and ip")
    if in_own_network("ip", "link", "add", "late0", "type", "veth").returncode != 0:
        pytest.skip("no network namespace with an interface (root, veth)")
    done = in_own_network(sys.executable, "-c", LATE, zmq.__name__)
    assert (done.returncode, done.stdout) == (0, "10.9.9.1\n"), done.stderr


LATE_ZONE = """
import importlib, subprocess, sys

zmq = importlib.import_module(sys.argv[1])
with zmq.Context() as context:
    context.linger, context.rcvtimeo, context.ipv6 = 0, 20_000, 1
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind("tcp://*:*")
    port = pull.last_endpoint.decode().rpartition(":")[2]
    push.connect("tcp://[fe80::7%late0]:" + port)
    push.send(b"x")
    assert not pull.poll(200)
    for words in ("link add late0 type veth peer name late1", "link set late1 up",
                  "link set late0 up", "addr add fe80::7/64 dev late0 nodad"):
        subprocess.run(["ip", *words.split()], check=True)
    print(pull.recv().decode())
    context.destroy(linger=0)
"""

LABEL = """
import importlib, sys

zmq = importlib.import_module(sys.argv[1])
with zmq.Context() as context:
    context.linger, context.rcvtimeo = 0, 20_000
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.bind("tcp://[lo:7]:*")
    endpoint = pull.last_endpoint.decode()
    push.connect("tcp://[lo:7]:0;" + endpoint.removeprefix("tcp://"))
    push.send(b"x")
    print(endpoint.rpartition(":")[0], pull.recv(copy=False)["Peer-Address"])
    context.destroy(linger=0)
"""


def test_the_interface_of_a_zone_may_appear_later(zmq):
    if not all(map(shutil.which, ("unshare", "ip"))):
        pytest.skip("needs unshare and ip")
    if in_own_network("ip", "link", "add", "late0", "type", "veth").returncode != 0:
        pytest.skip("no network namespace with an interface (root, veth)")
    done = in_own_network(sys.executable, "-c", LATE_ZONE, zmq.__name__)
    assert (done.returncode, done.stdout) == (0, "x\n"), done.stderr


def test_brackets_may_be_around_the_label_of_an_address(zmq):
    if not all(map(shutil.which, ("unshare", "ip"))):
        pytest.skip("needs unshare and ip")
    add = "ip addr add 127.0.7.7/8 dev lo label lo:7"
    if in_own_network(*add.split()).returncode != 0:
        pytest.skip("no network namespace (root)")
    done = in_own_network(
        "sh", "-c", f'{add} && exec "$@"', "sh", sys.executable, "-c", LABEL, zmq.__name__
    )
    assert (done.returncode, done.stdout) == (0, "tcp://127.0.7.7 127.0.7.7\n"), done.stderr


def test_a_socket_that_connected_first_can_send_despite_an_incompatible_bind(zmq, context):
    push, pub = context.socket(zmq.PUSH), context.socket(zmq.PUB)
    push.connect("inproc://misfit")
    push.send(b"before", zmq.DONTWAIT)
    pub.bind("inproc://misfit")
    push.send(b"after", zmq.DONTWAIT)
    push.disconnect("inproc://misfit")


@pytest.mark.differs("who connected before waits for a peer that fits")
def test_a_socket_that_connected_first_waits_for_a_compatible_peer(zmq, context):
    push, pub, pull = (context.socket(kind) for kind in (zmq.PUSH, zmq.PUB, zmq.PULL))
    push.connect("inproc://fits-later")
    push.send(b"lost?")
    pub.bind("inproc://fits-later")
    pub.unbind("inproc://fits-later")
    pull.rcvtimeo = 1000
    pull.bind("inproc://fits-later")
    assert pull.recv() == b"lost?"


@pytest.mark.parametrize("handover", [0, 1])
def test_connecting_under_a_name_in_use_over_inproc(zmq, context, handover):
    router = context.socket(zmq.ROUTER)
    router.router_handover = handover
    router.bind(f"inproc://in-use-{handover}")
    dealers = [context.socket(zmq.DEALER) for _ in range(2)]
    for dealer in dealers:
        dealer.routing_id = b"name"
        dealer.connect(f"inproc://in-use-{handover}")
    dealers[handover].send(b"from the holder")
    assert router.recv_multipart() == [b"name", b"from the holder"]
    # The other peer stays connected: its messages wait.
    if not handover:
        dealers[1].send(b"unread", zmq.DONTWAIT)
    router.send_multipart([b"name", b"for the holder"])
    assert dealers[handover].recv() == b"for the holder"
    assert router.poll(0) == 0
