"""The lag of a query behind its collectors, and its rates.

    from zeroxide.spark.metrics import MetricsListener

    listener = MetricsListener(publish="tcp://127.0.0.1:5560")
    spark.streams.addListener(listener)
    ...
    listener.latest[query.id].lag

Spark has no metrics for Python sources. These are computed from a query's progress, which has
the end of the batch and the ends of the logs when it was planned.
"""

import json
import logging
import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

import zeroxide as zmq

from .._exports import exports_only
from ._offsets import Offsets, load

if TYPE_CHECKING:
    from pyspark.sql.streaming.listener import StreamingQueryProgress

__all__ = ["TOPIC", "CollectorMetrics", "MetricsListener", "QueryMetrics", "measure"]


def __dir__() -> list[str]:
    return exports_only(globals())


log: logging.Logger = logging.getLogger(__name__)

# The first frame of each published message; there is one message of two frames per batch.
TOPIC = b"zeroxide.spark"


@dataclass(frozen=True)
class CollectorMetrics:
    """One collector in one batch.

    If the query reads it in several sources, these are the numbers of the source that is
    furthest behind.

    Attributes:
        offset: The offset after the batch's last row.
        latest: The end of the log when the batch was planned; None before Spark 4.2.
        lag: How many rows lie between the two; None before Spark 4.2.
    """

    offset: int
    latest: int | None
    lag: int | None


@dataclass(frozen=True)
class QueryMetrics:
    """One batch of one query, for the sources that are collectors.

    Attributes:
        id: The id of the query, which stays the same when it restarts.
        name: The name of the query, or None.
        batch: The number of the batch.
        timestamp: The time when the batch began, in UTC, as Spark reports it.
        rows: How many rows the batch had.
        input_rows_per_second: Rows per second that arrived.
        processed_rows_per_second: Rows per second that were processed.
        duration_ms: How long the batch took, in ms.
        lag: The lag of all collectors together, in rows; None before Spark 4.2.
        collectors: The collectors by their address.
    """

    id: str
    name: str | None
    batch: int
    timestamp: str
    rows: int
    input_rows_per_second: float
    processed_rows_per_second: float
    duration_ms: int
    lag: int | None
    collectors: Mapping[str, CollectorMetrics]


def measure(progress: "StreamingQueryProgress") -> QueryMetrics | None:
    """Returns the metrics in a query's progress.

    Args:
        progress: What Spark reports about a batch: ``query.lastProgress``, or the progress of
            an event.

    Returns:
        The metrics, or None if the query does not read from collectors.

    Source:
        Spark's ``StreamingQueryProgress``
    """
    collectors: dict[str, CollectorMetrics] = {}
    rows = 0
    arriving = processed = 0.0
    for source in progress.sources:
        end = _offsets(source.endOffset)
        if end is None:
            continue
        rows += source.numInputRows
        arriving += _finite(source.inputRowsPerSecond)
        processed += _finite(source.processedRowsPerSecond)
        latest = {one.log: one.offset for one in (_offsets(source.latestOffset) or {}).values()}
        for name, position in end.items():
            known = latest.get(position.log)
            lag = None if known is None else max(known - position.offset, 0)
            other = collectors.get(name)
            if other is None or position.offset < other.offset:
                collectors[name] = CollectorMetrics(position.offset, known, lag)
    if not collectors:
        return None
    lags = [one.lag for one in collectors.values() if one.lag is not None]
    return QueryMetrics(
        id=str(progress.id),
        name=progress.name,
        batch=progress.batchId,
        timestamp=progress.timestamp,
        rows=rows,
        input_rows_per_second=arriving,
        processed_rows_per_second=processed,
        duration_ms=int(progress.durationMs.get("triggerExecution", 0)),
        lag=sum(lags) if lags else None,
        collectors=collectors,
    )


class MetricsListener(StreamingQueryListener):
    """Keeps the newest metrics of every running query, logs them, and publishes them.

    ``endpoint`` is the address of the socket of `publish`, with the port that replaced a
    wildcard, or None.

    Args:
        publish: The address for a PUB socket, which sends two frames after each batch: `TOPIC`,
            and the metrics as JSON. None binds no socket.
        level: The level of the log line about each batch.

    Source:
        Spark's ``StreamingQueryListener``
    """

    def __init__(self, publish: str | None = None, *, level: int = logging.INFO) -> None:
        super().__init__()
        self._lock = threading.Lock()
        self._latest: dict[str, QueryMetrics] = {}
        self._level = level
        self._socket: zmq.Socket | None = None
        self.endpoint: str | None = None
        if publish is not None:
            self._socket = zmq.Context.instance().socket(zmq.PUB)
            self._socket.linger = 0
            self._socket.bind(publish)
            self.endpoint = self._socket.last_endpoint.rstrip(b"\0").decode()

    @property
    def latest(self) -> dict[str, QueryMetrics]:
        """The newest metrics by the id of their query."""
        with self._lock:
            return dict(self._latest)

    def prometheus(self) -> str:
        """Returns the newest metrics as text for Prometheus.

        Returns:
            The lines that a scrape expects, in the text format.
        """
        lines = []
        for kind, help_text in _HELP.items():
            lines += [f"# HELP {kind} {help_text}", f"# TYPE {kind} gauge"]
            for metrics in self.latest.values():
                lines += _samples(kind, metrics)
        return "\n".join(lines) + "\n"

    def close(self) -> None:
        """Closes the socket of `publish`."""
        if self._socket is not None:
            self._socket.close()
            self._socket = None

    def onQueryStarted(self, event: "QueryStartedEvent") -> None:
        """Does nothing: a new query has no metrics yet.

        Args:
            event: What Spark reports.
        """

    def onQueryProgress(self, event: "QueryProgressEvent") -> None:
        """Takes the metrics of a completed batch.

        Args:
            event: What Spark reports.
        """
        metrics = measure(event.progress)
        if metrics is None:
            return
        with self._lock:
            self._latest[metrics.id] = metrics
        log.log(
            self._level,
            "zeromq: query %s batch %d: %d rows in %d ms, %s behind",
            metrics.name or metrics.id,
            metrics.batch,
            metrics.rows,
            metrics.duration_ms,
            "unknown" if metrics.lag is None else metrics.lag,
        )
        if self._socket is not None:
            self._socket.send_multipart([TOPIC, json.dumps(asdict(metrics)).encode()])

    def onQueryIdle(self, event: "QueryIdleEvent") -> None:
        """Does nothing: an idle trigger does not change the metrics.

        Args:
            event: What Spark reports.
        """

    def onQueryTerminated(self, event: "QueryTerminatedEvent") -> None:
        """Removes the metrics of the query.

        Args:
            event: What Spark reports.
        """
        with self._lock:
            self._latest.pop(str(event.id), None)


_HELP = {
    "zeroxide_query_lag_rows": "Rows in a collector's log behind the end of the last batch.",
    "zeroxide_query_offset": "The offset of a collector's log that was reached.",
    "zeroxide_query_rows_per_second": "Rows processed per second in the last batch.",
    "zeroxide_query_batch_seconds": "How long the last batch took.",
}


def _samples(kind: str, metrics: QueryMetrics) -> list[str]:
    query = _quoted(metrics.name or metrics.id)
    if kind == "zeroxide_query_rows_per_second":
        return [f"{kind}{{query={query}}} {metrics.processed_rows_per_second}"]
    if kind == "zeroxide_query_batch_seconds":
        return [f"{kind}{{query={query}}} {metrics.duration_ms / 1000}"]
    samples = []
    for name, one in metrics.collectors.items():
        value = one.offset if kind == "zeroxide_query_offset" else one.lag
        if value is not None:
            samples.append(f"{kind}{{query={query},collector={_quoted(name)}}} {value}")
    return samples


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def _offsets(text: Any) -> Offsets | None:
    """Parses the offsets in a progress; None if they belong to another source."""
    try:
        return load(json.loads(text) if isinstance(text, str) else text)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _finite(rate: float | None) -> float:
    # The first batch has no rate; Spark reports NaN.
    return rate if rate is not None and rate == rate and rate != float("inf") else 0.0
