"""nng as a module of the bench, through pynng: the names that the roles of the scalability protocols use."""

from __future__ import annotations

from pathlib import Path
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
        in_tasks = isinstance(socket, pynng.Respondent0)
        self.send = socket.asend if in_tasks else socket.send
        self.recv = socket.arecv if in_tasks else socket.recv
        self.endpoint = ""

    def bind(self, endpoint: str) -> None:
        listener = self.socket.listen(endpoint.replace(":*", ":0"))
        scheme = endpoint.partition(":")[0]
        self.endpoint = f"{scheme}://{listener.local_address}" if "tcp" in scheme else endpoint

    def connect(self, endpoint: str) -> None:
        self.socket.dial(endpoint, block=True)

    def use_certificates(self, certificate: str, key: str, authority: str, as_server: bool) -> None:
        if as_server:
            both = Path(certificate).read_text() + Path(key).read_text()
            config = pynng.TLSConfig(
                pynng.TLSConfig.MODE_SERVER, own_key_string=both, own_cert_string=both
            )
        else:
            config = pynng.TLSConfig(
                pynng.TLSConfig.MODE_CLIENT, server_name="127.0.0.1", ca_files=[authority]
            )
        self.socket.tls_config = config

    def getsockopt(self, option: str) -> bytes:
        return self.endpoint.encode()
