"""When things are due, of which there may be very many."""

import heapq
from typing import Generic, TypeVar

__all__ = ["Schedule"]

K = TypeVar("K", bound="bytes | tuple[str, bytes]")


class Schedule(Generic[K]):
    """A time for each key. It costs little to find those that are due, however many there are."""

    def __init__(self) -> None:
        self._times: dict[K, float] = {}
        # Times that were replaced or forgotten stay here for a while.
        self._heap: list[tuple[float, K]] = []

    def set_by(self, key: K, time: float) -> None:
        """Sets the time of a key, unless it has an earlier one."""
        known = self._times.get(key)
        if known is not None and known <= time:
            return
        self._times[key] = time
        heapq.heappush(self._heap, (time, key))
        if len(self._heap) > 2 * len(self._times) + 100:
            self._heap = [(time, key) for key, time in self._times.items()]
            heapq.heapify(self._heap)

    def forget(self, key: K) -> None:
        self._times.pop(key, None)

    def clear(self) -> None:
        self._times.clear()
        self._heap.clear()

    def next(self) -> float | None:
        """Returns the earliest time."""
        while self._heap:
            time, key = self._heap[0]
            if self._times.get(key) == time:
                return time
            heapq.heappop(self._heap)
        return None

    def pop_due(self, now: float) -> list[K]:
        """Returns the keys that are due, which have no time any more."""
        due = []
        while (time := self.next()) is not None and time <= now:
            _, key = heapq.heappop(self._heap)
            del self._times[key]
            due.append(key)
        return due
