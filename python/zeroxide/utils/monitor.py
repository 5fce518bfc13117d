"""`zeroxide.monitor` under pyzmq's path."""

from ..monitor import MonitorEvent, parse_monitor_message, recv_monitor_message

__all__ = ["MonitorEvent", "parse_monitor_message", "recv_monitor_message"]
