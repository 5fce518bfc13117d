"""`AsyncioAuthenticator` under its older name: tornado's loops are asyncio's now."""

import warnings
from typing import Any

from .. import Context
from .._exports import exports_only
from .asyncio import AsyncioAuthenticator

__all__ = ["IOLoopAuthenticator"]


def __dir__() -> list[str]:
    return exports_only(globals())


class IOLoopAuthenticator(AsyncioAuthenticator):
    """An `AsyncioAuthenticator` under its old name. Deprecated.

    Args:
        context: The context whose sockets ask; None for ``Context.instance()``.
        encoding: The encoding of domains, addresses, user names and passwords.
        log: A logger; None for ``logging.getLogger("zmq.auth")``.
        io_loop: Ignored: the running loop is used.

    Source:
        pyzmq's ``zmq.auth.ioloop.IOLoopAuthenticator``
    """

    def __init__(
        self,
        context: "Context[Any] | None" = None,
        encoding: str = "utf-8",
        log: Any = None,
        io_loop: Any = None,
    ) -> None:
        warnings.warn(
            "use zeroxide.auth.asyncio.AsyncioAuthenticator: tornado's loops are asyncio's",
            DeprecationWarning,
            stacklevel=2,
        )
        super().__init__(context, encoding=encoding, log=log)
        if io_loop is not None:
            warnings.warn(
                f"{type(self).__name__}(io_loop) is ignored: the running loop is used",
                DeprecationWarning,
                stacklevel=2,
            )
