"""Messages sent part by part: a last part that fails ends the message."""

import itertools
import threading

import pytest
from support import Background, eventually
from test_signals import Interruption, alarms

pytestmark = pytest.mark.zeroxide_only


def unfinished(socket):
    return socket.stats()["dropped"]["unfinished"]


@pytest.fixture(params=["PUSH", "DEALER"])
def begun(request, zmq, sockets, transport):
    """A socket that has sent the first part of a message and then lost its only peer; and a function that makes another."""
    sender = sockets.bound(getattr(zmq, request.param), transport)
    peer = {"PUSH": zmq.PULL, "DEALER": zmq.DEALER}[request.param]
    receiver = sockets.connected(peer, sender)
    sender.send(b"head", zmq.SNDMORE)
    receiver.close()
    eventually(lambda: not sender.poll(0, zmq.POLLOUT))
    return sender, lambda: sockets.connected(peer, sender)


def after_a_while(zmq, socket):
    socket.sndtimeo = 10
    socket.send(b"body")


WAYS = {
    "at once": lambda zmq, s: s.send(b"body", zmq.DONTWAIT),
    "several at once": lambda zmq, s: s.send_multipart([b"neck", b"body"], zmq.DONTWAIT),
    "after a while": after_a_while,
    "without copying": lambda zmq, s: s.send(bytes(100_000), zmq.DONTWAIT, copy=False),
}


@pytest.mark.parametrize("way", WAYS)
def test_a_failed_last_part_ends_the_message(zmq, begun, way):
    sender, make_peer = begun
    with pytest.raises(zmq.Again, match="begin again with the first"):
        WAYS[way](zmq, sender)
    assert unfinished(sender) == 1
    receiver = make_peer()
    sender.send_multipart([b"head 2", b"body 2"])
    assert receiver.recv_multipart() == [b"head 2", b"body 2"]
    sender.send(b"alone")
    assert receiver.recv_multipart() == [b"alone"]
    assert unfinished(sender) == 1


def test_an_interrupted_last_part_ends_the_message(zmq, begun):
    sender, make_peer = begun
    with alarms(raise_at=3), pytest.raises(Interruption):
        sender.send(b"body")
    assert unfinished(sender) == 1
    receiver = make_peer()
    sender.send_multipart([b"head 2", b"body 2"])
    assert receiver.recv_multipart() == [b"head 2", b"body 2"]


def test_a_last_part_that_waits_sends_the_whole_message(zmq, begun):
    """A message that a signal handler sends meanwhile stays separate."""
    sender, make_peer = begun
    with alarms() as seen:
        peer = []

        def connect():
            eventually(lambda: len(seen) > 3)
            peer.append(make_peer())

        connecting = Background(connect)
        sender.send(b"body")
        connecting.result()
    assert peer[0].recv_multipart() == [b"head", b"body"]
    assert unfinished(sender) == 0


def test_a_message_to_a_peer_that_is_gone(zmq, sockets, transport):
    router = sockets.bound(zmq.ROUTER, transport, router_mandatory=1)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"d")
    dealer.send(b"hello")
    assert router.recv_multipart() == [b"d", b"hello"]
    router.send(b"d", zmq.SNDMORE)
    router.send(b"neck", zmq.SNDMORE)
    dealer.close()

    def is_gone():
        try:
            router.send_multipart([b"d", b"?"])
        except zmq.ZMQError as error:
            return error.errno == zmq.EHOSTUNREACH
        return False

    Background(eventually, is_gone).result()
    with pytest.raises(zmq.ZMQError) as error:
        router.send(b"body")
    assert error.value.errno == zmq.EHOSTUNREACH
    assert unfinished(router) == 1
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"e")
    dealer.send(b"hello")
    assert router.recv_multipart() == [b"e", b"hello"]
    router.send_multipart([b"e", b"body 2"])
    assert dealer.recv_multipart() == [b"body 2"]


def test_an_argument_that_is_not_a_part_changes_nothing(zmq, sockets):
    """As with pyzmq, the call is wrong, and no part is sent."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    with pytest.raises(TypeError):
        push.send_multipart([b"1", b"2", 3])
    push.send(b"head", zmq.SNDMORE)
    with pytest.raises(TypeError):
        push.send(3, zmq.SNDMORE)
    with pytest.raises(TypeError):
        push.send_multipart([b"neck", 3])
    push.send(b"body")
    assert pull.recv_multipart() == [b"head", b"body"]
    assert unfinished(push) == 0


def test_a_signal_ends_a_message_without_end(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, "inproc")
    with alarms(raise_at=2), pytest.raises(Interruption):
        # Enough parts to take longer than two signals. An endless iterator would use up all memory if this test failed.
        push.send_multipart(itertools.repeat(b"", 8_000_000))
    assert push.stats()["sent"] == 0
    push.send(b"the next one")
    assert pull.recv_multipart() == [b"the next one"]


def test_a_received_frame_that_had_more_is_a_message(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"a", b"b"])
    frame = pull.recv(copy=False)
    assert frame.more and pull.recv() == b"b"
    push.send(frame)
    push.send(b"c")
    assert [pull.recv_multipart(), pull.recv_multipart()] == [[b"a"], [b"c"]]


def test_batches_stay_whole(zmq, begun):
    """They neither join nor end a message that was begun."""
    sender, make_peer = begun
    with pytest.raises(zmq.Again):
        sender.send_batch([[b"1", b"2"], [b"3", b"4"]], zmq.DONTWAIT)
    receiver = make_peer()
    assert sender.send_batch([[b"1", b"2"]]) == 1
    sender.send(b"body")
    assert receiver.recv_multipart() == [b"1", b"2"]
    assert receiver.recv_multipart() == [b"head", b"body"]


def test_a_thread_that_ends_leaves_a_count(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_multipart([b"1", b"2"])

    def begin():
        assert pull.recv() == b"1"
        push.send(b"head", zmq.SNDMORE)

    thread = threading.Thread(target=begin)
    thread.start()
    thread.join()
    eventually(lambda: unfinished(push) == 1 and unfinished(pull) == 1)
