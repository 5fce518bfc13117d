"""`zeroxide.monitor` under pyzmq's path."""

import importlib

from ..monitor import MonitorEvent, parse_monitor_message, recv_monitor_message

__all__ = ["MonitorEvent", "parse_monitor_message", "recv_monitor_message"]

# Programs that import this module use ``zmq.asyncio``, because pyzmq's module imports it. Imported by name, because
# it is above all modules that helpers may import.
importlib.import_module("zeroxide.asyncio")
