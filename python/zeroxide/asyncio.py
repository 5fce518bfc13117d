"""Sockets for asyncio."""

import asyncio
import selectors
import warnings
from typing import Any

from . import _future
from .context import Context as _Context
from .error import ProactorSelectorThreadWarning as ProactorSelectorThreadWarning

__all__ = ["Context", "Poller", "Socket", "ZMQEventLoop", "install"]


class _AsyncIO:
    _Future: Any = asyncio.Future
    _READ = selectors.EVENT_READ
    _WRITE = selectors.EVENT_WRITE

    def _default_loop(self) -> asyncio.AbstractEventLoop:
        try:
            return asyncio.get_running_loop()
        except RuntimeError:
            warnings.warn(
                "no event loop is running: use zeroxide.asyncio inside one",
                RuntimeWarning,
                stacklevel=4,
            )
        return asyncio.get_event_loop()


class Poller(_AsyncIO, _future._AsyncPoller):
    """Waits for many sockets and descriptors; `poll` returns a future."""


class Socket(_AsyncIO, _future._AsyncSocket):
    """A socket whose calls return asyncio's futures."""

    _poller_class = Poller


Poller._socket_class = Socket


class Context(_Context[Socket]):
    """Makes sockets for asyncio."""

    _socket_class = Socket
    _instance = None


class ZMQEventLoop(asyncio.SelectorEventLoop):
    """Any loop will do; kept for programs that name it."""

    def __init__(self, selector: selectors.BaseSelector | None = None) -> None:
        _deprecated()
        super().__init__(selector)


def _deprecated() -> None:
    warnings.warn(
        "any asyncio loop will do: ZMQEventLoop and install() do nothing",
        DeprecationWarning,
        stacklevel=3,
    )


def install() -> None:
    """Nothing needs to be installed; kept for programs that call it."""
    _deprecated()
