"""Errors between a collector and its writers and readers.

Every text says what happened, where, and what to do about it. The attributes hold the same facts
for programs. The errors can be pickled, because Spark's executors raise them, too.
"""

from typing import Any, Self

from ..error import ZMQBaseError

__all__ = [
    "CollectorError",
    "CollectorGone",
    "DataLoss",
    "Fenced",
    "NotAcknowledged",
    "Refused",
]


class CollectorError(ZMQBaseError):
    """The base class of the errors of collectors, producers and clients."""

    def __reduce__(self) -> tuple[Any, ...]:
        # By default an exception is pickled with its text only; these have further attributes.
        return _restore, (type(self), self.args, self.__dict__)


class CollectorGone(CollectorError, TimeoutError):
    """A collector did not answer in time.

    A producer keeps unacknowledged rows and keeps trying, so it can be used again as soon as the
    collector is back. If `close` raises this error, the rows are lost.

    Args:
        text: The text.
        endpoint: The collector's endpoint.
        seconds: How long it did not answer.
    """

    endpoint: str
    """The collector's endpoint."""
    seconds: float
    """How long it did not answer."""

    def __init__(self, text: str, endpoint: str = "", seconds: float = 0.0) -> None:
        super().__init__(text)
        self.endpoint = endpoint
        self.seconds = seconds


class Refused(CollectorError):
    """A collector refused a request.

    Args:
        text: The text.
        code: A word for programs: ``gap``, ``fenced``, ``too-big``, ``full``, ``read-only``,
            ``failed``, ``denied``, ``not-staged``, ``malformed``...
        detail: The number that belongs to it: with ``corrupt`` the offset after the damage,
            with ``gap`` the expected sequence number, with ``too-big`` the limit in bytes,
            with ``other-rows`` the first offset whose row differs.
    """

    code: str
    """A word for programs, such as ``full``."""
    detail: int
    """The number that belongs to the code."""

    def __init__(self, text: str, code: str = "", detail: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.detail = detail


class Fenced(Refused):
    """Another process has taken over the name of this producer.

    Only one producer at a time may use a name. The newer one continues; this one cannot be
    used any more.

    Args:
        text: The text.
        producer: The name.
        unacknowledged: How many rows of this producer were not acknowledged.
    """

    producer: str
    """The name that was taken over."""
    unacknowledged: int
    """How many rows of this producer were not acknowledged."""

    def __init__(self, text: str, producer: str = "", unacknowledged: int = 0) -> None:
        super().__init__(text, "fenced")
        self.producer = producer
        self.unacknowledged = unacknowledged


class NotAcknowledged(CollectorError, TimeoutError):
    """Rows are not known to be on the collector's disk.

    Args:
        text: The text.
        remaining: How many rows, by endpoint.
    """

    remaining: dict[str, int]
    """How many rows are not acknowledged, by endpoint."""

    def __init__(self, text: str, remaining: dict[str, int] | None = None) -> None:
        super().__init__(text)
        self.remaining = dict(remaining or {})

    @classmethod
    def after(
        cls, seconds: float | None, remaining: dict[str, int], *, closed: bool = False
    ) -> Self:
        """Makes the error of a flush that ran out of time.

        Args:
            seconds: How long it waited.
            remaining: How many rows were not acknowledged, by endpoint.
            closed: Whether the producer is closed and does not send them again.

        Returns:
            The error.
        """
        parts = ", ".join(
            f"{rows} row{'' if rows == 1 else 's'} at {endpoint}"
            for endpoint, rows in remaining.items()
        )
        waited = "" if seconds is None else f" after {seconds:g} s"
        fate = (
            "not sent again, because this producer is closed; a spool would keep them"
            if closed
            else "this producer keeps trying"
        )
        return cls(f"not acknowledged{waited}: {parts}; {fate}", remaining)


class DataLoss(CollectorError):
    """Requested rows are no longer there, or never were.

    Args:
        text: The text.
        asked: The offset that was requested.
        earliest: The first offset that the log has.
        latest: The offset after its last row.
        log_id: The id of the log.
        others: The first offset whose row differs from the one that was read, if the log is
            an older copy that has grown since.
    """

    asked: int
    """The offset that was requested."""
    earliest: int
    """The first offset that the log has."""
    latest: int
    """The offset after the log's last row."""
    log_id: str
    """The id of the log."""
    others: int | None
    """The first offset whose row differs from the one that was read; None if that is not why."""

    def __init__(
        self,
        text: str,
        asked: int = 0,
        earliest: int = 0,
        latest: int = 0,
        log_id: str = "",
        others: int | None = None,
    ) -> None:
        super().__init__(text)
        self.others = others
        self.asked = asked
        self.earliest = earliest
        self.latest = latest
        self.log_id = log_id


def _restore(
    kind: type[CollectorError], args: tuple[Any, ...], state: dict[str, Any]
) -> CollectorError:
    error = kind(*args)
    error.__dict__.update(state)
    return error
