"""The proxy whose monitor is told where messages come from."""

from .._native import monitored_queue

__all__ = ["monitored_queue"]
