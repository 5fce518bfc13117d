"""The collector's own program: ``zeroxide collector``, its HTTP server and its metrics.

The classes are in `zeroxide.pipeline`; programs that import them from here still work.
"""

from ..pipeline import (
    Client,
    Collector,
    CollectorError,
    CollectorGone,
    DataLoss,
    Fenced,
    FilesLog,
    Info,
    NotAcknowledged,
    Published,
    Recovery,
    Refused,
)

__all__ = [
    "Client",
    "Collector",
    "CollectorError",
    "CollectorGone",
    "DataLoss",
    "Fenced",
    "FilesLog",
    "Info",
    "NotAcknowledged",
    "Published",
    "Recovery",
    "Refused",
]
