"""A durable log between ZeroMQ and its readers: the collector, and the clients of one."""

from .errors import CollectorError, CollectorGone, DataLoss, Fenced, Refused
from .service import Collector, Recovery

__all__ = [
    "Collector",
    "CollectorError",
    "CollectorGone",
    "DataLoss",
    "Fenced",
    "Recovery",
    "Refused",
]
