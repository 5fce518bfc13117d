"""Daemon threads that never stop calling: the program still ends, and prints nothing.

Up to Python 3.13, the interpreter ends such threads wherever they are, even in the middle of Python code that runs within
a native call: the constructor of an exception, a destructor, a generator.
"""

import subprocess
import sys

import pytest
from support import PATIENCE

pytestmark = pytest.mark.zeroxide_only

ROUNDS = 6

PROGRAM = """
import asyncio, sys, threading, time
import zeroxide as zmq
import zeroxide.asyncio
from zeroxide.pipeline import Collector, Client

context = zmq.Context()
push, pull = context.socket(zmq.PUSH), context.socket(zmq.PULL)
push.linger = 0
pull.bind("inproc://x")
push.connect("inproc://x")
lonely = context.socket(zmq.PULL)
lonely.bind("tcp://127.0.0.1:*")
body = bytes(20_000)
running = threading.Semaphore(0)


def parts():
    yield b"head"
    yield b"body"


class Part:
    def __bytes__(self):
        return b"part"

    def __del__(self):
        sum(range(10))


def own_socket():
    socket = context.socket(zmq.DEALER)
    socket.bind_to_random_port("tcp://127.0.0.1")
    socket.close(0)


def events():
    stream = pull.monitor_events(zmq.EVENT_ALL)
    try:
        stream.recv(timeout=0)
    finally:
        stream.close()


async def received(socket):
    await socket.recv(zmq.NOBLOCK)


def loop_of_its_own():
    aio = zmq.asyncio.Context(context)
    socket = aio.socket(zmq.PULL)
    socket.bind("inproc://aio")

    async def run():
        while True:
            try:
                await socket.poll(1)
                await asyncio.gather(received(socket), received(socket))
            except zmq.ZMQError:
                running.release()

    asyncio.run(run())


poller = zmq.Poller()
poller.register(lonely, zmq.POLLIN)
CALLS = {
    "send lent": lambda: push.send(body, zmq.NOBLOCK, copy=False),
    "send tracked": lambda: push.send(body, zmq.NOBLOCK, copy=False, track=True),
    "send": lambda: push.send(b"x", zmq.NOBLOCK),
    "send multipart": lambda: push.send_multipart(list(parts()), zmq.NOBLOCK),
    "send batch": lambda: push.send_batch(parts(), zmq.NOBLOCK),
    "recv": lambda: lonely.recv(zmq.NOBLOCK),
    "recv blocking": lambda: (setattr(lonely, "rcvtimeo", 1), lonely.recv()),
    "recv frames": lambda: pull.recv_multipart(zmq.NOBLOCK, copy=False),
    "poll": lambda: (lonely.poll(1), poller.poll(0)),
    "options": lambda: lonely.set(10_000, 1),
    "sockets": own_socket,
    "events": events,
    "closed": lambda: zmq.Socket.shadow(push).get(9_999),
}
name = sys.argv[1]


def for_ever(call):
    while True:
        try:
            call()
        except Exception:
            pass
        running.release()


if name == "asyncio":
    threads = [threading.Thread(target=loop_of_its_own, daemon=True)]
elif name == "pipeline":
    collector = Collector(sys.argv[2])
    producer = zmq.Producer(collector.endpoint, name="p")
    client = Client(collector.endpoint)

    def pipeline():
        producer.send(b"x")
        client.info()

    threads = [threading.Thread(target=for_ever, args=(pipeline,), daemon=True)]
else:
    # Two of them, so that they take the GIL from each other as well.
    threads = [threading.Thread(target=for_ever, args=(CALLS[name],), daemon=True) for _ in "12"]
    if name.startswith("send"):
        drain = lambda: pull.recv(zmq.NOBLOCK)
        threads.append(threading.Thread(target=for_ever, args=(drain,), daemon=True))
sys.setswitchinterval(1e-5)
threading.excepthook = lambda _: None  # what the end of its context does to a loop
for thread in threads:
    thread.start()
for _ in range(20):
    running.acquire()
"""

NAMES = [
    "send lent",
    "send tracked",
    "send",
    "send multipart",
    "send batch",
    "recv",
    "recv blocking",
    "recv frames",
    "poll",
    "options",
    "sockets",
    "events",
    "asyncio",
    "pipeline",
]


@pytest.mark.parametrize("name", NAMES)
def test_threads_that_never_stop(name, directory):
    for number in range(ROUNDS):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name, str(directory / str(number))],
            capture_output=True,
            text=True,
            timeout=PATIENCE * 2,
        )
        assert (done.returncode, done.stderr) == (0, ""), number
