"""What goes wrong between a collector and those who write to it and read from it.

Every text says what happened, where, and what to do about it; the attributes hold the
same for programs. They travel between processes: Spark's executors raise them, too.
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
    """Root of what collectors, producers and clients raise."""

    def __reduce__(self) -> tuple[Any, ...]:
        # Exceptions are pickled as a call with their text; these have more to say.
        return _restore, (type(self), self.args, self.__dict__)


class CollectorGone(CollectorError, TimeoutError):
    """The collector at `endpoint` did not answer for `seconds`.

    A producer keeps what is not acknowledged and goes on trying: it can be used again as
    soon as the collector is back.
    """

    endpoint: str
    seconds: float

    def __init__(self, text: str, endpoint: str = "", seconds: float = 0.0) -> None:
        super().__init__(text)
        self.endpoint = endpoint
        self.seconds = seconds


class Refused(CollectorError):
    """The collector answered that it does not do that.

    `code` is a word for programs: ``gap``, ``fenced``, ``too-big``, ``full``,
    ``read-only``, ``failed``, ``denied``, ``not-staged``, ``malformed``... `detail` is the
    number that belongs to it: with ``corrupt`` the offset behind what is damaged, with
    ``gap`` the sequence number that is expected, with ``too-big`` the limit, with
    ``other-rows`` the offset from which on they are others.
    """

    code: str
    detail: int

    def __init__(self, text: str, code: str = "", detail: int = 0) -> None:
        super().__init__(text)
        self.code = code
        self.detail = detail


class Fenced(Refused):
    """Another process has taken over the name of this producer.

    Only one producer at a time may use a name; the newer one wins, and this one can do
    nothing any more. What it had not been acknowledged for is in `unacknowledged`, rows.
    """

    producer: str
    unacknowledged: int

    def __init__(self, text: str, producer: str = "", unacknowledged: int = 0) -> None:
        super().__init__(text, "fenced")
        self.producer = producer
        self.unacknowledged = unacknowledged


class NotAcknowledged(CollectorError, TimeoutError):
    """Rows are not known to be on the collector's disk.

    `remaining` says how many, per endpoint.
    """

    remaining: dict[str, int]

    def __init__(self, text: str, remaining: dict[str, int] | None = None) -> None:
        super().__init__(text)
        self.remaining = dict(remaining or {})

    @classmethod
    def after(cls, seconds: float | None, remaining: dict[str, int]) -> Self:
        """What a flush that ran out of time raises."""
        parts = ", ".join(f"{rows} rows at {endpoint}" for endpoint, rows in remaining.items())
        waited = "" if seconds is None else f" after {seconds:g} s"
        return cls(f"not acknowledged{waited}: {parts}", remaining)


class DataLoss(CollectorError):
    """Rows that were asked for are not there any more, or never were.

    `asked` is the offset that was wanted; the log `log_id` has those from `earliest`
    to `latest` (exclusive). `others` is the offset from which on its rows are others than
    those that were read, if it is an older copy that has grown since.
    """

    asked: int
    earliest: int
    latest: int
    log_id: str
    others: int | None

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
