"""Python's logging over PUB sockets: `zeroxide.log.handlers`, and ``python -m zeroxide.log``.

The name is pyzmq's. It has nothing to do with the durable log of a collector, which is in
`zeroxide.pipeline`.
"""

from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand

__all__: list[str] = []


_MODULES = ("handlers",)


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    __getattr__ = on_demand(__name__, *_MODULES)
