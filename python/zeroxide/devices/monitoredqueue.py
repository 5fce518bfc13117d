"""The proxy whose monitor receives the origin of each message."""

from .._exports import exports_only
from .._native import monitored_queue

__all__ = ["monitored_queue"]


def __dir__() -> list[str]:
    return exports_only(globals())
