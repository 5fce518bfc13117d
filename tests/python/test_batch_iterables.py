"""send_batch of iterables: no item is taken without room for it."""

import itertools
import threading

import pytest
from support import Background

pytestmark = pytest.mark.zeroxide_only


class Counting:
    """An iterator over numbers that counts the items it has yielded."""

    def __init__(self, end=None):
        self.given = 0
        self._end = end

    def __iter__(self):
        return self

    def __next__(self):
        if self.given == self._end:
            raise StopIteration
        self.given += 1
        return b"%d" % (self.given - 1)


@pytest.fixture
def full(zmq, context):
    """A PULL and a PUSH socket with room for 10 messages."""
    pull, push = context.socket(zmq.PULL), context.socket(zmq.PUSH)
    pull.rcvhwm = push.sndhwm = 5
    push.sndtimeo = -1
    pull.bind("inproc://full")
    push.connect("inproc://full")
    yield pull, push
    pull.close()
    push.close()


@pytest.mark.parametrize("end", [None, 2000])
def test_takes_no_more_than_there_is_room_for(zmq, full, end):
    pull, push = full
    numbers = Counting(end)
    assert push.send_batch(numbers, zmq.DONTWAIT) == numbers.given == 10
    with pytest.raises(zmq.Again) as caught:
        push.send_batch(numbers, zmq.DONTWAIT)
    assert caught.value.sent == 0
    assert numbers.given == 10
    assert pull.recv_batch() == [b"%d" % number for number in range(10)]
    push.poll(None, zmq.POLLOUT)
    assert push.send_batch(numbers, zmq.DONTWAIT) == numbers.given - 10 == 10
    assert pull.recv_batch() == [b"%d" % number for number in range(10, 20)]


def test_takes_no_more_than_there_is_room_for_in_time(zmq, full):
    pull, push = full
    push.sndtimeo = 20
    numbers = Counting()
    assert push.send_batch(numbers) == numbers.given == 10
    with pytest.raises(zmq.Again):
        push.send_batch(numbers)
    assert numbers.given == 10
    assert pull.recv_batch() == [b"%d" % number for number in range(10)]


@pytest.mark.parametrize("timeout", [-1, 20_000])
def test_an_endless_iterable_is_sent_item_by_item(zmq, full, timeout):
    pull, push = full
    push.sndtimeo = timeout
    over = threading.Event()
    numbers = itertools.takewhile(lambda _: not over.is_set(), Counting())
    sending = Background(push.send_batch, numbers)
    received = [pull.recv() for _ in range(1000)]
    assert received == [b"%d" % number for number in range(1000)]
    over.set()
    pull.rcvtimeo = 100
    behind = 0
    while sending.is_alive() or pull.poll(0):
        behind += bool(pull.poll(10)) and bool(pull.recv())
    assert sending.result() == 1000 + behind


@pytest.mark.parametrize("flags", ["", "DONTWAIT"])
def test_as_many_as_there_is_room_for(zmq, full, flags):
    """A call that has sent all items does not wait for room."""
    _pull, push = full
    flags = getattr(zmq, flags, 0)
    assert push.send_batch((b"x" for _ in range(10)), flags) == 10


def test_an_iterable_that_knows_its_length_needs_no_room_to_end(zmq, full):
    _pull, push = full
    push.sndtimeo = 60_000
    assert push.send_batch(iter([b"x"] * 10)) == 10
    assert push.send_batch(iter([])) == 0
    assert push.send_batch({}.values(), zmq.DONTWAIT) == 0


def test_each_item_is_sent_before_the_next_is_requested(zmq, sockets):
    rep, req = sockets.pair(zmq.PULL, zmq.PUSH)

    def messages():
        for number in range(50):
            yield b"%d" % number
            assert rep.recv() == b"%d" % number

    assert req.send_batch(messages()) == 50


def test_an_iterable_may_use_the_socket(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)

    def messages():
        for number in range(20):
            push.send(b"own %d" % number)
            yield b"%d" % number
            assert push.send_batch(iter([b"nested"])) == 1

    assert push.send_batch(messages()) == 20
    for number in range(20):
        assert pull.recv() == b"own %d" % number
        assert pull.recv() == b"%d" % number
        assert pull.recv() == b"nested"


def test_an_iterable_that_raises(zmq, sockets):
    """Its earlier items were sent, and the exception has their number."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)

    def messages(last):
        yield b"a"
        yield [b"b", b"c"]
        yield last()

    def fail():
        raise LookupError("the end")

    with pytest.raises(LookupError, match="the end") as caught:
        push.send_batch(messages(fail))
    assert caught.value.sent == 2
    with pytest.raises(TypeError) as caught:
        push.send_batch(messages(lambda: "text"))
    assert caught.value.sent == 2 and caught.value.unsent == "text"
    for _ in range(2):
        assert pull.recv_multipart() == [b"a"]
        assert pull.recv_multipart() == [b"b", b"c"]
    assert not pull.poll(0)


def test_an_item_without_a_receiver_is_named(zmq, sockets):
    """If the check for room needs the item, an item that could not be sent is in the error."""
    router = sockets.bound(zmq.ROUTER)
    router.router_mandatory = True
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"d")
    dealer.send(b"")
    router.recv_multipart()
    messages = iter([[b"d", b"1"], [b"nobody", b"2"], [b"d", b"3"]])
    with pytest.raises(zmq.ZMQError) as caught:
        router.send_batch(messages)
    assert caught.value.errno == zmq.EHOSTUNREACH
    assert caught.value.sent == 1 and caught.value.unsent == [b"nobody", b"2"]
    assert router.send_batch(messages) == 1
    assert [dealer.recv(), dealer.recv()] == [b"1", b"3"]


def test_a_socket_that_takes_turns(zmq, sockets):
    rep, req = sockets.pair(zmq.REP, zmq.REQ)
    numbers = Counting()
    assert req.send_batch(numbers) == numbers.given == 1
    with pytest.raises(zmq.ZMQError) as caught:
        req.send_batch(numbers)
    assert caught.value.errno == zmq.EFSM
    assert numbers.given == 1
    assert rep.recv() == b"0"


def test_a_socket_that_cannot_send_takes_nothing(zmq, sockets):
    numbers = Counting()
    for break_it in (lambda: sockets.bound(zmq.PULL), lambda: closed(sockets.bound(zmq.PUSH))):
        with pytest.raises(zmq.ZMQError):
            break_it().send_batch(numbers)
    assert numbers.given == 0


def closed(socket):
    socket.close()
    return socket
