"""tls+tcp: sockets over TLS, with each other and with the ssl module of Python as the peer."""

import asyncio
import contextlib
import importlib
import socket as system
import ssl

import pytest
from certificates import Authority
from support import PATIENCE, Background
from test_lent import Peer
from test_socks import Proxy

pytestmark = pytest.mark.zeroxide_only

READY = b"\x05READY\x0bSocket-Type\x00\x00\x00\x04"


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    """The certificate of the server, and its key."""
    return authority.issue("server", "DNS:localhost", "DNS:collector.example", "IP:127.0.0.1")


@pytest.fixture
def bound(context, identity):
    """Makes a bound socket. Returns it with its endpoint."""

    def make(kind, **options):
        certificate, key = identity
        socket = context.socket(kind)
        socket.tls_certificate, socket.tls_key = bytes(certificate), bytes(key)
        for name, value in options.items():
            setattr(socket, name, value)
        return socket, socket.bind("tls+tcp://127.0.0.1:*").addr

    return make


@pytest.fixture
def connected(context, authority):
    def make(kind, endpoint, **options):
        socket = context.socket(kind)
        socket.tls_ca = bytes(authority.certificate)
        socket.reconnect_ivl = 1
        for name, value in options.items():
            setattr(socket, name, value)
        socket.connect(endpoint)
        return socket

    return make


def port_of(endpoint):
    return int(endpoint.rpartition(":")[2])


def read(stream, count):
    data = b""
    while len(data) < count:
        more = stream.recv(count - len(data))
        assert more, "the connection has ended"
        data += more
    return data


def shake_hands(stream, kind):
    """ZMTP's handshake of a raw peer."""
    stream.sendall(Peer.GREETING + Peer.frame(4, READY + kind))
    read(stream, 64)
    _, size = read(stream, 2)
    read(stream, size)


def test_there_is_tls(zmq):
    assert zmq.has("tls") and zmq.has("tls+tcp")
    assert not zmq.has("TLS")


def test_options_are_files_or_their_contents(zmq, context, authority, identity):
    certificate, key = (path.read_bytes() for path in identity)
    with context.socket(zmq.REP) as rep, context.socket(zmq.REQ) as req:
        rep.tls_certificate = key + certificate
        endpoint = rep.bind("tls+tcp://localhost:*").addr
        assert endpoint.startswith("tls+tcp://127.0.0.1:")
        req.tls_ca = authority.certificate.read_bytes()
        req.connect(endpoint.replace("127.0.0.1", "localhost"))
        for size in [0, 1, 100_000, 5_000_000]:
            req.send(b"x" * size)
            assert len(rep.recv()) == size
            rep.send(b"thanks")
            assert req.recv() == b"thanks"


def test_asyncio(zmq, authority, identity):
    aio = importlib.import_module("zeroxide.asyncio")

    async def run():
        context = aio.Context()
        context.tls_certificate, context.tls_key = map(bytes, identity)
        pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
        endpoint = pull.bind("tls+tcp://127.0.0.1:*").addr
        push.tls_ca = bytes(authority.certificate)
        push.connect(endpoint)
        sending = asyncio.gather(*[push.send(b"%d" % number * 3000) for number in range(100)])
        for number in range(100):
            assert await asyncio.wait_for(pull.recv(), PATIENCE) == b"%d" % number * 3000
        await sending
        context.destroy(linger=0)

    asyncio.run(run())


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_python_as_the_client(zmq, bound, authority, version):
    pull, endpoint = bound(zmq.PULL, tls_alpn=b"zmtp,http/1.1")
    events = pull.monitor_events(zmq.EVENT_DISCONNECTED)
    tls = ssl.create_default_context(cafile=authority.certificate)
    tls.minimum_version = tls.maximum_version = version
    tls.set_alpn_protocols(["h2", "zmtp"])
    address = ("127.0.0.1", port_of(endpoint))
    with (
        system.create_connection(address, timeout=PATIENCE) as plain,
        tls.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        assert stream.selected_alpn_protocol() == "zmtp"
        shake_hands(stream, b"PUSH")
        stream.sendall(b"".join(Peer.frame(0, b"%d" % number) for number in range(50)))
        for number in range(50):
            assert pull.recv() == b"%d" % number
        # A large message in many records.
        body = bytes(3_000_000)
        stream.sendall(b"\x02" + len(body).to_bytes(8, "big") + body)
        assert pull.recv() == body
        # The farewell of TLS ends the connection, although TCP goes on.
        stream.settimeout(PATIENCE)
        with contextlib.suppress(ssl.SSLError, OSError):
            stream.unwrap()
        assert events.recv(timeout=PATIENCE * 1000) is not None
    events.close()


def test_python_as_the_server(zmq, connected, authority, identity):
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=authority.certificate)
    tls.load_cert_chain(*identity)
    tls.verify_mode = ssl.CERT_REQUIRED
    asked = []
    tls.sni_callback = lambda stream, name, context: asked.append(name)
    certificate, key = authority.issue("alice", "DNS:alice")
    with system.create_server(("127.0.0.1", 0)) as listener:
        endpoint = f"tls+tcp://localhost:{listener.getsockname()[1]}"
        push = connected(zmq.PUSH, endpoint, tls_certificate=bytes(certificate), tls_key=bytes(key))
        plain, _ = listener.accept()
        with tls.wrap_socket(plain, server_side=True) as stream:
            names = dict(stream.getpeercert()["subjectAltName"])
            assert names == {"DNS": "alice"}
            assert asked == ["localhost"]
            shake_hands(stream, b"PULL")
            push.send(b"news")
            assert read(stream, 6) == b"\0\4news"
            # Closing says farewell, so that the peer knows that nothing was cut off.
            push.close(linger=None)
            assert stream.recv(1) == b""


def test_both_sides_learn_why(zmq, context, bound, connected, tmp_path_factory):
    stranger = Authority(tmp_path_factory.mktemp("stranger"))
    kind = zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    rep, endpoint = bound(zmq.REP)
    theirs = rep.monitor_events(kind)
    req = context.socket(zmq.REQ)
    ours = req.monitor_events(kind)
    req.tls_ca = bytes(stranger.certificate)
    req.connect(endpoint)
    event = ours.recv(timeout=PATIENCE * 1000)
    assert event.endpoint == endpoint
    assert "the server 127.0.0.1 is not from a CA that is trusted here" in event.reason
    assert "the client does not trust the CA" in theirs.recv(timeout=PATIENCE * 1000).reason
    # Unless the program says that it does not want to know.
    careless = connected(zmq.REQ, endpoint, tls_ca=b"", tls_verify=0)
    careless.send(b"hello")
    assert rep.recv() == b"hello"
    for events in (ours, theirs):
        events.close()


def test_the_systems_certificates_count_by_default(zmq, bound, connected, authority, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.certificate))
    rep, endpoint = bound(zmq.REP)
    req = connected(zmq.REQ, endpoint, tls_ca=b"")
    req.send(b"hello")
    assert rep.recv() == b"hello"


def test_tls_carries_websocket(zmq, context, authority, identity):
    assert zmq.has("WS") and zmq.has("WSS")
    with context.socket(zmq.REP) as rep, context.socket(zmq.REQ) as req:
        rep.wss_cert_pem, rep.wss_key_pem = (path.read_bytes() for path in identity)
        endpoint = rep.bind("wss://127.0.0.1:*/feed").addr
        req.wss_trust_pem = authority.certificate.read_bytes()
        req.connect(endpoint)
        for size in [0, 1, 100_000, 5_000_000]:
            req.send(b"x" * size)
            assert len(rep.recv()) == size
            rep.send(b"thanks")
            assert req.recv() == b"thanks"


def test_a_proxy_connects_and_cannot_listen(zmq, bound, connected):
    pull, endpoint = bound(zmq.PULL)
    proxy = Proxy(port_of(endpoint))
    with contextlib.closing(proxy):
        push = connected(
            zmq.PUSH, "tls+tcp://collector.example:5555", socks_proxy=proxy.endpoint.encode()
        )
        push.send(b"through")
        assert pull.recv() == b"through"
        assert proxy.asked.get(timeout=PATIENCE) == (3, b"collector.example", 5555)


def test_mistakes_name_the_option(zmq, context):
    with context.socket(zmq.REP) as rep:
        with pytest.raises(zmq.ZMQError, match="a socket that binds needs TLS_CERTIFICATE"):
            rep.bind("tls+tcp://127.0.0.1:*")
        rep.tls_ca = b"/no/such/ca.pem"
        with pytest.raises(zmq.ZMQError, match=r"TLS_CA /no/such/ca\.pem") as caught:
            rep.connect("tls+tcp://localhost:5555")
        assert caught.value.errno == 2


def test_closing_waits_for_no_handshake(zmq, context, authority):
    """A server that accepts and says nothing."""
    with system.create_server(("127.0.0.1", 0)) as listener:
        push = context.socket(zmq.PUSH)
        push.tls_ca = bytes(authority.certificate)
        push.connect(f"tls+tcp://127.0.0.1:{listener.getsockname()[1]}")
        listener.accept()
        push.send(b"never")
        Background(context.destroy, linger=0).result()
