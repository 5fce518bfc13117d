"""ZAP handlers of every kind: their replies, and missing replies."""

import struct

import pytest
from peers import HANDLER, PLAIN_CLIENT, Handshakes, bound, connected, handler, verdict


@pytest.mark.parametrize("kind", ["REP", "ROUTER"])
def test_a_handler_accepts_a_peer(zmq, context, kind):
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
def test_the_client_gets_an_event(zmq, context):
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
    """NULL and CURVE accept every peer, unless a handler is required; PLAIN accepts none."""
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
def test_a_handler_that_dies_accepts_no_peer(zmq, context):
    """Peers that wait for its reply are refused at once, and the next handler is asked."""
    with handler(zmq, context, lambda request: None):
        pull, handshakes = bound(zmq, context, zmq.PULL, plain_server=1)
        push = connected(zmq, context, zmq.PUSH, pull.last_endpoint, **PLAIN_CLIENT)
    assert handshakes.next() == (zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, zmq.EFAULT)
    with handler(zmq, context, verdict(b"200")):
        push.send(b"hello")
        assert pull.recv() == b"hello"


def test_a_handler_that_sleeps_accepts_no_peer(zmq, context):
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
    """A User-Id does not affect the pattern, whichever side sends the request."""
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
