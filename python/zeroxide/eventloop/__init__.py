"""For tornado: streams with callbacks, and sockets that return its futures.

Needs tornado. Programs on asyncio use `zeroxide.asyncio`.
"""

import os

from .._exports import exports_only
from .._optional import needed_by

with needed_by("zeroxide.eventloop", extra="tornado"):
    from tornado.ioloop import IOLoop

__all__ = ["IOLoop"]


def __dir__() -> list[str]:
    return exports_only(globals(), "future", "zmqstream")


# Modules that only old programs use.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "eventloop"))
