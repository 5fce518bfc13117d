"""The waits at the end of a program: signals shorten them, and no report is lost."""

import contextlib
import sys
from collections.abc import Callable, Iterable

__all__ = ["raise_at_end", "report_at_end", "take_turns"]

# How often one of them is tried: signals may come in quick succession.
_TRIES = 4


def take_turns(
    ends: Iterable[Callable[[bool], object]], *, hurried: bool = False
) -> BaseException | None:
    """Calls each function with False: it may wait.

    An exception of a signal handler means: now. That function and the later ones are then called
    with True, which asks them not to wait, and only to report.

    Args:
        ends: The functions. Calling one again continues what it did.
        hurried: Whether they must not wait from the beginning.

    Returns:
        The first exception.
    """
    first: BaseException | None = None
    for end in ends:
        for _ in range(_TRIES):
            try:
                end(hurried)
                break
            except BaseException as error:
                hurried = True
                first = first or error
    return first


def report_at_end(line: str) -> None:
    """Writes a line to stderr. A stderr that fails must not cost the other reports.

    Args:
        line: The text.
    """
    if sys.stderr is not None:
        with contextlib.suppress(OSError, ValueError):
            print(line, file=sys.stderr)


def raise_at_end(error: BaseException | None) -> None:
    """Raises an exception at the exit of the program, unless it only asks for the exit.

    Args:
        error: The exception, if there is one.
    """
    if error is not None and not isinstance(error, KeyboardInterrupt | SystemExit):
        raise error
