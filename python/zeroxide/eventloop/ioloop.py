"""tornado's loop under the name it had in pyzmq. Deprecated: import tornado's own."""

import warnings

from tornado.ioloop import *  # noqa: F403
from tornado.ioloop import IOLoop


def _deprecated() -> None:
    warnings.warn(
        "zeroxide.eventloop.ioloop is deprecated: any loop of tornado or asyncio will do",
        DeprecationWarning,
        stacklevel=3,
    )


_deprecated()

ZMQIOLoop = IOLoop


def install() -> None:
    """Does nothing: any loop will do."""
    _deprecated()
