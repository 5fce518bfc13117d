"""A durable log between programs: producers write to it, clients read and follow it.

    from zeroxide.pipeline import Client, Collector, Producer

    with Collector("/var/lib/ticks") as collector:
        with Producer(collector.endpoint) as producer:
            producer.send(b"21.5", topic="temperature")
        with Client(collector.endpoint) as client:
            info = client.info()
            for batch in client.fetch(info.earliest, info.latest):
                ...  # a pyarrow.RecordBatch

Everything about the pipeline is here: `Producer`, `Client` and `Collector`, the asyncio
form `AsyncProducer`, and the exceptions. The log on disk can be read
without a collector (`FilesLog`) and copied elsewhere (`Archiver`, `archive_segments`).

Every class of this package measures time in seconds, and its names carry the unit where
it is another one: ``linger_ms``, ``retention_hours``.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

from ._archive import Archiver, archive_segments
from ._client import Client, Info, Published
from ._collector import Collector, Recovery
from ._errors import (
    CollectorError,
    CollectorGone,
    DataLoss,
    Fenced,
    NotAcknowledged,
    Refused,
)
from ._files import FilesLog
from ._producer import Delivery, Headers, Producer, Row, Timestamp, Value

if TYPE_CHECKING:
    from ._asyncio import AsyncProducer as AsyncProducer

__all__ = [
    "Archiver",
    "AsyncProducer",
    "Client",
    "Collector",
    "CollectorError",
    "CollectorGone",
    "DataLoss",
    "Delivery",
    "Fenced",
    "FilesLog",
    "Headers",
    "Info",
    "NotAcknowledged",
    "Producer",
    "Published",
    "Recovery",
    "Refused",
    "Row",
    "Timestamp",
    "Value",
    "archive_segments",
]

# Programs without asyncio do not load it.
_IN_ASYNCIO = ("AsyncProducer",)


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

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
