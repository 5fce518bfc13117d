"""pyzmq's sugar package, from whose modules programs import.

Its modules are those of this package: ``zeroxide.sugar.socket`` is ``zeroxide.socket``.
"""

import sys

from zeroxide import _options as options
from zeroxide import _stopwatch as stopwatch
from zeroxide import _tracker as tracker
from zeroxide import constants, context, error, frame, poll, socket, version
from zeroxide._stopwatch import Stopwatch
from zeroxide._tracker import MessageTracker
from zeroxide.constants import *  # noqa: F403
from zeroxide.context import Context, SyncContext
from zeroxide.error import *  # noqa: F403
from zeroxide.frame import Frame, Message
from zeroxide.poll import Poller, select, zmq_poll
from zeroxide.proxy import device, proxy, proxy_steerable
from zeroxide.socket import Socket, SyncSocket
from zeroxide.version import pyzmq_version, pyzmq_version_info, zmq_version, zmq_version_info

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
