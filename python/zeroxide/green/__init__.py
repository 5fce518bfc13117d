"""ZeroMQ for gevent: a call that would block only blocks its greenlet.

    import zeroxide.green as zmq

Everything else is as in `zeroxide`. `Producer`, `Client` and `Follower` are subclasses of those in
`zeroxide.pipeline`; their calls block only their greenlet. ``RCVTIMEO`` and ``SNDTIMEO`` work, any number of
greenlets may wait for one socket, and closing it wakes them.
"""

import os as _os
from importlib import import_module as _import_module
from typing import TYPE_CHECKING
from typing import Any as _Any

import zeroxide as _zeroxide
from zeroxide import *  # noqa: F403
from zeroxide._exports import exports_only as _exports_only
from zeroxide.constants import *  # noqa: F403

from . import _gevent as _gevent
from .core import _Context as Context  # type: ignore[assignment]
from .core import _Socket as Socket  # type: ignore[assignment]
from .device import device as device  # type: ignore[assignment]
from .device import proxy as proxy
from .device import proxy_steerable as proxy_steerable
from .poll import _Poller as Poller
from .poll import select as select
from .poll import zmq_poll as zmq_poll

if TYPE_CHECKING:
    from ._pipeline import Client as Client
    from ._pipeline import Follower as Follower
    from ._pipeline import Producer as Producer

__all__ = ["Client", "Context", "Follower", "Poller", "Producer", "Socket"]
__all__ += ["device", "proxy", "proxy_steerable", "select", "zmq_poll"]
__all__ += _zeroxide.__all__

# Modules that only old programs use.
__path__.append(_os.path.join(_os.path.dirname(__path__[0]), "_compat", "green"))  # noqa: F405

if not TYPE_CHECKING:  # a type checker reports a name that does not exist

    def __getattr__(name: str) -> _Any:
        # A program that uses only sockets does not load the pipeline.
        if name in ("Client", "Follower", "Producer"):
            globals()[name] = getattr(_import_module("._pipeline", __name__), name)
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return _exports_only(globals())


# In tracebacks and `help()`, too.
for _name, _kind in {"Context": Context, "Poller": Poller, "Socket": Socket}.items():
    _kind.__module__ = __name__
    _kind.__name__ = _kind.__qualname__ = _name
