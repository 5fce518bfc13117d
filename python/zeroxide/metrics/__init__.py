"""The counters of sockets and collectors as metrics: for Prometheus, OpenTelemetry, and programs.

    zeroxide.metrics.serve("127.0.0.1:9100")  # for Prometheus
    zeroxide.metrics.instrument()  # for OpenTelemetry

`METRICS` lists what both publish. ``zeroxide top`` shows the same numbers.
"""

from .._exports import exports_only
from ._http import MetricsServer, serve
from ._opentelemetry import instrument
from ._snapshot import (
    ContextSnapshot,
    PeerSnapshot,
    Snapshot,
    SocketSnapshot,
    parse,
    snapshot,
)
from ._table import METRICS, Metric
from ._text import openmetrics

__all__ = [
    "METRICS",
    "ContextSnapshot",
    "Metric",
    "MetricsServer",
    "PeerSnapshot",
    "Snapshot",
    "SocketSnapshot",
    "instrument",
    "openmetrics",
    "parse",
    "serve",
    "snapshot",
]

# The public home of the names, for `help()` and pickle.
for _name in __all__:
    _value = globals()[_name]
    if getattr(_value, "__module__", "").startswith(__name__ + "."):
        _value.__module__ = __name__


def __dir__() -> list[str]:
    return exports_only(globals())
