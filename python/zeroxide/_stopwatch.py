"""The stopwatch of old ØMQ examples."""

import time
import warnings

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures time. Deprecated: use `time.monotonic_ns`.

    Source:
        zmq_stopwatch_start(3); pyzmq's ``Stopwatch``
    """

    __module__ = "zeroxide"

    def __init__(self) -> None:
        warnings.warn(
            "Stopwatch is deprecated, use time.monotonic",
            DeprecationWarning,
            stacklevel=2,
        )
        self._begin = time.monotonic_ns()

    def start(self) -> None:
        """Starts again from 0."""
        self._begin = time.monotonic_ns()

    def stop(self) -> int:
        """Returns the time since the start.

        Returns:
            Microseconds.
        """
        return (time.monotonic_ns() - self._begin) // 1000

    def sleep(self, seconds: float) -> None:
        """Sleeps.

        Args:
            seconds: How long.
        """
        time.sleep(seconds)
