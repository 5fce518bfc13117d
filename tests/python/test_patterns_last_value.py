"""A last value cache gives new subscribers what they missed."""

import asyncio

import pytest
from pattern_peers import commands
from support import Background, synchronise

from zeroxide import patterns
from zeroxide.asyncio import Socket as AsyncSocket
from zeroxide.patterns._last_value import LastValueMachine
from zeroxide.patterns._machine import Subscribe

pytestmark = pytest.mark.zeroxide_only

FORMS = pytest.mark.parametrize("form", ["", "Async"], ids=["blocking", "asyncio"])


def update(machine, topic, value):
    machine.handle_message("publishers", [topic, value], 0)
    assert commands(machine) == [("subscribers", [topic, value])]


def replies(machine, topic):
    """What a new subscription causes, after the subscription itself."""
    machine.handle_message("subscribers", [b"\x01" + topic], 0)
    assert machine.poll_command() == Subscribe("subscribers", topic, True)
    return [parts for _, parts in commands(machine)]


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
    for parts in ([b""], [b"\x02A"], [b"\x01A", b"more"]):
        machine.handle_message("subscribers", parts, 0)
        assert machine.poll_command() is None


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
