"""A man in the middle: listens, changes, repeats, downgrades."""

import itertools
import threading

import pytest
from peers import Handshakes, bound, connected, inproc
from support import PATIENCE, eventually


def untouched(direction, gone, chunk):
    return chunk


def test_a_listener_learns_nothing(zmq, context, curve, middle):
    heard = []

    def listen(direction, gone, chunk):
        heard.append(chunk)
        return chunk

    server, client = curve
    pull, _ = bound(zmq, context, zmq.PULL, **server)
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, listen), **client)
    secret = b"nobody must know this " * 10
    push.send(secret)
    assert pull.recv() == secret
    assert b"nobody" not in b"".join(heard)


# The positions of the mechanism and of the version in a greeting.
MECHANISM, VERSION = slice(12, 32), 10


@pytest.mark.parametrize("forged", ["NULL", "PLAIN", "ZMTP 2"])
def test_security_cannot_be_downgraded(zmq, context, curve, middle, forged):
    """Greetings are forged in transit to either side."""

    def forge(direction, gone, chunk):
        chunk = bytearray(chunk)
        for place in range(gone, gone + len(chunk)):
            if forged == "ZMTP 2" and place == VERSION:
                chunk[place - gone] = 1
            elif forged != "ZMTP 2" and MECHANISM.start <= place < MECHANISM.stop:
                name = forged.encode().ljust(20, b"\0")
                chunk[place - gone] = name[place - MECHANISM.start]
        return bytes(chunk)

    server, client = curve
    pull, handshakes = bound(zmq, context, zmq.PULL, **server)
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, forge), **client)
    push.send(b"secret")
    event, _ = handshakes.next()
    assert event & (zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL)
    assert not pull.poll(50)


def frames_of(stream):
    """The start and end of each complete ZMTP frame at the beginning of some bytes."""
    at = 64
    while at + 2 <= len(stream):
        if stream[at] & 2:
            if at + 9 > len(stream):
                return
            end = at + 9 + int.from_bytes(stream[at + 1 : at + 9], "big")
        else:
            end = at + 2 + stream[at + 1]
        if end > len(stream):
            return
        yield at, end
        at = end


def test_a_message_counts_once(zmq, context, curve, middle):
    """Repeating a recorded message ends the connection."""
    stream = bytearray()
    repeated = threading.Event()

    def repeat(direction, gone, chunk):
        if direction == "up" and not repeated.is_set():
            stream.extend(chunk)
            whole = list(frames_of(stream))
            # HELLO, INITIATE, then the first message.
            if len(whole) >= 3:
                repeated.set()
                begin, end = whole[2]
                return chunk + bytes(stream[begin:end])
        return chunk

    server, client = curve
    pull, _ = bound(zmq, context, zmq.PULL, **server)
    monitor = pull.get_monitor_socket(zmq.EVENT_DISCONNECTED, inproc("replay"))
    push = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, repeat), **client)
    push.send(b"pay 100")
    assert pull.recv() == b"pay 100"
    assert monitor.poll(PATIENCE * 1000)
    assert not pull.poll(50)


@pytest.mark.zeroxide_only
@pytest.mark.parametrize("direction", ["up", "down"])
def test_no_byte_of_a_handshake_can_be_changed(zmq, context, curve, middle, direction):
    """One bit in each byte after the greeting, one connection for each."""
    server, client = curve
    # A greeting, HELLO and INITIATE in one direction; a greeting, WELCOME and READY in the other.
    sent = {"up": bytearray(), "down": bytearray()}

    def record(way, gone, chunk):
        sent[way] += chunk
        return chunk

    pull, handshakes = bound(zmq, context, zmq.PULL, **server)
    probe = connected(zmq, context, zmq.PUSH, middle(pull.last_endpoint, record), **client)
    probe.send(b"probe")
    assert pull.recv() == b"probe"
    assert handshakes.next()[0] == zmq.EVENT_HANDSHAKE_SUCCEEDED
    [_, (_, handshake)] = list(itertools.islice(frames_of(sent[direction]), 2))
    probe.close()

    target = itertools.count(64)
    place = [0]

    def flip(way, gone, chunk):
        if way == direction and gone <= place[0] < gone + len(chunk):
            chunk = bytearray(chunk)
            chunk[place[0] - gone] ^= 1
        return bytes(chunk)

    endpoint = middle(pull.last_endpoint, flip)
    for place[0] in itertools.takewhile(lambda at: at < handshake, target):
        push = context.socket(zmq.PUSH)
        push.linger = 0
        push.handshake_ivl = 200
        # One change is enough.
        push.reconnect_ivl = -1
        for name, value in client.items():
            setattr(push, name, value)
        mine = Handshakes(zmq, push)
        push.connect(endpoint)
        event, _ = mine.next()
        # A changed length of a frame makes the other side wait for more bytes.
        assert event != zmq.EVENT_HANDSHAKE_SUCCEEDED, place[0]
        push.close()
    assert not pull.poll(0)


@pytest.mark.zeroxide_only
def test_no_byte_of_a_message_can_be_changed(zmq, context, curve, middle):
    server, client = curve
    place = [None]
    stream = bytearray()

    def flip(way, gone, chunk):
        if way != "up":
            return chunk
        begin = len(stream)
        stream.extend(chunk)
        whole = list(frames_of(stream))
        chunk = bytearray(chunk)
        # After HELLO and INITIATE, whether complete or not.
        if len(whole) >= 2:
            at = whole[1][1] + place[0] - begin
            if 0 <= at < len(chunk):
                chunk[at] ^= 0x10
        return bytes(chunk)

    pull, _ = bound(zmq, context, zmq.PULL, **server)
    endpoint = middle(pull.last_endpoint, flip)
    # Two bytes of header, 8 of name, 8 of nonce, 16 of tag, flags, 5 of body.
    for place[0] in range(2 + 8 + 8 + 16 + 1 + 5):
        # The previous connection has ended, so no more of its bytes arrive.
        stream.clear()
        push = context.socket(zmq.PUSH)
        push.linger = 0
        push.reconnect_ivl = -1
        for name, value in client.items():
            setattr(push, name, value)
        monitor = push.get_monitor_socket(zmq.EVENT_DISCONNECTED, inproc("flips"))
        push.connect(endpoint)
        push.send(b"hello")
        if place[0] == 1:
            # The length: the receiver waits for a byte that does not arrive.
            eventually(lambda: len(list(frames_of(stream))) >= 3)
        else:
            assert monitor.poll(PATIENCE * 1000), place[0]
        push.close()
    assert not pull.poll(0)
