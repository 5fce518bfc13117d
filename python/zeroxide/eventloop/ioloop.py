"""tornado's loop under the name it had in pyzmq. Deprecated: import tornado's own."""

import warnings
from typing import TYPE_CHECKING

from tornado.ioloop import IOLoop as IOLoop
from tornado.ioloop import PeriodicCallback as PeriodicCallback

if not TYPE_CHECKING:
    # Other names in tornado's module, some of which it imports.
    from tornado.ioloop import *  # noqa: F403


def _deprecated() -> None:
    warnings.warn(
        "zeroxide.eventloop.ioloop is deprecated: any loop of tornado or asyncio will do",
        DeprecationWarning,
        stacklevel=3,
    )


_deprecated()

ZMQIOLoop = IOLoop


def install() -> None:
    """Does nothing: any loop works.

    Source:
        pyzmq's ``zmq.eventloop.ioloop.install``
    """
    _deprecated()
