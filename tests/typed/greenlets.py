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
with zmq.Producer("tcp://127.0.0.1:5555", name="p") as producer:
    producer.send(b"value", key="k")
    assert_type(producer.send_batch([b"a", {"value": "b"}]), int)
    producer.flush(1)
with zmq.Client("tcp://127.0.0.1:5555", timeout_s=1) as client:
    assert_type(client.info().latest, int)
    assert_type(client.committed("group"), int | None)
    with client.follow("topic", group="group") as rows:
        for row in rows:
            assert_type(row.value, bytes)
            assert_type(rows.commit(), int)
    for table in client.fetch_tables(0, 10):
        assert_type(table.num_rows, int)
