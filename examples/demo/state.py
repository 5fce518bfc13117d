"""The current state of the run, which both views show."""

import enum
import time
from dataclasses import dataclass, field
from datetime import date
from typing import Any

from .flights import AIRPORTS, Delays

FIRST_DAY = date(2013, 1, 1)

# The period over which rates are computed.
RATE_S = 2.0


@dataclass
class Rate:
    """The rate at which a counter grows."""

    samples: list[tuple[float, int]] = field(default_factory=lambda: [(0.0, 0)])

    def update(self, now: float, count: int) -> None:
        """Records the counter's current value."""
        self.samples.append((now, count))
        while len(self.samples) > 2 and now - self.samples[1][0] >= RATE_S:
            del self.samples[0]

    def per_second(self) -> float:
        """The rate over the last two seconds."""
        (began, first), (now, last) = self.samples[0], self.samples[-1]
        return max(last - first, 0) / (now - began) if now > began else 0.0


class Phase(enum.IntEnum):
    """The steps of the run."""

    START = 0
    REPLAY = 1
    KILLED = 2
    RECOVERED = 3
    CHECKED = 4


@dataclass
class State:
    """The state of the run."""

    began: float = field(default_factory=time.monotonic)
    phase: Phase = Phase.START
    # A description of what the query is doing.
    text: str = "starting"
    # The publisher's day of the year, and the rows that the collector has acknowledged.
    date: str = ""
    sent: int = 0
    acked: int = 0
    total: int = 0
    # The query's counts of flights read and batches completed.
    read: int = 0
    batches: int = 0
    # Flights in final windows, in the log that has every window exactly once.
    final: int = 0
    windows: int = 0
    kills: list[float] = field(default_factory=list)
    verdict: str = ""
    exact: bool = False
    into_log: Rate = field(default_factory=Rate)
    out_of_log: Rate = field(default_factory=Rate)
    # Time, lag and both rates, for the page of the finished run.
    samples: list[tuple[float, int, int, int]] = field(default_factory=list)
    # Days in the order in which the live query reported them; a page knows how many it has.
    days: list[tuple[int, int, int, int]] = field(default_factory=list)

    @property
    def elapsed(self) -> float:
        """The time since the start in seconds."""
        return time.monotonic() - self.began

    @property
    def lag(self) -> int:
        """Flights on the log that the query has not read."""
        return max(self.acked - self.read, 0)

    def tick(self) -> None:
        """Updates the rates; called often."""
        self.into_log.update(self.elapsed, self.acked)
        self.out_of_log.update(self.elapsed, self.read)
        into, out = (round(rate.per_second()) for rate in (self.into_log, self.out_of_log))
        self.samples.append((round(self.elapsed, 2), self.lag, into, out))

    def add_day(self, day: str, airport: str, delays: Delays) -> None:
        """Records the current contents of a window."""
        index = (date.fromisoformat(day) - FIRST_DAY).days
        self.days.append((index, AIRPORTS.index(airport), delays.minutes, delays.departed))

    def event(self, known: int) -> tuple[dict[str, Any], int]:
        """The state for a page that already has this many reports of days."""
        total = len(self.days)
        event = {
            "t": round(self.elapsed, 2),
            "text": self.text,
            "phase": self.phase,
            "date": self.date,
            "total": self.total,
            "sent": self.sent,
            "acked": self.acked,
            "read": self.read,
            "in": round(self.into_log.per_second()),
            "out": round(self.out_of_log.per_second()),
            "lag": self.lag,
            "final": self.final,
            "windows": self.windows,
            "kills": self.kills,
            "days": self.days[known:total],
            "verdict": self.verdict,
            "exact": self.exact,
        }
        return event, total
