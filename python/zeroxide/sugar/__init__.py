"""The upper half of pyzmq, from whose modules programs import.

They are this package's own: ``zeroxide.sugar.socket`` is ``zeroxide.socket``.
"""

import sys
from typing import TYPE_CHECKING

from .. import (
    constants,
    context,
    error,
    frame,
    options,
    poll,
    socket,
    stopwatch,
    tracker,
    version,
)
from ..constants import *  # noqa: F403
from ..context import Context, SyncContext
from ..error import *  # noqa: F403
from ..frame import Frame, Message
from ..poll import Poller, select, zmq_poll
from ..proxy import device, proxy, proxy_steerable
from ..socket import Socket, SyncSocket
from ..stopwatch import Stopwatch
from ..tracker import MessageTracker
from ..version import pyzmq_version, pyzmq_version_info, zmq_version, zmq_version_info

attrsettr = options

__all__ = [
    "Context",
    "Frame",
    "Message",
    "MessageTracker",
    "Poller",
    "Socket",
    "Stopwatch",
    "SyncContext",
    "SyncSocket",
    "attrsettr",
    "context",
    "device",
    "frame",
    "poll",
    "proxy",
    "proxy_steerable",
    "pyzmq_version",
    "pyzmq_version_info",
    "select",
    "socket",
    "stopwatch",
    "tracker",
    "version",
    "zmq_poll",
    "zmq_version",
    "zmq_version_info",
    *error.__all__,
]
if not TYPE_CHECKING:
    __all__ += constants.__all__

for _name in (
    "attrsettr",
    "constants",
    "context",
    "error",
    "frame",
    "poll",
    "socket",
    "stopwatch",
    "tracker",
    "version",
):
    sys.modules[f"{__name__}.{_name}"] = globals()[_name]
