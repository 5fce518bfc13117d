"""Counters of messages sent, received, queued and dropped, with the reasons."""

import pytest
from patterns import subscribe
from support import eventually, lasting_endpoint

pytestmark = pytest.mark.zeroxide_only

REASONS = {
    "high_water",
    "no_peer",
    "unroutable",
    "conflated",
    "filtered",
    "malformed",
    "torn",
    "peer_gone",
    "lingered",
    "stale",
    "refused",
    "excess",
    "unfinished",
    "no_memory",
    "too_large",
    "overrun",
    "hops",
    "too_slow",
    "gap",
    "disk",
}


def dropped(socket):
    """The reasons with a count above 0."""
    return {reason: n for reason, n in socket.stats()["dropped"].items() if n}


def test_form(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"")
    pull.recv()
    for socket in (pull, push):
        stats = socket.stats()
        assert set(stats["dropped"]) == REASONS
        [peer] = stats["peers"]
        assert peer["connected"]
        assert isinstance(peer["endpoint"], str) and peer["endpoint"].startswith("tcp://")
        assert isinstance(peer["routing_id"], bytes)
        assert set(peer["dropped"]) == REASONS
        numbers = {"sent", "sent_bytes", "received", "received_bytes", "queued_out", "queued_in"}
        numbers |= {"reconnects", "full_out", "full_in", "spilled", "spilled_bytes"}
        only = {"lingering", "connections", "no_subscriber", "missed_events"}
        assert set(stats) == {*numbers, *only, "dropped", "peers"}
        words = {"endpoint", "address", "routing_id", "connected", "waiting"}
        assert set(peer) == {*numbers, *words, "dropped"}
        assert all(isinstance(counts[name], int) for counts in (stats, peer) for name in numbers)


def test_sent_and_received(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    push.send(b"12345")
    push.send_multipart([b"123", b"", b"45"])
    push.send_batch([b"1"] * 10)
    stats = push.stats()
    assert (stats["sent"], stats["sent_bytes"], stats["received"]) == (12, 20, 0)
    for _ in range(12):
        pull.recv_multipart()
    stats = pull.stats()
    assert (stats["received"], stats["received_bytes"], stats["sent"]) == (12, 20, 0)
    assert stats["queued_in"] == 0
    assert not dropped(pull) and not dropped(push)


def test_queued(zmq, context):
    with context.socket(zmq.PUSH) as push:
        push.connect("tcp://127.0.0.1:1")
        for _ in range(5):
            push.send(b"")
        stats = push.stats()
        assert stats["queued_out"] == 5
        [peer] = stats["peers"]
        assert (peer["endpoint"], peer["connected"]) == ("tcp://127.0.0.1:1", False)
        assert peer["queued_out"] == 5


def test_per_peer(zmq, context, sockets):
    pulls = [sockets.bound(zmq.PULL) for _ in range(3)]
    with context.socket(zmq.PUSH) as push:
        for pull in pulls:
            push.connect(pull.last_endpoint.decode())
        for _ in range(9):
            push.send(b"12")
        peers = {peer["endpoint"]: peer for peer in push.stats()["peers"]}
        assert set(peers) == {pull.last_endpoint.decode() for pull in pulls}
        assert {(peer["sent"], peer["sent_bytes"]) for peer in peers.values()} == {(3, 6)}


def test_high_water(zmq, context):
    with context.socket(zmq.XPUB) as pub, context.socket(zmq.SUB) as sub:
        pub.sndhwm = sub.rcvhwm = 5
        pub.bind("inproc://stats")
        sub.connect("inproc://stats")
        subscribe(zmq, pub, sub)
        for _ in range(100):
            pub.send(b"x")
        assert dropped(pub) == {"high_water": 90}
        for _ in range(10):
            sub.recv()
        assert sub.stats()["received"] == 10


def test_no_subscriber(zmq, context):
    with context.socket(zmq.PUB) as pub:
        pub.bind("inproc://stats")
        for _ in range(7):
            pub.send(b"")
        assert pub.stats()["no_subscriber"] == 7
        assert not dropped(pub)


def test_unroutable(zmq, context):
    with context.socket(zmq.ROUTER) as router:
        router.bind("inproc://stats")
        for _ in range(3):
            router.send_multipart([b"nobody", b"lost"])
        assert dropped(router) == {"unroutable": 3}


def test_conflated(zmq, context):
    with context.socket(zmq.PUSH) as push:
        push.conflate = 1
        push.connect("tcp://127.0.0.1:1")
        for _ in range(4):
            push.send(b"")
        assert dropped(push) == {"conflated": 3}


def test_malformed(zmq, sockets):
    rep, dealer = sockets.pair(zmq.REP, zmq.DEALER)
    dealer.send(b"no delimiter")
    dealer.send_multipart([b"", b"good"])
    rep.recv()
    assert dropped(rep) == {"malformed": 1}


def test_gone_peers_stay_in_the_totals(zmq, sockets):
    pull = sockets.bound(zmq.PULL)
    for number in range(3):
        with sockets.connected(zmq.PUSH, pull) as push:
            push.send(b"123")
            pull.recv()
        eventually(lambda: not pull.stats()["peers"])
        assert pull.stats()["received"] == number + 1
    assert pull.stats()["received_bytes"] == 9


def test_a_peer_that_is_gone_is_not_connected(zmq, sockets):
    """It is also not removed before its remaining messages were received."""
    pull = sockets.bound(zmq.PULL)
    with sockets.connected(zmq.PUSH, pull) as push:
        push.send(b"left behind")
        eventually(lambda: [peer["connected"] for peer in pull.stats()["peers"]] == [True])
    eventually(lambda: [peer["connected"] for peer in pull.stats()["peers"]] == [False])
    assert pull.stats()["queued_in"] == 1
    assert pull.recv() == b"left behind"
    eventually(lambda: not pull.stats()["peers"])


def test_routing_id(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"me")
    dealer.send(b"")
    router.recv_multipart()
    [peer] = router.stats()["peers"]
    assert peer["routing_id"] == b"me"


def test_sum(zmq, sockets):
    """Every message that was sent was received, is queued or was dropped."""
    router = sockets.bound(zmq.ROUTER, sndhwm=5)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"d", rcvhwm=5)
    dealer.send(b"")
    router.recv_multipart()
    total = 2000
    for number in range(total):
        router.send_multipart([b"d", b"x" * 10_000, b"%d" % number])

    def settled():
        while dealer.poll(50):
            dealer.recv_multipart()
        return not router.stats()["queued_out"]

    eventually(settled)
    lost = dropped(router).get("high_water", 0)
    assert dealer.stats()["received"] + lost == total


@pytest.mark.parametrize("parts", [[bytes(2000)], [b"head", bytes(2000)], [bytes(600), bytes(600)]])
def test_a_message_larger_than_maxmsgsize_is_counted_once(zmq, context, parts):
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.maxmsgsize = 1000
    port = pull.bind_to_random_port("tcp://127.0.0.1")
    push.connect(f"tcp://127.0.0.1:{port}")
    push.send_multipart(parts)
    eventually(lambda: dropped(pull) == {"too_large": 1})


@pytest.mark.parametrize("bound_first", [True, False])
def test_waiting_messages_over_inproc_count_at_one_end(zmq, context, bound_first):
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        if bound_first:
            pull.bind("inproc://queue")
        push.connect("inproc://queue")
        for _ in range(5):
            push.send(b"x")
        if not bound_first:
            assert push.stats()["queued_out"] == 5
            pull.bind("inproc://queue")
        for left in range(5, 0, -1):
            assert (push.stats()["queued_out"], pull.stats()["queued_in"]) == (0, left)
            pull.recv()
        assert pull.stats()["queued_in"] == 0


def test_reconnects_and_marks_are_counted(zmq, context, sockets):
    pull = sockets.bound(zmq.PULL, rcvhwm=2)
    endpoint = pull.last_endpoint.decode()
    push = context.socket(zmq.PUSH)
    push.sndhwm = 2
    push.reconnect_ivl = 1
    push.connect(endpoint)
    push.wait_connected(timeout=50_000)
    assert push.stats()["reconnects"] == 0
    pull.close()
    eventually(lambda: push.count_connected() == 0)
    for _ in range(2):
        push.send(b"")
    with pytest.raises(zmq.Again):
        push.send(b"", zmq.DONTWAIT)
    stats = push.stats()
    assert (stats["full_out"], stats["full_in"]) == (1, 0)
    pull = context.socket(zmq.PULL)
    eventually(lambda: not _fails(zmq, pull.bind, endpoint))
    push.wait_connected(timeout=50_000)
    stats = push.stats()
    assert (stats["connections"], stats["reconnects"]) == (2, 1)
    [peer] = stats["peers"]
    assert (peer["reconnects"], peer["full_out"]) == (1, 1)
    # They outlast the connection.
    push.disconnect(endpoint)
    eventually(lambda: not push.stats()["peers"])
    stats = push.stats()
    assert (stats["connections"], stats["reconnects"], stats["full_out"]) == (2, 1, 1)


def _fails(zmq, call, *arguments):
    try:
        call(*arguments)
    except zmq.ZMQError:
        return True
    return False


def test_a_full_inbound_queue_is_counted_once_per_time(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    pull.close()
    pull = sockets.bound(zmq.PULL, "inproc", rcvhwm=3)
    push = sockets.context.socket(zmq.PUSH)
    push.sndhwm = 3
    push.connect(pull.last_endpoint.decode())
    for expected in (1, 2):
        for _ in range(6):
            push.send(b"")
        for _ in range(2):
            with pytest.raises(zmq.Again):
                push.send(b"", zmq.DONTWAIT)
        assert pull.stats()["full_in"] == push.stats()["full_out"] == expected
        for _ in range(6):
            pull.recv()


def test_a_queue_that_stays_full_is_counted_once(zmq, context):
    with context.socket(zmq.ROUTER) as router, context.socket(zmq.DEALER) as dealer:
        router.sndhwm = dealer.rcvhwm = 5
        dealer.routing_id = b"slow"
        router.bind("inproc://full")
        dealer.connect("inproc://full")
        dealer.send(b"")
        router.recv_multipart()
        for _ in range(100):
            router.send_multipart([b"slow", b""])
        assert dropped(router) == {"high_water": 90}
        assert router.stats()["full_out"] == 1


@pytest.mark.parametrize("how", ["delivered", "given up"])
def test_messages_left_to_deliver(zmq, context, how):
    endpoint = lasting_endpoint()
    with context.socket(zmq.PUSH) as push:
        push.connect(endpoint)
        for _ in range(3):
            push.send(b"left")
        assert (push.stats()["queued_out"], push.stats()["lingering"]) == (3, 0)
        push.linger = 100 if how == "given up" else -1
        push.disconnect(endpoint)
        if how == "delivered":
            assert eventually(lambda: push.stats()["lingering"] == 3)
            assert push.stats()["queued_out"] == 0
            with context.socket(zmq.PULL) as pull:
                pull.bind(endpoint)
                for _ in range(3):
                    pull.recv()
                assert eventually(lambda: push.stats()["lingering"] == 0)
            assert not dropped(push)
        else:
            assert eventually(lambda: dropped(push) == {"lingered": 3})
            assert eventually(lambda: push.stats()["lingering"] == 0)


def test_messages_left_to_a_peer_that_does_not_read(zmq, context):
    with context.socket(zmq.PUSH) as push, context.socket(zmq.PULL) as pull:
        push.sndhwm, push.linger = 0, -1
        pull.rcvhwm = 1
        push.bind("tcp://127.0.0.1:*")
        pull.connect(push.last_endpoint)
        sent = 3000
        for _ in range(sent):
            push.send(bytes(10_000))
        push.unbind(push.last_endpoint)
        assert eventually(lambda: push.stats()["lingering"] > 1000)
        for _ in range(sent):
            pull.recv()
        assert eventually(lambda: push.stats()["lingering"] == 0)
        assert not dropped(push)
