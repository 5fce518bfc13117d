"""Modules under the paths that programs written for pyzmq import."""

import os
from typing import TYPE_CHECKING

from .._exports import exports_only, on_demand

__all__: list[str] = []


_MODULES = ("jsonapi", "monitor", "z85")


def __dir__() -> list[str]:
    return exports_only(globals(), *_MODULES)


# Modules that only old programs use.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "utils"))

if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake
    # In pyzmq, `import zmq` also imports `interop`.
    __getattr__ = on_demand(__name__, *_MODULES, "interop")
