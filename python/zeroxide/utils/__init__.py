"""Modules under the paths that programs written for pyzmq import."""

import importlib
from typing import TYPE_CHECKING, Any

# What `import zmq` brings along in pyzmq. Here it is loaded when it is asked for.
_BROUGHT_ALONG = {"interop", "jsonapi"}

if not TYPE_CHECKING:  # to type checkers, what does not exist is a mistake

    def __getattr__(name: str) -> Any:
        if name in _BROUGHT_ALONG:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
