"""libzmq peers that die, return, start late, or freeze."""

import os

import pytest
from patterns import subscribe
from peer import RemoteError
from support import attend, eventually, synchronise

MONITORED = 20_000


def wait_for(zmq, monitor, event):
    """Reads monitor events up to one."""
    while True:
        assert monitor.poll(MONITORED), f"no {event!r}"
        header, _ = monitor.recv_multipart()
        if int.from_bytes(header[:2], "little") == event:
            return


def bind_again(socket, endpoint):
    """Binds the address of a killed process, for which the system may need a moment."""

    def bound():
        try:
            socket.bind(endpoint)
        except RemoteError:
            return False
        return True

    eventually(bound)


# ---- the peer that we connect to ----------------------------------------------------


def test_connect_before_bind(zmq, sockets, lasting_peer, transport, fixed_endpoint):
    endpoint = fixed_endpoint(transport)
    push = sockets.context.socket(zmq.PUSH)
    push.connect(endpoint)
    push.send(b"early")
    pull = lasting_peer.socket(zmq.PULL)
    try:
        pull.bind(endpoint)
        assert pull.recv() == b"early"
    finally:
        pull.close()


def test_they_connect_before_we_bind(zmq, sockets, lasting_peer, transport, fixed_endpoint):
    endpoint = fixed_endpoint(transport)
    push = lasting_peer.socket(zmq.PUSH)
    try:
        push.connect(endpoint)
        push.send(b"early")
        pull = sockets.context.socket(zmq.PULL)
        pull.bind(endpoint)
        assert pull.recv() == b"early"
    finally:
        push.close()


def test_killed_server_comes_back(zmq, sockets, new_peer, transport, fixed_endpoint):
    endpoint = fixed_endpoint(transport)
    push = sockets.context.socket(zmq.PUSH)
    monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
    push.connect(endpoint)
    for round_number in range(3):
        peer = new_peer()
        pull = peer.socket(zmq.PULL)
        bind_again(pull, endpoint)
        wait_for(zmq, monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
        push.send(b"%d" % round_number)
        assert pull.recv() == b"%d" % round_number
        peer.kill()
        wait_for(zmq, monitor, zmq.EVENT_DISCONNECTED)


def test_messages_queued_while_the_server_is_away(
    zmq, sockets, new_peer, transport, fixed_endpoint
):
    """They reach the server when it is back."""
    endpoint = fixed_endpoint(transport)
    push = sockets.context.socket(zmq.PUSH)
    monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    push.connect(endpoint)
    peer = new_peer()
    pull = peer.socket(zmq.PULL)
    pull.bind(endpoint)
    push.send(b"before")
    assert pull.recv() == b"before"
    peer.kill()
    wait_for(zmq, monitor, zmq.EVENT_DISCONNECTED)
    for number in range(100):
        push.send(b"%d" % number)
    pull = new_peer().socket(zmq.PULL)
    bind_again(pull, endpoint)
    for number in range(100):
        assert pull.recv() == b"%d" % number


def test_killed_publisher_comes_back(zmq, sockets, new_peer, transport, fixed_endpoint):
    """Subscriptions are repeated to the new one."""
    endpoint = fixed_endpoint(transport)
    sub = sockets.context.socket(zmq.SUB)
    for topic in (b"a", b"b"):
        sub.subscribe(topic)
    sub.connect(endpoint)
    for round_number in range(3):
        peer = new_peer()
        xpub = peer.socket(zmq.XPUB)
        bind_again(xpub, endpoint)
        while not xpub.poll(50):
            attend(zmq, sub)
        assert {xpub.recv(), xpub.recv()} == {b"\x01a", b"\x01b"}
        xpub.send(b"c is not wanted")
        xpub.send(b"b %d" % round_number)
        assert sub.recv() == b"b %d" % round_number
        peer.kill()


def test_killed_replier_comes_back(zmq, sockets, new_peer, fixed_endpoint):
    """A relaxed REQ asks the new one."""
    endpoint = fixed_endpoint("tcp")
    peer = new_peer()
    rep = peer.socket(zmq.REP)
    rep.bind(endpoint)
    req = sockets.context.socket(zmq.REQ)
    req.req_relaxed = req.req_correlate = 1
    monitor = req.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    req.connect(endpoint)
    req.send(b"first")
    assert rep.recv() == b"first"
    peer.kill()
    wait_for(zmq, monitor, zmq.EVENT_DISCONNECTED)
    rep = new_peer().socket(zmq.REP)
    bind_again(rep, endpoint)
    req.send(b"second")
    assert rep.recv() == b"second"
    rep.send(b"answer")
    assert req.recv() == b"answer"


# ---- peers that connect to us -------------------------------------------------------


def test_killed_client_comes_back(zmq, sockets, new_peer, transport):
    pull = sockets.bound(zmq.PULL, transport)
    for round_number in range(3):
        peer = new_peer()
        push = peer.socket(zmq.PUSH)
        push.connect(pull.last_endpoint.decode())
        push.send_multipart([b"%d" % round_number, b"whole"])
        assert pull.recv_multipart() == [b"%d" % round_number, b"whole"]
        peer.kill()


def test_killed_in_the_middle_of_many_messages(zmq, sockets, new_peer, transport):
    """The messages that arrived are complete and in order, and the next client is served."""
    pull = sockets.bound(zmq.PULL, transport)
    peer = new_peer()
    push = peer.socket(zmq.PUSH, sndhwm=0)
    push.connect(pull.last_endpoint.decode())
    for number in range(50):
        push.send_multipart([b"%d" % number, b"x" * 300_000, b"%d" % number])
    assert pull.recv_multipart()[0] == b"0"
    peer.kill()
    last = new_peer().socket(zmq.PUSH)
    last.connect(pull.last_endpoint.decode())
    last.send(b"last")
    expected = 1
    while (message := pull.recv_multipart()) != [b"last"]:
        assert message == [b"%d" % expected, b"x" * 300_000, b"%d" % expected]
        expected += 1
    # Fair queuing may have put the newcomer's message in front of some of the rest.
    while pull.poll(100):
        message = pull.recv_multipart()
        assert message == [b"%d" % expected, b"x" * 300_000, b"%d" % expected]
        expected += 1


def test_killed_subscriber_is_unsubscribed(zmq, sockets, new_peer, transport):
    xpub = sockets.bound(zmq.XPUB, transport)
    peer = new_peer()
    sub = peer.socket(zmq.SUB)
    sub.connect(xpub.last_endpoint.decode())
    sub.subscribe(b"a")
    assert xpub.recv() == b"\x01a"
    peer.kill()
    assert xpub.recv() == b"\x00a"


@pytest.mark.zeroxide_only
def test_dead_workers_get_nothing(zmq, sockets, new_peer):
    """One of two workers is killed; from then on, the other one gets everything."""
    push = sockets.bound(zmq.PUSH)
    monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    doomed, other = new_peer(), new_peer()
    pulls = [peer.socket(zmq.PULL) for peer in (doomed, other)]
    for pull in pulls:
        pull.connect(push.last_endpoint.decode())
        while not pull.poll(20):
            push.send(b"hello")
    doomed.kill()
    wait_for(zmq, monitor, zmq.EVENT_DISCONNECTED)
    # The event comes from the I/O thread, which then tells the socket.
    eventually(lambda: len(push.stats()["peers"]) == 1)
    for number in range(100):
        push.send(b"number %d" % number)
    received = []
    while len(received) < 100:
        body = pulls[1].recv()
        if body != b"hello":
            received.append(body)
    assert received == [b"number %d" % number for number in range(100)]


# ---- subscriptions ------------------------------------------------------------------


@pytest.mark.parametrize("publisher", ["PUB", "XPUB"])
def test_unsubscribe_from_them(zmq, sockets, lasting_peer, transport, publisher):
    pub = lasting_peer.socket(getattr(zmq, publisher))
    try:
        pub.bind(sockets.endpoint(transport))
        sub = sockets.connected(zmq.SUB, pub)
        subscribe(zmq, pub, sub, b"a")
        subscribe(zmq, pub, sub, b"b")
        sub.unsubscribe(b"a")
        if publisher == "XPUB":
            assert pub.recv() == b"\x00a"
        pub.send(b"a gone")
        pub.send(b"b stays")
        assert sub.recv() == b"b stays"
    finally:
        pub.close()


@pytest.mark.parametrize("publisher", ["PUB", "XPUB"])
def test_they_unsubscribe(zmq, sockets, lasting_peer, transport, publisher):
    pub = sockets.bound(getattr(zmq, publisher), transport)
    sub = lasting_peer.socket(zmq.SUB)
    try:
        sub.connect(pub.last_endpoint.decode())
        subscribe(zmq, pub, sub, b"a")
        subscribe(zmq, pub, sub, b"b")
        sub.unsubscribe(b"a")
        if publisher == "XPUB":
            assert pub.recv() == b"\x00a"
        pub.send(b"a gone")
        pub.send(b"b stays")
        # The first message may have been sent before the unsubscription arrived,
        # but the subscriber filters too.
        assert sub.recv() == b"b stays"
    finally:
        sub.close()


# ---- addresses ----------------------------------------------------------------------


def test_mandatory(zmq, sockets, lasting_peer, transport):
    router = sockets.bound(zmq.ROUTER, transport, router_mandatory=1)
    with pytest.raises(zmq.ZMQError) as caught:
        router.send_multipart([b"them", b"too early"])
    assert caught.value.errno == zmq.EHOSTUNREACH
    dealer = lasting_peer.socket(zmq.DEALER, routing_id=b"them")
    dealer.connect(router.last_endpoint.decode())
    dealer.send(b"")
    assert router.recv_multipart() == [b"them", b""]
    router.send_multipart([b"them", b"now"])
    assert dealer.recv() == b"now"
    dealer.close()

    def unreachable():
        try:
            router.send_multipart([b"them", b"too late"])
        except zmq.ZMQError as error:
            return error.errno == zmq.EHOSTUNREACH
        return False

    eventually(unreachable)


def test_handover(zmq, sockets, new_peer, transport):
    """A frozen client is replaced by one of the same name."""
    router = sockets.bound(zmq.ROUTER, transport, router_handover=1)
    old, new = new_peer(), new_peer()
    first = old.socket(zmq.DEALER, routing_id=b"same")
    first.connect(router.last_endpoint.decode())
    first.send(b"first")
    assert router.recv_multipart() == [b"same", b"first"]
    old.freeze()
    second = new.socket(zmq.DEALER, routing_id=b"same")
    second.connect(router.last_endpoint.decode())
    second.send(b"second")
    assert router.recv_multipart() == [b"same", b"second"]
    router.send_multipart([b"same", b"to the second"])
    assert second.recv() == b"to the second"


def test_without_handover_the_first_stays(zmq, sockets, lasting_peer):
    router = sockets.bound(zmq.ROUTER)
    first, second = (lasting_peer.socket(zmq.DEALER, routing_id=b"same") for _ in range(2))
    try:
        first.connect(router.last_endpoint.decode())
        first.send(b"first")
        assert router.recv_multipart() == [b"same", b"first"]
        second.connect(router.last_endpoint.decode())
        second.send(b"second")
        first.send(b"first again")
        assert router.recv_multipart() == [b"same", b"first again"]
    finally:
        first.close()
        second.close()


# ---- frozen peers -------------------------------------------------------------------


@pytest.mark.parametrize("binds", ["we bind", "they bind"])
def test_heartbeats_find_the_frozen(zmq, sockets, new_peer, transport, binds):
    """The connection to a stopped process ends, and is made again when the process continues."""
    peer = new_peer()
    ours = sockets.context.socket(zmq.DEALER)
    # The timeout is short, but longer than the pauses of a busy machine.
    ours.heartbeat_ivl, ours.heartbeat_timeout = 50, 600
    monitor = ours.get_monitor_socket(zmq.EVENT_DISCONNECTED | zmq.EVENT_HANDSHAKE_SUCCEEDED)
    theirs = peer.socket(zmq.DEALER)
    if binds == "we bind":
        ours.bind(sockets.endpoint(transport))
        theirs.connect(ours.last_endpoint.decode())
    else:
        theirs.bind(sockets.endpoint(transport))
        ours.connect(theirs.last_endpoint.decode())
    theirs.send(b"before")
    assert ours.recv() == b"before"
    wait_for(zmq, monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    peer.freeze()
    wait_for(zmq, monitor, zmq.EVENT_DISCONNECTED)
    peer.thaw()
    wait_for(zmq, monitor, zmq.EVENT_HANDSHAKE_SUCCEEDED)
    theirs.send(b"after")
    assert ours.recv() == b"after"
    ours.send(b"back")
    assert theirs.recv() == b"back"


@pytest.mark.parametrize("binds", ["we bind", "they bind"])
def test_libzmq_gets_answers_to_its_heartbeats(zmq, sockets, lasting_peer, transport, binds):
    """zeroxide answers without a call of the application, and stays connected."""
    theirs = lasting_peer.socket(zmq.DEALER, heartbeat_ivl=20, heartbeat_timeout=900)
    ours = sockets.context.socket(zmq.DEALER)
    # By default, the timeout would be the interval: too short for a busy machine.
    ours.heartbeat_ivl, ours.heartbeat_timeout = 20, 900
    monitor = ours.get_monitor_socket(zmq.EVENT_DISCONNECTED)
    try:
        if binds == "we bind":
            ours.bind(sockets.endpoint(transport))
            theirs.connect(ours.last_endpoint.decode())
        else:
            theirs.bind(sockets.endpoint(transport))
            ours.connect(theirs.last_endpoint.decode())
        theirs.send(b"before")
        assert ours.recv() == b"before"
        # Longer than that, while many heartbeats go both ways.
        assert monitor.poll(1500) == 0
        theirs.send(b"after")
        assert ours.recv() == b"after"
    finally:
        theirs.close()


def test_a_frozen_subscriber_does_not_delay_others(zmq, sockets, new_peer, transport):
    pub = sockets.bound(zmq.PUB, transport, sndhwm=10)
    frozen, awake = new_peer(), new_peer()
    subs = [peer.socket(zmq.SUB, rcvhwm=0) for peer in (frozen, awake)]
    for sub in subs:
        sub.connect(pub.last_endpoint.decode())
        sub.subscribe(b"")
        synchronise(pub, sub)
    frozen.freeze()
    body = os.urandom(100_000)
    for number in range(100):
        attend(zmq, pub)
        pub.send_multipart([b"%d" % number, body])
        while subs[1].recv_multipart() != [b"%d" % number, body]:
            pass


def test_a_frozen_worker_fills_up_and_continues(zmq, sockets, new_peer, transport):
    """Sending stops when the worker takes no messages, and none is lost or duplicated."""
    push = sockets.bound(zmq.PUSH, transport, sndhwm=5)
    peer = new_peer()
    pull = peer.socket(zmq.PULL, rcvhwm=5)
    pull.connect(push.last_endpoint.decode())
    push.poll(None, zmq.POLLOUT)
    peer.freeze()
    sent = 0
    with pytest.raises(zmq.Again):
        while True:
            push.poll(100, zmq.POLLOUT)
            push.send(b"%d" % sent + b"x" * 200_000, zmq.DONTWAIT)
            sent += 1
    peer.thaw()
    for number in range(sent):
        assert pull.recv() == b"%d" % number + b"x" * 200_000
    push.send(b"goes on")
    assert pull.recv() == b"goes on"
