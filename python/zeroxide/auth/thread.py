"""An authenticator in a separate thread."""

import asyncio
import sys
from contextlib import suppress
from threading import Thread
from typing import Any

from .. import Context, _checks
from .. import asyncio as _zmq_asyncio  # noqa: F401  (programs use zmq.asyncio after this, as with pyzmq)
from .._exports import exports_only
from ..constants import ENOTSOCK, ETERM
from ..error import ZMQError
from .base import Authenticator

__all__ = ["AuthenticationThread", "Authenticator", "ThreadAuthenticator"]


def __dir__() -> list[str]:
    return exports_only(globals())


def _threads_are_greenlets() -> bool:
    """Whether gevent has replaced the system's threads with its own."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and monkey.is_module_patched("threading")


class AuthenticationThread(Thread):
    """The thread of a `ThreadAuthenticator`.

    Args:
        authenticator: The authenticator, started.
        pipe: Ignored.

    Raises:
        TypeError: `authenticator` is not an authenticator.
        RuntimeError: It is not started.

    Source:
        pyzmq's ``zmq.auth.thread.AuthenticationThread``
    """

    authenticator: Authenticator

    def __init__(self, authenticator: Authenticator, pipe: Any = None) -> None:
        if not isinstance(authenticator, Authenticator):
            raise TypeError(
                f"authenticator takes an Authenticator, not {_checks.shown(authenticator)}"
            )
        if authenticator.zap_socket is None:
            raise RuntimeError("this authenticator is not started; call its start() first")
        # `pipe` exists for old callers: closing the socket is enough.
        super().__init__(daemon=True, name="zeroxide-auth")
        self.authenticator = authenticator
        self.pipe = pipe
        self._requests = authenticator.zap_socket
        if _threads_are_greenlets():
            from ..green import Socket

            self._requests = Socket(shadow=authenticator.zap_socket)

    def stop(self) -> None:
        """Closes the socket, and waits for the thread to end."""
        self._requests.close()
        self.join()

    def run(self) -> None:
        """Answers requests until the socket is closed."""
        with asyncio.Runner() as runner:
            try:
                while True:
                    request = self._requests.recv_multipart()
                    # A provider that calls sys.exit() would end this thread only, and without a word.
                    with suppress(SystemExit):
                        runner.run(self.authenticator.handle_zap_message(request))
            except ZMQError as error:
                if error.errno not in (ENOTSOCK, ETERM):
                    raise


class ThreadAuthenticator(Authenticator):
    """An `Authenticator` that answers from a thread.

    Its settings can be changed at any time, from any thread.

    Args:
        context: The context whose sockets ask; None for ``Context.instance()``.
        encoding: The encoding of domains, addresses, user names and passwords.
        log: A logger; None for ``logging.getLogger("zmq.auth")``.

    Example:
        >>> from zeroxide.auth.thread import ThreadAuthenticator
        >>> authenticator = ThreadAuthenticator(context)
        >>> authenticator.start()
        >>> authenticator.configure_plain(passwords={"alice": "secret"})
        >>> authenticator.stop()

    Source:
        27/ZAP, section "Message Format"; pyzmq's ``zmq.auth.thread.ThreadAuthenticator``
    """

    thread: AuthenticationThread | None
    """The thread; None while the authenticator is stopped."""

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        encoding: str = "utf-8",
        log: Any = None,
    ) -> None:
        super().__init__(context=context, encoding=encoding, log=log)
        self.thread = None

    def start(self) -> None:
        """Starts the thread.

        Raises:
            ZMQError: ``EADDRINUSE`` if the context has an authenticator already.
        """
        super().start()
        self.thread = AuthenticationThread(self)
        self.thread.start()

    def stop(self) -> None:
        """Stops the thread. Does nothing if it is not running."""
        if self.thread is not None:
            self.thread.stop()
        self.thread = None
        super().stop()

    def is_alive(self) -> bool:
        """Tells whether the thread runs.

        Returns:
            Whether it runs.
        """
        return self.thread is not None and self.thread.is_alive()

    def __del__(self) -> None:
        # An object whose constructor failed has no thread.
        if getattr(self, "thread", None) is not None:
            self.stop()
