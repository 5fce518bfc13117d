"""Many messages in one call."""

import threading

import pytest
from support import Background

pytestmark = pytest.mark.zeroxide_only


def test_round_trip(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    bodies = [b"%d" % number for number in range(500)]
    assert push.send_batch(bodies) == 500
    assert collect(pull, 500) == bodies


def test_forms_of_a_message(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    batch = [
        b"bytes",
        bytearray(b"bytearray"),
        memoryview(b"memoryview"),
        zmq.Frame(b"frame"),
        [b"two", b"parts"],
        (b"x" * 100_000, zmq.Frame(b"y"), b""),
        [b"one part"],
        b"",
    ]
    expected = [
        [b"bytes"],
        [b"bytearray"],
        [b"memoryview"],
        [b"frame"],
        [b"two", b"parts"],
        [b"x" * 100_000, b"y", b""],
        [b"one part"],
        [b""],
    ]
    for _ in range(2):
        assert push.send_batch(iter(batch)) == len(batch)
    assert collect(pull, 8, multipart=True) == expected
    assert collect(pull, 8) == [m[0] if len(m) == 1 else m for m in expected]


def collect(socket, count, **options):
    """Receives batches until there are `count` messages."""
    messages = []
    while len(messages) < count:
        messages += socket.recv_batch(count - len(messages), **options)
    return messages


def test_what_was_received_can_be_sent(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_batch([b"a", [b"b", b"c"]])
    first = collect(pull, 2)
    assert push.send_batch(first) == 2
    assert pull.recv_multipart() == [b"a"]
    assert pull.recv_multipart() == [b"b", b"c"]


def test_mixes_with_single_calls(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send(b"1")
    push.send_batch([b"2", b"3"])
    push.send_multipart([b"4", b"5"])
    assert pull.recv() == b"1"
    assert pull.recv_batch(1) == [b"2"]
    assert pull.recv() == b"3"
    assert pull.recv() == b"4"
    # The next call of this thread returns the rest of a message.
    assert pull.recv_batch()[0] == b"5"


def test_never_more_than_requested(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    push.send_batch([b"x"] * 10)
    received = 0
    while received < 10:
        batch = pull.recv_batch(3)
        assert 1 <= len(batch) <= 3
        received += len(batch)
    for count in (0, -1):
        with pytest.raises(ValueError):
            pull.recv_batch(count)


def test_nothing(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    assert push.send_batch([]) == 0
    for call in (
        lambda: pull.recv_batch(flags=zmq.DONTWAIT),
        lambda: pull.recv_batch(10, 5),
        lambda: pull.recv_batch(timeout=0),
    ):
        with pytest.raises(zmq.Again):
            call()
    pull.rcvtimeo = 5
    with pytest.raises(zmq.Again):
        pull.recv_batch()


def test_waits_for_the_first(zmq, sockets, transport):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH, transport)
    for timeout in (None, -1, 20_000):
        waiting = Background(pull.recv_batch, 100, timeout)
        push.send(b"first")
        assert waiting.result() == [b"first"]


def test_wrong_kinds(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for batch in ([b"good", "text"], [b"good", [b"good", 5]], [b"good", None], 5):
        with pytest.raises(TypeError):
            push.send_batch(batch)
    with pytest.raises(ValueError):
        push.send_batch([b"good", []])
    push.send(b"nothing of that was sent")
    assert pull.recv_batch() == [b"nothing of that was sent"]


def test_full(zmq, context):
    """Messages without room are not sent, and not counted in the result."""
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.rcvhwm, push.sndhwm = 3, 4
        pull.bind("inproc://batch")
        push.connect("inproc://batch")
        batch = [b"%d" % number for number in range(10)]
        assert push.send_batch(batch, zmq.DONTWAIT) == 7
        with pytest.raises(zmq.Again):
            push.send_batch(batch[7:], zmq.DONTWAIT)
        assert pull.recv_batch() == batch[:7]
        push.poll(None, zmq.POLLOUT)
        assert push.send_batch(batch[7:], zmq.DONTWAIT) == 3


def test_blocks_until_all_are_taken(zmq, context):
    with context.socket(zmq.PULL) as pull, context.socket(zmq.PUSH) as push:
        pull.rcvhwm = push.sndhwm = 2
        pull.bind("inproc://batch")
        push.connect("inproc://batch")
        sending = Background(push.send_batch, [b"%d" % number for number in range(100)])
        assert collect(pull, 100) == [b"%d" % number for number in range(100)]
        assert sending.result() == 100


def test_wrong_way(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    for call in (lambda: pull.send_batch([b""]), push.recv_batch):
        with pytest.raises(zmq.ZMQError) as caught:
            call()
        assert caught.value.errno == zmq.ENOTSUP


def test_envelopes(zmq, sockets):
    router = sockets.bound(zmq.ROUTER)
    dealer = sockets.connected(zmq.DEALER, router, routing_id=b"d")
    dealer.send_batch([b"a", [b"b", b"c"]])
    received = collect(router, 2, multipart=True)
    assert received == [[b"d", b"a"], [b"d", b"b", b"c"]]
    assert router.send_batch(received) == 2
    assert dealer.recv_multipart() == [b"a"]
    assert dealer.recv_multipart() == [b"b", b"c"]


@pytest.mark.parametrize("among", [b"bytes", bytearray(b"a bytearray")])
def test_a_list_that_changes_while_it_is_sent(zmq, sockets, among):
    """The items at the start of the call are sent, whatever they do to the list."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)

    class Greedy(list):
        def __iter__(self):
            batch.clear()
            return super().__iter__()

    batch = [among, Greedy([b"two", b"parts"]), b"last"]
    assert push.send_batch(batch) == 3
    assert batch == []
    assert collect(pull, 3, multipart=True) == [[bytes(among)], [b"two", b"parts"], [b"last"]]


def test_a_list_that_another_thread_changes(zmq, sockets):
    """Each batch is the list's contents at one moment."""
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    shared = [b"x"] * 500
    over = threading.Event()

    def change():
        while not over.is_set():
            shared.clear()
            shared.extend([b"x"] * 500)

    changing = Background(change)
    sent = [push.send_batch(shared) for _ in range(100)]
    over.set()
    changing.result()
    assert set(sent) <= {0, 500}
    assert len(collect(pull, sum(sent))) == sum(sent)
