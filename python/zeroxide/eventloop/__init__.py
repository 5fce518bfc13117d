"""For tornado: streams with callbacks, and sockets that return its futures.

Needs tornado. Programs on asyncio use `zeroxide.asyncio`.
"""

import os
from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand
from .._optional import needed_by

with needed_by("zeroxide.eventloop", extra="tornado"):
    from tornado.ioloop import IOLoop

__all__ = ["IOLoop"]


_MODULES = ("future", "zmqstream")


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    __getattr__ = on_demand(__name__, *_MODULES)


# Modules that only old programs use.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "eventloop"))
