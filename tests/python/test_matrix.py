"""Every pair of socket types, on every transport, either side binding."""

import pytest
from certificates import Authority
from patterns import ORDERED_PAIRS, converse, prepare

a_cell = pytest.mark.cell(transport="{transport}", types="{bound} {connected}", peer="zeroxide")


@a_cell
@pytest.mark.parametrize(("bound", "connected"), ORDERED_PAIRS)
def test_pair(zmq, sockets, transport, bound, connected):
    one = sockets.context.socket(getattr(zmq, bound))
    other = sockets.context.socket(getattr(zmq, connected))
    prepare(zmq, one, other)
    one.bind(sockets.endpoint(transport))
    other.connect(one.last_endpoint.decode())
    converse(zmq, one, other)


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server", "IP:127.0.0.1")


@a_cell
@pytest.mark.zeroxide_only
@pytest.mark.parametrize("transport", ["ws", "tls+tcp", "wss"])
@pytest.mark.parametrize(("bound", "connected"), ORDERED_PAIRS)
def test_pair_over_layers(zmq, context, authority, identity, transport, bound, connected):
    one, other = (context.socket(getattr(zmq, kind)) for kind in (bound, connected))
    one.tls_certificate, one.tls_key = map(bytes, identity)
    other.tls_ca = bytes(authority.certificate)
    prepare(zmq, one, other)
    one.bind(f"{transport}://127.0.0.1:*")
    other.connect(one.last_endpoint.decode())
    converse(zmq, one, other)


@pytest.mark.parametrize(
    ("bound", "connected"), [("PUSH", "PUB"), ("REQ", "DEALER"), ("PAIR", "PULL"), ("SUB", "SUB")]
)
def test_incompatible_types(zmq, sockets, transport, bound, connected):
    """Incompatible sockets exchange no messages, and a compatible peer is still served."""
    if transport == "inproc":
        pytest.skip("is refused at once, if at all")
    fitting = {"PUSH": "PULL", "REQ": "REP", "PAIR": "PAIR", "SUB": "PUB"}[bound]
    one = sockets.bound(getattr(zmq, bound), transport)
    unfit = sockets.connected(getattr(zmq, connected), one)
    converse(zmq, one, sockets.connected(getattr(zmq, fitting), one))
    assert not unfit.closed


@pytest.mark.zeroxide_only
def test_incompatible_types_within_a_process(zmq, sockets):
    pull = sockets.bound(zmq.PULL, "inproc")
    with sockets.context.socket(zmq.SUB) as sub:
        with pytest.raises(zmq.ZMQError) as caught:
            sub.connect(pull.last_endpoint.decode())
        assert caught.value.errno == zmq.ENOCOMPATPROTO
