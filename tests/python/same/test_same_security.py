"""Authentication and certificates."""

import asyncio
import threading
from pathlib import Path

import pytest
from support import eventually


@pytest.fixture
def authenticator(part, context):
    auth = part("auth.thread").ThreadAuthenticator(context)
    auth.start()
    yield auth
    auth.stop()


def arrives(zmq, part, server, client, endpoint="tcp://127.0.0.1:*"):
    """Returns whether a message arrives; False if the handshake failed."""
    handshakes = zmq.EVENT_HANDSHAKE_SUCCEEDED | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    monitor = client.get_monitor_socket(handshakes | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    monitor.rcvtimeo = 20_000
    server.bind(endpoint)
    client.connect(server.last_endpoint)
    event = part("utils.monitor").recv_monitor_message(monitor)["event"]
    client.disable_monitor()
    monitor.close()
    if event == zmq.EVENT_HANDSHAKE_SUCCEEDED:
        client.send(b"x")
        return server.recv() == b"x"
    assert event == zmq.EVENT_HANDSHAKE_FAILED_AUTH
    return False


def test_authenticator_runs(zmq, authenticator):
    assert authenticator.is_alive()
    authenticator.stop()
    assert not authenticator.is_alive()

    def restarted():
        try:
            authenticator.start()
        except zmq.ZMQError as error:  # libzmq releases the name in the background
            assert error.errno == zmq.EADDRINUSE
            return False
        return True

    assert eventually(restarted)


def test_null_is_accepted(zmq, part, context, authenticator):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.zap_domain = b"global"
        assert arrives(zmq, part, pull, push)


@pytest.mark.parametrize(
    ("allowed", "denied", "expected"),
    [(["127.0.0.1"], [], True), ([], ["127.0.0.1"], False), (["10.0.0.1"], [], False)],
)
def test_addresses_that_are_accepted(zmq, part, context, authenticator, allowed, denied, expected):
    if allowed:
        authenticator.allow(*allowed)
    if denied:
        authenticator.deny(*denied)
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.linger = push.linger = 0
        pull.zap_domain = b"global"
        assert arrives(zmq, part, pull, push) is expected


def test_allow_and_deny_exclude_each_other(authenticator):
    authenticator.allow("127.0.0.1")
    with pytest.raises(ValueError):
        authenticator.deny("127.0.0.2")


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize(("password", "expected"), [(b"secret", True), (b"wrong", False)])
def test_plain(zmq, part, context, sockets, authenticator, password, expected, transport):
    authenticator.configure_plain(domain="*", passwords={"admin": "secret"})
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.linger = push.linger = 0
        pull.plain_server = True
        push.plain_username, push.plain_password = b"admin", password
        assert arrives(zmq, part, pull, push, sockets.endpoint(transport)) is expected


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
@pytest.mark.parametrize("known", ["any", "file", "callback", "nobody"])
def test_curve(zmq, part, context, sockets, authenticator, directory, known, transport):
    auth = part("auth")
    server_public, server_secret = zmq.curve_keypair()
    _, secret_file = auth.create_certificates(directory, "client")
    client_public, client_secret = auth.load_certificate(secret_file)
    if known == "any":
        authenticator.configure_curve(domain="*", location=auth.CURVE_ALLOW_ANY)
    elif known == "file":
        authenticator.configure_curve(domain="*", location=directory)
    elif known == "callback":

        class Provider:
            def callback(self, domain, key):
                return key == client_public

        authenticator.configure_curve_callback(credentials_provider=Provider())
    else:
        empty = directory / "empty"
        empty.mkdir()
        authenticator.configure_curve(domain="*", location=empty)
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.linger = push.linger = 0
        pull.curve_publickey, pull.curve_secretkey = server_public, server_secret
        pull.curve_server = True
        push.curve_publickey, push.curve_secretkey = client_public, client_secret
        push.curve_serverkey = server_public
        endpoint = sockets.endpoint(transport)
        assert arrives(zmq, part, pull, push, endpoint) is (known != "nobody")


def test_tasks_of_a_provider_run_between_requests(zmq, sockets, authenticator):
    """A provider may refresh its keys in a task."""
    ended = threading.Event()

    class Provider:
        async def callback(self, domain, key):
            self.task = asyncio.ensure_future(self.refresh())
            return True

        async def refresh(self):
            await asyncio.sleep(0.01)
            ended.set()

    authenticator.configure_curve_callback("*", Provider())
    pull, push = (sockets.context.socket(kind) for kind in (zmq.PULL, zmq.PUSH))
    public, secret = zmq.curve_keypair()
    pull.curve_secretkey, pull.curve_server = secret, True
    push.curve_publickey, push.curve_secretkey, push.curve_serverkey = public, secret, public
    pull.bind("tcp://127.0.0.1:*")
    push.connect(pull.last_endpoint)
    push.send(b"x")
    pull.rcvtimeo = 20_000
    assert pull.recv() == b"x"
    assert ended.wait(20)


@pytest.mark.parametrize("name", ["AsyncioAuthenticator", "IOLoopAuthenticator"])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_an_authenticator_that_starts_before_its_loop(zmq, part, sockets, name):
    module = part("auth.ioloop" if name == "IOLoopAuthenticator" else "auth.asyncio")
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)
    pull, push = (sockets.context.socket(kind) for kind in (zmq.PULL, zmq.PUSH))
    authenticator = getattr(module, name)(sockets.context)
    try:
        authenticator.start()
        authenticator.configure_plain(passwords={"alice": "secret"})
        pull.plain_server = True
        pull.rcvtimeo = 20_000
        push.plain_username, push.plain_password = b"alice", b"secret"
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint)
        push.send(b"x")
        assert loop.run_until_complete(loop.run_in_executor(None, pull.recv)) == b"x"
    finally:
        authenticator.stop()
        loop.run_until_complete(asyncio.sleep(0))
        asyncio.set_event_loop(None)
        loop.close()


def test_certificates(part, directory):
    auth = part("auth")
    public_file, secret_file = auth.create_certificates(directory, "name", metadata={"a": "b"})
    assert (public_file, secret_file) == (
        str(directory / "name.key"),
        str(directory / "name.key_secret"),
    )
    public, secret = auth.load_certificate(secret_file)
    assert (len(public), len(secret)) == (40, 40)
    assert auth.load_certificate(public_file) == (public, None)
    assert auth.load_certificates(directory) == {public: True}


def test_only_the_secret_certificate_has_metadata(part, directory):
    metadata = {"email": "a@b", b"name": b"Alice"}
    files = part("auth").create_certificates(directory, "name", metadata)
    public, secret = (Path(file).read_text() for file in files)
    assert "    email = a@b\n    name = Alice\n" in secret
    assert "email" not in public
    assert "Alice" not in public


def test_not_certificates(part, directory):
    auth = part("auth")
    with pytest.raises(OSError):
        auth.load_certificate(directory / "nothing.key")
    with pytest.raises(OSError):
        auth.load_certificates(directory / "nowhere")
    (directory / "bad.key").write_text("nonsense")
    with pytest.raises(ValueError):
        auth.load_certificate(directory / "bad.key")


@pytest.mark.parametrize("mechanism", ["PLAIN", "CURVE"])
def test_within_a_context_the_handler_is_not_asked(zmq, sockets, context, mechanism):
    """Over inproc there is no handshake, so mechanisms do not apply."""
    pull = context.socket(zmq.PULL)
    if mechanism == "PLAIN":
        pull.plain_server = 1
    else:
        pull.curve_server, pull.curve_secretkey = 1, zmq.curve_keypair()[1]
    pull.bind(sockets.endpoint("inproc"))
    push = sockets.connected(zmq.PUSH, pull)
    push.send(b"x")
    assert pull.recv() == b"x"


@pytest.mark.filterwarnings("ignore:.*does not belong to curve_secretkey:RuntimeWarning")
def test_a_public_key_of_another_pair_shows_in_the_handshake(zmq, part, context):
    server_public, server_secret = zmq.curve_keypair()
    server, client = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    server.curve_server, server.curve_secretkey = 1, server_secret
    client.curve_serverkey = server_public
    client.curve_publickey, client.curve_secretkey = zmq.curve_keypair()[0], zmq.curve_keypair()[1]
    port = server.bind_to_random_port("tcp://127.0.0.1")
    client.connect(f"tcp://127.0.0.1:{port}")
    client.send(b"kept")
    assert not server.poll(300)


def test_metadata_of_a_reply_has_any_names_and_the_first_value_counts(zmq, context, sockets):
    handler = context.socket(zmq.REP)
    handler.bind("inproc://zeromq.zap.01")
    pull = context.socket(zmq.PULL)
    pull.zap_domain = b"global"
    pull.bind("tcp://127.0.0.1:*")
    push = context.socket(zmq.PUSH)
    push.connect(pull.last_endpoint.decode())
    push.send(b"x")
    version, request, *_ = handler.recv_multipart()
    metadata = b"".join(
        bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value
        for name, value in (
            (b"A b", b"space"),
            ("\xe9".encode(), b"accent"),
            (b"\xff", b"bytes"),
            (b"A", b"first"),
            (b"A", b"second"),
        )
    )
    handler.send_multipart([version, request, b"200", b"OK", b"me", metadata])
    frame = pull.recv(copy=False)
    found = [frame.get(name) for name in ("A b", "\xe9", "A", "User-Id")]
    assert found == ["space", "accent", "first", "me"]


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN", "CURVE"])
def test_a_handler_may_name_no_user(zmq, context, mechanism):
    handler = context.socket(zmq.REP)
    handler.bind("inproc://zeromq.zap.01")
    server, client = context.socket(zmq.ROUTER), context.socket(zmq.DEALER)
    server.zap_domain = b"global"
    if mechanism == "PLAIN":
        server.plain_server = 1
        client.plain_username, client.plain_password = b"user", b"password"
    elif mechanism == "CURVE":
        public, secret = zmq.curve_keypair()
        server.curve_server, server.curve_secretkey = 1, secret
        client.curve_publickey, client.curve_secretkey = public, secret
        client.curve_serverkey = public
    server.bind("tcp://127.0.0.1:*")
    client.connect(server.last_endpoint.decode())
    client.send(b"x")
    version, request, *_ = handler.recv_multipart()
    handler.send_multipart([version, request, b"200", b"OK", b"", b""])
    name, body = server.recv_multipart(copy=False)
    assert name["User-Id"] == body["User-Id"] == ""
    server.send_multipart([name.bytes, b"y"])
    with pytest.raises(zmq.ZMQError):
        client.recv(copy=False).get("User-Id")
