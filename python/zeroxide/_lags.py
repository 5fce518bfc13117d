"""The position of a consumer group in a log: one definition for all that show it."""

from typing import NamedTuple

__all__ = ["Lag", "lag"]


class Lag(NamedTuple):
    """Rows that a group has not read."""

    rows: int
    """Those in the log."""
    missed: int
    """Those that were no longer in the log when the group could have read them, mostly because of retention."""


def lag(offset: int, earliest: int, latest: int) -> Lag:
    """Returns the lag of a group.

    Args:
        offset: The group's offset.
        earliest: The first offset of the log.
        latest: The offset after the last row of the log.

    Returns:
        The rows that the group can still read, and those that it has missed.
    """
    # A group may have read further since the statistics were made.
    return Lag(max(latest - max(offset, earliest), 0), max(min(earliest, latest) - offset, 0))
