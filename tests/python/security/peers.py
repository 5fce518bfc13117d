"""Peers of the security tests: servers and clients with the events of their handshakes, and handlers of every kind."""

import contextlib
import itertools
import threading

from support import PATIENCE, Background

HANDLER = "inproc://zeromq.zap.01"
_numbers = itertools.count()
_kept = []


def inproc(name):
    """An endpoint that no other test uses."""
    return f"inproc://{name}-{next(_numbers)}"


def keep(socket):
    """Keeps a socket open until the end of the test, even if the test does not keep it."""
    _kept.append(socket)
    return socket


def forget():
    """Raised when the test is over."""
    _kept.clear()


class Handshakes:
    """The events of a socket's handshakes."""

    def __init__(self, zmq, socket):
        self.zmq = zmq
        self.monitor = socket.get_monitor_socket(
            zmq.EVENT_HANDSHAKE_SUCCEEDED
            | zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL
            | zmq.EVENT_HANDSHAKE_FAILED_PROTOCOL
            | zmq.EVENT_HANDSHAKE_FAILED_AUTH,
            inproc("handshakes"),
        )

    def next(self):
        """The next event, and its value."""
        assert self.monitor.poll(PATIENCE * 1000)
        event = self.zmq.utils.monitor.recv_monitor_message(self.monitor)
        return event["event"], event["value"]


def bound(zmq, context, kind, **options):
    """A bound socket with these options, and its handshakes."""
    socket = context.socket(kind)
    socket.linger = 0
    for name, value in options.items():
        setattr(socket, name, value)
    handshakes = Handshakes(zmq, socket)
    socket.bind("tcp://127.0.0.1:*")
    return socket, handshakes


def connected(zmq, context, kind, endpoint, **options):
    socket = context.socket(kind)
    socket.linger = 0
    for name, value in options.items():
        setattr(socket, name, value)
    socket.connect(endpoint if isinstance(endpoint, str) else endpoint.decode())
    return keep(socket)


PLAIN_CLIENT = {"plain_username": b"user", "plain_password": b"password"}


@contextlib.contextmanager
def handler(zmq, context, answer, kind="REP"):
    """A ZAP handler that replies to each request with the result of `answer`."""
    socket = context.socket(getattr(zmq, kind))
    socket.linger = 0
    socket.bind(HANDLER)
    stop = threading.Event()

    def run():
        while not stop.is_set():
            if socket.poll(20):
                frames = socket.recv_multipart()
                envelope = frames[: len(frames) - len(frames[-6:])] if kind == "REP" else frames[:2]
                reply = answer(frames[len(envelope) :] if kind == "ROUTER" else frames)
                if reply is None:
                    return
                socket.send_multipart([*(envelope if kind == "ROUTER" else []), *reply])

    thread = Background(run)
    try:
        yield socket
    finally:
        stop.set()
        thread.result()
        socket.close()


def verdict(status, user=b"", metadata=b""):
    return lambda request: [b"1.0", request[1], status, b"because", user, metadata]
