"""PAIR, PUSH and PULL."""

import itertools

import pytest
from support import PATIENCE


def test_both_ways(zmq, sockets, transport):
    one, other = sockets.pair(zmq.PAIR, zmq.PAIR, transport)
    one.send(b"down")
    other.send(b"up")
    assert other.recv() == b"down"
    assert one.recv() == b"up"


def test_one_peer_at_a_time(zmq, sockets):
    one, other = sockets.pair(zmq.PAIR, zmq.PAIR)
    other.send(b"here first")
    assert one.recv() == b"here first"
    third = sockets.connected(zmq.PAIR, one)
    third.send(b"too late")
    other.send(b"still here")
    assert one.recv() == b"still here"
    assert one.poll(50) == 0


def test_without_a_peer(zmq, context):
    with context.socket(zmq.PAIR) as socket:
        socket.bind("inproc://nobody")
        with pytest.raises(zmq.Again):
            socket.send(b"", zmq.DONTWAIT)


def test_wrong_way(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for call in (lambda: pull.send(b""), push.recv):
        with pytest.raises(zmq.ZMQError) as caught:
            call()
        assert caught.value.errno == zmq.ENOTSUP


def test_work_is_shared(zmq, sockets):
    push = sockets.bound(zmq.PUSH)
    pulls = [sockets.connected(zmq.PULL, push) for _ in range(4)]
    # Until all workers are connected, the connected ones get everything.
    waiting = set(pulls)
    while waiting:
        push.send(b"are you there")
        for pull in pulls:
            while pull.poll(2):
                pull.recv()
                waiting.discard(pull)
    for number in range(40):
        push.send(b"%d" % number)
    shares = [sorted(int(pull.recv()) for _ in range(10)) for pull in pulls]
    assert sorted(itertools.chain(*shares)) == list(range(40))
    for share in shares:
        assert {b - a for a, b in itertools.pairwise(share)} == {4}


def test_fair_queuing(zmq, sockets):
    """One sender with many messages does not starve the others."""
    # Over inproc, a message arrives as soon as it is sent.
    pull = sockets.bound(zmq.PULL, "inproc")
    pushes = [sockets.connected(zmq.PUSH, pull) for _ in range(10)]
    for number in range(500):
        pushes[0].send(b"0 %d" % number)
    for name, push in enumerate(pushes[1:], 1):
        push.send(b"%d slow" % name)
    slow = set()
    received = 0
    while len(slow) < 9:
        sender, _, what = pull.recv().partition(b" ")
        received += 1
        if what == b"slow":
            slow.add(sender)
    # The messages of the others are in between, at most one for each.
    assert received <= 20


def test_order_is_kept(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    for number in range(900):
        push.send(b"%d" % number)
    assert [int(pull.recv()) for _ in range(900)] == list(range(900))


def test_high_water(zmq, context, sockets, transport):
    """A sender stops if its receiver takes no messages, and continues later."""
    pull = context.socket(zmq.PULL)
    pull.rcvhwm = 3
    pull.bind(sockets.endpoint(transport))
    push = context.socket(zmq.PUSH)
    push.sndhwm = 2
    push.connect(pull.last_endpoint.decode())
    # Kernel buffers also hold many messages.
    body = b"x" * 1_000_000
    sent = 0
    with pytest.raises(zmq.Again):
        while True:
            push.send(b"%9d" % sent + body, zmq.DONTWAIT)
            sent += 1
            push.poll(20, zmq.POLLOUT)
    assert sent >= (5 if transport == "inproc" else 2)
    if transport == "inproc":  # with a kernel in between, there may be room again
        assert push.poll(0, zmq.POLLOUT) == 0
    for number in range(sent):
        assert int(pull.recv()[:9]) == number
    push.send(b"goes again")
    assert pull.recv() == b"goes again"


def test_high_water_is_exact_without_a_kernel_between(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.rcvhwm, push.sndhwm = 3, 4
        pull.bind("inproc://hwm")
        push.connect("inproc://hwm")
        for _ in range(7):
            push.send_multipart([b"whole", b"messages", b"count"], zmq.DONTWAIT)
        with pytest.raises(zmq.Again):
            push.send(b"", zmq.DONTWAIT)


def test_conflate(zmq, context, sockets):
    pull = context.socket(zmq.PULL)
    pull.conflate = 1
    pull.bind(sockets.endpoint())
    push = sockets.connected(zmq.PUSH, pull)
    for number in range(100):
        push.send(b"%d" % number)
    last = -1
    while last != 99:
        last, before = int(pull.recv()), last
        assert last > before
    assert pull.poll(0) == 0


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("conflating", ["sender", "receiver"])
def test_a_message_of_several_parts_conflates_as_a_whole(zmq, context, sockets, conflating):
    """libzmq keeps the last part only."""
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        (push if conflating == "sender" else pull).conflate = 1
        pull.bind(sockets.endpoint())
        push.connect(pull.last_endpoint)
        for number in range(100):
            push.send_multipart([b"%d" % number] * (number % 3 + 1))
        last = -1
        while last != 99:
            parts = pull.recv_multipart()
            last, before = int(parts[0]), last
            assert parts == [b"%d" % last] * (last % 3 + 1)
            assert last > before


@pytest.mark.parametrize("kinds", ["DEALER DEALER", "SUB PUB", "PAIR PAIR", "PULL PUSH"])
def test_an_inproc_peer_that_left_unread_messages_can_be_replaced(zmq, context, kinds):
    own, other = (getattr(zmq, kind) for kind in kinds.split())
    client = context.socket(own)
    client.rcvtimeo = int(PATIENCE * 1000)
    if own == zmq.SUB:
        client.subscribe(b"")
    turns = [b"first", b"second"]
    for turn in turns:
        with context.socket(other) as server:
            server.bind("inproc://replaced")
            client.connect("inproc://replaced")
            server.get(zmq.EVENTS)
            server.send(turn)
    assert [client.recv() for _ in turns] == turns


def test_immediate(zmq, context):
    """No message is queued for a peer that is not connected."""
    with context.socket(zmq.PUSH) as push:
        push.connect("tcp://127.0.0.1:1")
        push.send(b"queued", zmq.DONTWAIT)
    with context.socket(zmq.PUSH) as push:
        push.immediate = 1
        push.connect("tcp://127.0.0.1:1")
        with pytest.raises(zmq.Again):
            push.send(b"refused", zmq.DONTWAIT)
