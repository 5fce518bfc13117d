"""Checks of arguments: a mistake is reported with the argument's name and what it takes."""

from typing import Any

from .._sizes import parse_size

__all__ = ["endpoint", "name", "number", "offset", "size"]


def number(argument: str, value: Any, least: float = 0.0) -> float:
    """Returns a number that is not below `least`."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise TypeError(f"{argument} takes a number, not {value!r}")
    if not value >= least:
        raise ValueError(f"{argument} must be at least {least:g}, not {value}")
    return value


def size(argument: str, value: Any, least: int = 1) -> int:
    """Returns a number of bytes, which may be text such as ``"100G"``."""
    bytes_ = parse_size(value) if isinstance(value, str) else value
    if isinstance(bytes_, bool) or not isinstance(bytes_, int):
        raise TypeError(f"{argument} takes a number of bytes or text such as '100G', not {value!r}")
    if not least <= bytes_ < 2**63:
        raise ValueError(f"{argument} must be at least {least} bytes, not {value!r}")
    return bytes_


def offset(argument: str, value: Any) -> int:
    """Returns an offset of the log."""
    if isinstance(value, bool) or not isinstance(value, int):
        hint = ""
        if value in ("earliest", "latest"):
            hint = f": Client.info().{value} is one"
        raise TypeError(f"{argument} takes an offset, which is an int, not {value!r}{hint}")
    if value < 0:
        raise ValueError(f"{argument} takes an offset of 0 or more, not {value}")
    return value


def name(argument: str, value: Any) -> str:
    """Returns the name of a group or a producer."""
    if not isinstance(value, str):
        raise TypeError(f"{argument} takes a name, which is a str, not {value!r}")
    return value


def endpoint(value: Any) -> str:
    """Returns an address; whether it is one is found out by connecting."""
    if not isinstance(value, str):
        raise TypeError(f"endpoint takes text such as 'tcp://collector:5555', not {value!r}")
    return value
