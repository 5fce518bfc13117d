"""A durable log between ZeroMQ and its readers: the collector, and the clients of one."""

from .client import Client, Info, Published
from .errors import (
    CollectorError,
    CollectorGone,
    DataLoss,
    Fenced,
    NotAcknowledged,
    Refused,
)
from .files import FilesLog
from .service import Collector, Recovery

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
