"""Modules under the paths that programs written for pyzmq import."""

import importlib
import os
from typing import TYPE_CHECKING, Any

# Modules for old programs only are found here.
__path__.append(os.path.join(os.path.dirname(__path__[0]), "_compat", "utils"))

# What `import zmq` brings along in pyzmq. Here it is loaded when it is asked for.
_BROUGHT_ALONG = {"interop", "jsonapi"}

if not TYPE_CHECKING:  # to type checkers, what does not exist is a mistake

    def __getattr__(name: str) -> Any:
        if name in _BROUGHT_ALONG:
            return importlib.import_module(f".{name}", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
