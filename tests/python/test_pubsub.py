"""PUB, SUB, XPUB and XSUB."""

import pytest
from patterns import subscribe
from support import attend, eventually, lasting_endpoint, synchronise


def test_prefixes(zmq, sockets, transport):
    xpub, sub = sockets.pair(zmq.XPUB, zmq.SUB, transport)
    subscribe(zmq, xpub, sub, b"topic")
    for body in (b"top", b"topic", b"other", b"topical", b""):
        xpub.send(body)
    xpub.send_multipart([b"topic", b"end"])
    assert sub.recv_multipart() == [b"topic"]
    assert sub.recv_multipart() == [b"topical"]
    assert sub.recv_multipart() == [b"topic", b"end"]


def test_unsubscribe(zmq, sockets, transport):
    xpub, sub = sockets.pair(zmq.XPUB, zmq.SUB, transport)
    subscribe(zmq, xpub, sub, b"a")
    subscribe(zmq, xpub, sub, b"b")
    sub.unsubscribe(b"a")
    assert xpub.recv() == b"\x00a"
    xpub.send(b"a gone")
    xpub.send(b"b stays")
    assert sub.recv() == b"b stays"


def test_subscriptions_are_counted(zmq, sockets):
    xpub, sub = sockets.pair(zmq.XPUB, zmq.SUB)
    subscribe(zmq, xpub, sub, b"a")
    sub.subscribe(b"a")
    sub.unsubscribe(b"a")
    xpub.send(b"a")
    assert sub.recv() == b"a"
    sub.unsubscribe(b"a")
    assert xpub.recv() == b"\x00a"
    sub.unsubscribe(b"a")


def test_wrong_way(zmq, context):
    with context.socket(zmq.PUB) as pub, context.socket(zmq.SUB) as sub:
        for call in (pub.recv, lambda: sub.send(b"")):
            with pytest.raises(zmq.ZMQError) as caught:
                call()
            assert caught.value.errno == zmq.ENOTSUP


def test_publisher_never_waits(zmq, context):
    with context.socket(zmq.PUB) as pub:
        pub.sndhwm = 1
        pub.bind("inproc://never-waits")
        for _ in range(1000):
            pub.send(b"nobody listens", zmq.DONTWAIT)
        assert pub.poll(0, zmq.POLLOUT) == zmq.POLLOUT


def test_slow_subscriber_loses_whole_messages(zmq, context):
    with context.socket(zmq.XPUB) as pub, context.socket(zmq.SUB) as sub:
        pub.sndhwm = sub.rcvhwm = 5
        pub.bind("inproc://slow")
        sub.connect("inproc://slow")
        subscribe(zmq, pub, sub)
        for number in range(100):
            pub.send_multipart([b"%d" % number, b"body"])
        for number in range(10):
            assert sub.recv_multipart() == [b"%d" % number, b"body"]
        assert sub.poll(0) == 0
        attend(zmq, pub)
        pub.send_multipart([b"again", b"body"])
        assert sub.recv_multipart() == [b"again", b"body"]


def test_no_drop(zmq, context):
    with context.socket(zmq.XPUB) as pub, context.socket(zmq.SUB) as sub:
        pub.sndhwm = sub.rcvhwm = 5
        pub.xpub_nodrop = 1
        pub.bind("inproc://no-drop")
        sub.connect("inproc://no-drop")
        subscribe(zmq, pub, sub)
        for _ in range(10):
            pub.send(b"x", zmq.DONTWAIT)
        with pytest.raises(zmq.Again):
            pub.send(b"x", zmq.DONTWAIT)


def test_many_subscribers(zmq, sockets, transport):
    pub = sockets.bound(zmq.PUB, transport)
    subs = [sockets.connected(zmq.SUB, pub) for _ in range(5)]
    for number, sub in enumerate(subs):
        subscribe(zmq, pub, sub, b"%d" % number)
    for number in range(5):
        pub.send(b"%d for one" % number)
    for number, sub in enumerate(subs):
        assert sub.recv() == b"%d for one" % number


def test_many_publishers(zmq, context, sockets):
    pubs = [sockets.bound(zmq.PUB) for _ in range(5)]
    with context.socket(zmq.SUB) as sub:
        sub.subscribe(b"")
        for pub in pubs:
            sub.connect(pub.last_endpoint.decode())
            synchronise(pub, sub)
        for number, pub in enumerate(pubs):
            pub.send(b"%d" % number)
        assert {int(sub.recv()) for _ in pubs} == {0, 1, 2, 3, 4}


def test_subscribed_before_connected(zmq, sockets, transport):
    xpub = sockets.bound(zmq.XPUB, transport)
    sub = sockets.context.socket(zmq.SUB)
    for topic in (b"one", b"two"):
        sub.subscribe(topic)
    sub.connect(xpub.last_endpoint.decode())
    assert {xpub.recv(), xpub.recv()} == {b"\x01one", b"\x01two"}


def test_first_and_last_are_seen(zmq, sockets):
    xpub = sockets.bound(zmq.XPUB)
    one, other = (sockets.connected(zmq.SUB, xpub) for _ in range(2))
    one.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    other.subscribe(b"a")
    other.subscribe(b"b")
    assert xpub.recv() == b"\x01b"
    one.close()
    other.unsubscribe(b"b")
    assert xpub.recv() == b"\x00b"
    other.close()
    assert xpub.recv() == b"\x00a"


@pytest.mark.parametrize("option", ["xpub_verbose", "xpub_verboser"])
def test_verbose(zmq, sockets, option):
    xpub = sockets.bound(zmq.XPUB)
    setattr(xpub, option, 1)
    one, other = (sockets.connected(zmq.SUB, xpub) for _ in range(2))
    one.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    other.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    one.unsubscribe(b"a")
    if option == "xpub_verboser":
        assert xpub.recv() == b"\x00a"
    other.unsubscribe(b"a")
    assert xpub.recv() == b"\x00a"
    assert xpub.poll(20) == 0


def test_manual(zmq, sockets):
    xpub = sockets.bound(zmq.XPUB, xpub_manual=1)
    sub = sockets.connected(zmq.SUB, xpub)
    sub.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    xpub.subscribe(b"b")
    sub.subscribe(b"b")
    assert xpub.recv() == b"\x01b"
    xpub.send(b"a is not wanted")
    xpub.send(b"b is")
    assert sub.recv() == b"b is"


def test_welcome(zmq, sockets):
    xpub = sockets.bound(zmq.XPUB, xpub_welcome_msg=b"welcome")
    sub = sockets.connected(zmq.SUB, xpub)
    sub.subscribe(b"w")
    while not sub.poll(20):
        attend(zmq, xpub)
    assert sub.recv() == b"welcome"


def test_raw_subscriptions(zmq, sockets):
    xpub, xsub = sockets.pair(zmq.XPUB, zmq.XSUB)
    xsub.send(b"\x01a")
    assert xpub.recv() == b"\x01a"
    xpub.send(b"a")
    assert xsub.recv() == b"a"
    xsub.send(b"user message")
    assert xpub.recv() == b"user message"
    xsub.send(b"\x00a")
    assert xpub.recv() == b"\x00a"


def test_invert_matching(zmq, sockets):
    xpub = sockets.bound(zmq.XPUB, invert_matching=1)
    sub = sockets.connected(zmq.SUB, xpub, invert_matching=1)
    sub.subscribe(b"a")
    xpub.recv()
    xpub.send(b"a")
    xpub.send(b"b")
    assert sub.recv() == b"b"


def test_subscription_survives_a_restart(zmq, context, sockets):
    endpoint = lasting_endpoint()
    first = context.socket(zmq.XPUB)
    first.bind(endpoint)
    sub = sockets.connected(zmq.SUB, first)
    subscribe(zmq, first, sub, b"a")
    first.close(linger=0)
    second = context.socket(zmq.XPUB)

    def bound():
        try:
            second.bind(endpoint)
        except zmq.ZMQError:
            return False
        return True

    eventually(bound)
    while not second.poll(20):
        attend(zmq, sub)
    assert second.recv() == b"\x01a"
    second.send(b"not what was asked for")
    second.send(b"a after the restart")
    assert sub.recv() == b"a after the restart"


@pytest.mark.zeroxide_only
def test_ten_thousand_topics(zmq, sockets, transport):
    """Subscriptions do not count against the high-water mark."""
    xpub, sub = sockets.pair(zmq.XPUB, zmq.SUB, transport)
    xpub.rcvhwm = 10
    for number in range(10_000):
        sub.subscribe(b"%d." % number)
    seen = {xpub.recv() for _ in range(10_000)}
    assert seen == {b"\x01%d." % number for number in range(10_000)}
    xpub.send(b"10000. nobody")
    xpub.send(b"9999. somebody")
    assert sub.recv() == b"9999. somebody"
