"""A program with blocking sockets, and what type checkers take its values for."""

from typing import Any, assert_type

import zeroxide as zmq
from zeroxide import LINGER, PUSH
from zeroxide.decorators import context as with_context
from zeroxide.decorators import socket as with_socket
from zeroxide.utils.monitor import recv_monitor_message

context = zmq.Context()
assert_type(context, zmq.Context[zmq.Socket[bytes]])
assert_type(zmq.Context.instance(io_threads=2), zmq.Context[zmq.Socket[bytes]])
context.linger = 0
context.socket(PUSH).set(LINGER, 0)
context.io_threads = 2
context.memory_budget = 1 << 30
assert_type(context.max_sockets, int)
socket = context.socket(zmq.ROUTER)
assert_type(socket, zmq.Socket[bytes])

with socket.bind("tcp://127.0.0.1:*") as bound:
    assert_type(bound, zmq.Socket[bytes])
assert_type(socket.bind_to_random_port("tcp://127.0.0.1"), int)
assert_type(socket.last_endpoint, bytes)
assert_type(socket.linger, int)
assert_type(socket.type, zmq.SocketType)
socket.linger = 0
socket.routing_id = b"me"
socket.hwm = 5
socket.router_mandatory = True
# As many programs written for pyzmq have it.
socket.RCVTIMEO = 100
assert_type(socket.LINGER, int)
assert_type(socket.LAST_ENDPOINT, bytes)

assert_type(socket.recv(), bytes)
assert_type(socket.recv(zmq.DONTWAIT), bytes)
assert_type(socket.recv(copy=False), zmq.Frame)
assert_type(socket.recv(0, False, track=True), zmq.Frame)
assert_type(socket.recv_multipart(), list[bytes])
assert_type(socket.recv_multipart(copy=False), list[zmq.Frame])
assert_type(socket.recv_batch(), list[bytes | list[bytes]])
assert_type(socket.recv_batch(100, timeout=1.5, multipart=True), list[list[bytes]])
assert_type(socket.recv_string(), str)
assert_type(socket.recv_serialized(len), int)
assert_type(socket.recv_into(bytearray(5)), int)
assert_type(socket.poll(100), int)

socket.send(b"bytes")
socket.send(bytearray(b"buffer"), zmq.SNDMORE)
socket.send(memoryview(b"view"), copy=True)
tracker = socket.send(b"zero-copy", copy=False, track=True)
assert_type(tracker, zmq.MessageTracker)
socket.send(zmq.Frame(b"frame"))
socket.send_multipart([b"a", bytearray(b"b"), zmq.Frame(b"c")])
assert_type(socket.send_batch([b"a", [b"b", b"c"], (zmq.Frame(b"d"),)]), int)
assert_type(socket.stats()["dropped"]["high_water"], int)
assert_type(socket.stats()["peers"][0]["endpoint"], str)
socket.flush(5)

poller = zmq.Poller()
poller.register(socket, zmq.POLLIN)
assert_type(poller.poll(10), list[tuple[Any, int]])
sockets = zmq.Poller[zmq.Socket]()
sockets.register(socket, zmq.POLLIN)
assert_type(sockets.poll(), list[tuple[zmq.Socket[bytes], int]])
assert_type(zmq.zmq_poll([(socket, zmq.POLLIN)], 10), list[tuple[zmq.Socket[bytes], int]])
readable, _, _ = zmq.select([socket], [], [], 1)
assert_type(readable, list[zmq.Socket[bytes]])
event = recv_monitor_message(socket.get_monitor_socket())
assert_type(event["event"], zmq.Event)

try:
    socket.recv()
except zmq.NotFlushed as error:
    assert_type(error.remaining, dict[str, int])
except zmq.Again as error:
    assert_type(error.errno, int | None)


class Special(zmq.Socket[bytes]):
    pass


class Maker(zmq.Context[Special]):
    _socket_class = Special


assert_type(Maker().socket(zmq.PUSH), Special)
assert_type(context.socket(zmq.PUSH, socket_class=zmq.Socket), zmq.Socket[bytes])


def annotated(context: zmq.Context, socket: zmq.Socket, plain: zmq.SyncSocket) -> bytes:
    return socket.recv() + plain.recv()


annotated(context, socket, socket)


@with_context()
@with_socket("push", zmq.PUSH, copy_threshold=0)
def decorated(context: zmq.Context, push: zmq.Socket) -> int:
    push.send(b"x")
    return context.max_sockets


assert_type(decorated(), int)
