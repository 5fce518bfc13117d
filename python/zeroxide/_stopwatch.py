"""The stopwatch of old ØMQ examples."""

import time
import warnings

__all__ = ["Stopwatch"]


class Stopwatch:
    """Measures time; deprecated, as `time.monotonic_ns` does the same.

    ``stop()`` returns the microseconds since ``start()``.
    """

    def __init__(self) -> None:
        warnings.warn(
            "Stopwatch is deprecated, use time.monotonic",
            DeprecationWarning,
            stacklevel=2,
        )
        self._begin = time.monotonic_ns()

    def start(self) -> None:
        """Begins, or begins anew."""
        self._begin = time.monotonic_ns()

    def stop(self) -> int:
        """The microseconds since the beginning."""
        return (time.monotonic_ns() - self._begin) // 1000

    def sleep(self, seconds: float) -> None:
        """Waits."""
        time.sleep(seconds)
