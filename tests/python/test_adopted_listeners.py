"""USE_FD: a socket takes over a descriptor that already listens, as a program does that systemd starts."""

import errno
import os
import socket as plain

import pytest
from certificates import Authority
from support import PATIENCE, eventually

pytestmark = pytest.mark.zeroxide_only


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server", "IP:127.0.0.1")


def listener(transport, directory):
    """A listening socket, and its address."""
    if transport == "ipc":
        listener, address = plain.socket(plain.AF_UNIX), f"{directory}/listener"
        listener.bind(address)
    else:
        listener = plain.socket(plain.AF_INET)
        listener.bind(("127.0.0.1", 0))
        address = "127.0.0.1:{1}".format(*listener.getsockname())
    listener.listen()
    return listener, address


@pytest.fixture
def adopting(zmq, context, directory, identity):
    """Makes a socket that takes over a listener when it is bound. Returns it, and its endpoint."""

    def make(transport, kind):
        taken, address = listener(transport, directory)
        socket = context.socket(kind)
        socket.tls_certificate, socket.tls_key = map(bytes, identity)
        socket.use_fd = taken.detach()
        return socket, f"{transport}://{address}"

    return make


each = pytest.mark.parametrize("transport", ["tcp", "ipc", "ws", "wss", "tls+tcp"])


@each
def test_messages(zmq, context, adopting, authority, transport):
    rep, endpoint = adopting(transport, zmq.REP)
    rep.bind(endpoint)
    assert rep.last_endpoint.decode().removesuffix("/") == endpoint
    # A later bind opens its own.
    assert rep.use_fd == -1
    for number in range(3):
        req = context.socket(zmq.REQ)
        req.tls_ca = bytes(authority.certificate)
        req.connect(endpoint)
        req.send(b"%d" % number)
        rep.send(rep.recv() + b"!")
        assert req.recv() == b"%d!" % number


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_connections_from_before_the_bind_are_served(zmq, context, adopting, transport):
    pull, endpoint = adopting(transport, zmq.PULL)
    push = context.socket(zmq.PUSH)
    # Only the first connection can carry the message.
    push.reconnect_ivl = -1
    with push.monitor_events(zmq.EVENT_CONNECTED) as events:
        push.connect(endpoint)
        assert events.recv(PATIENCE * 1000) is not None
    push.send(b"early")
    pull.bind(endpoint)
    assert pull.recv() == b"early"


@each
def test_the_listener_is_closed_with_its_socket(zmq, adopting, transport):
    pull, endpoint = adopting(transport, zmq.PULL)
    descriptor = pull.use_fd
    pull.bind(endpoint)
    pull.close()

    def closed():
        try:
            os.fstat(descriptor)
        except OSError as error:
            return error.errno == errno.EBADF
        return False

    eventually(closed)


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_listener_that_other_programs_have_stays(zmq, context, directory, transport):
    taken, address = listener(transport, directory)
    with taken.dup() as shared, plain.socket(taken.family) as peer:
        pull = context.socket(zmq.PULL)
        pull.use_fd = taken.detach()
        pull.bind(f"{transport}://{address}")
        pull.close()
        peer.connect(address if transport == "ipc" else shared.getsockname())
        shared.settimeout(PATIENCE)
        shared.accept()[0].close()
