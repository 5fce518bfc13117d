"""When to send a heartbeat to a peer, and when a silent peer counts as dead."""

from dataclasses import dataclass

__all__ = ["Backoff", "Heartbeat"]


@dataclass(slots=True)
class Heartbeat:
    """The heartbeats of one connection.

    Everything sent counts as a heartbeat, and so does everything received.
    """

    interval: float
    """Between two heartbeats, in ms."""
    liveness: int
    """How many intervals a peer may be silent."""
    due: float = 0.0
    """When the next heartbeat is due."""
    expiry: float = 0.0
    """When the peer counts as dead."""

    def start(self, now: float) -> None:
        """Begins with a peer that is alive."""
        self.sent(now)
        self.received(now)

    def sent(self, now: float) -> None:
        self.due = now + self.interval

    def received(self, now: float) -> None:
        self.expiry = now + self.interval * self.liveness

    def is_due(self, now: float) -> bool:
        return now >= self.due

    def is_dead(self, now: float) -> bool:
        if now >= self.expiry + self.interval:
            # This process did not run when the time was up, so what the peer has sent may not have been read yet.
            self.expiry = now + self.interval
        return now >= self.expiry

    def next(self) -> float:
        """Returns when one of both is true."""
        return min(self.due, self.expiry)


@dataclass(slots=True)
class Backoff:
    """Waits between attempts, each twice as long as the one before."""

    first: float
    longest: float
    _next: float = 0.0

    def wait(self) -> float:
        """Returns how long to wait now, in ms."""
        wait = self._next or self.first
        self._next = min(wait * 2, self.longest)
        return wait

    def reset(self) -> None:
        self._next = 0.0
