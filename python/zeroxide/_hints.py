"""Suggestions for misspelled words, for text that cannot be encoded, and for memory with gaps."""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import ParamSpec, TypeVar

__all__ = ["NotContiguous", "did_you_mean", "encoded", "hinting", "tell_cure"]

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")


class NotContiguous(BufferError, ValueError):
    """A message's memory has gaps. NumPy's arrays raise `ValueError`, memoryviews `BufferError`."""


def did_you_mean(word: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Returns the end of an error about an unknown word: the closest known one, or nothing.

    Upper and lower case count as the same. Words below a similarity of `cutoff`, which is at
    most 1, are not suggested.
    """
    # Imported here, because an error may take longer, but an import must not.
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


def encoded(text: str, encoding: str = "utf-8") -> bytes:
    """Returns the text as bytes; the error for text that has no such bytes says what to do."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        tell_cure(error)
        raise


def tell_cure(error: UnicodeEncodeError) -> None:
    """Adds to an error, which names a character and its position, what to do about it."""
    code = ord(error.object[error.start])
    if 0xDC80 <= code <= 0xDCFF:
        # What os.fsdecode and sys.argv make of a byte that is not UTF-8.
        cure = (
            f"it stands for the byte 0x{code - 0xDC00:02x}, which was not UTF-8 in its source;"
            " text.encode('utf-8', 'surrogateescape') restores the bytes"
        )
    elif 0xD800 <= code <= 0xDFFF:
        # What json.loads makes of text that was cut within a character.
        cure = "it is half of a character; text.encode('utf-8', 'replace').decode() puts '?' there"
    else:
        cure = "encoding='utf-8' has every character"
    if not error.reason.endswith(cure):
        error.reason = f"{error.reason}: {cure}"
