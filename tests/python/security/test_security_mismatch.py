"""Two sides whose security does not fit: within a second, each side names what is wrong."""

import pytest
from support import eventually

pytestmark = pytest.mark.zeroxide_only

pipeline = pytest.importorskip("zeroxide.pipeline")

import zeroxide as zmq  # noqa: E402

SERVER, CLIENT, STRANGER = (zmq.curve_keypair() for _ in range(3))

# In ms: a failure that takes longer ends the test with `Again`.
SOON = 1000

SECURED = {"secret_key": SERVER[1], "allow": [CLIENT[0]]}
OPEN = {}

# Each row has the options of both sides, and the words of the server and of the client about the mismatch.
SOCKETS = {
    "no key": (SECURED, {}, 'expected mechanism CURVE, the peer uses "NULL"', '"CURVE"'),
    "another server's key": (
        SECURED,
        {"server_key": STRANGER[0], "secret_key": CLIENT[1]},
        "expected HELLO sealed with the right keys",
        "CURVE_SERVERKEY may not be its public key",
    ),
    "a key that is not allowed": (
        SECURED,
        {"server_key": SERVER[0], "secret_key": STRANGER[1]},
        "no allow-list has its key",
        "refused us with status 400",
    ),
    "a key to an open peer": (
        OPEN,
        {"server_key": SERVER[0], "secret_key": CLIENT[1]},
        'expected mechanism NULL, the peer uses "CURVE"',
        'expected mechanism CURVE, the peer uses "NULL"',
    ),
    "a password to an open peer": (OPEN, {"username": "u", "password": "p"}, '"PLAIN"', '"NULL"'),
    "a password to a secure peer": (
        SECURED,
        {"username": "u", "password": "p"},
        '"PLAIN"',
        '"CURVE"',
    ),
}
FAILED = (
    zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
    | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
    | zmq.EVENT_HANDSHAKE_FAILED_AUTH
)


@pytest.mark.parametrize("mismatch", SOCKETS)
def test_the_events_of_both_sockets(context, mismatch):
    server, client, at_the_server, at_the_client = SOCKETS[mismatch]
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        push.linger = 0
        if server:
            pull.secure_server(**server)
        if client:
            (push.password_client if "username" in client else push.secure_client)(**client)
        events = [socket.monitor_events(FAILED) for socket in (pull, push)]
        pull.bind("tcp://127.0.0.1:*")
        push.connect(pull.last_endpoint.decode())
        assert at_the_server in events[0].recv(SOON).reason
        assert at_the_client in events[1].recv(SOON).reason


# Each row has the text of the client's error, the collector's counter, and the collector's words.
COLLECTORS = {
    "no key": ("requires CURVE, and this side has no keys", "mechanism", '"NULL"'),
    "another server's key": ("server_key is not the collector's public key", "server-key", "HELLO"),
    "a key that is not allowed": (
        "client's public key in its allow list",
        "key",
        "no allow-list has its",
    ),
    "a key to an open peer": ("does not use CURVE, but this side has keys", "mechanism", '"CURVE"'),
}


def fetch(endpoint, keys):
    with pipeline.Client(endpoint, **keys) as client:
        client.info()


def produce(endpoint, keys):
    producer = pipeline.Producer(endpoint, timeout_s=SOON / 1000, **keys)
    try:
        producer.send(b"x")
        producer.flush()
    finally:
        with pytest.raises(pipeline.CollectorError):
            producer.close(timeout_s=0)


@pytest.mark.parametrize("use", [fetch, produce])
@pytest.mark.parametrize("mismatch", COLLECTORS)
def test_the_error_of_a_client_and_the_counters_of_its_collector(directory, mismatch, use):
    server, keys, *_ = SOCKETS[mismatch]
    at_the_client, kind, at_the_collector = COLLECTORS[mismatch]
    with pipeline.Collector(directory / "log", **server) as collector:
        # A refusal, not a timeout, whose error would be `CollectorGone`.
        with pytest.raises(pipeline.Refused, match=at_the_client) as caught:
            use(collector.endpoint, keys)
        assert caught.value.code == "denied"
        eventually(lambda: collector.stats()["turned_away"][kind] >= 1)
        assert at_the_collector in collector.stats()["turned_away_last"]
