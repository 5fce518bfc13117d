"""Metrics as text, in the formats of OpenMetrics and Prometheus."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from ._snapshot import Snapshot, snapshot
from ._table import families

__all__ = ["OPENMETRICS", "PROMETHEUS", "openmetrics", "render"]

# The types of content.
OPENMETRICS = "application/openmetrics-text; version=1.0.0; charset=utf-8"
PROMETHEUS = "text/plain; version=0.0.4; charset=utf-8"

_SUFFIXES = {"counter": "_total", "info": "_info", "gauge": ""}


def openmetrics(snapshots: Sequence[Snapshot] | None = None) -> str:
    """Returns the metrics of processes in OpenMetrics' text format.

    Args:
        snapshots: The processes; None for this one, without its peers.

    Returns:
        The text, which ends with ``# EOF``.

    Example:
        >>> push.send(b"hello")
        >>> text = zmq.metrics.openmetrics()
        >>> "# TYPE zeroxide_sent_messages counter" in text.splitlines()
        True

    Source:
        OpenMetrics 1.0.0
    """
    return render([snapshot(0)] if snapshots is None else snapshots, is_open=True)


def render(
    snapshots: Sequence[Snapshot],
    collectors: Mapping[str, Mapping[str, Any]] | None = None,
    *,
    is_open: bool,
) -> str:
    """The metrics in OpenMetrics' format, or in Prometheus' older one."""
    return "".join(f"{line}\n" for line in _lines(snapshots, collectors, is_open))


def _lines(
    snapshots: Sequence[Snapshot],
    collectors: Mapping[str, Mapping[str, Any]] | None,
    is_open: bool,
) -> Iterator[str]:
    for metric, samples in families(snapshots, collectors):
        if not samples:
            continue
        sample = f"{metric.name}{_SUFFIXES[metric.kind]}"
        # In the older format, a family has the name of its samples, and there is no type for facts.
        family = metric.name if is_open else sample
        kind = metric.kind if is_open or metric.kind != "info" else "gauge"
        yield f"# HELP {family} {metric.help}"
        yield f"# TYPE {family} {kind}"
        if is_open and metric.unit:
            yield f"# UNIT {family} {metric.unit}"
        for labels, value in samples:
            pairs = ",".join(f'{name}="{_escaped(text)}"' for name, text in labels.items())
            yield f"{sample}{{{pairs}}} {value}"
    if is_open:
        yield "# EOF"


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
