"""An authenticator in an asyncio loop."""

import asyncio
import contextlib
import sys
from typing import Any

from .. import Context
from .._exports import exports_only
from ..asyncio import Socket
from ..constants import ENOTSOCK, ETERM
from ..error import ZMQError
from .base import Authenticator

__all__ = ["AsyncioAuthenticator", "Authenticator"]


def __dir__() -> list[str]:
    return exports_only(globals())


class AsyncioAuthenticator(Authenticator):
    """An `Authenticator` that answers from a task of an asyncio loop.

    Args:
        context: The context whose sockets ask; None for ``Context.instance()``.
        loop: Ignored: `start` finds the loop.
        encoding: The encoding of domains, addresses, user names and passwords.
        log: A logger; None for ``logging.getLogger("zmq.auth")``.

    Source:
        27/ZAP, section "Message Format"; pyzmq's ``zmq.auth.asyncio.AsyncioAuthenticator``
    """

    __task: "asyncio.Task[None] | None"
    __requests: Socket | None

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        loop: Any = None,
        encoding: str = "utf-8",
        log: Any = None,
    ) -> None:
        # `loop` exists for old callers.
        super().__init__(context, encoding, log)
        self.__task = None
        self.__requests = None

    def start(self) -> None:
        """Starts to answer, in the running loop or, if none runs, in the thread's current loop once it runs.

        Raises:
            RuntimeError: The thread has no event loop.
            ZMQError: ``EADDRINUSE`` if the context has an authenticator already.
        """
        loop = _current_loop()
        if loop is None:
            raise RuntimeError(
                f"{type(self).__name__}.start needs an event loop: call it in a coroutine;"
                " ThreadAuthenticator needs none"
            )
        super().start()
        self.__requests = Socket(shadow=self.zap_socket)
        self.__task = loop.create_task(self.__serve(self.__requests))

    def stop(self) -> None:
        """Stops answering. Does nothing if it is not running."""
        if self.__task is not None:
            self.__task.cancel()
        if self.__requests is not None:
            # With the handle that the loop watches, so that the loop stops watching it.
            self.__requests.close()
        self.__task = self.__requests = None
        super().stop()

    async def __serve(self, requests: Socket) -> None:
        """Answers one request after the other, as a REP socket does."""
        try:
            while True:
                request = await requests.recv_multipart()
                await self._answer_apart(request)
        except ZMQError as error:
            if error.errno not in (ENOTSOCK, ETERM):
                raise


def _current_loop() -> asyncio.AbstractEventLoop | None:
    """Returns the running loop, or the one that the program has set and will run."""
    with contextlib.suppress(RuntimeError):
        return asyncio.get_running_loop()
    if (3, 12) <= sys.version_info < (3, 14):
        # These warn that `get_event_loop` makes a loop, which later versions do not do.
        local = getattr(asyncio.get_event_loop_policy(), "_local", None)
        if local is not None and getattr(local, "_loop", None) is None:
            return None
    try:
        loop = asyncio.get_event_loop()
    except RuntimeError:
        return None
    return None if loop.is_closed() else loop
