"""A last value cache gives new subscribers what they missed."""

import asyncio

import pytest
from pattern_peers import commands
from support import Background, eventually, synchronise

from zeroxide import patterns
from zeroxide.asyncio import Socket as AsyncSocket
from zeroxide.patterns._last_value import LastValueMachine
from zeroxide.patterns._machine import Subscribe, ToAll

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])


def update(machine, topic, value):
    machine.handle_message("publishers", [topic, value], 0)
    assert commands(machine) == [("subscribers", [topic, value])]


def replies(machine, topic, now=0):
    """What a new subscription causes, after the subscription itself."""
    machine.handle_message("subscribers", [b"\x01" + topic], now)
    assert machine.poll_command() == Subscribe("subscribers", topic, True)
    sent = commands(machine)
    if sent == [ToAll("subscribers")]:
        return []
    return [parts for _, parts in sent]


def test_a_subscription_gets_the_last_values_of_its_topics():
    machine = LastValueMachine(10)
    for topic, value in ((b"A", b"1"), (b"AB", b"2"), (b"A", b"3"), (b"B", b"4")):
        update(machine, topic, value)
    assert replies(machine, b"AB") == [[b"AB", b"2"]]
    assert replies(machine, b"A") == [[b"AB", b"2"], [b"A", b"3"]]
    assert replies(machine, b"C") == []
    assert len(replies(machine, b"")) == 3


def test_topics_that_were_not_updated_for_the_longest_time_are_dropped():
    machine = LastValueMachine(2)
    for topic in (b"A", b"B", b"A", b"C"):
        update(machine, topic, b"value")
    assert replies(machine, b"") == [[b"A", b"value"], [b"C", b"value"]]


def test_an_end_of_a_subscription_is_applied_and_other_messages_are_dropped():
    machine = LastValueMachine(2)
    machine.handle_message("subscribers", [b"\x00A"], 0)
    assert machine.poll_command() == Subscribe("subscribers", b"A", False)
    assert commands(machine) == [ToAll("subscribers")]
    for parts in ([b""], [b"\x02A"], [b"\x01A", b"more"]):
        machine.handle_message("subscribers", parts, 0)
        assert commands(machine) == [ToAll("subscribers")]
    assert machine.dropped == 3


def filled(topics, size=100):
    machine = LastValueMachine(10_000)
    for number in range(topics):
        update(machine, b"%05d" % number, bytes(size))
    return machine


def repeated(machine, until):
    """How many messages are sent again up to this time."""
    count = 0
    while (due := machine.poll_timeout()) is not None and due <= until:
        machine.handle_timeout(due)
        count += len(commands(machine))
    return count


def test_subscriptions_to_everything_repeat_a_limited_number_of_messages():
    machine = filled(5000)
    assert len(replies(machine, b"")) == 5000
    sent = 0
    for now in range(1, 10_001):
        sent += repeated(machine, now)
        # The new subscriber has one message at once.
        sent += len(replies(machine, b"", now)) - 1
        machine.handle_message("subscribers", [b"\x00"], now)
        commands(machine)
    assert 40_000 <= sent <= 55_000
    # The last subscribers also get everything.
    assert repeated(machine, now + 2000) == 5000
    assert machine.poll_timeout() is None


def test_large_messages_are_repeated_less_often():
    machine = filled(50, 1_000_000)
    sent = len(replies(machine, b""))
    for now in range(10_000):
        sent += repeated(machine, now) + len(replies(machine, b"", now)) - 1
    assert sent <= 150


def test_repetitions_that_wait_are_merged():
    machine = filled(5000)
    replies(machine, b"")
    for prefix in (b"0000", b"001", b"00", b"0012", b"04999", b"x"):
        assert len(replies(machine, prefix, 1)) == (prefix != b"x")
    due = machine.poll_timeout()
    assert due > 500
    machine.handle_timeout(due)
    topics = [parts[0] for _, parts in commands(machine)]
    assert topics == [b"%05d" % number for number in range(1000)]


def test_many_prefixes_that_wait_take_little_memory():
    machine = filled(5000)
    replies(machine, b"")
    for number in range(5000):
        update(machine, b"%05d more" % number, b"")
        replies(machine, b"%05d" % number, 1)
    assert len(machine._waiting) <= 1001
    assert repeated(machine, 10_000) == 10_000


def test_few_messages_are_repeated_at_once():
    machine = filled(10)
    for _ in range(90):
        assert len(replies(machine, b"")) == 10


def test_values_are_limited_in_bytes():
    machine = LastValueMachine(100, 1_000_000)
    for number in range(20):
        update(machine, b"%02d" % number, bytes(99_000))
    assert [topic for topic, _ in replies(machine, b"")] == [b"%d" % n for n in range(10, 20)]
    update(machine, b"too large", bytes(2_000_000))
    assert replies(machine, b"") == []
    for _ in range(20):
        update(machine, b"A", bytes(99_000))
    update(machine, b"B", b"")
    assert len(replies(machine, b"")) == 2


def test_a_subscription_without_a_value_takes_no_update_from_the_others(context, zmq, monkeypatch):
    with patterns.LastValueCache("inproc://in", "inproc://out", context=context) as cache:
        handle, subscribed = cache._driver._machine.handle_message, set()

        def handle_message(link, parts, now):
            handle(link, parts, now)
            subscribed.add(parts[0])

        monkeypatch.setattr(cache._driver._machine, "handle_message", handle_message)
        running = Background(cache.run)
        publisher = context.socket(zmq.PUB)
        publisher.connect("inproc://in")
        first = subscriber(context, zmq, "inproc://out", b"A")
        synchronise(publisher, first, b"A")
        second = subscriber(context, zmq, "inproc://out", b"B")
        synchronise(publisher, second, b"B")
        for number in range(10):
            if number % 2:
                second.subscribe(b"C%d" % number)
            else:
                second.unsubscribe(b"C%d" % (number - 1))
            publisher.send_multipart([b"B", b"%d" % number])
            assert second.recv_multipart() == [b"B", b"%d" % number]
            second.subscribe(b"D%d" % number)
            eventually(lambda: b"\x01D%d" % number in subscribed)  # noqa: B023
            publisher.send_multipart([b"A", b"%d" % number])
            assert first.recv_multipart() == [b"A", b"%d" % number]
        cache.stop()
        running.result()


def subscriber(context, zmq, endpoint, topic):
    socket = context.socket(zmq.SUB)
    socket.subscribe(topic)
    socket.connect(endpoint)
    return socket


def test_only_the_new_subscriber_gets_the_value(context, zmq):
    with patterns.LastValueCache("inproc://in", "inproc://out", context=context) as cache:
        running = Background(cache.run)
        publisher = context.socket(zmq.PUB)
        publisher.connect("inproc://in")
        first = subscriber(context, zmq, "inproc://out", b"A")
        synchronise(publisher, first, b"A")
        publisher.send_multipart([b"A", b"value"])
        assert first.recv_multipart() == [b"A", b"value"]
        second = subscriber(context, zmq, "inproc://out", b"A")
        assert second.recv_multipart() == [b"A", b"value"]
        publisher.send_multipart([b"A", b"next"])
        for socket in (first, second):
            assert socket.recv_multipart() == [b"A", b"next"]
        second.unsubscribe(b"A")
        second.subscribe(b"B")
        publisher.send_multipart([b"A", b"last"])
        synchronise(publisher, second, b"B")
        assert not second.poll(0)
        cache.stop()
        running.result()


@FORMS
def test_last_values_survive_their_publisher_and_a_cache_its_death(
    peers, directory, context, zmq, form
):
    """The cache loses its values with SIGKILL; publishers and subscribers find the next one."""
    endpoints = {name: f"ipc://{directory}/{name}" for name in ("publishers", "subscribers")}
    cache = peers.start(f"{form}LastValueCache", **endpoints)
    publisher = context.socket(zmq.PUB)
    publisher.connect(endpoints["publishers"])
    first = subscriber(context, zmq, endpoints["subscribers"], b"A")
    synchronise(publisher, first, b"A")
    publisher.send_multipart([b"A", b"value"])
    assert first.recv_multipart() == [b"A", b"value"]
    publisher.close(linger=0)
    late = subscriber(context, zmq, endpoints["subscribers"], b"A")
    assert late.recv_multipart() == [b"A", b"value"]

    cache.kill()
    cache = peers.start(f"{form}LastValueCache", **endpoints)
    publisher = context.socket(zmq.PUB)
    publisher.connect(endpoints["publishers"])
    synchronise(publisher, first, b"A")
    publisher.send_multipart([b"A", b"again"])
    assert first.recv_multipart() == [b"A", b"again"]
    late = subscriber(context, zmq, endpoints["subscribers"], b"A")
    assert late.recv_multipart() == [b"A", b"again"]

    # A value waits for a cache that is silent.
    cache.stop()
    publisher.send_multipart([b"A", b"later"])
    latest = subscriber(context, zmq, endpoints["subscribers"], b"A")
    assert not first.poll(0)
    cache.resume()
    assert first.recv_multipart() == [b"A", b"later"]
    assert latest.recv_multipart()[0] == b"A"


def test_a_cache_as_large_as_it_may_be_reaches_a_subscriber(context, zmq):
    """There are more values than the default high-water marks of both sockets allow."""

    async def main():
        cache = patterns.AsyncLastValueCache(
            "inproc://in", "inproc://out", max_topics=3000, context=context
        )
        async with cache:
            for number in range(3001):
                cache._driver._machine.handle_message("publishers", [b"%d" % number], 0)
            running = asyncio.ensure_future(cache.run())
            socket = subscriber(context, zmq, "inproc://out", b"")
            late = AsyncSocket.from_socket(socket)
            received = [await late.recv() for _ in range(3000)]
            assert received == [b"%d" % number for number in range(1, 3001)]
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)

    asyncio.run(main())
