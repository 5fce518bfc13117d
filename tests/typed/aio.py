"""A program with asyncio, and what type checkers take its values for."""

import asyncio
from typing import Any, assert_type

import zeroxide as zmq
from zeroxide.utils.monitor import recv_monitor_message


async def main() -> None:
    async with zmq.asyncio.Context() as context:
        assert_type(context, zmq.asyncio.Context)
        socket = context.socket(zmq.ROUTER)
        assert_type(socket, zmq.asyncio.Socket)
        waiting: asyncio.Future[bytes] = socket.recv()
        assert_type(await asyncio.wait_for(waiting, 1), bytes)
        assert_type(asyncio.create_task(socket.recv()), asyncio.Task[bytes])
        assert_type(await asyncio.ensure_future(socket.recv_string()), str)
        async with asyncio.TaskGroup() as group:
            assert_type(group.create_task(socket.recv_multipart()), asyncio.Task[list[bytes]])
            group.create_task(socket.send(b"x"))
            group.create_task(socket.poll(10))
        done, _ = await asyncio.wait([socket.recv(), socket.recv()], timeout=1)
        assert_type(done.pop().result(), bytes)
        socket.recv().add_done_callback(print)
        assert_type(await socket.recv(), bytes)
        assert_type(await socket.recv(copy=False), zmq.Frame)
        assert_type(await socket.recv_multipart(), list[bytes])
        assert_type(await socket.recv_multipart(copy=False), list[zmq.Frame])
        assert_type(await socket.recv_batch(), list[bytes | list[bytes]])
        assert_type(await socket.recv_batch(multipart=True), list[list[bytes]])
        assert_type(await socket.recv_into(bytearray(5)), int)
        assert_type(await socket.recv_string(), str)
        assert_type(await socket.recv_serialized(len), int)
        assert_type(await socket.recv_json(), Any)
        assert_type(await socket.poll(100), int)
        await socket.send(b"x")
        tracker = await socket.send(b"x", copy=False, track=True)
        assert_type(tracker, zmq.MessageTracker)
        await socket.send_multipart([b"a", bytearray(b"b"), zmq.Frame(b"c")])
        assert_type(await socket.send_batch([b"a", [b"b", b"c"]]), int)
        await socket.send_json({})
        await asyncio.gather(socket.send(b"x"), socket.recv())
        async for message in socket:
            assert_type(message, bytes | list[bytes])
        poller = zmq.asyncio.Poller()
        poller.register(socket, zmq.POLLIN)
        assert_type(await poller.poll(10), list[tuple[Any, int]])
        sockets = zmq.asyncio.Poller[zmq.asyncio.Socket]()
        assert_type(await sockets.poll(10), list[tuple[zmq.asyncio.Socket, int]])
        event = await recv_monitor_message(socket.get_monitor_socket())
        assert_type(event["event"], zmq.Event)
        assert_type(
            zmq.asyncio.Socket.from_socket(zmq.Context().socket(zmq.PUB)), zmq.asyncio.Socket
        )
        async with context.socket(zmq.PUSH) as push:
            assert_type(push, zmq.asyncio.Socket)
