"""The sockets of an endpoint: two to its parent, and two to its children."""

import errno
from collections import OrderedDict
from contextlib import suppress

import zeroxide as zmq

from .commands import ALL
from .message import Frame

# How many endpoints that are gone can have a frame waiting for them.
MAX_TOLD = 64

# The most frames of one channel before the other one has its turn.
BATCH = 500

# Frames that wait for one neighbour, at most. If there are more, they are dropped, and sent again later.
HIGH_WATER = 10_000


def publisher_of(address: str) -> str:
    """Returns where an endpoint publishes, whose address is where it pulls: the next port, or another name."""
    scheme, _, rest = address.partition("://")
    if scheme != "tcp":
        return f"{address}.pub"
    host, _, port = rest.rpartition(":")
    return f"tcp://{host}:{int(port) + 1}"


class Channels:
    """The inbound channels are PULL, from the children, and SUB, from the parent; the outbound ones are PUB and PUSH.

    No method blocks.
    """

    def __init__(self, context: zmq.Context, address: str, identity: str) -> None:
        self._context = context
        self._identity = identity
        self.pull, self._pub, self.address = self._bind(address)
        self.sub: zmq.Socket | None = None
        self._push: zmq.Socket | None = None
        self._told: OrderedDict[str, zmq.Socket] = OrderedDict()

    def connect(self, address: str) -> None:
        """Connects to another parent. Unread frames of the present one are dropped."""
        for socket in (self.sub, self._push):
            if socket is not None:
                socket.close()
        self.sub = self._socket(zmq.SUB)
        self.sub.subscribe(ALL)
        self.sub.subscribe(self._identity)
        self.sub.connect(publisher_of(address))
        self._push = self._socket(zmq.PUSH)
        self._push.connect(address)

    def publish(self, topic: str, frame: Frame) -> None:
        self._pub.send_multipart([topic.encode(), *frame.parts()])

    def push(self, frame: Frame) -> None:
        if self._push is not None:
            _send(self._push, frame)

    def tell(self, address: str, frame: Frame) -> None:
        """Sends a frame to an endpoint that may not be reachable before much later."""
        if address not in self._told:
            if len(self._told) >= MAX_TOLD:
                self._told.popitem(last=False)[1].close()
            socket = self._told[address] = self._socket(zmq.PUSH)
            socket.sndhwm = 1
            socket.reconnect_ivl_max = 5000
            socket.connect(address)
        _send(self._told[address], frame)

    def close(self, linger: int) -> None:
        for socket in (self.pull, self._pub, self.sub, self._push, *self._told.values()):
            if socket is not None:
                socket.close(linger)

    def _bind(self, address: str) -> tuple[zmq.Socket, zmq.Socket, str]:
        while True:
            pull, pub = self._socket(zmq.PULL), self._socket(zmq.PUB)
            pull.bind(address)
            bound = pull.last_endpoint.decode()
            try:
                pub.bind(publisher_of(bound))
            except zmq.ZMQError as error:
                pull.close()
                pub.close()
                # The system has chosen a port whose neighbour is taken.
                if error.errno != errno.EADDRINUSE or not address.endswith(":*"):
                    raise
                continue
            return pull, pub, bound

    def _socket(self, kind: int) -> zmq.Socket:
        socket = self._context.socket(kind)
        socket.linger = 0
        socket.sndhwm = socket.rcvhwm = HIGH_WATER
        return socket


def arrived(socket: zmq.Socket) -> list[Frame | None]:
    """Returns frames that have arrived; None stands for a message that is no frame."""
    found: list[Frame | None] = []
    for parts in socket.recv_batch(BATCH, timeout=0, multipart=True):
        try:
            # A publication begins with its topic.
            found.append(Frame.read(parts[-3:]))
        except ValueError:
            found.append(None)
    return found


def _send(socket: zmq.Socket, frame: Frame) -> None:
    # A full queue loses the frame, which is sent again if it matters.
    with suppress(zmq.Again):
        socket.send_multipart(frame.parts(), zmq.DONTWAIT)
