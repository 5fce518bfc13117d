"""Every pair of socket types with libzmq over PLAIN and CURVE: either side serving, either side binding."""

import contextlib
import importlib

import pytest
from patterns import ORDERED_PAIRS, converse, prepare
from peer import RemoteError

USER, PASSWORD = "user", "password"


@pytest.fixture(scope="module")
def guarded_peer(lasting_peer):
    """The other process, with a ZAP handler that knows one user and accepts any key."""
    lasting_peer.call(None, "authenticate", {USER: PASSWORD})
    yield lasting_peer
    lasting_peer.call(None, "authenticate", None)


@pytest.fixture
def guard(zmq, context):
    """The same handler on our side."""
    auth = importlib.import_module(f"{zmq.__name__}.auth.thread")
    guard = auth.ThreadAuthenticator(context)
    guard.start()
    guard.configure_plain(passwords={USER: PASSWORD})
    guard.configure_curve(location="*")
    yield guard
    guard.stop()


def options(zmq, mechanism):
    """The options of the server, and those of the client."""
    if mechanism == "PLAIN":
        client = {"plain_username": USER.encode(), "plain_password": PASSWORD.encode()}
        return {"plain_server": 1}, client
    server_public, server_secret = zmq.curve_keypair()
    public, secret = zmq.curve_keypair()
    return (
        {"curve_server": 1, "curve_secretkey": server_secret},
        {"curve_serverkey": server_public, "curve_publickey": public, "curve_secretkey": secret},
    )


@pytest.mark.parametrize("binds", ["we bind", "they bind"])
@pytest.mark.parametrize("serves", ["we serve", "they serve"])
@pytest.mark.parametrize("mechanism", ["PLAIN", "CURVE"])
@pytest.mark.parametrize(("ours", "theirs"), ORDERED_PAIRS)
def test_pair(zmq, sockets, guard, guarded_peer, transport, mechanism, ours, theirs, serves, binds):
    server, client = options(zmq, mechanism)
    mine, foreign = (server, client) if serves == "we serve" else (client, server)
    one = sockets.context.socket(getattr(zmq, ours))
    for name, value in mine.items():
        setattr(one, name, value)
    other = guarded_peer.socket(getattr(zmq, theirs), **foreign)
    try:
        prepare(zmq, one, other)
        first, second = (one, other) if binds == "we bind" else (other, one)
        first.bind(sockets.endpoint(transport))
        second.connect(first.last_endpoint.decode())
        converse(zmq, one, other)
    finally:
        other.close()


@pytest.mark.parametrize("mechanism", ["PLAIN", "CURVE"])
@pytest.mark.parametrize("serves", ["we serve", "they serve"])
def test_peers_with_wrong_credentials_are_refused(
    zmq, sockets, guard, guarded_peer, transport, mechanism, serves
):
    """The wrong password, a key on no list, and no mechanism at all; then the right one."""
    server, client = options(zmq, mechanism)
    if mechanism == "PLAIN":
        wrong = {**client, "plain_password": b"guess"}
    else:
        # For another server.
        wrong = {**client, "curve_serverkey": zmq.curve_keypair()[0]}

    def make(kind, settings, ours):
        if ours:
            socket = sockets.context.socket(kind)
            for name, value in settings.items():
                setattr(socket, name, value)
            return socket
        return guarded_peer.socket(kind, **settings)

    made = []
    try:
        pull = make(zmq.PULL, server, serves == "we serve")
        made.append(pull)
        pull.bind(sockets.endpoint(transport))
        for settings in (wrong, {}, client):
            push = make(zmq.PUSH, settings, serves == "they serve")
            made.append(push)
            push.connect(pull.last_endpoint.decode())
            if settings is client:
                push.send(b"right")
            else:
                # libzmq abandons a connection whose handshake violates the protocol.
                with contextlib.suppress(zmq.ZMQError, RemoteError):
                    push.send(b"wrong", zmq.DONTWAIT)
        assert pull.recv() == b"right"
        assert not pull.poll(100)
    finally:
        for socket in made:
            socket.close()
