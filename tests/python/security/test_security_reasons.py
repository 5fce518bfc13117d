"""The written reasons of failed handshakes."""

import pytest
from peers import HANDLER, PLAIN_CLIENT, handler, verdict
from support import PATIENCE


@pytest.mark.zeroxide_only
def test_events_have_reasons(zmq, context, curve, middle, auth):
    """Each kind of refusal has its reason."""
    server, client = curve
    failed = (
        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
        | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
        | zmq.EVENT_HANDSHAKE_FAILED_AUTH
    )

    def reason(options, settings, ours=True):
        """The reason of the first failed handshake, as the server or the client sees it."""
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
        == "expected an authenticator to check PLAIN credentials, but there is none"
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
