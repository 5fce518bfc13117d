"""`zeroxide.monitor` under pyzmq's path."""

import importlib

from ..monitor import MonitorEvent, parse_monitor_message, recv_monitor_message

__all__ = ["MonitorEvent", "parse_monitor_message", "recv_monitor_message"]

# Programs use ``zmq.asyncio`` once they have imported this module, which loads it in pyzmq. By name, because
# it stands above everything that helpers may import.
importlib.import_module("zeroxide.asyncio")
