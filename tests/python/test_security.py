"""Sockets that let only some in: options, handlers of every kind, and somebody in the middle."""

import contextlib
import importlib
import itertools
import socket as tcp
import struct
import threading

import pytest
from support import PATIENCE, Background, eventually

HANDLER = "inproc://zeromq.zap.01"
_numbers = itertools.count()
# Sockets that a test does not name, so that they stay open to its end.
_kept = []


@pytest.fixture(autouse=True)
def utilities(zmq):
    __import__(f"{zmq.__name__}.utils.monitor")
    __import__(f"{zmq.__name__}.utils.z85")
    yield
    _kept.clear()


# ---- options ------------------------------------------------------------------------


@pytest.fixture
def dealer(zmq, context):
    with context.socket(zmq.DEALER) as socket:
        yield socket


def test_the_last_word_counts(zmq, dealer):
    public, secret = zmq.curve_keypair()

    def now():
        return dealer.mechanism, dealer.plain_server, dealer.curve_server

    assert now() == (zmq.NULL, 0, 0)
    for name, value, expected in [
        ("plain_server", 1, (zmq.PLAIN, 1, 0)),
        ("plain_username", b"me", (zmq.PLAIN, 0, 0)),
        ("plain_server", 0, (zmq.NULL, 0, 0)),
        ("curve_server", 1, (zmq.CURVE, 0, 1)),
        ("curve_publickey", public, (zmq.CURVE, 0, 1)),
        ("curve_serverkey", public, (zmq.CURVE, 0, 0)),
        ("plain_password", b"secret", (zmq.PLAIN, 0, 0)),
        ("curve_secretkey", secret, (zmq.CURVE, 0, 0)),
        ("curve_server", 0, (zmq.NULL, 0, 0)),
    ]:
        setattr(dealer, name, value)
        assert now() == expected, name


def test_names_and_passwords_are_read_back(zmq, dealer):
    assert (dealer.plain_username, dealer.plain_password) == (b"", b"")
    dealer.plain_username = b"me"
    dealer.set_string(zmq.PLAIN_PASSWORD, "secret")
    assert (dealer.plain_username, dealer.plain_password) == (b"me", b"secret")
    for wrong in (b"", b"x" * 256):
        with pytest.raises(zmq.ZMQError) as caught:
            dealer.plain_password = wrong
        assert caught.value.errno == zmq.EINVAL


@pytest.mark.parametrize("option", ["curve_publickey", "curve_secretkey", "curve_serverkey"])
def test_keys_are_raw_or_text(zmq, dealer, option):
    text, _ = zmq.curve_keypair()
    for key in (text, zmq.utils.z85.decode(text), text + b"\0"):
        setattr(dealer, option, key)
    for wrong in (b"", b"x" * 31, b"x" * 33, b'"' * 40):
        with pytest.raises(zmq.ZMQError) as caught:
            setattr(dealer, option, wrong)
        assert caught.value.errno == zmq.EINVAL


@pytest.mark.zeroxide_only
def test_keys_can_be_read(zmq, dealer):
    public, _ = zmq.curve_keypair()
    assert dealer.curve_publickey == b""
    dealer.curve_publickey = zmq.utils.z85.decode(public)
    assert dealer.curve_publickey == public


@pytest.mark.zeroxide_only
def test_what_is_missing_is_said_in_time(zmq, dealer):
    public, _ = zmq.curve_keypair()
    for name, value, text in [
        ("curve_server", 1, "CURVE_SECRETKEY"),
        ("curve_secretkey", zmq.curve_keypair()[1], ""),
    ]:
        setattr(dealer, name, value)
        if text:
            with pytest.raises(zmq.ZMQError, match=text):
                dealer.bind("tcp://127.0.0.1:*")
    dealer.curve_serverkey = public
    dealer.curve_publickey = public
    with pytest.raises(zmq.ZMQError, match="does not belong"):
        dealer.connect("tcp://127.0.0.1:1")


def test_zap_enforce_domain(zmq, dealer):
    assert dealer.zap_enforce_domain == 0
    dealer.zap_enforce_domain = 1
    assert dealer.zap_enforce_domain == 1


# ---- what happened to a handshake -----------------------------------------------------


class Handshakes:
    """The events of a socket's handshakes."""

    def __init__(self, zmq, socket):
        self.zmq = zmq
        self.monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH,
            f"inproc://handshakes-{next(_numbers)}",
        )

    def next(self):
        """The next event, and its value."""
        assert self.monitor.poll(PATIENCE * 1000)
        event = self.zmq.utils.monitor.recv_monitor_message(self.monitor)
        return event["event"], event["value"]


def bound(zmq, context, kind, **options):
    """A bound socket with these options, and its handshakes."""
    socket = context.socket(kind)
    socket.linger = 0
    for name, value in options.items():
        setattr(socket, name, value)
    handshakes = Handshakes(zmq, socket)
    socket.bind("tcp://127.0.0.1:*")
    return socket, handshakes


def connected(zmq, context, kind, endpoint, **options):
    socket = context.socket(kind)
    socket.linger = 0
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(endpoint if isinstance(endpoint, str) else endpoint.decode())
    _kept.append(socket)
    return socket


PLAIN_CLIENT = {"plain_username": b"user", "plain_password": b"password"}


# ---- handlers of every kind -------------------------------------------------------------


@contextlib.contextmanager
def handler(zmq, context, answer, kind="REP"):
    """A ZAP handler that answers a request with what `answer` makes of it."""
    socket = context.socket(getattr(zmq, kind))
    socket.linger = 0
    socket.bind(HANDLER)
    stop = threading.Event()

    def run():
        while not stop.is_set():
            if socket.poll(20):
                frames = socket.recv_multipart()
                envelope = frames[: len(frames) - len(frames[-6:])] if kind == "REP" else frames[:2]
                reply = answer(frames[len(envelope) :] if kind == "ROUTER" else frames)
                if reply is None:
                    return
                socket.send_multipart([*(envelope if kind == "ROUTER" else []), *reply])

    thread = Background(run)
    try:
        yield socket
    finally:
        stop.set()
        thread.result()
        socket.close()


def verdict(status, user=b"", metadata=b""):
    return lambda request: [b"1.0", request[1], status, b"because", user, metadata]


@pytest.mark.parametrize("kind", ["REP", "ROUTER"])
def test_a_handler_lets_a_peer_in(zmq, context, kind):
    asked = []

    def answer(request):
        asked.append(request)
        metadata = b"\x05X-Age" + struct.pack(">I", 2) + b"42"
        return verdict(b"200", b"alice", metadata)(request)

    with handler(zmq, context, answer, kind):
        pull, handshakes = bound(
            zmq, context, zmq.PULL, plain_server=1, zap_domain=b"home", routing_id=b"me"
        )
        push = connected(zmq, context, zmq.PUSH, pull.last_endpoint, **PLAIN_CLIENT)
        push.send(b"hello")
        frame = pull.recv(copy=False)
        assert handshakes.next()[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED
        assert frame["User-Id"] == "alice"
        assert frame["X-Age"] == "42"
        assert frame["Peer-Address"] == "127.0.0.1"
    [[version, _, *rest]] = asked
    assert version == b"1.0"
    assert rest == [b"home", b"127.0.0.1", b"me", b"PLAIN", b"user", b"password"]


@pytest.mark.parametrize("status", [b"300", b"400", b"500"])
def test_a_handler_refuses(zmq, context, status):
    with handler(zmq, context, verdict(status)):
        pull, handshakes = bound(zmq, context, zmq.PULL, plain_server=1)
        connected(zmq, context, zmq.PUSH, pull.last_endpoint, **PLAIN_CLIENT)
        assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_AUTH, int(status))
        assert not pull.poll(0)


@pytest.mark.zeroxide_only
def test_the_client_is_told(zmq, context):
    with handler(zmq, context, verdict(b"400")):
        pull, _ = bound(zmq, context, zmq.PULL, plain_server=1)
        push = context.socket(zmq.PUSH)
        handshakes = Handshakes(zmq, push)
        push.linger = 0
        push.password_client("user", "password")
        push.connect(pull.last_endpoint.decode())
        assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_AUTH, 400)


GARBAGE = {
    "short": (lambda reply: reply[:-1], 0x20000001),
    "long": (lambda reply: [*reply, b""], 0x20000001),
    "version": (lambda reply: [b"2.0", *reply[1:]], 0x20000003),
    "number": (lambda reply: [reply[0], b"no", *reply[2:]], 0x20000002),
    "status": (lambda reply: [*reply[:2], b"20", *reply[3:]], 0x20000004),
    "metadata": (lambda reply: [*reply[:5], b"\xff"], 0x20000005),
}


@pytest.mark.parametrize("mechanism", ["NULL", "PLAIN", "CURVE"])
@pytest.mark.parametrize("wrong", GARBAGE)
def test_a_handler_answers_garbage(zmq, context, mechanism, wrong):
    spoil, code = GARBAGE[wrong]
    public, secret = zmq.curve_keypair()
    options, client = {
        "NULL": ({"zap_domain": b"x"}, {}),
        "PLAIN": ({"plain_server": 1}, PLAIN_CLIENT),
        "CURVE": (
            {"curve_server": 1, "curve_secretkey": secret},
            {"curve_serverkey": public, "curve_publickey": public, "curve_secretkey": secret},
        ),
    }[mechanism]
    with handler(zmq, context, lambda request: spoil(verdict(b"200")(request))):
        pull, handshakes = bound(zmq, context, zmq.PULL, **options)
        connected(zmq, context, zmq.PUSH, pull.last_endpoint, **client)
        assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL, code)
        assert not pull.poll(0)


def test_without_a_handler(zmq, context):
    """NULL and CURVE let everybody in, unless a handler is insisted on; PLAIN nobody."""
    public, secret = zmq.curve_keypair()
    keys = {"curve_publickey": public, "curve_secretkey": secret}
    curve = {"curve_server": 1, **keys}
    client = {"curve_serverkey": public, **keys}
    enforced = {"zap_domain": b"x", "zap_enforce_domain": 1}
    for options, settings, passes in [
        ({"zap_domain": b"x"}, {}, True),
        (enforced, {}, False),
        (curve, client, True),
        ({**curve, **enforced}, client, False),
        ({"plain_server": 1}, PLAIN_CLIENT, False),
    ]:
        pull, handshakes = bound(zmq, context, zmq.PULL, **options)
        push = connected(zmq, context, zmq.PUSH, pull.last_endpoint, **settings)
        event, value = handshakes.next()
        if passes:
            assert event == zmq.EVENT_HANDSHAKE_SUCCEEDED
        else:
            assert (event, value) == (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EFAULT)
        push.close()
        pull.close()


@pytest.mark.zeroxide_only
def test_a_handler_that_dies_lets_nobody_in(zmq, context):
    """Whoever waits for its answer is refused at once, and the next handler is asked."""
    with handler(zmq, context, lambda request: None):
        pull, handshakes = bound(zmq, context, zmq.PULL, plain_server=1)
        push = connected(zmq, context, zmq.PUSH, pull.last_endpoint, **PLAIN_CLIENT)
    assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EFAULT)
    with handler(zmq, context, verdict(b"200")):
        push.send(b"hello")
        assert pull.recv() == b"hello"


def test_a_handler_that_sleeps_lets_nobody_in(zmq, context):
    with context.socket(zmq.REP) as sleeper:
        sleeper.linger = 0
        sleeper.bind(HANDLER)
        pull, handshakes = bound(zmq, context, zmq.PULL, plain_server=1, handshake_ivl=100)
        connected(zmq, context, zmq.PUSH, pull.last_endpoint, **PLAIN_CLIENT)
        event, _ = handshakes.next()
        assert event == zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        assert not pull.poll(0)


@pytest.mark.zeroxide_only
def test_a_named_peer_of_req(zmq, context):
    """A User-Id does no harm to the pattern, whichever side asks."""
    public, secret = zmq.curve_keypair()
    keys = {"curve_publickey": public, "curve_secretkey": secret}
    with handler(zmq, context, verdict(b"200", b"alice")):
        req, _ = bound(zmq, context, zmq.REQ, curve_server=1, **keys)
        rep = connected(zmq, context, zmq.REP, req.last_endpoint, curve_serverkey=public, **keys)
        req.send(b"question")
        assert rep.recv() == b"question"
        rep.send(b"answer")
        frame = req.recv(copy=False)
        assert (frame.bytes, frame["User-Id"]) == (b"answer", "alice")


# ---- somebody in the middle ---------------------------------------------------------------


class Middle:
    """Forwards a tcp connection, and does to its bytes what `spoil` says.

    `spoil` gets the direction ("up" to the server, "down" from it), how many bytes have
    gone that way, and the next ones; it returns those to be sent instead.
    """

    def __init__(self, endpoint, spoil):
        host, port = endpoint.decode().removeprefix("tcp://").split(":")
        self._server = (host, int(port))
        self._spoil = spoil
        self._listener = tcp.create_server((host, 0))
        self.endpoint = "tcp://{}:{}".format(*self._listener.getsockname())
        self._streams = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = tcp.create_connection(self._server)
                self._streams += [near, far]
                for source, sink, direction in ((near, far, "up"), (far, near, "down")):
                    arguments = (source, sink, direction)
                    threading.Thread(target=self._forward, args=arguments, daemon=True).start()

    def _forward(self, source, sink, direction):
        gone = 0
        with contextlib.suppress(OSError):
            while chunk := source.recv(1 << 16):
                sink.sendall(self._spoil(direction, gone, chunk))
                gone += len(chunk)
            sink.shutdown(tcp.SHUT_WR)

    def close(self):
        self._listener.close()
        for stream in self._streams:
            with contextlib.suppress(OSError):
                stream.shutdown(tcp.SHUT_RDWR)
            stream.close()


@pytest.fixture
def middle():
    made = []

    def make(endpoint, spoil):
        made.append(Middle(endpoint, spoil))
        return made[-1].endpoint

    yield make
    for each in made:
        each.close()


@pytest.fixture
def curve(zmq):
    """What a CURVE server sets, and what its client."""
    public, secret = zmq.curve_keypair()
    mine, my_secret = zmq.curve_keypair()
    return (
        {"curve_server": 1, "curve_secretkey": secret},
        {"curve_serverkey": public, "curve_publickey": mine, "curve_secretkey": my_secret},
    )


def untouched(direction, gone, chunk):
    return chunk


def test_whoever_only_listens_learns_nothing(zmq, context, curve, middle):
    heard = []

    def listen(direction, gone, chunk):
        heard.append(chunk)
        return chunk

    server, client = curve
    pull, _ = bound(zmq, context, zmq.PULL, **server)
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, listen), **client)
    secret = b"nobody must know this " * 10
    push.send(secret)
    assert pull.recv() == secret
    assert b"nobody" not in b"".join(heard)


# Where the mechanism is in a greeting, and the version.
MECHANISM, VERSION = slice(12, 32), 10


@pytest.mark.parametrize("forged", ["NULL", "PLAIN", "ZMTP 2"])
def test_nobody_is_talked_out_of_security(zmq, context, curve, middle, forged):
    """Greetings forged on their way to either side."""

    def forge(direction, gone, chunk):
        chunk = bytearray(chunk)
        for place in range(gone, gone + len(chunk)):
            if forged == "ZMTP 2" and place == VERSION:
                chunk[place - gone] = 1
            elif forged != "ZMTP 2" and MECHANISM.start <= place < MECHANISM.stop:
                name = forged.encode().ljust(20, b"\0")
                chunk[place - gone] = name[place - MECHANISM.start]
        return bytes(chunk)

    server, client = curve
    pull, handshakes = bound(zmq, context, zmq.PULL, **server)
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, forge), **client)
    push.send(b"secret")
    event, _ = handshakes.next()
    assert event & (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    assert not pull.poll(50)


def frames_of(stream):
    """The whole ZMTP frames at the beginning of some bytes: where each begins and ends."""
    at = 64
    while at + 2 <= len(stream):
        if stream[at] & 2:
            if at + 9 > len(stream):
                return
            end = at + 9 + int.from_bytes(stream[at + 1 : at + 9], "big")
        else:
            end = at + 2 + stream[at + 1]
        if end > len(stream):
            return
        yield at, end
        at = end


def test_a_message_counts_once(zmq, context, curve, middle):
    """What was recorded and is sent once more ends the connection."""
    stream = bytearray()
    repeated = threading.Event()

    def repeat(direction, gone, chunk):
        if direction == "up" and not repeated.is_set():
            stream.extend(chunk)
            whole = list(frames_of(stream))
            # HELLO, INITIATE, then the first message.
            if len(whole) >= 3:
                repeated.set()
                begin, end = whole[2]
                return chunk + bytes(stream[begin:end])
        return chunk

    server, client = curve
    pull, _ = bound(zmq, context, zmq.PULL, **server)
    monitor = pull.get_monitor_socket(zmq.EVENT_DISCONNECTED, f"inproc://replay-{next(_numbers)}")
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, repeat), **client)
    push.send(b"pay 100")
    assert pull.recv() == b"pay 100"
    assert monitor.poll(PATIENCE * 1000)
    assert not pull.poll(50)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("direction", ["up", "down"])
def test_no_byte_of_a_handshake_can_be_changed(zmq, context, curve, middle, direction):
    """One bit in each byte after the greeting, one connection for each."""
    server, client = curve
    # A greeting, HELLO and INITIATE one way; a greeting, WELCOME and READY the other.
    sent = {"up": bytearray(), "down": bytearray()}

    def record(way, gone, chunk):
        sent[way] += chunk
        return chunk

    pull, handshakes = bound(zmq, context, zmq.PULL, **server)
    probe = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, record), **client)
    probe.send(b"probe")
    assert pull.recv() == b"probe"
    assert handshakes.next()[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED
    [_, (_, handshake)] = list(itertools.islice(frames_of(sent[direction]), 2))
    probe.close()

    target = itertools.count(64)
    place = [0]

    def flip(way, gone, chunk):
        if way == direction and gone <= place[0] < gone + len(chunk):
            chunk = bytearray(chunk)
            chunk[place[0] - gone] ^= 1
        return bytes(chunk)

    endpoint = middle(pull.last_endpoint, flip)
    for place[0] in itertools.takewhile(lambda at: at < handshake, target):
        push = context.socket(zmq.PUSH)
        push.linger = 0
        push.handshake_ivl = 200
        # Once is enough.
        push.reconnect_ivl = -1
        for name, value in client.items():
            setattr(push, name, value)
        mine = Handshakes(zmq, push)
        push.connect(endpoint)
        event, _ = mine.next()
        # A byte that says how long a frame is makes the other side wait for more.
        assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED, place[0]
        push.close()
    assert not pull.poll(0)


@pytest.mark.zeroxide_only
def test_no_byte_of_a_message_can_be_changed(zmq, context, curve, middle):
    server, client = curve
    place = [None]
    stream = bytearray()

    def flip(way, gone, chunk):
        if way != "up":
            return chunk
        if gone == 0:
            stream.clear()
        begin = len(stream)
        stream.extend(chunk)
        whole = list(frames_of(stream))
        chunk = bytearray(chunk)
        if place[0] is not None and len(whole) >= 3:
            at = whole[2][0] + place[0] - begin
            if 0 <= at < len(chunk):
                chunk[at] ^= 0x10
        return bytes(chunk)

    pull, _ = bound(zmq, context, zmq.PULL, **server)
    endpoint = middle(pull.last_endpoint, flip)
    # Two bytes of header, 8 of name, 8 of nonce, 16 of tag, flags, 5 of body.
    for place[0] in range(2 + 8 + 8 + 16 + 1 + 5):
        push = context.socket(zmq.PUSH)
        push.linger = 0
        push.reconnect_ivl = -1
        for name, value in client.items():
            setattr(push, name, value)
        monitor = push.get_monitor_socket(
            zmq.EVENT_DISCONNECTED, f"inproc://flips-{next(_numbers)}"
        )
        push.connect(endpoint)
        push.send(b"hello")
        if place[0] == 1:
            # The length: it waits for a byte that does not come.
            eventually(lambda: len(list(frames_of(stream))) >= 3)
        else:
            assert monitor.poll(PATIENCE * 1000), place[0]
        push.close()
    assert not pull.poll(0)


# ---- one call -----------------------------------------------------------------------------


@pytest.fixture
def auth(zmq):
    if zmq.__name__ == "zmq":
        pytest.skip("pyzmq has nothing like it")
    return importlib.import_module(f"{zmq.__name__}.auth")


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
    _kept.append(client)
    return client


def until(handshakes, event):
    while (seen := handshakes.next())[0] != event:
        pass
    return seen


def test_a_list_can_change(zmq, context, auth):
    """Nobody at first; added, removed, and sent away, while the server runs."""
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
    # Taken off the list, a peer stays until it is sent away.
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

    _, bob_file = auth.create_certificates(directory, "b", {"name": "Bob"})
    _, bob_secret = auth.load_certificate(bob_file)
    bob = secure_client(zmq, context, server, public, bob_secret)
    assert until(handshakes, zmq.EVENT_HANDSHAKE_FAILED_AUTH)[1] == 400
    (directory / "alice.key").unlink()
    assert allowed.reload(disconnect=True) == 1
    bob.send(b"me too")
    assert server.recv(copy=False)["User-Id"] == "Bob"
    # A file that is none leaves the list as it is.
    (directory / "broken.key").write_text("curve\n")
    with pytest.raises(zmq.ZMQError, match=r"broken\.key"):
        allowed.reload()
    assert len(allowed) == 1


def test_anybody_who_knows_the_server(zmq, context, auth):
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
    """What carries no mechanism cannot be secured."""
    with context.socket(zmq.STREAM) as stream:
        stream.secure_server(zmq.curve_keypair()[1], "*")
        with pytest.raises(zmq.ZMQError, match="anybody could connect"):
            stream.bind("tcp://127.0.0.1:*")


def test_mechanism_changed_behind_the_back(zmq, context, auth):
    """A secured socket never lets in by other means."""
    server = context.socket(zmq.PULL)
    server.secure_server(zmq.curve_keypair()[1], "*")
    server.curve_server = 0
    with pytest.raises(zmq.ZMQError, match="a list says who may come in"):
        server.bind("tcp://127.0.0.1:*")


def test_what_is_no_list(zmq, context, auth):
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


# ---- reasons ------------------------------------------------------------------------------


@pytest.mark.zeroxide_only
def test_events_say_why(zmq, context, curve, middle, auth):
    """Each kind of refusal, in words."""
    server, client = curve
    failed = (
        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    )

    def reason(options, settings, ours=True):
        """What the first failure of a handshake is about, as the server or the client sees it."""
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        for socket, values in ((pull, options), (push, settings)):
            socket.linger = 0
            for name, value in values.items():
                setattr(socket, name, value)
        events = (pull if ours else push).monitor_events(failed)
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        event = events.recv(timeout=PATIENCE * 1000)
        push.close()
        pull.close()
        return event.reason

    plain = {"plain_server": 1}
    assert reason(server, {}) == 'expected mechanism CURVE, the peer uses "NULL"'
    assert reason(server, {}, ours=False) == 'expected mechanism NULL, the peer uses "CURVE"'
    assert (
        reason(plain, PLAIN_CLIENT)
        == "expected an authenticator to check PLAIN credentials, there is none"
    )
    wrong = {**client, "curve_serverkey": client["curve_publickey"]}
    assert "HELLO" in reason(server, wrong)
    with handler(zmq, context, verdict(b"400")):
        expected = "the ZAP handler refuses 127.0.0.1 with 400: because"
        assert reason(plain, PLAIN_CLIENT) == expected
        assert "400" in reason(plain, PLAIN_CLIENT, ours=False)
    with handler(zmq, context, lambda request: [b""]):
        assert "a reply has an empty frame and six more" in reason(plain, PLAIN_CLIENT)
    with context.socket(zmq.REP) as sleeper:
        sleeper.bind(HANDLER)
        expected = "the ZAP handler has not answered within the handshake interval"
        assert reason({**plain, "handshake_ivl": 50}, PLAIN_CLIENT) == expected
