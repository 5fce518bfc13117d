"""The proxy whose monitor receives the origin of each message."""

from .._native import monitored_queue

__all__ = ["monitored_queue"]
