"""What measurements say: rates and percentiles, with their ranges over repeats."""

from collections.abc import Sequence
from statistics import median
from typing import Any, NamedTuple

__all__ = ["PERCENTILES", "Measurement", "Range", "percentile"]

PERCENTILES = {"p50": 50.0, "p99": 99.0, "p99.9": 99.9, "max": 100.0}


class Range(NamedTuple):
    """The median of some repeats, and the least and the largest value."""

    median: float
    least: float
    most: float

    @classmethod
    def of(cls, values: Sequence[float]) -> "Range":
        return cls(median(values), min(values), max(values))


class Measurement:
    """Repeats of one measurement: messages per second, and the nanoseconds of each round trip."""

    def __init__(
        self,
        transport: str,
        pattern: str,
        size: int,
        count: int,
        repeats: Sequence[tuple[float, list[int]]],
    ) -> None:
        self.transport = transport
        self.pattern = pattern
        self.size = size
        self.count = count
        self.rate: Range = Range.of([rate for rate, _ in repeats])
        sorted_trips = [sorted(trips) for _, trips in repeats if trips]
        self.trips: dict[str, Range] = {}
        """Microseconds by the name of the percentile. Empty if nothing was answered."""
        if sorted_trips:
            for name, percent in PERCENTILES.items():
                values = [percentile(trips, percent) / 1000 for trips in sorted_trips]
                self.trips[name] = Range.of(values)

    def facts(self) -> dict[str, Any]:
        """The result for ``--json``."""
        facts: dict[str, Any] = {
            "transport": self.transport,
            "pattern": self.pattern,
            "size": self.size,
            "count": self.count,
            "messages_per_second": self.rate._asdict(),
            "bytes_per_second": self.rate.median * self.size,
        }
        if self.trips:
            facts["round_trip_us"] = {name: value._asdict() for name, value in self.trips.items()}
        return facts


def percentile(ordered: Sequence[int], percent: float) -> int:
    """The least value that is not below this percentage of all."""
    rank = -(-len(ordered) * round(percent * 10) // 1000)
    return ordered[max(rank, 1) - 1]
