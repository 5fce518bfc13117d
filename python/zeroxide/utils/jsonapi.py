"""JSON as bytes for messages."""

import json
from typing import Any

from .._exports import exports_only

__all__ = ["dumps", "jsonmod", "loads"]


def __dir__() -> list[str]:
    return exports_only(globals())


# Programs check whether a JSON module exists; it always does.
jsonmod = json


def dumps(o: object, **kwargs: Any) -> bytes:
    """Encodes an object as JSON in UTF-8.

    Args:
        o: The object.
        **kwargs: Further arguments of `json.dumps`.

    Returns:
        The JSON, as `bytes`.

    Source:
        pyzmq's ``zmq.utils.jsonapi.dumps``
    """
    return json.dumps(o, **kwargs).encode()


def loads(s: bytes | bytearray | str, **kwargs: Any) -> Any:
    """Decodes JSON.

    Args:
        s: The JSON, as `bytes` or text.
        **kwargs: Further arguments of `json.loads`.

    Returns:
        The object.

    Source:
        pyzmq's ``zmq.utils.jsonapi.loads``
    """
    return json.loads(s, **kwargs)
