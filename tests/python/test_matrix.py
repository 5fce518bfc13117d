"""Every pair of socket types, on every transport, either side binding."""

import pytest
from patterns import ORDERED_PAIRS, converse, prepare


@pytest.mark.parametrize(("bound", "connected"), ORDERED_PAIRS)
def test_pair(zmq, sockets, transport, bound, connected):
    one = sockets.context.socket(getattr(zmq, bound))
    other = sockets.context.socket(getattr(zmq, connected))
    prepare(zmq, one, other)
    one.bind(sockets.endpoint(transport))
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
