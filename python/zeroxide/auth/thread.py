"""An authenticator in a thread of its own."""

import asyncio
from threading import Thread
from typing import Any

from .. import Context
from ..constants import ENOTSOCK, ETERM
from ..error import ZMQError
from .base import Authenticator

__all__ = ["AuthenticationThread", "Authenticator", "ThreadAuthenticator"]


class AuthenticationThread(Thread):
    """Answers the requests of an authenticator until its socket is closed."""

    authenticator: Authenticator

    def __init__(self, authenticator: Authenticator, pipe: Any = None) -> None:
        # `pipe` is there for old callers: closing the socket is enough.
        super().__init__(daemon=True, name="zeroxide-auth")
        self.authenticator = authenticator
        self.pipe = pipe

    def run(self) -> None:
        """Answers one request after the other; credentials providers may be coroutines."""
        requests = self.authenticator.zap_socket
        with asyncio.Runner() as runner:
            try:
                while True:
                    request = requests.recv_multipart()
                    runner.run(self.authenticator.handle_zap_message(request))
            except ZMQError as error:
                if error.errno not in (ENOTSOCK, ETERM):
                    raise


class ThreadAuthenticator(Authenticator):
    """An `Authenticator` that answers from a thread.

    Its settings may change at any time from any thread.
    """

    thread: AuthenticationThread | None

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        encoding: str = "utf-8",
        log: Any = None,
    ) -> None:
        super().__init__(context=context, encoding=encoding, log=log)
        self.thread = None

    def start(self) -> None:
        """Starts the thread; requests are answered from now on."""
        super().start()
        self.thread = AuthenticationThread(self)
        self.thread.start()

    def stop(self) -> None:
        """Ends the thread. Does nothing if it is not running."""
        if self.zap_socket:
            # Wakes the thread, which may be at work with the socket.
            self.zap_socket.close()
        if self.thread is not None:
            self.thread.join()
        self.thread = None
        super().stop()

    def is_alive(self) -> bool:
        """Whether the thread runs."""
        return self.thread is not None and self.thread.is_alive()

    def __del__(self) -> None:
        # An unfinished object has no thread.
        if getattr(self, "thread", None) is not None:
            self.stop()
