"""ZeroMQ for Python, with a core in Rust and pyzmq's API.

``import zeroxide as zmq`` runs programs written for pyzmq.
"""

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from . import _native, constants, error
from ._both import watch_imports as _watch_imports
from ._native import (
    ArrowTable,
    Observer,
    __version__,
    curve_keypair,
    curve_public,
    has,
    strerror,
    zmq_errno,
)
from ._observing import observe
from ._stopwatch import Stopwatch
from ._tracker import FINISHED_TRACKER as _FINISHED_TRACKER
from ._tracker import MessageTracker
from .as_zmq import install_as_zmq
from .constants import *  # noqa: F403
from .context import Context, SyncContext
from .error import (
    Again,
    ContextTerminated,
    DraftFDWarning,
    InterruptedSystemCall,
    InvalidMessage,
    NotDone,
    NotFlushed,
    ProactorSelectorThreadWarning,
    TooSlow,
    UntrustedPickle,
    ZMQBaseError,
    ZMQBindError,
    ZMQError,
    ZMQVersionError,
)
from .frame import Frame, Message
from .monitor import parse_monitor_message, recv_monitor_message
from .poll import Poller, select, zmq_poll
from .proxy import device, proxy, proxy_steerable
from .socket import IPC_PATH_MAX_LEN, Socket, SyncSocket
from .version import (
    VERSION_EXTRA,
    VERSION_MAJOR,
    VERSION_MINOR,
    VERSION_PATCH,
    __revision__,
    pyzmq_version,
    pyzmq_version_info,
    zmq_version,
    zmq_version_info,
)

if TYPE_CHECKING:
    # For type checkers: at run time, `__getattr__` imports these when they are used.
    from . import asyncio, auth, decorators, devices, log, metrics, pipeline, ssh, utils  # noqa: F401
    from ._undelivered import Undelivered, UndeliveredPeer
    from .events import SocketEvent, SocketEvents
    from .pipeline import Client as Client
    from .pipeline import Producer as Producer

__all__ = [
    "COPY_THRESHOLD",
    "DRAFT_API",
    "IPC_PATH_MAX_LEN",
    "PYZMQ_DRAFT_API",
    "VERSION_EXTRA",
    "VERSION_MAJOR",
    "VERSION_MINOR",
    "VERSION_PATCH",
    "Again",
    "ArrowTable",
    "Context",
    "ContextTerminated",
    "DraftFDWarning",
    "Frame",
    "InterruptedSystemCall",
    "InvalidMessage",
    "Message",
    "MessageTracker",
    "NotDone",
    "NotFlushed",
    "Observer",
    "Poller",
    "ProactorSelectorThreadWarning",
    "Socket",
    "SocketEvent",
    "SocketEvents",
    "Stopwatch",
    "SyncContext",
    "SyncSocket",
    "TooSlow",
    "Undelivered",
    "UndeliveredPeer",
    "UntrustedPickle",
    "ZMQBaseError",
    "ZMQBindError",
    "ZMQError",
    "ZMQVersionError",
    "__revision__",
    "__version__",
    "curve_keypair",
    "curve_public",
    "device",
    "get_includes",
    "get_library_dirs",
    "has",
    "install_as_zmq",
    "observe",
    "parse_monitor_message",
    "proxy",
    "proxy_steerable",
    "pyzmq_version",
    "pyzmq_version_info",
    "recv_monitor_message",
    "select",
    "strerror",
    "zmq_errno",
    "zmq_poll",
    "zmq_version",
    "zmq_version_info",
]
__all__ += constants.__all__

# The modules of the names that `__getattr__` imports. `backend` and `sugar` are there for old
# programs.
_MODULES = {
    "asyncio",
    "auth",
    "decorators",
    "devices",
    "log",
    "metrics",
    "pipeline",
    "ssh",
    "utils",
}
_NAMES = {
    "Client": "pipeline",
    "Producer": "pipeline",
    "SocketEvent": "events",
    "SocketEvents": "events",
    "Undelivered": "_undelivered",
    "UndeliveredPeer": "_undelivered",
}
_OLD_MODULES = {"backend", "sugar"}

# Modules that only old programs import are here, under the names that they have in pyzmq.
__path__.append(os.path.join(os.path.dirname(__file__), "_compat"))  # noqa: F405

# Sockets made from now on send bodies below this many bytes by copying even with
# ``copy=False``; a program may assign to it.
COPY_THRESHOLD = 65536

# Whether draft sockets are built in.
DRAFT_API = has("draft")
PYZMQ_DRAFT_API = DRAFT_API


if not TYPE_CHECKING:  # type checkers report names that do not exist

    def __getattr__(name: str) -> Any:
        # A program that only needs sockets does not wait for the other modules.
        if name in _MODULES or name in _OLD_MODULES:
            return importlib.import_module(f".{name}", __name__)
        if name in _NAMES:
            found = getattr(importlib.import_module(f".{_NAMES[name]}", __name__), name)
            globals()[name] = found
            return found
        raise AttributeError(
            f"module {__name__!r} has no attribute {name!r}", name=name, obj=sys.modules[__name__]
        )


def __dir__() -> list[str]:
    special = {name for name in globals() if name.startswith("__")}
    return sorted({*__all__, *_NAMES, "constants", "error", *_MODULES, *special})


def get_includes() -> list[str]:
    """Returns the folders where extensions in C look for headers. They contain none.

    Returns:
        The folders.

    Source:
        pyzmq's ``get_includes``
    """
    package = os.path.dirname(__file__)
    return [package, os.path.join(package, "utils")]


def get_library_dirs() -> list[str]:
    """Returns the folders where extensions in C look for libzmq. They do not contain it.

    Returns:
        The folders.

    Source:
        pyzmq's ``get_library_dirs``
    """
    return [os.path.join(os.path.dirname(__file__), "zmq")]


# The public home of functions from other modules, for `help()` and pickle.
_function: Any
for _function in (
    *(curve_keypair, curve_public, has, strerror, zmq_errno),
    *(observe, proxy, proxy_steerable, zmq_poll),
):
    _function.__module__ = __name__

_watch_imports()
_native.install(
    package=sys.modules[__name__],
    zmq_error=ZMQError,
    errors=error.EXCEPTIONS,
    not_flushed=NotFlushed,
    tracker=MessageTracker,
    finished_tracker=_FINISHED_TRACKER,
)
