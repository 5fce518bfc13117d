"""The daemon that listens to the inbound channels of an endpoint."""

import threading
from typing import Protocol

import zeroxide as zmq

from .channels import arrived
from .message import Frame

Frames = list[Frame | None]


class Inbound(Protocol):
    """The part of an endpoint that a listener uses."""

    def inbound(self) -> tuple[zmq.Socket | None, zmq.Socket]:
        """Returns the channels from the parent and from the children."""

    def wait_for_room(self, seconds: float) -> bool:
        """Waits until the handlers are not far behind, and returns whether they are not."""

    def on_frames(self, above: Frames, below: Frames) -> None:
        """Handles frames, and looks at the time."""


class ChannelListener(threading.Thread):
    """Reads frames while the inbound channels are open.

    While the handlers are far behind, it reads nothing. The queues of the sockets then fill up, and children wait.
    """

    def __init__(self, endpoint: Inbound, interval: float) -> None:
        super().__init__(name="channel listener", daemon=True)
        self._endpoint = endpoint
        self._interval = interval
        self._is_closed = threading.Event()

    def close(self) -> None:
        self._is_closed.set()
        self.join()

    def run(self) -> None:
        while not self._is_closed.is_set():
            if not self._endpoint.wait_for_room(self._interval):
                continue
            sub, pull = self._endpoint.inbound()
            poller = zmq.Poller()
            for socket in (sub, pull):
                if socket is not None:
                    poller.register(socket, zmq.POLLIN)
            ready = dict(poller.poll(1000 * self._interval))
            above = arrived(sub) if sub is not None and sub in ready else []
            below = arrived(pull) if pull in ready else []
            self._endpoint.on_frames(above, below)
