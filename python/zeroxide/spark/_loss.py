"""The errors about rows that a query needs but that are not in the log.

Each error names the offsets, the option that continues without them, and the setting that would
have kept them.
"""

import logging

from ..pipeline import DataLoss

_logger: logging.Logger = logging.getLogger(__name__)

__all__ = [
    "cut_short",
    "damaged",
    "moved_back",
    "not_dense",
    "other_rows",
    "removed",
    "replaced",
    "trimmed",
    "warn_of",
]

_OPTION = ", or set option 'failOnDataLoss' to false to continue"


def warn_of(error: DataLoss) -> None:
    """Warns that rows are skipped. The text does not advise to set the option, which is set."""
    text = str(error).partition(_OPTION)[0]
    _logger.warning("zeromq: going on without rows, as failOnDataLoss=false allows: %s", text)


def trimmed(name: str, log: str, asked: int, earliest: int, latest: int) -> DataLoss:
    """The log begins above the requested offset."""
    return _loss(
        f"rows [{asked}, {earliest}) of {_of(name, log)} are gone: its log"
        f" has offsets {earliest} to {latest} only. Its retention (--retention-bytes,"
        " --retention-hours or --retention-groups of the collector) removed them before this query"
        " had read them: give it more, and with groups, set option 'consumerGroup'",
        f"at {earliest}",
        (asked, earliest, latest, log),
    )


def moved_back(name: str, log: str, asked: int, earliest: int, latest: int) -> DataLoss:
    """The log ends below the offset that was read before."""
    return _loss(
        f"offset {asked} of {_of(name, log)} was reached before, but now its log ends"
        f" at {latest} (it begins at {earliest}): rows [{latest}, {asked}) are gone, as if an older"
        " copy of its folder had been restored or its disk had lost synced data."
        " Restore the folder, start the query from a new checkpoint",
        f"at {latest}",
        (asked, earliest, latest, log),
    )


def other_rows(
    name: str, log: str, asked: int, others: int, earliest: int, latest: int
) -> DataLoss:
    """The log has grown beyond the offset that was read before, with other rows."""
    return _loss(
        f"offset {asked} of {_of(name, log)} was reached before, but from offset {others} on its log"
        f" now has other rows than those that were read (it has offsets {earliest} to {latest}): an"
        " older copy of its folder was restored, and has grown since. Put the newer folder"
        " back, start the query from a new checkpoint",
        f"at {max(others, earliest)}",
        (asked, earliest, latest, log),
        others,
    )


def replaced(
    name: str, log: str, asked: int, now: str, earliest: int, latest: int, *, end: int | None = None
) -> DataLoss:
    """Another log answers at the same address."""
    rows = f"rows from {asked} on" if end is None else f"rows [{asked}, {end})"
    return _loss(
        f"{rows} of collector {name} are needed from log {log}, but the collector now has log"
        f" {now} with offsets {earliest} to {latest}: the collector was started with another or an"
        " empty folder. Start it with its previous folder, start the query from a new"
        " checkpoint",
        f"at {earliest} of the new log",
        (asked, earliest, latest, now),
    )


def damaged(name: str, log: str, asked: int, behind: int, said: str) -> DataLoss:
    """A segment of the log cannot be read."""
    return _loss(
        f"rows from {asked} on of {_of(name, log)} cannot be read: {said}. A"
        " damaged segment can be put back from a copy while the collector is stopped",
        f"at {behind}",
        (asked, behind, behind, log),
    )


def removed(name: str, log: str, asked: int) -> DataLoss:
    """A collector of the checkpoint is not among the endpoints."""
    return _loss(
        f"the checkpoint is at offset {asked} of {_of(name, log)}, which is at none"
        " of the addresses in option 'endpoint': its rows after that offset would be skipped."
        " Add it to the option again",
        "with the other collectors",
        (asked, 0, 0, log),
    )


def cut_short(name: str, log: str, reached: int, end: int) -> DataLoss:
    """A fetch ended before its end."""
    return _loss(
        f"rows [{reached}, {end}) of {_of(name, log)} were not delivered although the"
        " fetch ended: look into the collector's log",
        "at the next batch",
        (reached, 0, 0, log),
    )


def not_dense(name: str, log: str, wanted: int, got: int) -> DataLoss:
    """A fetch skipped rows, or returned some twice."""
    on = max(wanted, got)
    return _loss(
        f"offset {wanted} of {_of(name, log)} should come next, but {got} came:"
        " its segments do not fit together. Stop the collector and look at its folder",
        f"at {on}",
        (wanted, on, 0, log),
    )


def _of(name: str, log: str) -> str:
    return f"collector {name} (log {log})"


def _loss(
    text: str, where: str, facts: tuple[int, int, int, str], others: int | None = None
) -> DataLoss:
    """Makes the error, with the option that continues; `facts` are attributes for programs."""
    text = f"{text}{_OPTION} {where} without them"
    return DataLoss(text, *facts, others)
