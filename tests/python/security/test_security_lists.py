"""One call that secures a socket: keys and allow-lists."""

from pathlib import Path

import pytest
from peers import Handshakes, handler, keep, verdict


def secured(zmq, context, secret, allow=None):
    server = context.socket(zmq.PULL)
    server.linger = 0
    allowed = server.secure_server(secret, allow)
    handshakes = Handshakes(zmq, server)
    server.bind("tcp://127.0.0.1:*")
    return server, handshakes, allowed


def secure_client(zmq, context, server, *keys):
    client = context.socket(zmq.PUSH)
    client.linger = 0
    client.secure_client(*keys)
    client.connect(server.last_endpoint.decode())
    return keep(client)


def until(handshakes, event):
    while (seen := handshakes.next())[0] != event:
        pass
    return seen


def test_a_list_can_change(zmq, context, auth):
    """The list starts empty; a key is added, removed and disconnected while the server runs."""
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    server, handshakes, allowed = secured(zmq, context, secret)
    client = secure_client(zmq, context, server, public, my_secret)
    assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400)
    allowed.add(mine, "alice")
    until(handshakes, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    client.send(b"hello")
    frame = server.recv(copy=False)
    assert frame["User-Id"] == "alice"
    assert (frame["Mechanism"], frame["Authenticated"]) == ("CURVE", "yes")
    # A peer that is removed from the list stays until it is disconnected.
    assert allowed.remove(mine)
    client.send(b"still here")
    assert server.recv() == b"still here"
    assert allowed.disconnect_strangers() == 1
    until(handshakes, zmq.EVENT_HANDSHAKE_FAILED_AUTH)
    allowed.replace([mine])
    until(handshakes, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    client.send(b"back again")
    assert server.recv(copy=False)["User-Id"] == mine.decode()


def test_a_list_is_shared(zmq, context, auth):
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    allowed = auth.AllowList([mine])
    for _ in range(2):
        server, _, shared = secured(zmq, context, secret, allowed)
        assert mine in shared
        client = secure_client(zmq, context, server, public, my_secret)
        client.send(b"hello")
        assert server.recv() == b"hello"
    allowed.replace([], disconnect=True)
    assert len(shared) == 0


def test_a_folder_of_certificates(zmq, context, auth, directory):
    public, secret = zmq.curve_keypair()
    _, alice_file = auth.create_certificates(directory, "alice")
    _, alice_secret = auth.load_certificate(alice_file)
    server, handshakes, allowed = secured(zmq, context, secret, directory)
    assert list(allowed.names().values()) == ["alice"]
    client = secure_client(zmq, context, server, public, alice_secret)
    client.send(b"hello")
    assert server.recv(copy=False)["User-Id"] == "alice"
    assert handshakes.next()[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED

    public_file, bob_file = auth.create_certificates(directory, "b")
    text = Path(public_file).read_text()
    Path(public_file).write_text(text.replace("metadata\n", "metadata\n    name = Bob\n"))
    _, bob_secret = auth.load_certificate(bob_file)
    bob = secure_client(zmq, context, server, public, bob_secret)
    assert until(handshakes, zmq.EVENT_HANDSHAKE_FAILED_AUTH)[1] == 400
    (directory / "alice.key").unlink()
    assert allowed.reload(disconnect=True) == 1
    bob.send(b"me too")
    assert server.recv(copy=False)["User-Id"] == "Bob"
    # A file that is not a certificate does not change the list.
    (directory / "broken.key").write_text("curve\n")
    with pytest.raises(zmq.ZMQError, match=r"broken\.key"):
        allowed.reload()
    assert len(allowed) == 1


def test_any_client_that_knows_the_server_key(zmq, context, auth):
    public, secret = zmq.curve_keypair()
    server, _, allowed = secured(zmq, context, secret, auth.CURVE_ALLOW_ANY)
    assert allowed
    assert allowed.anybody
    # With a fresh key.
    client = secure_client(zmq, context, server, public)
    client.send(b"hello")
    frame = server.recv(copy=False)
    assert len(frame["User-Id"]) == 40
    assert frame["Authenticated"] == "no"


def test_users_and_passwords(zmq, context, auth):
    server = context.socket(zmq.REP)
    users = server.password_server({"bob": "builder"})
    handshakes = Handshakes(zmq, server)
    server.bind("tcp://127.0.0.1:*")
    client = context.socket(zmq.REQ)
    client.linger = 0
    client.password_client("bob", "builder")
    client.connect(server.last_endpoint.decode())
    client.send(b"hello")
    frame = server.recv(copy=False)
    assert (frame["User-Id"], frame["Mechanism"]) == ("bob", "PLAIN")
    assert handshakes.next()[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED
    users.replace({"eve": b"x"}, disconnect=True)
    assert until(handshakes, zmq.EVENT_HANDSHAKE_FAILED_AUTH)[1] == 400
    assert (list(users), "bob" in users, "eve" in users) == (["eve"], False, True)


def test_a_handler_is_not_asked(zmq, context, auth):
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    with handler(zmq, context, verdict(b"400")):
        server, _, _ = secured(zmq, context, secret, {mine: "alice"})
        secure_client(zmq, context, server, public, my_secret).send(b"hello")
        assert server.recv() == b"hello"


def test_only_before_it_is_bound(zmq, context, auth):
    with context.socket(zmq.PULL) as server:
        server.bind("tcp://127.0.0.1:*")
        with pytest.raises(zmq.ZMQError, match="before it is bound"):
            server.secure_server(zmq.curve_keypair()[1])
        server.unbind(server.last_endpoint.decode())
        server.secure_server(zmq.curve_keypair()[1])
        assert server.mechanism == zmq.CURVE


def test_not_without_zmtp(zmq, context, auth):
    """A connection without a mechanism cannot be secured."""
    with context.socket(zmq.STREAM) as stream:
        stream.secure_server(zmq.curve_keypair()[1], "*")
        with pytest.raises(zmq.ZMQError, match="every peer could connect"):
            stream.bind("tcp://127.0.0.1:*")


def test_mechanism_changed_afterwards(zmq, context, auth):
    """A secured socket never accepts peers with other mechanisms."""
    server = context.socket(zmq.PULL)
    server.secure_server(zmq.curve_keypair()[1], "*")
    server.curve_server = 0
    with pytest.raises(zmq.ZMQError, match="this socket has an allow-list"):
        server.bind("tcp://127.0.0.1:*")


def test_values_that_are_not_a_list(zmq, context, auth):
    key, _ = zmq.curve_keypair()
    for wrong, error in [
        (key, TypeError),
        ([1], TypeError),
        ([b"short"], zmq.ZMQError),
        (1, TypeError),
    ]:
        with pytest.raises(error):
            auth.AllowList(wrong)
    with pytest.raises(zmq.ZMQError):
        auth.AllowList("/no/such/folder")
    with pytest.raises(TypeError):
        auth.Passwords(["bob"])
    with context.socket(zmq.PULL) as server, pytest.raises(zmq.ZMQError):
        server.secure_server(b"short")
