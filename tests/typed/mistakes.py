"""Mistakes that type checkers must find: both report an `ignore` comment without an error."""

import zeroxide as zmq
import zeroxide.green
from zeroxide.pipeline import Collector

context = zmq.Context()
socket = context.socket(zmq.PUSH)


def text_for_bytes() -> None:
    socket.send("text")  # type: ignore
    socket.send_multipart(["text"])  # type: ignore
    socket.recv().encode()  # type: ignore


def names_that_do_not_exist() -> None:
    socket.no_such_method()  # type: ignore
    print(zmq.NO_SUCH_CONSTANT)  # type: ignore
    print(zmq.os)  # type: ignore


def options() -> None:
    socket.linger = "long"  # type: ignore
    socket.lingr = 1  # type: ignore
    print(socket.rcvhmw)  # type: ignore
    socket.events = 1  # type: ignore
    socket.norm_mode = 1  # type: ignore
    context.lingr = 1  # type: ignore
    context.io_thread = 2  # type: ignore
    print(context.max_socket)  # type: ignore


def arguments() -> None:
    context.socket(zmq.PUSH, copy_treshold=5)  # type: ignore
    socket.send(b"x", tracks=True)  # type: ignore
    socket.send_string("x", trak=True)  # type: ignore
    socket.send_json({}, ident=1)  # type: ignore
    socket.recv_json(parsefloat=str)  # type: ignore
    socket.send_pyobj({}, copied=True)  # type: ignore
    zmq.Poller[zmq.Socket]().register("socket")  # type: ignore


def arguments_of_helpers() -> None:
    zmq.asyncio.Socket(context, zmq.PUSH, copy_treshold=5)  # type: ignore
    zmq.decorators.context(io_thread=2)  # type: ignore
    zmq.decorators.socket(zmq.PUSH, copy_treshold=5)  # type: ignore
    zmq.devices.Proxy(zmq.PULL, zmq.PUSH).bind_in_to_random_port("tcp://*", min=1)  # type: ignore


def arguments_of_the_pipeline() -> None:
    zmq.Producer("tcp://x:1", linger_mss=3)  # type: ignore
    zmq.Client("tcp://x:1", time=3)  # type: ignore
    zmq.pipeline.Collector("folder", retention_byte=3)  # type: ignore
    zmq.asyncio.Producer("tcp://x:1", linger_mss=3)  # type: ignore


async def in_asyncio() -> None:
    loop_context = zmq.asyncio.Context()
    pull = loop_context.socket(zmq.PULL)
    pull.lingr = 1  # type: ignore
    (await pull.recv()).encode()  # type: ignore
    await pull.send_json({}, ident=1)  # type: ignore
    loop_context.socket(zmq.PULL, copy_treshold=5)  # type: ignore


def in_greenlets() -> None:
    pull = zeroxide.green.Context().socket(zeroxide.green.PULL)
    pull.lingr = 1  # type: ignore
    print(zeroxide.green.NO_SUCH_CONSTANT)  # type: ignore


def in_the_pipeline() -> None:
    zmq.Producer("tcp://a:5555", lingr_ms=5)  # type: ignore
    zmq.Client("tcp://a:5555").follow(gruop="g")  # type: ignore
    print(zmq.Client("tcp://a:5555").stats()["durabel"])  # type: ignore
    print(zmq.Producer("tcp://a:5555").stats()["acknowleged"])  # type: ignore
    Collector("log", framing="topicfirst")  # type: ignore
    Collector("log", allow=5)  # type: ignore
    Collector("log", roles={"alice": ["produces"]})  # type: ignore


async def in_the_asyncio_pipeline() -> None:
    zmq.asyncio.Producer("tcp://a:5555", lingr_ms=5)  # type: ignore
    await zmq.asyncio.Client("tcp://a:5555", timeot_s=5).info()  # type: ignore
