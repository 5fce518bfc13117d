"""JSON as bytes for messages.

`send_json` and `recv_json` call these functions, so a program may replace them.
"""

import json
from typing import Any

from .._exports import exports_only
from .._hints import encoded

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
    return encoded(json.dumps(o, **kwargs))


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
