"""Finding out when the core has let go of a buffer that was sent without copying."""

import time
from threading import Event
from typing import Final

from ._native import Frame, Release
from .error import NotDone

__all__ = ["MessageTracker"]


class MessageTracker:
    """Reports when the memory of messages sent with ``copy=False`` is free again.

    Args:
        *towatch: Trackers, tracked frames, or events (`threading.Event`) to watch together.

    Raises:
        TypeError: An argument is none of these.
        ValueError: A frame was made without a tracker.

    Example:
        >>> body = bytearray(100_000)
        >>> tracker = push.send(body, copy=False, track=True)
        >>> pull.recv() == body
        True
        >>> tracker.wait(timeout=10)  # seconds
        >>> tracker.done
        True

    Source:
        pyzmq's ``MessageTracker``
    """

    __module__ = "zeroxide"

    def __init__(self, *towatch: "MessageTracker | Frame | Release | Event") -> None:
        # What there is to wait for, in the order given.
        self._releases: list[Release] = []
        self.events: set[Event] = set()
        self.peers: set[MessageTracker] = set()
        for item in towatch:
            if isinstance(item, Release):
                self._releases.append(item)
            elif isinstance(item, Event):
                self.events.add(item)
            elif isinstance(item, MessageTracker):
                self.peers.add(item)
            elif isinstance(item, Frame):
                if item.tracker is None:
                    raise ValueError("Not a tracked message")
                self.peers.add(item.tracker)
            else:
                raise TypeError(f"expected an Event, Frame or MessageTracker, got: {item!r}")

    def __repr__(self) -> str:
        state = "done" if self.done else "pending"
        return f"<zmq.{type(self).__name__} at {id(self):#x} {state}>"

    @property
    def done(self) -> bool:
        """Whether nothing refers to the memory any more."""
        return (
            all(release.done for release in self._releases)
            and all(event.is_set() for event in self.events)
            and all(peer.done for peer in self.peers)
        )

    def wait(self, timeout: float = -1) -> None:
        """Waits until the memory is free.

        Args:
            timeout: How long to wait, in seconds (not ms); a negative number waits without
                limit.

        Raises:
            NotDone: The time is up.

        Source:
            pyzmq's ``MessageTracker.wait``
        """
        deadline = None if timeout < 0 else time.monotonic() + timeout
        self._wait_until(deadline)

    def _wait_until(self, deadline: float | None) -> None:
        def left() -> float | None:
            return None if deadline is None else max(0.0, deadline - time.monotonic())

        for release in self._releases:
            if not release.wait(left()):
                raise NotDone
        for event in self.events:
            if not event.wait(left()):
                raise NotDone
        for peer in self.peers:
            peer._wait_until(deadline)


# The result of a send that copied: there was never anything to wait for.
FINISHED_TRACKER: Final = MessageTracker()
_FINISHED_TRACKER: Final = FINISHED_TRACKER
