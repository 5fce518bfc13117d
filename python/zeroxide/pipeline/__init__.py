"""A durable log between programs: producers write to it, clients read and follow it.

    from zeroxide.pipeline import Client, Collector, Producer

    with Collector("/var/lib/ticks") as collector:
        with Producer(collector.endpoint) as producer:
            producer.send(b"21.5", topic="temperature")
        with Client(collector.endpoint) as client:
            for row in client.follow("temperature", timeout_s=1):
                print(row.offset, row.value)

Everything about the pipeline is here: `Producer`, `Client` and `Collector`, the asyncio
forms `AsyncProducer` and `AsyncClient`, and the exceptions. The log on disk can be read
without a collector (`FilesLog`) and copied elsewhere (`Archiver`, `archive_segments`).

Names carry their unit: ``timeout_s`` is in seconds, ``linger_ms`` in milliseconds,
``retention_hours`` in hours, ``spool_bytes`` in bytes.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from .._exports import exports_only
from ._archive import Archiver, archive_segments
from ._client import Client, Info, Published
from ._collector import Collector, Grant, NamedGrant, Recovery, Role
from ._errors import (
    CollectorError,
    CollectorGone,
    DataLoss,
    Fenced,
    NotAcknowledged,
    Refused,
)
from ._files import FilesLog
from ._follow import Follower, Record, Start
from ._producer import Delivery, Headers, Producer, Row, Timestamp, Value
from ._stats import (
    CollectorStats,
    ProducerAtCollector,
    ProducerStats,
    SyncTimes,
    TargetStats,
    TopicStats,
    Unlisted,
)

if TYPE_CHECKING:
    from ._asyncio import AsyncClient as AsyncClient
    from ._asyncio import AsyncFollower as AsyncFollower
    from ._asyncio import AsyncProducer as AsyncProducer

__all__ = [
    "Archiver",
    "AsyncClient",
    "AsyncFollower",
    "AsyncProducer",
    "Client",
    "Collector",
    "CollectorError",
    "CollectorGone",
    "CollectorStats",
    "DataLoss",
    "Delivery",
    "Fenced",
    "FilesLog",
    "Follower",
    "Grant",
    "Headers",
    "Info",
    "NamedGrant",
    "NotAcknowledged",
    "Producer",
    "ProducerAtCollector",
    "ProducerStats",
    "Published",
    "Record",
    "Recovery",
    "Refused",
    "Role",
    "Row",
    "Start",
    "SyncTimes",
    "TargetStats",
    "Timestamp",
    "TopicStats",
    "Unlisted",
    "Value",
    "archive_segments",
]


def __dir__() -> list[str]:
    return exports_only(globals())


# Programs without asyncio do not load it.
_IN_ASYNCIO = ("AsyncClient", "AsyncFollower", "AsyncProducer")


def _adopt(name: str, value: Any) -> None:
    """Shows a public name under this package, in tracebacks and pickles too."""
    if getattr(value, "__module__", "").startswith(__name__ + "."):
        value.__module__ = __name__
    globals()[name] = value


for _name in __all__:
    if _name not in _IN_ASYNCIO:
        _adopt(_name, globals()[_name])
del _name

if not TYPE_CHECKING:  # a type checker reports a name that does not exist

    def __getattr__(name: str) -> Any:
        if name in _IN_ASYNCIO:
            forms = import_module("._asyncio", __name__)
            for form in _IN_ASYNCIO:
                _adopt(form, getattr(forms, form))
            return globals()[name]
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
