"""JSON as bytes for messages."""

import json
from typing import Any

__all__ = ["dumps", "jsonmod", "loads"]

# Programs check whether a JSON module exists; it always does.
jsonmod = json


def dumps(o: object, **kwargs: Any) -> bytes:
    """Encodes an object as JSON in UTF-8; keyword arguments are passed to `json.dumps`."""
    return json.dumps(o, **kwargs).encode()


def loads(s: bytes | bytearray | str, **kwargs: Any) -> Any:
    """Decodes JSON; keyword arguments are passed to `json.loads`."""
    return json.loads(s, **kwargs)
