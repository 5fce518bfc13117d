"""Checks of arguments: a mistake is reported with the argument's name, what it takes and what was given."""

import math
import operator
import os
import threading
from collections.abc import Iterable
from typing import Any, NoReturn

from ._hints import encoded

__all__ = [
    "address",
    "callback",
    "encoding",
    "endpoint",
    "flag",
    "items",
    "linger",
    "milliseconds",
    "name",
    "number",
    "offset",
    "path",
    "refuse_timeout",
    "seconds",
    "shown",
    "size",
    "topics",
    "whole",
]

# Longer values are shortened in errors.
_LONGEST = 60

# The upper limit of every number, because the extension module has no larger ones.
_BEYOND = 2**63


def shown(value: object) -> str:
    """Returns the beginning of a value's `repr`."""
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."


def number(argument: str, value: Any, least: float = 0.0) -> float:
    """Returns a number that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{argument} takes a number, not {shown(value)}")
    if not value >= least:
        raise ValueError(f"{argument} must be at least {least:g}, not {shown(value)}")
    # A float is precise enough for every number here.
    return value if isinstance(value, float) else float(min(value, _BEYOND))


def whole(argument: str, value: Any, least: int = 0, beyond: int = _BEYOND) -> int:
    """Returns a whole number from `least` up to `beyond`."""
    try:
        number = None if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = None
    if number is None:
        raise TypeError(f"{argument} takes a whole number, not {shown(value)}")
    if number < least:
        raise ValueError(f"{argument} must be at least {least}, not {shown(value)}")
    if number >= beyond:
        raise ValueError(f"{argument} must be below {beyond}, not {shown(value)}")
    return number


def size(argument: str, value: Any, least: int = 1) -> int:
    """Returns a number of bytes, which may be text such as ``"100G"``."""
    from ._sizes import parse_size

    bytes_ = parse_size(value) if isinstance(value, str) else value
    if isinstance(bytes_, bool) or not isinstance(bytes_, int):
        raise TypeError(
            f"{argument} takes a number of bytes or text such as '100G', not {shown(value)}"
        )
    if bytes_ < least:
        raise ValueError(f"{argument} must be at least {least} bytes, not {shown(value)}")
    if bytes_ >= _BEYOND:
        raise ValueError(f"{argument} must be below 2**63 bytes, not {shown(value)}")
    return bytes_


def offset(argument: str, value: Any) -> int:
    """Returns an offset of the log."""
    if isinstance(value, bool) or not isinstance(value, int):
        hint = ""
        if isinstance(value, str) and value in ("earliest", "latest"):
            hint = f": Client.info().{value} is one"
        raise TypeError(f"{argument} takes an offset, which is an int, not {shown(value)}{hint}")
    if not 0 <= value < _BEYOND:
        least = "" if value > 0 else " of 0 or more"
        raise ValueError(f"{argument} takes an offset{least}, not {shown(value)}")
    return value


def name(argument: str, value: Any, what: str = "a name") -> str:
    """Returns text: the name of a group or producer, or another text that `what` describes."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} takes {what}, which is a str, not {shown(value)}")
    encoded(value)
    return value


def flag(argument: str, value: Any) -> bool:
    """Returns a bool."""
    if not isinstance(value, bool):
        raise TypeError(f"{argument} takes True or False, not {shown(value)}")
    return value


def path(argument: str, value: Any) -> str:
    """Returns the path of a file or folder."""
    if isinstance(value, bytes) or not isinstance(value, (str, os.PathLike)):
        raise TypeError(f"{argument} takes a path, which is a str or a Path, not {shown(value)}")
    return os.fspath(value)


def items(argument: str, value: Any, what: str) -> list[Any]:
    """Returns the items of a list, or of anything to iterate over, except text."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        raise TypeError(f"{argument} takes {what}, not {shown(value)}")
    return list(value)


def topics(argument: str, value: Any) -> list[str]:
    """Returns topics, of which there may be one, several or none."""
    if value is None:
        return []
    if isinstance(value, str):
        value = [value]
    texts = None if isinstance(value, bytes) or not isinstance(value, Iterable) else list(value)
    if texts is None or not all(isinstance(text, str) for text in texts):
        raise TypeError(
            f"{argument} takes a topic, which is a str, or a list of topics, not {shown(value)}"
        )
    for text in texts:
        encoded(text)
    return texts


def endpoint(value: Any) -> str:
    """Returns an address as text. Connecting finds out whether it is valid."""
    if not isinstance(value, str):
        raise TypeError(f"endpoint takes text such as 'tcp://collector:5555', not {shown(value)}")
    encoded(value)
    return value


def address(value: Any) -> Any:
    """Returns an endpoint for a socket that does not exist yet, checked as far as possible."""
    if not isinstance(value, (str, bytes)):
        raise TypeError(f"an endpoint is text such as 'tcp://127.0.0.1:5555', not {shown(value)}")
    text = value if isinstance(value, str) else value.decode("utf-8", "replace")
    if "://" not in text:
        raise ValueError(
            f"{shown(value)} is not an endpoint: expected scheme://address, as in"
            " tcp://127.0.0.1:5555"
        )
    return value


def encoding(value: Any) -> str:
    """Returns the name of an encoding that exists."""
    import codecs

    if not isinstance(value, str):
        raise TypeError(
            f"encoding takes the name of an encoding such as 'utf-8', not {shown(value)}"
        )
    codecs.lookup(value)
    return value


def callback(argument: str, value: Any, what: str) -> Any:
    """Returns something that can be called; `what` begins with "a function"."""
    if not callable(value):
        raise TypeError(f"{argument} takes {what}, not {shown(value)}")
    return value


def seconds(timeout: Any) -> float | None:
    """Returns a timeout in seconds, or None for no limit."""
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or timeout != timeout:
        refuse_timeout(timeout, "seconds")
    # Threads cannot wait longer than that.
    return None if timeout >= threading.TIMEOUT_MAX else timeout


def milliseconds(timeout: Any) -> int:
    """Returns whole milliseconds, never shorter than requested; -1 means no limit."""
    if timeout is None:
        return -1
    try:
        if timeout < 0 or timeout == math.inf:
            return -1
        whole: int = math.ceil(timeout)
    except (TypeError, ValueError):
        refuse_timeout(timeout)
    return whole


def linger(value: Any) -> int | None:
    """Returns whole milliseconds, never shorter than requested; None for the socket's own option."""
    if value is None:
        return None
    kind: type[Exception] = ValueError
    try:
        whole: int = math.ceil(value)
        if -_BEYOND <= whole < _BEYOND:
            return whole
    except (OverflowError, ValueError):  # infinity, nan
        pass
    except TypeError:
        kind = TypeError
    raise kind(f"linger takes milliseconds, -1 for no limit, or None, not {shown(value)}")


def refuse_timeout(timeout: Any, unit: str = "milliseconds") -> NoReturn:
    """Raises the error for a timeout that is not a number."""
    kind = ValueError if isinstance(timeout, float) else TypeError
    raise kind(f"timeout takes a number of {unit}, or None, not {shown(timeout)}") from None
