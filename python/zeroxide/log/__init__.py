"""Python's logging over PUB sockets: `zeroxide.log.handlers`, and ``python -m zeroxide.log``.

The name is pyzmq's. It has nothing to do with the durable log of a collector, which is in
`zeroxide.pipeline`.
"""

from .._exports import exports_only

__all__: list[str] = []


def __dir__() -> list[str]:
    return exports_only(globals(), "handlers")
