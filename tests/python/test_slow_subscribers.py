"""What happens when a subscriber cannot keep up: `SLOW_SUBSCRIBER` of its publisher, and its own `MAX_LAG`."""

import asyncio
import os
import signal
import time

import pytest
from support import PATIENCE, eventually, finish_script, start_script

pytestmark = pytest.mark.zeroxide_only

# Fills the buffers on the way after few messages.
LARGE = 100_000
TRANSPORTS = ["tcp", "ipc", "inproc"]


def large(number):
    return str(number).encode().ljust(LARGE)


@pytest.fixture(params=TRANSPORTS)
def publisher(request, zmq, sockets):
    """An XPUB, with a subscription as the first message that it receives."""
    return sockets.bound(zmq.XPUB, request.param, sndhwm=10, sndbuf=LARGE)


@pytest.fixture
def subscriber(zmq, publisher, sockets):
    options = {"rcvhwm": 10, "rcvbuf": LARGE, "reconnect_ivl": 1}
    subscriber = sockets.connected(zmq.SUB, publisher, **options)
    subscriber.subscribe(b"")
    assert publisher.recv() == b"\x01"
    return subscriber


def is_local(socket):
    return socket.last_endpoint.startswith(b"inproc")


def dropped(socket):
    return socket.stats()["dropped"]["too_slow"]


def flood(publisher):
    """Publishes until the subscriber is disconnected. Returns the next number."""
    number = 0
    while not dropped(publisher):
        publisher.send(large(number))
        number += 1
    return number


def test_a_publisher_drops_messages_by_default(zmq, publisher, subscriber):
    assert publisher.slow_subscriber == zmq.SLOW_DROP
    for number in range(100):
        publisher.send(large(number))
    assert publisher.stats()["dropped"]["high_water"] > 0
    assert dropped(publisher) == 0 and len(publisher.stats()["peers"]) == 1


def test_a_publisher_waits_as_with_nodrop(zmq, publisher, subscriber):
    publisher.xpub_nodrop = 1
    assert publisher.slow_subscriber == zmq.SLOW_WAIT
    publisher.xpub_nodrop = 0
    assert publisher.slow_subscriber == zmq.SLOW_DROP
    publisher.slow_subscriber = zmq.SlowSubscriber.WAIT
    with pytest.raises(zmq.Again):
        for number in range(100):
            publisher.send(large(number), zmq.DONTWAIT)
    assert publisher.poll(0, zmq.POLLOUT) == 0
    assert int(subscriber.recv()) == 0


def test_a_publisher_disconnects(zmq, publisher, subscriber):
    publisher.slow_subscriber = zmq.SLOW_DISCONNECT
    with publisher.monitor_events(zmq.EVENT_DISCONNECTED) as events:
        flood(publisher)
        assert "SLOW_SUBSCRIBER" in events.recv(PATIENCE * 1000).reason
    assert publisher.stats()["dropped"]["high_water"] == 0
    assert publisher.recv() == b"\x00", "its subscription has ended"
    if is_local(publisher):
        with pytest.raises(zmq.TooSlow, match="Connect again") as caught:
            subscriber.recv()
        assert caught.value.errno == zmq.ETOOSLOW
        assert dropped(subscriber) >= 20
        subscriber.connect(publisher.last_endpoint)
    else:
        # It has to read what it has before it notices.
        eventually(lambda: not subscriber.poll(0) or (subscriber.recv() and publisher.poll(0)))
    assert publisher.recv() == b"\x01"
    publisher.send(b"new")
    eventually(lambda: subscriber.recv() == b"new")


def fill(publisher, count=100):
    for number in range(count):
        publisher.send(large(number))


WORK_S = 0.02
MAX_LAG_MS = 30


def test_a_subscriber_that_is_too_slow_gets_an_error(zmq, publisher, subscriber):
    subscriber.max_lag = MAX_LAG_MS
    fill(publisher)
    with pytest.raises(zmq.TooSlow, match="30 ms") as caught:
        while True:
            subscriber.recv()
            fill(publisher, 3)
            time.sleep(WORK_S)
    assert caught.value.errno == zmq.ETOOSLOW
    assert dropped(subscriber) > 0
    if not is_local(publisher):
        assert [publisher.recv(), publisher.recv()] == [b"\x00", b"\x01"], "it has joined again"
    publisher.send(b"new")
    assert subscriber.recv() == b"new"


def test_a_subscriber_in_asyncio_gets_the_error_too(zmq, publisher, subscriber):
    subscriber.max_lag = MAX_LAG_MS

    async def work():
        mirror = zmq.asyncio.Socket(subscriber)
        while True:
            await mirror.recv()
            fill(publisher, 3)
            await asyncio.sleep(WORK_S)

    fill(publisher)
    with pytest.raises(zmq.TooSlow, match="MAX_LAG"):
        asyncio.run(work())
    if not is_local(publisher):
        assert [publisher.recv(), publisher.recv()] == [b"\x00", b"\x01"]
    publisher.send(b"new")
    assert subscriber.recv() == b"new"


def test_a_publisher_in_asyncio_disconnects(zmq, publisher, subscriber):
    publisher.slow_subscriber = zmq.SLOW_DISCONNECT

    async def publish():
        mirror = zmq.asyncio.Socket(publisher)
        number = 0
        while not dropped(publisher):
            await mirror.send(large(number))
            number += 1
        return await mirror.recv()

    assert asyncio.run(publish()) == b"\x00"


def test_a_batch_ends_before_the_error_and_does_not_swallow_it(zmq, publisher, subscriber):
    subscriber.max_lag = MAX_LAG_MS
    fill(publisher)
    with pytest.raises(zmq.TooSlow):
        while True:
            assert subscriber.recv_batch(2)
            fill(publisher, 3)
            time.sleep(WORK_S)


def test_the_limit_is_off_by_default_and_can_be_lifted(zmq, publisher, subscriber):
    assert subscriber.max_lag == 0
    subscriber.max_lag = 1
    subscriber.max_lag = 0
    fill(publisher)
    for number in range(5):
        assert int(subscriber.recv()) == number
        time.sleep(WORK_S)


def test_the_options_belong_to_their_types(zmq, sockets):
    refused = [(zmq.PUB, "max_lag", 5), (zmq.SUB, "slow_subscriber", 1), (zmq.XSUB, "max_lag", 5)]
    for kind, option, value in refused:
        with (
            sockets.context.socket(kind) as socket,
            pytest.raises(zmq.ZMQError, match=option.upper()),
        ):
            setattr(socket, option, value)
    with sockets.context.socket(zmq.PUB) as pub, pytest.raises(zmq.ZMQError, match="3"):
        pub.slow_subscriber = 3


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
def test_a_stopped_subscriber_does_not_hold_up_the_others(zmq, sockets, transport):
    """A subscriber that is stopped by SIGSTOP is disconnected, and comes back when it continues."""
    publisher = sockets.bound(zmq.XPUB, transport, sndhwm=10, sndbuf=LARGE)
    publisher.slow_subscriber = zmq.SLOW_DISCONNECT
    stopped = start_script(
        zmq.__name__,
        """
        import sys
        context = zmq.Context()
        subscriber = context.socket(zmq.SUB)
        subscriber.rcvhwm = 10
        subscriber.rcvbuf = 100_000
        subscriber.reconnect_ivl = 1
        subscriber.subscribe("")
        subscriber.connect(sys.argv[1])
        while subscriber.recv() != b"end":
            pass
        """,
        publisher.last_endpoint.decode(),
    )
    try:
        assert publisher.recv() == b"\x01"
        os.kill(stopped.pid, signal.SIGSTOP)
        flood(publisher)
        assert publisher.recv() == b"\x00"
        os.kill(stopped.pid, signal.SIGCONT)
        assert publisher.recv() == b"\x01"
        publisher.send(b"end")
        finish_script(stopped)
    finally:
        stopped.kill()
