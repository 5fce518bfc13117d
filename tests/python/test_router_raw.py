"""ROUTER_RAW: a ROUTER that talks to whoever speaks plain TCP."""

import socket as system_socket

import pytest


# libzmq announces connections with an empty body here too; ours leaves that to STREAM.
@pytest.mark.zeroxide_only
def test_bytes_in_bytes_out_and_the_end(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.set(zmq.ROUTER_RAW, 1)
        port = router.bind_to_random_port("tcp://127.0.0.1")
        with system_socket.create_connection(("127.0.0.1", port)) as peer:
            peer.settimeout(20)
            peer.sendall(b"GET")
            name, body = router.recv_multipart()
            assert body == b"GET"
            router.send_multipart([name, b"200"])
            received = b""
            while len(received) < 3:
                received += peer.recv(3 - len(received))
            assert received == b"200"
            router.send_multipart([name, b""])
            assert peer.recv(1) == b"", "a message of nothing ends the connection"
