"""`zeroxide.monitor` under pyzmq's path."""

import importlib

from .._exports import exports_only
from ..monitor import MonitorEvent, parse_monitor_message, recv_monitor_message

__all__ = ["MonitorEvent", "parse_monitor_message", "recv_monitor_message"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Programs that import this module use ``zmq.asyncio``, because pyzmq's module imports it. Imported by name, because
# it is above all modules that helpers may import.
importlib.import_module("zeroxide.asyncio")
