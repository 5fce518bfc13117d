"""ROUTER_RAW: a ROUTER that talks to plain TCP programs."""

import socket as system_socket

import pytest


@pytest.fixture
def raw_router(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.set(zmq.ROUTER_RAW, 1)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        with system_socket.create_connection(("127.0.0.1", port)) as peer:
            peer.settimeout(20)
            yield router, peer


def receive(peer, count):
    received = b""
    while len(received) < count:
        received += peer.recv(count - len(received))
    return received


def test_bytes_in_bytes_out_and_the_end(raw_router):
    router, peer = raw_router
    name, body = router.recv_multipart()
    assert body == b"", "a connection is announced"
    peer.sendall(b"GET")
    assert router.recv_multipart() == [name, b"GET"]
    router.send_multipart([name, b"200"])
    assert receive(peer, 3) == b"200"
    router.send_multipart([name, b""])
    # libzmq closes it at the next call. A program that closes a connection itself needs no notice.
    assert not router.poll(100)
    assert peer.recv(1) == b"", "a message of nothing ends the connection"


def test_bytes_need_no_last_part(raw_router):
    router, peer = raw_router
    name, _ = router.recv_multipart()
    for body in (b"20", b"0"):
        router.send(name, 2)  # SNDMORE
        router.send(body, 2)
    assert receive(peer, 3) == b"200"


def test_the_end_of_a_connection_is_announced_after_its_last_bytes(raw_router):
    router, peer = raw_router
    name, _ = router.recv_multipart()
    peer.sendall(b"bye")
    peer.close()
    assert router.recv_multipart() == [name, b"bye"]
    assert router.recv_multipart() == [name, b""]


def test_two_connections_have_two_names(raw_router):
    router, peer = raw_router
    name, _ = router.recv_multipart()
    with system_socket.create_connection(peer.getpeername()) as other:
        other_name, body = router.recv_multipart()
        assert body == b""
        assert other_name != name
        other.sendall(b"x")
        assert router.recv_multipart() == [other_name, b"x"]
