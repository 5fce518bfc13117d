"""The properties of a connection that peers, monitors and messages show."""

import errno
import os
import socket as tcp
import struct

import pytest

PATIENCE = 20


@pytest.fixture
def peer(zmq, sockets):
    """A DEALER and a raw peer, after their handshake."""
    dealer = sockets.bound(zmq.DEALER)
    port = int(dealer.last_endpoint.decode().rpartition(":")[2])
    with tcp.create_connection(("127.0.0.1", port), timeout=PATIENCE) as stream:
        stream.sendall(b"\xff" + bytes(8) + b"\x7f\3\1" + b"NULL".ljust(20, b"\0") + bytes(32))
        take(stream, 64)
        ready = b"\5READY\x0bSocket-Type" + struct.pack(">I", 6) + b"DEALER"
        stream.sendall(bytes([4, len(ready)]) + ready)
        _, size = take(stream, 2)
        take(stream, size)
        yield dealer, stream


def take(stream, size):
    data = b""
    while len(data) < size:
        more = stream.recv(size - len(data))
        assert more, "the connection ended"
        data += more
    return data


@pytest.mark.parametrize("size", [0, 1, 16, 17, 40, 200, 300])
def test_a_pong_has_the_first_sixteen_bytes_of_the_context(peer, size):
    dealer, stream = peer
    context = bytes(n % 256 for n in range(size))
    ping = b"\4PING\0\0" + context
    head = bytes([4, len(ping)]) if len(ping) < 256 else b"\6" + struct.pack(">Q", len(ping))
    stream.sendall(head + ping)
    pong = b"\4PONG" + context[:16]
    assert take(stream, 2 + len(pong)) == bytes([4, len(pong)]) + pong
    stream.sendall(b"\0\1x")
    assert dealer.recv() == b"x"


def test_the_value_of_a_delayed_connect(zmq, context, sockets, part):
    pull = sockets.bound(zmq.PULL)
    push = context.socket(zmq.PUSH)
    monitor = push.get_monitor_socket()
    monitor.rcvtimeo = PATIENCE * 1000
    push.connect(pull.last_endpoint.decode())
    event = part("utils.monitor").recv_monitor_message(monitor)
    assert event["event"] == zmq.EVENT_CONNECT_DELAYED
    assert event["value"] == errno.EINPROGRESS
    push.disable_monitor()


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_the_descriptor_that_a_message_came_over(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send_multipart([b"one", b"other"])
    for frame in pull.recv_multipart(copy=False):
        descriptor = frame.get(zmq.SRCFD)
        assert os.readlink(f"/proc/self/fd/{descriptor}").startswith("socket:")
        assert descriptor == frame.SRCFD
        assert frame.get("__fd") == frame["__fd"] == str(descriptor)


def test_a_message_that_came_over_no_descriptor(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    push.send(b"x")
    for frame in (pull.recv(copy=False), zmq.Frame(b"x"), zmq.Frame()):
        with pytest.raises(zmq.ZMQError) as caught:
            frame.get(zmq.SRCFD)
        assert caught.value.errno == zmq.EINVAL
        assert not hasattr(frame, "SRCFD")


def test_metadata_reaches_the_peer(zmq, context, sockets):
    pull = sockets.bound(zmq.PULL)
    push = context.socket(zmq.PUSH)
    for value in (b"X-name:value", b"X-other:with:colons", b"X-name:too late"):
        push.set(zmq.METADATA, value)
    push.connect(pull.last_endpoint.decode())
    push.send(b"x")
    frame = pull.recv(copy=False)
    assert frame.get("X-name") == "value"
    assert frame["X-other"] == "with:colons"
    with pytest.raises(zmq.ZMQError):
        frame.get("X-NAME")


@pytest.mark.parametrize("name", ["X-a b", "X-a\tb", "X-\xe9", "X-" + "n" * 253, 'X-{"}'])
def test_metadata_has_any_name(zmq, context, sockets, name):
    pull = sockets.bound(zmq.PULL)
    push = context.socket(zmq.PUSH)
    push.set(zmq.METADATA, f"{name}:value".encode())
    push.connect(pull.last_endpoint.decode())
    push.send(b"x")
    assert pull.recv(copy=False).get(name) == "value"


@pytest.mark.parametrize("value", [b"\xff\xfe", b"\xe9", b"\x80:\n"], ids=repr)
def test_metadata_has_any_bytes(zmq, context, value):
    """As the peer gets them."""
    with tcp.create_server(("127.0.0.1", 0)) as listener:
        listener.settimeout(PATIENCE)
        push = context.socket(zmq.PUSH)
        push.set(zmq.METADATA, b"X-raw:" + value)
        push.connect(f"tcp://127.0.0.1:{listener.getsockname()[1]}")
        stream, _ = listener.accept()
        with stream:
            stream.settimeout(PATIENCE)
            stream.sendall(b"\xff" + bytes(8) + b"\x7f\3\1" + b"NULL".ljust(20, b"\0") + bytes(32))
            take(stream, 64)
            ready = take(stream, take(stream, 2)[1])
    assert b"\5X-raw" + len(value).to_bytes(4, "big") + value in ready


@pytest.mark.parametrize("name", [b"\xff\xfe", b"\xe9", b"X-\x00", b" ", b"n" * 255], ids=repr)
def test_a_peer_may_have_a_property_of_any_name(zmq, sockets, name):
    pull = sockets.bound(zmq.PULL)
    ready = b"\x05READY"
    for key, value in {b"Socket-Type": b"PUSH", name: b"any", b"X-Mine": b"kept"}.items():
        ready += bytes([len(key)]) + key + len(value).to_bytes(4, "big") + value
    port = int(pull.last_endpoint.rpartition(b":")[2])
    with tcp.create_connection(("127.0.0.1", port), timeout=PATIENCE) as stream:
        stream.sendall(b"\xff" + bytes(8) + b"\x7f\3\1" + b"NULL".ljust(20, b"\0") + bytes(32))
        take(stream, 64)
        stream.sendall(b"\6" + struct.pack(">Q", len(ready)) + ready + b"\0\1x")
        frame = pull.recv(copy=False)
    assert frame.bytes == b"x"
    assert frame.get("X-Mine") == "kept"


@pytest.mark.parametrize(
    "value",
    [b"", b":", b"X-", b"X-a", b"X-a:", b"X-:a", b"x-a:b", b"Y-a:b", b"X-" + b"n" * 256 + b":v"],
)
def test_metadata_of_the_wrong_form(zmq, context, value):
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(zmq.PUSH).set(zmq.METADATA, value)
    assert caught.value.errno == zmq.EINVAL


def test_metadata_cannot_be_read(zmq, context):
    with pytest.raises(zmq.ZMQError) as caught:
        context.socket(zmq.PUSH).get(zmq.METADATA)
    assert caught.value.errno == zmq.EINVAL


def test_mismatched_curve_keys_fail_in_the_handshake(zmq, context, part):
    public, secret = zmq.curve_keypair()
    server = context.socket(zmq.PULL)
    server.curve_server = 1
    server.curve_secretkey = secret
    server.bind("tcp://127.0.0.1:*")
    client = context.socket(zmq.PUSH)
    client.curve_serverkey = public
    client.curve_publickey = zmq.curve_keypair()[0]
    client.curve_secretkey = zmq.curve_keypair()[1]
    monitor = client.get_monitor_socket(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    monitor.rcvtimeo = PATIENCE * 1000
    client.connect(server.last_endpoint.decode())
    event = part("utils.monitor").recv_monitor_message(monitor)
    assert event["event"] == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    client.disable_monitor()
