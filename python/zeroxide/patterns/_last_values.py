"""The last message of each topic, in order of topics and in order of updates."""

from bisect import bisect_left, bisect_right, insort
from collections import OrderedDict
from collections.abc import Iterable
from dataclasses import dataclass

from ._waiting import weight

__all__ = ["LastValues"]


@dataclass(slots=True)
class _Value:
    parts: list[bytes]
    size: int
    number: int


class LastValues:
    """The messages, within bounds: those that came last are kept.

    Args:
        max_topics: How many there are at most.
        max_bytes: How much memory they take.
    """

    def __init__(self, max_topics: int, max_bytes: int) -> None:
        self._max_topics = max_topics
        self._max_bytes = max_bytes
        # The topic updated last is at the end.
        self._values: OrderedDict[bytes, _Value] = OrderedDict()
        # In order, so that a prefix costs only what it finds.
        self._topics: list[bytes] = []
        self._bytes = self._number = 0

    def update(self, parts: list[bytes]) -> None:
        topic = parts[0]
        known = self._values.pop(topic, None)
        if known is None:
            insort(self._topics, topic)
        else:
            self._bytes -= known.size
        self._number += 1
        value = self._values[topic] = _Value(parts, weight(parts), self._number)
        self._bytes += value.size
        while len(self._values) > self._max_topics or self._bytes > self._max_bytes:
            oldest, value = self._values.popitem(last=False)
            del self._topics[bisect_left(self._topics, oldest)]
            self._bytes -= value.size

    def count(self, prefix: bytes) -> int:
        """Returns how many topics begin with a prefix."""
        start, end = self._range(prefix)
        return end - start

    def first(self, prefix: bytes) -> list[bytes]:
        """Returns the message of one topic that begins with a prefix, of which there is at least one."""
        start, _ = self._range(prefix)
        return self._values[self._topics[start]].parts

    def under(self, prefixes: Iterable[bytes]) -> list[list[bytes]]:
        """Returns the messages of topics that begin with one of the prefixes, in the order of their arrival."""
        found: list[_Value] = []
        done = 0
        # Two of these ranges are apart, or one of them is within the other.
        for start, end in sorted(self._range(prefix) for prefix in prefixes):
            topics = self._topics[max(start, done) : end]
            found.extend(self._values[topic] for topic in topics)
            done = max(done, end)
        found.sort(key=lambda value: value.number)
        return [value.parts for value in found]

    def _range(self, prefix: bytes) -> tuple[int, int]:
        start = bisect_left(self._topics, prefix)
        size = len(prefix)
        return start, bisect_right(self._topics, prefix, start, key=lambda topic: topic[:size])
