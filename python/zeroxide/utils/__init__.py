"""Modules under the paths that programs written for pyzmq import."""

import importlib
import os
from typing import TYPE_CHECKING, Any

from .._exports import exports_only

__all__: list[str] = []


def __dir__() -> list[str]:
    return exports_only(globals(), "jsonapi", "monitor", "z85")


# Modules that only old programs use.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "utils"))

# In pyzmq, `import zmq` imports these. Here they are imported on first use.
_BROUGHT_ALONG = {"interop", "jsonapi"}

if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake

    def __getattr__(name: str) -> Any:
        if name in _BROUGHT_ALONG:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
