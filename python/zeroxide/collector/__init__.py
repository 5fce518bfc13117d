"""The collector's own program: ``zeroxide collector``, its HTTP server and its metrics.

The classes are in `zeroxide.pipeline`; programs that import them from here still work.
"""

import os

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

# Former submodules, for programs that import them.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "collector"))
