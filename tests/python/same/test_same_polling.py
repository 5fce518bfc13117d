"""Pollers, select and zmq_poll."""

import math
import os
import socket as system
import threading
import time
from fractions import Fraction

import pytest


@pytest.fixture
def pipe(zmq, sockets):
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    return push, pull


def test_nothing_registered(zmq):
    poller = zmq.Poller()
    assert poller.poll(0) == []
    assert poller.sockets == []


def test_ready(zmq, pipe):
    push, pull = pipe
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    assert poller.poll(0) == []
    push.send(b"x")
    assert poller.poll(1000) == [(pull, zmq.POLLIN)]
    assert dict(poller.poll()) == {pull: zmq.POLLIN}
    pull.recv()
    assert poller.poll(0) == []


def test_both_directions(zmq, sockets):
    one, other = sockets.pair(zmq.PAIR, zmq.PAIR)
    poller = zmq.Poller()
    poller.register(one)
    other.send(b"x")
    one.poll(1000)
    assert dict(poller.poll(1000)) == {one: zmq.POLLIN | zmq.POLLOUT}


def test_membership(zmq, pipe):
    push, pull = pipe
    poller = zmq.Poller()
    poller.register(push, zmq.POLLOUT)
    assert push in poller
    assert pull not in poller
    assert poller.sockets == [(push, zmq.POLLOUT)]
    poller.unregister(push)
    assert push not in poller


def test_modify(zmq, pipe):
    push, _pull = pipe
    poller = zmq.Poller()
    poller.register(push, zmq.POLLIN)
    poller.modify(push, zmq.POLLOUT)
    assert poller.sockets == [(push, zmq.POLLOUT)]
    assert poller.poll(1000) == [(push, zmq.POLLOUT)]
    poller.register(push, zmq.POLLIN)
    assert poller.sockets == [(push, zmq.POLLIN)]


def test_register_for_nothing_unregisters(zmq, pipe):
    push, _pull = pipe
    poller = zmq.Poller()
    poller.register(push, zmq.POLLOUT)
    poller.register(push, 0)
    assert push not in poller
    poller.register(push, 0)


def test_unregister_an_unknown_object(zmq, pipe):
    with pytest.raises(KeyError):
        zmq.Poller().unregister(pipe[0])


def test_order_of_unregistering(zmq, context):
    poller = zmq.Poller()
    made = [context.socket(zmq.PUB) for _ in range(4)]
    for socket in made:
        poller.register(socket, zmq.POLLOUT)
    poller.unregister(made[1])
    poller.unregister(made[0])
    assert [socket for socket, _ in poller.sockets] == made[2:]
    assert [socket for socket, _ in poller.poll(1000)] == made[2:]


@pytest.mark.parametrize("timeout", [0, 1, 1.5, 0.5])
def test_timeouts(zmq, pipe, timeout):
    poller = zmq.Poller()
    poller.register(pipe[1], zmq.POLLIN)
    assert poller.poll(timeout) == []
    assert poller.poll(timeout=timeout) == []


@pytest.mark.parametrize("timeout", [-1, None, -5])
def test_without_a_timeout(zmq, pipe, timeout):
    push, pull = pipe
    poller = zmq.Poller()
    poller.register(pull, zmq.POLLIN)
    threading.Timer(0.02, push.send, [b"x"]).start()
    assert poller.poll(timeout) == [(pull, zmq.POLLIN)]


def test_descriptors(zmq):
    reading, writing = os.pipe()
    poller = zmq.Poller()
    poller.register(reading, zmq.POLLIN)
    poller.register(writing, zmq.POLLOUT)
    assert poller.poll(0) == [(writing, zmq.POLLOUT)]
    os.write(writing, b"x")
    assert dict(poller.poll(1000))[reading] == zmq.POLLIN
    os.close(writing)
    poller.unregister(writing)
    os.read(reading, 1)
    assert reading in dict(poller.poll(1000))
    os.close(reading)


@pytest.fixture
def ends():
    """A pipe's and a socket's end whose other ends are closed, by name."""
    reading, writing = os.pipe()
    os.close(writing)
    one, other = system.socketpair()
    other.close()
    with one:
        yield {"pipe": reading, "socket": one.fileno()}
    os.close(reading)


@pytest.mark.parametrize(
    ("end", "wanted", "found"),
    [
        ("pipe", "POLLIN", "POLLERR"),
        ("pipe", "POLLOUT", "POLLERR"),
        ("pipe", "POLLERR", "POLLERR"),
        ("socket", "POLLIN", "POLLIN POLLERR"),
        ("socket", "POLLOUT", "POLLOUT POLLERR"),
        ("socket", "POLLERR", "POLLERR"),
    ],
)
def test_a_closed_other_end_is_an_error(zmq, ends, end, wanted, found):
    poller = zmq.Poller()
    poller.register(ends[end], getattr(zmq, wanted))
    mask = sum(getattr(zmq, name) for name in found.split())
    assert poller.poll(1000) == [(ends[end], mask)]
    assert zmq.zmq_poll([(ends[end], getattr(zmq, wanted))], 1000) == [(ends[end], mask)]


def test_select_of_a_closed_other_end(zmq, ends):
    pipe, stream = ends["pipe"], ends["socket"]
    assert zmq.select([pipe], [], [pipe], 1) == ([], [], [pipe])
    assert zmq.select([pipe], [], [], 1) == ([], [], [pipe])
    assert zmq.select([stream], [stream], [], 1) == ([stream], [stream], [stream])


def test_a_pipe_without_a_reader_is_an_error(zmq):
    reading, writing = os.pipe()
    os.close(reading)
    assert zmq.select([], [writing], [], 1) == ([], [writing], [writing])
    os.close(writing)


def test_objects_with_descriptors(zmq, pipe):
    one, other = system.socketpair()
    with one, other:
        poller = zmq.Poller()
        poller.register(one, zmq.POLLIN)
        poller.register(pipe[0], zmq.POLLOUT)
        other.send(b"x")
        time.sleep(0)
        assert dict(poller.poll(1000)).keys() >= {pipe[0]}
        found = dict(poller.poll(1000))
        assert found.get(one.fileno(), found.get(one)) == zmq.POLLIN


@pytest.mark.parametrize("thing", ["text", None, 1.5, object()], ids=repr)
def test_objects_without_descriptors(zmq, thing):
    poller = zmq.Poller()
    with pytest.raises((TypeError, zmq.ZMQError)):
        poller.register(thing, zmq.POLLIN)
        poller.poll(0)


def test_result_is_new_each_time(zmq, pipe):
    poller = zmq.Poller()
    poller.register(pipe[0], zmq.POLLOUT)
    first = poller.poll(1000)
    first.clear()
    assert poller.poll(1000) == [(pipe[0], zmq.POLLOUT)]


def test_masks_are_numbers(zmq, pipe):
    poller = zmq.Poller()
    poller.register(pipe[0], zmq.POLLOUT)
    ((_, mask),) = poller.poll(1000)
    assert mask & zmq.POLLOUT
    assert not mask & zmq.POLLIN
    assert int(mask) == 2


# ---- select and zmq_poll ------------------------------------------------------------


def test_select(zmq, pipe):
    push, pull = pipe
    assert zmq.select([pull], [], [], timeout=0) == ([], [], [])
    assert zmq.select([pull], [push], [pull], timeout=1) == ([], [push], [])
    push.send(b"x")
    assert zmq.select([pull], [], [], 1) == ([pull], [], [])
    assert zmq.select([pull], [push], []) == ([pull], [push], [])


def test_select_of_one_in_both_lists(zmq, sockets):
    one, other = sockets.pair(zmq.PAIR, zmq.PAIR)
    other.send(b"x")
    one.poll(1000)
    assert zmq.select([one], [one], [], 1) == ([one], [one], [])


def test_select_of_nothing(zmq):
    assert zmq.select([], [], [], 0) == ([], [], [])


class Number:
    """A number of another library, such as NumPy's."""

    def __float__(self):
        return 0.001

    def __mul__(self, other):
        return 0.001 * other

    __rmul__ = __mul__


@pytest.mark.parametrize("timeout", [Fraction(1, 1000), True, Number()])
def test_select_with_other_numbers(zmq, timeout):
    assert zmq.select([], [], [], timeout) == ([], [], [])


@pytest.mark.parametrize("timeout", ["1", b"1", [1], math.nan])
def test_select_with_no_number(zmq, timeout):
    with pytest.raises((TypeError, ValueError)):
        zmq.select([], [], [], timeout)


def test_select_of_descriptors(zmq):
    reading, writing = os.pipe()
    assert zmq.select([reading], [writing], [], 1) == ([], [writing], [])
    os.close(reading)
    os.close(writing)


def test_direct(zmq, pipe):
    push, pull = pipe
    assert zmq.zmq_poll([(pull, zmq.POLLIN)], 0) == []
    assert zmq.zmq_poll([(push, zmq.POLLOUT), (pull, zmq.POLLIN)], timeout=1000) == [
        (push, zmq.POLLOUT)
    ]
    assert zmq.zmq_poll([], 0) == []


@pytest.mark.parametrize("items", [[5.5], [("x", 1)], 5])
def test_direct_with_invalid_arguments(zmq, items):
    with pytest.raises((TypeError, ValueError)):
        zmq.zmq_poll(items, 0)


def test_descriptor_of_a_socket(zmq, pipe):
    push, pull = pipe
    poller = zmq.Poller()
    poller.register(pull.fileno(), zmq.POLLIN)
    pull.get(zmq.EVENTS)
    push.send(b"x")
    # libzmq's descriptor is also ready for events other than messages.
    while not pull.get(zmq.EVENTS) & zmq.POLLIN:
        assert poller.poll(5000)


# ---- closed sockets -----------------------------------------------------------------


def test_a_closed_socket_does_not_keep_others_from_being_polled(zmq, context, sockets):
    # This happens in a Poller when a client closes its socket and creates another.
    pull, push = sockets.pair(zmq.PULL, zmq.PUSH)
    given_up = context.socket(zmq.PULL)
    poller = zmq.Poller()
    poller.register(given_up, zmq.POLLIN)
    poller.register(pull, zmq.POLLIN)
    given_up.close()
    push.send(b"x")
    while not (ready := dict(poller.poll(20_000))).get(pull):
        pass
    assert given_up not in ready
    assert given_up in poller
    poller.unregister(given_up)
    assert poller.poll(0) == [(pull, zmq.POLLIN)]


def test_a_closed_socket_of_python_is_never_ready(zmq, pipe):
    push, pull = pipe
    one, other = system.socketpair()
    poller = zmq.Poller()
    poller.register(one, zmq.POLLIN)
    poller.register(pull, zmq.POLLIN)
    one.close()
    other.close()
    assert poller.poll(0) == poller.poll(1) == []
    push.send(b"x")
    assert poller.poll(5000) == [(pull, zmq.POLLIN)]
    assert zmq.select([one, pull], [one], [one], 5) == ([pull], [], [])


def test_a_negative_descriptor_is_never_ready(zmq):
    poller = zmq.Poller()
    poller.register(-1, zmq.POLLIN)
    assert poller.poll(0) == poller.poll(1) == []
    assert zmq.zmq_poll([(-1, zmq.POLLIN), (-5, zmq.POLLERR)], 0) == []


def test_a_closed_file_is_a_mistake(zmq):
    reading, writing = os.pipe()
    os.close(writing)
    file = os.fdopen(reading)
    poller = zmq.Poller()
    poller.register(file, zmq.POLLIN)
    file.close()
    with pytest.raises(ValueError):
        poller.poll(0)


@pytest.mark.differs(
    "a closed socket is never ready; the standard input is not waited for in its place"
)
def test_a_closed_socket_is_never_ready(zmq, context):
    socket = context.socket(zmq.PULL)
    poller = zmq.Poller()
    poller.register(socket, zmq.POLLIN | zmq.POLLOUT)
    socket.close()
    assert poller.poll(0) == poller.poll(1) == []
    assert zmq.zmq_poll([(socket, zmq.POLLIN)], 0) == []
    assert zmq.select([socket], [socket], [socket], 0) == ([], [], [])
    # Nothing could end this call.
    with pytest.raises(zmq.ZMQError) as caught:
        poller.poll()
    assert caught.value.errno == zmq.ENOTSOCK
