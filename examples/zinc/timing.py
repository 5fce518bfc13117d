"""The times of a cluster, and frames that are sent again."""

from dataclasses import dataclass

from .message import Frame


@dataclass(frozen=True, slots=True)
class Timing:
    """Times in seconds."""

    # How often an endpoint shows that it lives.
    beat: float = 0.2
    # A neighbour that is silent for this long is dead.
    patience: float = 1.5
    # When a message is sent again that the host has not published. Then twice that, and so on.
    resend: float = 1.0
    # When work is handed out again that has no result, although no endpoint has died.
    redo: float = 30.0


@dataclass(slots=True)
class Outstanding:
    """A frame that is sent again until there is an answer."""

    frame: Frame
    due: float
    pause: float

    def is_due(self, now: float) -> bool:
        """Whether to send the frame again now. The next pause is twice as long."""
        if now < self.due:
            return False
        self.pause *= 2
        self.due = now + self.pause
        return True
