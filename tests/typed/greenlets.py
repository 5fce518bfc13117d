"""A program with gevent, and what type checkers take its values for."""

from typing import assert_type

import zeroxide as blocking
import zeroxide.green as zmq

context = zmq.Context()
socket = context.socket(zmq.PUSH)
socket.send(b"x", zmq.DONTWAIT)
pushes: blocking.SocketType = zmq.PUSH
poller = zmq.Poller()
poller.register(socket, zmq.POLLIN | zmq.POLLOUT)
assert_type(zmq.zmq_version(), str)
try:
    assert_type(socket.recv(), bytes)
except zmq.Again as error:
    assert_type(error.errno, int | None)
