"""Certificates, and authenticators at work."""

import asyncio
import errno
import importlib
import itertools
import os
import stat
import sys
import warnings

import pytest
from support import PATIENCE, Background, eventually, run_script

HOME = "127.0.0.1"

_numbers = itertools.count()


@pytest.fixture
def context(zmq):
    """A context without timeouts, because pyzmq's authenticators would have them, too."""
    context = zmq.Context()
    yield context
    context.destroy(linger=0)


@pytest.fixture
def auth(zmq):
    importlib.import_module(f"{zmq.__name__}.auth.thread")
    importlib.import_module(f"{zmq.__name__}.auth.asyncio")
    return importlib.import_module(f"{zmq.__name__}.auth")


# ---- certificates -------------------------------------------------------------------


def test_certificates_are_made_and_read(zmq, auth, directory):
    public_file, secret_file = auth.create_certificates(directory, "alice", {"email": "a@b"})
    assert (public_file, secret_file) == (
        os.path.join(directory, "alice.key"),
        os.path.join(directory, "alice.key_secret"),
    )
    public, secret = auth.load_certificate(secret_file)
    assert zmq.curve_public(secret) == public
    assert auth.load_certificate(public_file) == (public, None)
    assert auth.load_certificates(directory) == {public: True}
    assert auth.load_certificates(str(directory)) == {public: True}
    with open(secret_file) as file:
        assert "email = a@b" in file.read()


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("metadata", [{"a\nb": "c"}, {"a": "b\r"}, {b"a": b"b\ncurve"}])
def test_metadata_cannot_add_lines(auth, directory, metadata):
    with pytest.raises(ValueError, match="without line breaks"):
        auth.create_certificates(directory, "alice", metadata)
    assert os.listdir(directory) == []


@pytest.mark.parametrize(("writer", "reader"), [("zmq", "zeroxide"), ("zeroxide", "zmq")])
@pytest.mark.filterwarnings("ignore:every user of this machine can read:RuntimeWarning")
@pytest.mark.zeroxide_only
def test_files_are_interchangeable(directory, writer, reader):
    writer, reader = (importlib.import_module(f"{name}.auth") for name in (writer, reader))
    files = writer.create_certificates(directory, "alice", {"name": "Alice"})
    assert [reader.load_certificate(file) for file in files] == [
        writer.load_certificate(file) for file in files
    ]
    assert reader.load_certificates(directory) == writer.load_certificates(directory)


@pytest.mark.zeroxide_only
def test_only_the_owner_can_read_a_secret(auth, directory):
    # Even if the previous file was readable by others.
    (directory / "alice.key_secret").touch(0o666)
    _, secret_file = auth.create_certificates(directory, "alice")
    assert stat.S_IMODE(os.stat(secret_file).st_mode) == 0o600


@pytest.mark.zeroxide_only
def test_a_link_is_replaced_and_not_followed(auth, directory):
    for name in ("alice.key", "alice.key_secret"):
        (directory / f"elsewhere-{name}").write_text("mine")
        (directory / name).symlink_to(directory / f"elsewhere-{name}")
    for file in auth.create_certificates(directory, "alice"):
        assert not os.path.islink(file)
        assert auth.load_certificate(file)[0]
    assert (directory / "elsewhere-alice.key").read_text() == "mine"
    assert (directory / "elsewhere-alice.key_secret").read_text() == "mine"


@pytest.mark.zeroxide_only
def test_a_secret_that_others_can_read_warns(auth, directory):
    public_file, secret_file = auth.create_certificates(directory, "alice")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        auth.load_certificate(public_file)
        auth.load_certificate(secret_file)
    os.chmod(secret_file, 0o644)
    with pytest.warns(RuntimeWarning, match="can read the secret key in .*alice.key_secret"):
        auth.load_certificate(secret_file)


def test_files_that_are_not_certificates(auth, directory):
    with pytest.raises(OSError, match="Invalid certificate file"):
        auth.load_certificate(directory / "missing")
    with pytest.raises(OSError, match="Invalid certificate directory"):
        auth.load_certificates(directory / "missing")
    empty = directory / "empty.key"
    empty.write_text("metadata\n    name = x\n")
    with pytest.raises(ValueError, match="No public key"):
        auth.load_certificate(empty)


# ---- questions and answers ------------------------------------------------------------


class Replies(list):
    """A replacement for a socket."""

    def send_multipart(self, reply, *args, **kwargs):
        self.append(reply)


@pytest.fixture
def ask(auth):
    """Asks an authenticator; returns status, text and user id."""

    def ask(authenticator, mechanism, *credentials, domain=b"", address=b"127.0.0.1"):
        authenticator.zap_socket = replies = Replies()
        request = [b"1.0", b"7", domain, address, b"me", mechanism, *credentials]
        asyncio.run(authenticator.handle_zap_message(request))
        [[version, request_id, *answer, metadata]] = replies
        assert (version, request_id, metadata) == (b"1.0", b"7", b"")
        return tuple(answer)

    return ask


@pytest.fixture
def authenticator(auth, context):
    return auth.Authenticator(context)


def test_null_is_accepted(ask, authenticator):
    assert ask(authenticator, b"NULL") == (b"200", b"OK", b"anonymous")


def test_addresses_are_allowed(ask, authenticator):
    authenticator.allow("10.0.0.1", HOME)
    authenticator.allow("10.0.0.2")
    assert ask(authenticator, b"NULL")[0] == b"200"
    refused = ask(authenticator, b"NULL", address=b"10.0.0.3")
    assert refused == (b"400", b"Address not allowed", b"")
    with pytest.raises(ValueError):
        authenticator.deny("10.0.0.1")


def test_addresses_are_denied(ask, authenticator):
    authenticator.deny(HOME)
    assert ask(authenticator, b"NULL") == (b"400", b"Address denied", b"")
    assert ask(authenticator, b"NULL", address=b"10.0.0.3")[0] == b"200"
    with pytest.raises(ValueError):
        authenticator.allow("10.0.0.1")


def test_passwords(ask, authenticator):
    assert ask(authenticator, b"PLAIN", b"bob", b"1")[:2] == (b"400", b"No passwords defined")
    authenticator.configure_plain(domain="*", passwords={"bob": "1"})
    authenticator.configure_plain(domain="lab", passwords={"eve": "2"})
    assert ask(authenticator, b"PLAIN", b"bob", b"1") == (b"200", b"OK", b"bob")
    assert ask(authenticator, b"PLAIN", b"eve", b"2", domain=b"lab") == (b"200", b"OK", b"eve")
    assert ask(authenticator, b"PLAIN", b"bob", b"2")[:2] == (b"400", b"Invalid password")
    assert ask(authenticator, b"PLAIN", b"eve", b"2")[:2] == (b"400", b"Invalid username")
    assert ask(authenticator, b"PLAIN", b"bob", b"1", domain=b"x")[:2] == (
        b"400",
        b"Invalid domain",
    )
    assert ask(authenticator, b"PLAIN", b"bob")[:2] == (b"400", b"Invalid credentials")


def test_keys(zmq, auth, ask, authenticator, directory):
    z85 = importlib.import_module(f"{zmq.__name__}.utils.z85")
    _, secret_file = auth.create_certificates(directory, "alice")
    alice, _ = auth.load_certificate(secret_file)
    raw = z85.decode(alice)
    assert ask(authenticator, b"CURVE", raw)[:2] == (b"400", b"Unknown domain")
    authenticator.configure_curve(domain="lab", location=directory)
    assert ask(authenticator, b"CURVE", raw, domain=b"lab") == (b"200", b"OK", alice)
    assert ask(authenticator, b"CURVE", bytes(32), domain=b"lab")[:2] == (b"400", b"Unknown key")
    assert ask(authenticator, b"CURVE", raw)[:2] == (b"400", b"Unknown domain")
    authenticator.configure_curve(domain="*", location=auth.CURVE_ALLOW_ANY)
    assert ask(authenticator, b"CURVE", bytes(32)) == (b"200", b"OK", b"0" * 40)
    authenticator.curve_user_id = lambda key: "nobody"
    assert ask(authenticator, b"CURVE", bytes(32)) == (b"200", b"OK", b"nobody")


@pytest.mark.parametrize("kind", ["function", "coroutine"])
def test_keys_by_callback(zmq, ask, authenticator, kind):
    public, _ = zmq.curve_keypair()
    z85 = importlib.import_module(f"{zmq.__name__}.utils.z85")
    asked = []

    class Provider:
        def callback(self, domain, key):
            asked.append((domain, key))
            return key == public

    class AsyncProvider(Provider):
        async def callback(self, domain, key):
            await asyncio.sleep(0)
            return super().callback(domain, key)

    provider = Provider() if kind == "function" else AsyncProvider()
    authenticator.configure_curve_callback(domain="*", credentials_provider=provider)
    assert ask(authenticator, b"CURVE", z85.decode(public)) == (b"200", b"OK", public)
    assert ask(authenticator, b"CURVE", bytes(32))[:2] == (b"400", b"Unknown key")
    assert asked == [("*", public), ("*", b"0" * 40)]


def test_malformed_requests(ask, authenticator):
    assert ask(authenticator, b"TOKEN", b"x")[:2] == (b"400", b"NO ACCESS")
    authenticator.zap_socket = replies = Replies()
    for request in ([b"2.0", b"7", b"", b"", b"", b"NULL"], [b"1.0", b"7", b"x"]):
        asyncio.run(authenticator.handle_zap_message(request))
    assert [reply[2:4] for reply in replies] == [
        [b"400", b"Invalid version"],
        [b"400", b"Not enough frames"],
    ]


@pytest.mark.zeroxide_only
def test_a_request_without_a_number_does_not_end_the_handler(zmq, auth, context):
    guard = auth.thread.ThreadAuthenticator(context)
    guard.start()
    with context.socket(zmq.REQ) as req:
        req.connect("inproc://zeromq.zap.01")
        for question in ([b"1.0"], [b""], [b"1.0", b"7", b"", HOME.encode(), b"", b"NULL"]):
            req.send_multipart(question)
            assert req.poll(PATIENCE * 1000)
            answer = req.recv_multipart()
    assert answer[1:3] == [b"7", b"200"]
    guard.stop()


@pytest.mark.zeroxide_only
def test_passwords_are_removed(ask, authenticator):
    authenticator.configure_plain(domain="*", passwords={"bob": "1"})
    authenticator.configure_plain(domain="*", passwords={})
    assert ask(authenticator, b"PLAIN", b"bob", b"1")[0] == b"400"


@pytest.mark.zeroxide_only
def test_a_failure_is_also_a_reply(ask, authenticator):
    class Provider:
        def callback(self, domain, key):
            raise LookupError("the database is down")

    assert ask(authenticator, b"CURVE", b"short")[0] == b"400"
    authenticator.configure_curve_callback(domain="*", credentials_provider=Provider())
    assert ask(authenticator, b"CURVE", bytes(32)) == (b"500", b"Internal error", b"")


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("user_id", [None, 7, ["alice"]])
def test_a_user_id_is_text_or_bytes(auth, context, ask, caplog, user_id):
    class Names(auth.Authenticator):
        def curve_user_id(self, client_public_key):
            return user_id

    guard = Names(context)
    guard.configure_curve(location=auth.CURVE_ALLOW_ANY)
    assert ask(guard, b"CURVE", bytes(32)) == (b"500", b"Internal error", b"")
    assert "curve_user_id returns a str or bytes, not " in caplog.text


@pytest.mark.zeroxide_only
def test_user_ids_of_a_replaced_method(auth, context, ask):
    class Names(auth.Authenticator):
        def curve_user_id(self, client_public_key):
            return names.pop()

    guard = Names(context)
    guard.configure_curve(location=auth.CURVE_ALLOW_ANY)
    names = [b"\xff", "\u00e9"]
    assert ask(guard, b"CURVE", bytes(32)) == (b"200", b"OK", "\u00e9".encode())
    assert ask(guard, b"CURVE", bytes(32)) == (b"200", b"OK", b"\xff")


@pytest.mark.parametrize("reason", [b"", None, "not today"])
@pytest.mark.zeroxide_only
def test_a_replaced_method_that_refuses_without_a_reason(auth, context, ask, reason):
    class Refuses(auth.Authenticator):
        def _authenticate_plain(self, domain, username, password):
            return False, reason

        async def _authenticate_curve(self, domain, client_key):
            return False, reason

    texts = {b"": (b"400", b"NO ACCESS"), None: (b"500", b"Internal error")}
    expected = *texts.get(reason, (b"400", b"not today")), b""
    assert ask(Refuses(context), b"PLAIN", b"bob", b"1") == expected
    assert ask(Refuses(context), b"CURVE", bytes(32)) == expected


@pytest.mark.zeroxide_only
def test_a_cancelled_callback_is_also_a_failure(ask, authenticator):
    class Provider:
        async def callback(self, domain, key):
            raise asyncio.CancelledError

    authenticator.configure_curve_callback(domain="*", credentials_provider=Provider())
    assert ask(authenticator, b"CURVE", bytes(32)) == (b"500", b"Internal error", b"")


# ---- at work --------------------------------------------------------------------------


@pytest.fixture(params=["thread", "asyncio"])
def running(request, zmq, auth, context):
    """An authenticator that answers, on either kind of front."""
    if request.param == "thread":
        guard = auth.thread.ThreadAuthenticator(context)
        guard.start()
        assert guard.is_alive()
        yield guard
        guard.stop()
        assert not guard.is_alive()
        return
    guard = auth.asyncio.AsyncioAuthenticator(context)
    loop = asyncio.new_event_loop()
    ended = asyncio.Event()

    async def run():
        guard.start()
        await ended.wait()
        guard.stop()

    thread = Background(loop.run_until_complete, run())
    eventually(lambda: guard.zap_socket)
    yield guard
    loop.call_soon_threadsafe(ended.set)
    thread.result()
    loop.close()


def passes(zmq, context, server_options, client_options):
    """The message that a client sends to a server as it arrives; None if it is refused."""
    with context.socket(zmq.PULL) as server, context.socket(zmq.PUSH) as client:
        for socket, options in ((server, server_options), (client, client_options)):
            socket.linger = 0
            for name, value in options.items():
                setattr(socket, name, value)
        monitor = server.get_monitor_socket(addr=f"inproc://monitor-{next(_numbers)}")
        server.bind(f"tcp://{HOME}:*")
        client.connect(server.last_endpoint.decode())
        client.send(b"hello")
        done = zmq.EVENT_HANDSHAKE_SUCCEEDED
        failed = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        failed |= zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_AUTH
        while True:
            assert monitor.poll(PATIENCE * 1000)
            event = zmq.utils.monitor.recv_monitor_message(monitor)["event"]
            if event == done:
                assert server.poll(PATIENCE * 1000)
                return server.recv(copy=False)
            if event & failed:
                assert not server.poll(0)
                return None


@pytest.fixture(autouse=True)
def utilities(zmq):
    __import__(f"{zmq.__name__}.utils.monitor")


def test_null_by_address(zmq, context, running):
    domain = {"zap_domain": b"global"}
    assert passes(zmq, context, {}, {}).bytes == b"hello"
    frame = passes(zmq, context, domain, {})
    assert frame["User-Id"] == "anonymous"
    running.deny(HOME)
    assert passes(zmq, context, {}, {}) is not None
    assert passes(zmq, context, domain, {}) is None


def test_plain(zmq, context, running):
    server = {"plain_server": True}
    client = {"plain_username": b"admin", "plain_password": b"secret"}
    assert passes(zmq, context, server, client) is None
    running.configure_plain(domain="*", passwords={"admin": "secret"})
    frame = passes(zmq, context, server, client)
    assert frame.bytes == b"hello"
    assert frame.get("User-Id") == "admin"
    assert passes(zmq, context, server, {**client, "plain_password": b"guess"}) is None
    assert passes(zmq, context, server, {**client, "plain_username": b"root"}) is None


def test_curve(zmq, auth, context, running, directory):
    public, secret = zmq.curve_keypair()
    _, alice_file = auth.create_certificates(directory, "alice")
    alice, alice_secret = auth.load_certificate(alice_file)
    eve, eve_secret = zmq.curve_keypair()
    server = {"curve_server": True, "curve_secretkey": secret, "curve_publickey": public}

    def client(public_key, secret_key):
        return {
            "curve_publickey": public_key,
            "curve_secretkey": secret_key,
            "curve_serverkey": public,
        }

    assert passes(zmq, context, server, client(alice, alice_secret)) is None
    running.configure_curve(domain="*", location=directory)
    frame = passes(zmq, context, server, client(alice, alice_secret))
    assert frame.bytes == b"hello"
    assert frame["User-Id"] == alice.decode()
    assert passes(zmq, context, server, client(eve, eve_secret)) is None
    # The key of another server, and no keys.
    wrong = {**client(alice, alice_secret), "curve_serverkey": eve}
    assert passes(zmq, context, server, wrong) is None
    assert passes(zmq, context, server, {}) is None
    running.configure_curve(domain="*", location=auth.CURVE_ALLOW_ANY)
    assert passes(zmq, context, server, client(eve, eve_secret)).bytes == b"hello"


def test_one_handler_at_a_time(zmq, auth, context, running):
    second = auth.thread.ThreadAuthenticator(context)
    with pytest.raises(zmq.ZMQError) as caught:
        second.start()
    assert caught.value.errno == zmq.EADDRINUSE
    assert not second.is_alive()
    assert passes(zmq, context, {"zap_domain": b"x"}, {}) is not None


@pytest.mark.zeroxide_only
def test_a_handler_can_be_replaced(zmq, auth, context):
    guard = auth.thread.ThreadAuthenticator(context)
    for _ in range(3):
        guard.start()
        assert passes(zmq, context, {"zap_domain": b"x"}, {})["User-Id"] == "anonymous"
        guard.stop()
        guard.stop()


@pytest.fixture
def curve_passes(zmq, context):
    """Connects a client to a server with CURVE; returns the first message, or None."""
    public, secret = zmq.curve_keypair()
    server = {"curve_server": True, "curve_secretkey": secret}
    client = {"curve_publickey": public, "curve_secretkey": secret, "curve_serverkey": public}
    return lambda: passes(zmq, context, server, client)


@pytest.mark.zeroxide_only
def test_a_strange_user_id_does_not_end_the_handler(auth, running, curve_passes, monkeypatch):
    running.configure_curve(location=auth.CURVE_ALLOW_ANY)
    with monkeypatch.context() as patch:
        patch.setattr(running, "curve_user_id", lambda key: None)
        assert curve_passes() is None
    assert curve_passes().bytes == b"hello"


@pytest.mark.zeroxide_only
def test_a_replaced_handler_that_fails_does_not_end_the_loop(
    auth, running, curve_passes, monkeypatch
):
    async def fail(msg):
        raise LookupError("the database is down")

    running.configure_curve(location=auth.CURVE_ALLOW_ANY)
    with monkeypatch.context() as patch:
        patch.setattr(running, "handle_zap_message", fail)
        assert curve_passes() is None
    assert curve_passes().bytes == b"hello"


@pytest.mark.zeroxide_only
def test_a_logger_that_fails_does_not_end_the_handler(auth, running, curve_passes, monkeypatch):
    class Log:
        def debug(self, *args):
            """Does nothing; the logger has no other method."""

    running.configure_curve(location=auth.CURVE_ALLOW_ANY)
    monkeypatch.setattr(running, "log", Log())
    with monkeypatch.context() as patch:
        patch.setattr(running, "curve_user_id", lambda key: None)
        assert curve_passes() is None
    assert curve_passes().bytes == b"hello"


def leave():
    sys.exit(1)


def cancel():
    asyncio.current_task().cancel()


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("end", [leave, cancel])
def test_a_provider_that_ends_its_task_does_not_end_the_handler(zmq, auth, context, end):
    class Provider:
        calls = 0

        async def callback(self, domain, key):
            self.calls += 1
            if self.calls == 1:
                end()
                await asyncio.sleep(0)
            return True

    guard = auth.thread.ThreadAuthenticator(context)
    guard.start()
    guard.configure_curve_callback(domain="*", credentials_provider=Provider())
    public, secret = zmq.curve_keypair()
    server = {"curve_server": True, "curve_secretkey": secret}
    client = {"curve_publickey": public, "curve_secretkey": secret, "curve_serverkey": public}
    assert passes(zmq, context, server, client) is None
    assert passes(zmq, context, server, client).bytes == b"hello"
    guard.stop()


def test_a_pipe_leads_to_the_thread(zmq, auth, context):
    """Programs look at it to see whether the authenticator runs."""
    guard = auth.thread.ThreadAuthenticator(context)
    assert guard.pipe is guard.thread is None
    assert guard.pipe_endpoint.startswith("inproc://")
    guard.start()
    assert guard.thread.started.wait(PATIENCE)
    assert guard.pipe.type == guard.thread.pipe.type == zmq.PAIR
    assert guard.pipe.last_endpoint.decode() == guard.pipe_endpoint
    guard.pipe.send(b"nonsense")
    assert guard.pipe.poll(PATIENCE * 1000)
    assert guard.pipe.recv() == b"ERROR"
    guard.pipe.send(b"TERMINATE")
    guard.thread.join(PATIENCE)
    assert not guard.is_alive()
    assert guard.thread.pipe is None


@pytest.mark.zeroxide_only
def test_a_start_that_fails_leaves_nothing(zmq, auth, context, monkeypatch):
    guard = auth.thread.ThreadAuthenticator(context)
    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="no thread"):

        def start(thread):
            raise RuntimeError("no thread")

        patch.setattr(auth.thread.AuthenticationThread, "start", start)
        guard.start()
    assert guard.pipe is guard.thread is None
    guard.start()
    assert guard.is_alive()
    guard.stop()


@pytest.mark.zeroxide_only
def test_a_thread_that_cannot_begin_raises(zmq, auth, context, monkeypatch):
    def fail():
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    guard = auth.thread.ThreadAuthenticator(context)
    with monkeypatch.context() as patch:
        patch.setattr("asyncio.events.new_event_loop", fail)
        with pytest.raises(OSError, match="Too many open files"):
            guard.start()
    assert guard.pipe is guard.thread is guard.zap_socket is None
    guard.start()
    assert guard.is_alive()
    guard.stop()


def test_the_pipe_is_there_while_the_thread_runs(zmq, auth, context):
    guard = auth.thread.ThreadAuthenticator(context)
    for _ in range(2):
        guard.start()
        pipe = guard.pipe
        assert guard.is_alive()
        assert not pipe.closed
        guard.stop()
        assert pipe.closed
        assert guard.pipe is guard.thread is None


@pytest.mark.zeroxide_only
def test_an_authenticator_whose_pipe_was_closed_stops(zmq, auth, context):
    guard = auth.thread.ThreadAuthenticator(context)
    guard.start()
    guard.pipe.close()
    guard.stop()
    assert not guard.is_alive()


@pytest.mark.zeroxide_only
def test_the_thread_ends_with_the_context(zmq, auth):
    context = zmq.Context()
    guard = auth.thread.ThreadAuthenticator(context)
    guard.start()
    context.destroy()
    guard.thread.join(PATIENCE)
    assert not guard.is_alive()
    guard.stop()


def test_where_threads_are_greenlets(zmq):
    """The handler's thread is then a greenlet, and does not block the others."""
    pytest.importorskip("gevent")
    output, _ = run_script(
        zmq.__name__,
        f"""
        import gevent.monkey
        gevent.monkey.patch_all()
        import {zmq.__name__}.green as zmq
        from {zmq.__name__}.auth.thread import ThreadAuthenticator
        context = zmq.Context()
        guard = ThreadAuthenticator(context)
        guard.start()
        guard.configure_plain(passwords={{"user": "password"}})
        server = context.socket(zmq.PULL)
        server.plain_server = True
        server.bind("tcp://127.0.0.1:*")
        client = context.socket(zmq.PUSH)
        client.plain_username, client.plain_password = b"user", b"password"
        client.connect(server.last_endpoint.decode())
        client.send(b"hello")
        print(server.recv(copy=False)["User-Id"])
        guard.stop()
        print(guard.is_alive())
        context.destroy(linger=0)
        """,
    )
    assert output.split() == ["user", "False"]


def test_default_context(zmq, auth):
    assert auth.Authenticator().context is zmq.Context.instance()


def test_old_name(zmq, auth):
    try:
        ioloop = importlib.import_module(f"{zmq.__name__}.auth.ioloop")
    except ImportError:
        pytest.skip("pyzmq wants tornado for it")
    assert issubclass(ioloop.IOLoopAuthenticator, auth.asyncio.AsyncioAuthenticator)


def test_a_secret_key_is_read_through_a_link(auth, directory):
    """Kubernetes mounts every Secret as links."""
    public_file, secret_file = auth.create_certificates(directory, "alice")
    links = directory / "links"
    links.mkdir()
    for name, file in [("public.key", public_file), ("secret.key", secret_file)]:
        (links / name).symlink_to(file)
    public, secret = auth.load_certificate(secret_file)
    assert auth.load_certificate(links / "public.key") == (public, None)
    assert auth.load_certificate(links / "secret.key") == (public, secret)
    assert auth.load_certificates(links) == {public: True}


@pytest.mark.zeroxide_only
def test_the_file_behind_a_link_is_checked(auth, directory):
    _, secret_file = auth.create_certificates(directory, "alice")
    link = directory / "link"
    link.symlink_to(secret_file)
    os.chmod(secret_file, 0o644)
    with pytest.warns(RuntimeWarning, match="every user of this machine can read"):
        auth.load_certificate(link)


@pytest.mark.zeroxide_only
@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_secret_key_of_another_user_warns(auth, directory):
    _, secret_file = auth.create_certificates(directory, "alice")
    os.chown(secret_file, 65534, -1)
    with pytest.warns(RuntimeWarning, match="belongs to another user .number 65534."):
        auth.load_certificate(secret_file)


@pytest.mark.zeroxide_only
def test_spark_reads_keys_through_a_link(tmp_path):
    certs = pytest.importorskip("zeroxide.auth.certs")
    public_file, secret_file = certs.create_certificates(tmp_path, "alice")
    links = tmp_path / "links"
    links.mkdir()
    for name, file in [("public.key", public_file), ("secret.key", secret_file)]:
        (links / name).symlink_to(file)
    public, secret = certs.load_certificate(secret_file)
    sockets = pytest.importorskip("zeroxide.spark._sockets")
    for file in (secret_file, links / "secret.key"):
        assert sockets.look_up("zmq.curve_secretkey", f"file:{file}") == secret.decode()
    linked = f"file:{links / 'public.key'}"
    assert sockets.look_up("zmq.curve_serverkey", linked) == public.decode()


KEY = b"rq:rM>}U?@Lns47E1%kR.o@n%FcmmsL/@{H8]yf7"


@pytest.mark.parametrize(
    "text",
    [
        b'public-key = "%b"\n',
        b'metadata\n    name = x\n    public-key = "%b"\n',
        b'# Z\xfcrich\ncurve\n    public-key = "%b"\n',
        b"metadata\r\n    city = K\xf6ln\r\ncurve\r\n\tpublic-key\t=\t'%b'\r\n",
    ],
)
def test_certificates_of_other_programs(auth, directory, text):
    file = directory / "other.key"
    file.write_bytes(text % KEY)
    assert auth.load_certificate(file) == (KEY, None)
