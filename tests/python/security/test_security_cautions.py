"""Security settings that are probably mistakes: plain-text passwords on a network, keys of two pairs."""

import warnings

import pytest
from support import PATIENCE, run_script

pytestmark = pytest.mark.zeroxide_only

SCRIPT = """
import sys
import warnings

import zeroxide as zmq
import zeroxide.asyncio

warnings.simplefilter("always")
how = sys.argv[1]
context = zmq.asyncio.Context() if how == "asyncio" else zmq.Context()


def told(side, *endpoints):
    socket = context.socket(zmq.REP if side == "server" else zmq.REQ)
    if side == "server":
        socket.plain_server = True
    else:
        socket.plain_username, socket.plain_password = b"alice", b"wonderland"
    socket.ipv6 = side == "client"
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for endpoint in endpoints:
            socket.bind(endpoint) if side == "server" else socket.connect(endpoint)
    socket.close(0)
    return [(str(one.message), one.filename == "<string>") for one in seen]


secure = context.socket(zmq.REP)
secure.bind("tcp://*:*")  # not PLAIN
assert told("server", "tcp://127.0.0.1:*", "inproc://here") == []
assert told("client", "tcp://127.0.0.1:9", "tcp://localhost:9", "tcp://[::1]:9") == []
if how == "client":
    [(text, here)] = told("client", "tcp://192.0.2.1:9", "tcp://192.0.2.2:9")
    assert "PLAIN at tcp://192.0.2.1:9" in text
else:
    [(text, here)] = told("server", "tcp://*:*", "tcp://*:*")
    assert "PLAIN at tcp://*:*" in text
assert "CURVE" in text and here
assert told("server", "tcp://*:*") == []
context.destroy(linger=0)
"""


@pytest.mark.parametrize("how", ["server", "client", "asyncio"])
def test_plain_text_passwords_to_another_machine_warn_once(how):
    run_script("zeroxide", SCRIPT, how)


@pytest.mark.parametrize("call", ["bind", "connect"])
def test_a_warning_that_raises_comes_before_anything_is_bound(zmq, context, monkeypatch, call):
    cautions = pytest.importorskip("zeroxide._cautions")
    monkeypatch.setattr(cautions, "_has_warned_of_plain", False)
    with context.socket(zmq.PULL) as socket, warnings.catch_warnings():
        warnings.simplefilter("error")
        socket.plain_server = True
        with pytest.raises(RuntimeWarning, match="PLAIN at"):
            getattr(socket, call)("tcp://192.0.2.1:9" if call == "connect" else b"tcp://*:*")
        assert socket.last_endpoint == b""
        socket.bind("tcp://lo:*")


def test_keys_of_two_pairs_warn(zmq, context):
    (public, secret), (other, _) = zmq.curve_keypair(), zmq.curve_keypair()
    with context.socket(zmq.REQ) as socket:
        socket.curve_serverkey, socket.curve_secretkey = other, secret
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            socket.connect("tcp://127.0.0.1:9")
            socket.curve_publickey = public
            socket.connect("tcp://127.0.0.1:9")
        socket.curve_publickey = other
        events = socket.monitor_events(zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
        with context.socket(zmq.REP) as server:
            server.curve_server, server.curve_secretkey = True, secret
            server.bind("tcp://127.0.0.1:*")
            with pytest.warns(RuntimeWarning, match="curve_publickey does not belong"):
                socket.connect(server.last_endpoint.decode())
            reason = events.recv(timeout=PATIENCE * 1000).reason
        assert "the public key does not belong to the secret key" in reason
