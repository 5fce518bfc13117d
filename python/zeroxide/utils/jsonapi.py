"""JSON as bytes, as messages carry it."""

import json
from typing import Any

__all__ = ["dumps", "jsonmod", "loads"]

# Programs ask whether there is one; there always is.
jsonmod = json


def dumps(o: object, **kwargs: Any) -> bytes:
    """An object as JSON in UTF-8; keyword arguments go to `json.dumps`."""
    return json.dumps(o, **kwargs).encode()


def loads(s: bytes | bytearray | str, **kwargs: Any) -> Any:
    """The object that JSON stands for; keyword arguments go to `json.loads`."""
    return json.loads(s, **kwargs)
