"""ZeroMQ for gevent: a call that would block only blocks its greenlet.

    import zeroxide.green as zmq

Everything else is as in `zeroxide`. ``RCVTIMEO`` and ``SNDTIMEO`` work, any number of
greenlets may wait for one socket, and closing it wakes them.
"""

import os as _os

import zeroxide as _zeroxide
from zeroxide import *  # noqa: F403
from zeroxide.constants import *  # noqa: F403

from . import _gevent as _gevent
from .core import _Context as Context  # type: ignore[assignment]
from .core import _Socket as Socket  # type: ignore[assignment]
from .device import device as device  # type: ignore[assignment]
from .poll import _Poller as Poller
from .poll import select as select
from .poll import zmq_poll as zmq_poll

__all__ = ["Context", "Poller", "Socket", "device", "select", "zmq_poll"]
__all__ += _zeroxide.__all__

# Modules that only old programs use.
__path__.append(_os.path.join(_os.path.dirname(__path__[0]), "_compat", "green"))  # noqa: F405


def __dir__() -> list[str]:
    return sorted({*__all__, *(name for name in globals() if name.startswith("__"))})
