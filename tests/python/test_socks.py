"""SOCKS_PROXY: connections through a SOCKS5 proxy, which receives the address and the login."""

import contextlib
import queue
import socket as system_socket
import threading

import pytest


def receive(peer, count):
    received = b""
    while len(received) < count:
        more = peer.recv(count - len(received))
        if not more:
            raise EOFError
        received += more
    return received


def pump(source, target):
    with contextlib.suppress(OSError):
        while data := source.recv(65536):
            target.sendall(data)
        target.shutdown(system_socket.SHUT_WR)


class Proxy:
    """Forwards every client to one port of this machine, and records the requests."""

    def __init__(self, port, login=None):
        self.destination = ("127.0.0.1", port)
        self.login = login
        self.asked = queue.Queue()
        self.listener = system_socket.create_server(("127.0.0.1", 0))
        self.endpoint = f"127.0.0.1:{self.listener.getsockname()[1]}"
        threading.Thread(target=self.serve, daemon=True).start()

    def serve(self):
        with contextlib.suppress(OSError):
            while True:
                client, _ = self.listener.accept()
                threading.Thread(target=self.guide, args=(client,), daemon=True).start()

    def guide(self, client):
        with contextlib.suppress(EOFError, OSError), client:
            version, count = receive(client, 2)
            methods = receive(client, count)
            wanted = 0 if self.login is None else 2
            assert version == 5
            if wanted not in methods:
                client.sendall(b"\x05\xff")
                return
            client.sendall(bytes([5, wanted]))
            if self.login is not None:
                _, length = receive(client, 2)
                name = receive(client, length)
                password = receive(client, receive(client, 1)[0])
                client.sendall(bytes([1, (name, password) != self.login]))
            _, _, _, kind = receive(client, 4)
            host = receive(client, {1: 4, 4: 16}.get(kind) or receive(client, 1)[0])
            port = int.from_bytes(receive(client, 2), "big")
            self.asked.put((kind, host, port))
            with system_socket.create_connection(self.destination) as peer:
                client.sendall(b"\x05\x00\x00\x01\x7f\x00\x00\x01\x00\x00")
                threading.Thread(target=pump, args=(client, peer), daemon=True).start()
                pump(peer, client)

    def close(self):
        self.listener.close()


@pytest.fixture
def pull(zmq, context):
    with context.socket(zmq.PULL) as pull:
        pull.rcvtimeo = 20_000
        yield pull


@pytest.mark.parametrize(
    ("host", "kind", "told"),
    [
        ("collector.example", 3, b"collector.example"),
        ("192.0.2.7", 1, bytes([192, 0, 2, 7])),
    ],
)
def test_the_proxy_gets_the_host_name_unresolved(zmq, context, pull, host, kind, told):
    proxy = Proxy(pull.bind_to_random_port("tcp://127.0.0.1"))
    with contextlib.closing(proxy), context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.socks_proxy = proxy.endpoint.encode()
        push.connect(f"tcp://{host}:5555")
        push.send(b"through")
        assert pull.recv() == b"through"
        assert proxy.asked.get(timeout=20) == (kind, told, 5555)


def test_a_login_for_a_proxy_that_requires_one(zmq, context, pull):
    proxy = Proxy(pull.bind_to_random_port("tcp://127.0.0.1"), login=(b"mole", b"secret"))
    with contextlib.closing(proxy), context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.set(zmq.SOCKS_PROXY, proxy.endpoint.encode())
        push.set(zmq.SOCKS_USERNAME, b"mole")
        push.set(zmq.SOCKS_PASSWORD, b"secret")
        push.connect("tcp://collector.example:5555")
        push.send(b"through")
        assert pull.recv() == b"through"


# libzmq 4.3.5 aborts the process when a proxy refuses the login.
@pytest.mark.zeroxide_only
def test_a_proxy_that_refuses_is_asked_again(zmq, context, pull):
    proxy = Proxy(pull.bind_to_random_port("tcp://127.0.0.1"), login=(b"mole", b"secret"))
    with contextlib.closing(proxy), context.socket(zmq.PUSH) as push:
        push.linger = 0
        push.reconnect_ivl = 1
        push.set(zmq.SOCKS_PROXY, proxy.endpoint.encode())
        push.set(zmq.SOCKS_USERNAME, b"mole")
        push.set(zmq.SOCKS_PASSWORD, b"guess")
        monitor = push.get_monitor_socket()
        monitor.rcvtimeo = 20_000
        push.connect("tcp://collector.example:5555")
        retries = 0
        while retries < 2:
            head, _ = monitor.recv_multipart()
            retries += int.from_bytes(head[:2], "little") == zmq.EVENT_CONNECT_RETRIED
        push.disable_monitor()
        monitor.close()
        assert not pull.poll(0)
