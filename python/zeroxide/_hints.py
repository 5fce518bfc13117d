"""Suggestions for misspelled words."""

from collections.abc import Iterable

__all__ = ["did_you_mean"]


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Returns the end of an error about an unknown word: the closest known one, or nothing.

    Upper and lower case count as the same.
    """
    # An error is no place to save time, and an import is.
    from difflib import get_close_matches

    names = {name.lower(): name for name in known}
    close = get_close_matches(word.lower(), names, n=1)
    return f"; did you mean {names[close[0]]!r}?" if close else ""
