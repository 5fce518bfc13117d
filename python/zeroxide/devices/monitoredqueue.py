"""The proxy whose monitor receives the origin of each message."""

from .._exports import exports_only
from .._native import monitored_queue

__all__ = ["monitored_queue"]

# The public home of a native function, for `help()` and pickle.
monitored_queue.__module__ = __package__


def __dir__() -> list[str]:
    return exports_only(globals())
