"""Threads for the handlers of messages."""

import logging
import threading
from collections import deque
from collections.abc import Callable, Hashable
from typing import Any

LOG = logging.getLogger(__name__)

Call = tuple[Callable[..., Any], tuple[Any, ...]]


class HandlerPool:
    """Runs the calls of each lane in order, one at a time, and different lanes at the same time.

    Lanes that have calls wait in one line. A thread that has time takes the first lane, makes one call, and puts the
    lane at the end, so the load is spread over all threads, and a slow handler delays no other lane.
    """

    def __init__(self, threads: int = 4, room: int = 10_000) -> None:
        self._room = room
        self._lanes: dict[Hashable, deque[Call]] = {}
        self._line: deque[Hashable] = deque()
        self._load = 0
        self._is_closed = False
        lock = threading.Lock()
        self._changed = threading.Condition(lock)
        self._has_room = threading.Condition(lock)
        self._threads = [
            threading.Thread(target=self._run, name=f"handler {number}", daemon=True)
            for number in range(threads)
        ]
        for thread in self._threads:
            thread.start()

    @property
    def load(self) -> int:
        """The number of calls that wait or run."""
        return self._load

    def wait_for_room(self, seconds: float) -> bool:
        """Waits until the handlers are not far behind, and returns whether they are not."""
        with self._has_room:
            return self._has_room.wait_for(lambda: self._load < self._room, seconds)

    def call(self, lane: Hashable, function: Callable[..., Any], *arguments: Any) -> None:
        """Calls a function after all earlier calls of the same lane."""
        with self._changed:
            if self._is_closed:
                return
            self._load += 1
            # A lane is in the line, or a thread has it, as long as it has calls.
            if lane not in self._lanes:
                self._lanes[lane] = deque()
                self._line.append(lane)
                self._changed.notify()
            self._lanes[lane].append((function, arguments))

    def close(self) -> None:
        """Waits for the calls that run, and forgets the others."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        for thread in self._threads:
            if thread is not threading.current_thread():
                thread.join()

    def _run(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._line or self._is_closed)
                if self._is_closed:
                    return
                lane = self._line.popleft()
                function, arguments = self._lanes[lane].popleft()
            try:
                function(*arguments)
            except Exception:
                LOG.exception("a handler of %s failed", lane)
            with self._changed:
                self._load -= 1
                self._has_room.notify_all()
                if self._lanes[lane]:
                    self._line.append(lane)
                    self._changed.notify()
                else:
                    del self._lanes[lane]
