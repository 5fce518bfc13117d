"""Suggestions for misspelled words."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["did_you_mean", "hinting"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Returns the end of an error about an unknown word: the closest known one, or nothing.

    Upper and lower case count as the same. Words below a similarity of `cutoff`, which is at
    most 1, are not suggested.
    """
    # An error is no place to save time, and an import is.
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1, cutoff=cutoff)
    return f"; did you mean {names[close[0]]!r}?" if close else ""


def hinting(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """Decorates a constructor: its errors about unknown keyword arguments suggest a known one."""
    code = function.__code__
    known = code.co_varnames[1 : code.co_argcount + code.co_kwonlyargcount]

    @wraps(function)
    def checked(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        for name in kwargs:
            if name not in known:
                owner = type(args[0]).__name__
                raise TypeError(f"{owner} has no option {name!r}{did_you_mean(name, known)}")
        return function(*args, **kwargs)

    return checked
