"""The scalability protocols against nng, through pynng: every pair of types, either side binding, on each stream transport."""

import asyncio
import errno
import importlib
import itertools
import threading

import pytest
from certificates import Authority
from remote_nng import RemoteNng
from sp_pairs import THEY_SPEAK, WE_SPEAK
from support import PATIENCE, eventually

pynng = pytest.importorskip("pynng")

# nng sends frames of up to 64 KiB over ws, so the last ones are in pieces.
BODIES = [b"", b"x", b"y" * 65, b"z" * 66, b"v" * 300, b"w" * 70_000, b"u" * 900_000]

each_way = pytest.mark.parametrize(
    ("transport", "we_bind"),
    list(itertools.product(["tcp", "ipc", "ws", "tls+tcp", "wss"], [True, False])),
    ids=lambda value: {True: "we bind", False: "they bind"}.get(value, value),
)
a_cell = pytest.mark.cell(transport="{transport}", types="{ours} {theirs}", peer="nng", sp=True)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    """The certificate of either server, and its key."""
    return authority.issue("server", "DNS:localhost", "IP:127.0.0.1")


@pytest.fixture
def secured(request):
    """Gives two sockets what they need for TLS, if the transport has it."""

    def secure(ours, theirs, transport, *, we_bind):
        if transport != "tls+tcp":
            return
        authority = request.getfixturevalue("authority")
        certificate, key = request.getfixturevalue("identity")
        if we_bind:
            ours.tls_certificate, ours.tls_key = bytes(certificate), bytes(key)
            theirs.tls_config = pynng.TLSConfig(
                pynng.TLSConfig.MODE_CLIENT,
                server_name="localhost",
                ca_string=authority.certificate.read_text(),
                auth_mode=pynng.TLSConfig.AUTH_MODE_REQUIRED,
            )
        else:
            ours.tls_ca = bytes(authority.certificate)
            theirs.tls_config = pynng.TLSConfig(
                pynng.TLSConfig.MODE_SERVER,
                own_cert_string=certificate.read_text(),
                own_key_string=key.read_text(),
            )

    return secure


@pytest.fixture
def nng():
    """Makes sockets of nng."""
    made = []

    def make(name, **options):
        patience = int(PATIENCE * 1000)
        socket = getattr(pynng, f"{name.title()}0")(
            recv_timeout=patience, send_timeout=patience, **options
        )
        made.append(socket)
        if name == "SUB":
            socket.subscribe(b"")
        return socket

    yield make
    for socket in made:
        socket.close()


@pytest.fixture
def pair(zmq, sockets, transport, request):
    """Makes our socket and one of nng, connected."""

    def make(ours, theirs, *, we_bind):
        one = speaking(zmq, sockets, ours)
        if transport in ("ws", "wss"):
            return one, request.getfixturevalue("remote")(one, theirs, transport, we_bind=we_bind)
        other = request.getfixturevalue("nng")(theirs)
        request.getfixturevalue("secured")(one, other, transport, we_bind=we_bind)
        connect(sockets, one, other, transport, we_bind=we_bind)
        return one, other

    return make


@pytest.fixture
def remote(authority, identity):
    """Makes sockets of nng in another process, which are connected to ours over WebSocket."""
    with RemoteNng() as process:

        def make(ours, name, scheme, *, we_bind, path="/path"):
            theirs = process.socket(name, PATIENCE)
            is_secure = scheme == "wss"
            if we_bind:
                if is_secure:
                    ours.tls_certificate, ours.tls_key = map(bytes, identity)
                ours.bind(f"{scheme}://127.0.0.1:*{path}")
                signed = authority.certificate.read_text() if is_secure else None
                theirs.dial(ours.last_endpoint.decode(), signed)
            else:
                if is_secure:
                    ours.tls_ca = bytes(authority.certificate)
                own = [file.read_text() for file in identity] if is_secure else None
                place = theirs.listen(f"{scheme}://127.0.0.1:0{path}", own)
                ours.connect(f"{scheme}://{place}{path}")
            ours.wait_connected(timeout=PATIENCE * 1000)
            theirs.meet()
            return theirs

        yield make


def speaking(zmq, sockets, name):
    """Our socket of this type."""
    socket = sockets.context.socket(getattr(zmq, name))
    socket.wire_protocol = zmq.SP
    if name == "SUB":
        socket.subscribe(b"")
    return socket


def endpoint(sockets, transport):
    return sockets.endpoint("ipc") if transport == "ipc" else f"{transport}://127.0.0.1:*"


def connect(sockets, ours, theirs, transport, *, we_bind):
    """Connects the two, and waits until both know it."""
    met = threading.Event()
    theirs.add_post_pipe_connect_cb(lambda _: met.set())
    if we_bind:
        ours.bind(endpoint(sockets, transport))
        theirs.dial(ours.last_endpoint.decode(), block=True)
    else:
        address = endpoint(sockets, transport).replace(":*", ":0")
        listener = theirs.listen(address)
        if transport != "ipc":
            address = address.replace("127.0.0.1:0", str(listener.local_address))
        ours.connect(address)
    ours.wait_connected(timeout=PATIENCE * 1000)
    assert met.wait(PATIENCE)


@a_cell
@each_way
@pytest.mark.parametrize(("ours", "theirs", "answers"), WE_SPEAK)
def test_we_speak_to_nng(pair, ours, theirs, answers, we_bind):
    one, other = pair(ours, theirs, we_bind=we_bind)
    # pynng cannot return an empty message.
    for body in BODIES[1:]:
        one.send(body)
        assert other.recv() == body
        if answers:
            other.send(body + b"!")
            assert one.recv() == body + b"!"


@a_cell
@each_way
@pytest.mark.parametrize(("ours", "theirs", "answers"), THEY_SPEAK)
def test_nng_speaks_to_us(pair, ours, theirs, answers, we_bind):
    one, other = pair(ours, theirs, we_bind=we_bind)
    for body in BODIES:
        other.send(body)
        assert one.recv() == body
        if answers:
            one.send(body + b"!")
            assert other.recv() == body + b"!"


@pytest.mark.parametrize("transport", ["tcp", "ipc"])
def test_a_survey_of_many_respondents_of_nng(zmq, sockets, nng, transport):
    surveyor = speaking(zmq, sockets, "SURVEYOR")
    respondents = [nng("RESPONDENT") for _ in range(3)]
    surveyor.bind(endpoint(sockets, transport))
    for respondent in respondents:
        respondent.dial(surveyor.last_endpoint.decode(), block=True)
    surveyor.wait_connected(count=3, timeout=PATIENCE * 1000)
    surveyor.send(b"who?")
    for number, respondent in enumerate(respondents):
        assert respondent.recv() == b"who?"
        respondent.send(b"%d" % number)
    assert {surveyor.recv() for _ in respondents} == {b"0", b"1", b"2"}


@pytest.mark.parametrize("we_bind", [True, False], ids=["we bind", "they bind"])
def test_ws_without_a_path(zmq, sockets, remote, we_bind):
    one = speaking(zmq, sockets, "PAIR")
    other = remote(one, "PAIR", "ws", we_bind=we_bind, path="")
    one.send(b"x")
    assert other.recv() == b"x"


def test_an_answer_that_comes_too_late(zmq, sockets, nng):
    surveyor, respondent = speaking(zmq, sockets, "SURVEYOR"), nng("RESPONDENT")
    surveyor.survey_timeout = 20
    connect(sockets, surveyor, respondent, "tcp", we_bind=True)
    surveyor.send(b"1?")
    with pytest.raises(zmq.ZMQError, match="SURVEY_TIMEOUT is 20 ms") as caught:
        surveyor.recv()
    assert caught.value.errno == errno.ETIMEDOUT
    assert respondent.recv() == b"1?"
    respondent.send(b"late")
    eventually(lambda: surveyor.stats()["dropped"]["stale"] == 1)
    surveyor.survey_timeout = int(PATIENCE * 1000)
    surveyor.send(b"2?")
    assert respondent.recv() == b"2?"
    respondent.send(b"in time")
    assert surveyor.recv() == b"in time"
    assert surveyor.stats()["dropped"]["stale"] == 1


def test_a_survey_of_nng_that_we_do_not_answer(zmq, sockets, nng):
    respondent, surveyor = speaking(zmq, sockets, "RESPONDENT"), nng("SURVEYOR", survey_time=20)
    connect(sockets, respondent, surveyor, "tcp", we_bind=False)
    for _ in range(2):
        surveyor.send(b"anyone?")
        assert respondent.recv() == b"anyone?"
        with pytest.raises(pynng.Timeout):
            surveyor.recv()


def test_a_subscriber_of_nng_filters(zmq, sockets, nng):
    publisher, subscriber = speaking(zmq, sockets, "PUB"), nng("SUB")
    subscriber.unsubscribe(b"")
    subscriber.subscribe(b"a")
    connect(sockets, publisher, subscriber, "tcp", we_bind=True)
    for body in (b"a1", b"b1", b"a2"):
        publisher.send(body)
    assert [subscriber.recv(), subscriber.recv()] == [b"a1", b"a2"]


def test_we_filter_what_nng_publishes(zmq, sockets, nng):
    subscriber, publisher = speaking(zmq, sockets, "SUB"), nng("PUB")
    subscriber.unsubscribe(b"")
    subscriber.subscribe(b"a")
    connect(sockets, subscriber, publisher, "tcp", we_bind=True)
    for body in (b"a1", b"b1", b"a2"):
        publisher.send(body)
    assert [subscriber.recv(), subscriber.recv()] == [b"a1", b"a2"]


def test_a_request_moves_on_when_nng_leaves(zmq, sockets, nng):
    req, leaving, staying = speaking(zmq, sockets, "REQ"), nng("REP"), nng("REP")
    connect(sockets, req, leaving, "tcp", we_bind=True)
    req.send(b"?")
    assert leaving.recv() == b"?"
    leaving.close()
    staying.dial(req.last_endpoint.decode(), block=True)
    assert staying.recv() == b"?"
    staying.send(b"!")
    assert req.recv() == b"!"


def test_a_request_of_nng_is_sent_again(zmq, sockets, nng):
    silent, answering = speaking(zmq, sockets, "REP"), speaking(zmq, sockets, "REP")
    req = nng("REQ", resend_time=50)
    for rep in (silent, answering):
        connect(sockets, rep, req, "tcp", we_bind=True)
    req.send(b"?")
    first = zmq.Poller()
    first.register(silent, zmq.POLLIN)
    first.register(answering, zmq.POLLIN)
    [(asked, _)] = first.poll(PATIENCE * 1000)
    other = answering if asked is silent else silent
    assert asked.recv() == other.recv() == b"?"
    other.send(b"!")
    assert req.recv() == b"!"


def test_a_connection_is_made_again(zmq, sockets, nng, directory):
    address = f"ipc://{directory}/again"
    push = speaking(zmq, sockets, "PUSH")
    events = push.monitor_events(zmq.EVENT_DISCONNECTED, timeout=PATIENCE * 1000)
    push.connect(address)
    for body in (b"1", b"2"):
        pull = nng("PULL", listen=address)
        push.send(body)
        assert pull.recv() == body
        pull.close()
        assert next(events).kind is zmq.Event.DISCONNECTED


def test_other_types_are_refused(zmq, sockets, nng):
    push, rep = speaking(zmq, sockets, "PUSH"), nng("REP")
    listener = rep.listen("tcp://127.0.0.1:0")
    kind = zmq.Event.HANDSHAKE_FAILED_PROTOCOL
    with push.monitor_events(kind, timeout=PATIENCE * 1000) as events:
        push.connect(f"tcp://{listener.local_address}")
        assert 'a PUSH socket cannot talk to a "REP" socket' in next(events).reason


def test_requests_of_asyncio(zmq, nng):
    zmq_asyncio = importlib.import_module(f"{zmq.__name__}.asyncio")

    async def main():
        with zmq_asyncio.Context() as context, context.socket(zmq.REQ) as req:
            req.wire_protocol = zmq.SP
            rep = nng("REP")
            listener = rep.listen("tcp://127.0.0.1:0")
            req.connect(f"tcp://{listener.local_address}")
            for n in range(20):
                await req.send(b"%d" % n)
                await rep.asend(await rep.arecv() + b"!")
                assert await req.recv() == b"%d!" % n

    asyncio.run(main())
