"""The metrics as observable instruments of OpenTelemetry."""

import threading
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from .. import _native
from .._optional import needed_by
from ._snapshot import Snapshot, snapshot
from ._table import METRICS, Family, Metric, families

if TYPE_CHECKING:
    from opentelemetry.metrics import CallbackOptions, MeterProvider, Observation

__all__ = ["instrument"]

# The kinds of metrics that a process publishes. Each peer would be a new series, and peers come and go.
_OWN = ("program", "socket")

# Units as OpenTelemetry writes them.
_UNITS = {
    "": "1",
    "bytes": "By",
    "messages": "{message}",
    "connections": "{connection}",
    "peers": "{peer}",
    "events": "{event}",
}


def instrument(meter_provider: "MeterProvider | None" = None) -> None:
    """Publishes the metrics of this process through OpenTelemetry.

    The instruments are those of `METRICS` for sockets, with dots in their names: that of
    ``zeroxide_sent_messages`` is ``zeroxide.sent_messages``. They take a snapshot when a reader
    collects them, and cost nothing in between.

    Args:
        meter_provider: The provider of the meter; None for the global one, which the program
            sets up.

    Raises:
        ModuleNotFoundError: OpenTelemetry is not installed.

    Source:
        OpenTelemetry's specification of asynchronous instruments
    """
    with needed_by("zeroxide.metrics.instrument", extra="opentelemetry"):
        from opentelemetry.metrics import Observation, get_meter_provider
    provider = get_meter_provider() if meter_provider is None else meter_provider
    meter = provider.get_meter("zeroxide", _native.__version__)
    cycle = _Cycle(Observation)
    for metric in METRICS:
        if metric.of not in _OWN:
            continue
        create = (
            meter.create_observable_counter
            if metric.kind == "counter"
            else meter.create_observable_gauge
        )
        create(
            metric.name.replace("zeroxide_", "zeroxide.", 1),
            callbacks=[cycle.callback(metric)],
            unit=_UNITS[metric.unit],
            description=metric.help,
        )


class _Cycle:
    """The snapshot that all instruments share while they are collected once."""

    def __init__(self, observation: "type[Observation]") -> None:
        self._observation = observation
        # Several readers may collect at once.
        self._lock = threading.Lock()
        self._left: dict[str, Family] = {}

    def callback(self, metric: Metric) -> "Callable[[CallbackOptions], Iterable[Observation]]":
        def observe(options: Any) -> "Iterable[Observation]":
            return [self._observation(value, labels) for labels, value in self._take(metric)]

        return observe

    def _take(self, metric: Metric) -> list[tuple[dict[str, str], int]]:
        with self._lock:
            # An instrument that is collected again begins the next cycle.
            if metric.name not in self._left:
                now: Snapshot = snapshot(0)
                self._left = {family.metric.name: family for family in families([now])}
            return self._left.pop(metric.name).samples
