"""nng as a module of the bench, through pynng: the names that the roles of the scalability protocols use."""

from __future__ import annotations

from typing import Any

import pynng

__version__ = pynng.__version__

PUSH, PULL, REQ, REP = "Push0", "Pull0", "Req0", "Rep0"
SURVEYOR, RESPONDENT = "Surveyor0", "Respondent0"
LAST_ENDPOINT = "last endpoint"
MAX_SOCKETS = "max sockets"


class Context:
    """Makes sockets."""

    def set(self, option: str, value: int) -> None:
        """Does nothing, because nng has no limit on sockets."""

    def socket(self, kind: str) -> Socket:
        return Socket(getattr(pynng, kind)())


class Socket:
    """A socket of nng with the methods of pyzmq's."""

    def __init__(self, socket: Any) -> None:
        self.socket = socket
        self.send, self.recv = socket.send, socket.recv
        self.endpoint = ""

    def bind(self, endpoint: str) -> None:
        listener = self.socket.listen(endpoint.replace(":*", ":0"))
        is_tcp = endpoint.startswith("tcp:")
        self.endpoint = f"tcp://{listener.local_address}" if is_tcp else endpoint

    def connect(self, endpoint: str) -> None:
        self.socket.dial(endpoint, block=True)

    def getsockopt(self, option: str) -> bytes:
        return self.endpoint.encode()
