"""pyzmq's backend: the names that the extension module provides."""

import importlib
from typing import TYPE_CHECKING, Any

from zeroxide._native import (
    Context,
    Frame,
    Socket,
    curve_keypair,
    curve_public,
    has,
    monitored_queue,
    proxy,
    proxy_steerable,
    strerror,
    zmq_errno,
    zmq_poll,
)
from zeroxide.frame import Message
from zeroxide.socket import IPC_PATH_MAX_LEN
from zeroxide.version import zmq_version_info

__all__ = [
    "IPC_PATH_MAX_LEN",
    "PYZMQ_DRAFT_API",
    "Context",
    "Frame",
    "Message",
    "Socket",
    "curve_keypair",
    "curve_public",
    "has",
    "monitored_queue",
    "proxy",
    "proxy_steerable",
    "strerror",
    "zmq_errno",
    "zmq_poll",
    "zmq_version_info",
]

PYZMQ_DRAFT_API: bool = has("draft")

if not TYPE_CHECKING:  # for type checkers, a missing name is a mistake

    def __getattr__(name: str) -> Any:
        # As in pyzmq, it is available without an import.
        if name == "select":
            return importlib.import_module(".select", __name__)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
