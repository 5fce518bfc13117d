"""SNDHWM_BYTES and RCVHWM_BYTES over the transports and both wire protocols; `tests/bounds.rs` has them over tcp, in detail."""

import pytest
from certificates import Authority
from support import Background, eventually, free_udp_port

pytestmark = pytest.mark.zeroxide_only

BODY = b"x" * 5_000
# The weight of a message: its body, and 72 bytes for its part.
EACH = len(BODY) + 72
COUNT = 200


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def identity(authority):
    return authority.issue("server", "IP:127.0.0.1")


@pytest.mark.parametrize("wire", ["ZMTP", "SP"])
@pytest.mark.parametrize("transport", ["tcp", "ipc", "ws", "tls+tcp", "wss"])
def test_both_queues_of_a_connection(zmq, sockets, authority, identity, transport, wire):
    pull, push = sockets.context.socket(zmq.PULL), sockets.context.socket(zmq.PUSH)
    for socket in (pull, push):
        socket.wire_protocol = getattr(zmq, wire)
        # Without limits in messages, and with small queues in between.
        socket.rcvhwm = socket.sndhwm = 0
        socket.rcvbuf = socket.sndbuf = 10_000
    pull.tls_certificate, pull.tls_key = map(bytes, identity)
    push.tls_ca = bytes(authority.certificate)
    pull.rcvhwm_bytes, push.sndhwm_bytes = 10 * EACH, 5 * EACH
    pull.bind(sockets.endpoint(transport))
    push.connect(pull.last_endpoint)
    sender = Background(lambda: [push.send(BODY) for _ in range(COUNT)])
    eventually(lambda: pull.stats()["queued_in"] >= 10 and push.stats()["queued_out"] > 0)
    for _ in range(COUNT):
        queued = (pull.stats()["queued_in"], push.stats()["queued_out"])
        assert queued[0] <= 10 and queued[1] <= 5, queued
        assert pull.recv() == BODY
    sender.result()


def test_a_dish(zmq, context):
    radio, dish = context.socket(zmq.RADIO), context.socket(zmq.DISH)
    dish.rcvhwm, dish.rcvhwm_bytes = 0, 10 * EACH
    dish.join("g")
    dish.bind("udp://127.0.0.1:*")
    radio.connect(dish.last_endpoint)
    for _ in range(COUNT):
        radio.send(BODY, group="g")
    eventually(lambda: dish.stats()["queued_in"] >= 10)
    # The kernel has a queue, too.
    for _ in range(20):
        assert dish.stats()["queued_in"] <= 10
        assert dish.recv() == BODY


def test_a_radio(zmq, context):
    with context.socket(zmq.RADIO) as radio:
        radio.sndhwm, radio.sndhwm_bytes = 0, EACH
        radio.connect(f"udp://127.0.0.1:{free_udp_port()}")
        for _ in range(COUNT * COUNT):
            radio.send(BODY, group="g")
            if radio.stats()["dropped"]["high_water"]:
                break
        assert radio.stats()["dropped"]["high_water"]


@pytest.fixture
def group():
    return f"epgm://lo;239.254.3.3:{free_udp_port()}"


def test_a_subscriber_over_epgm(zmq, context, group):
    pub, sub = context.socket(zmq.PUB), context.socket(zmq.SUB)
    pub.rate = sub.rate = 1_000_000
    pub.sndhwm = sub.rcvhwm = 0
    sub.rcvhwm_bytes = 10 * EACH
    sub.subscribe(b"")
    sub.bind(group)
    pub.bind(group)
    for _ in range(COUNT):
        pub.send(BODY)
    eventually(lambda: sub.stats()["queued_in"] >= 10)
    for _ in range(COUNT):
        assert sub.stats()["queued_in"] <= 10
        assert sub.recv() == BODY


def test_a_publisher_over_epgm(zmq, context, group):
    with context.socket(zmq.PUB) as pub:
        # One message takes longer than the loop.
        pub.rate = 1
        pub.sndhwm, pub.sndhwm_bytes = 0, 10 * EACH
        pub.bind(group)
        for _ in range(COUNT):
            pub.send(BODY)
        assert pub.stats()["dropped"]["high_water"] > 0
