"""Nodes of Zyre, and the beacons and the gossip of czmq, which Zyre uses: their C libraries, through ctypes.

Debian has czmq. Zyre is found where the system has it, or in the file that the variable ZYRE_LIBRARY names. Its source
makes that file in one command:

    touch src/platform.h && cc -shared -fPIC -Iinclude -Isrc -o libzyre.so src/zyre.c src/zyre_[enpg]*.c src/zre_msg.c -lczmq -lzmq

The objects here are never destroyed: the process ends with `os._exit`.
"""

import ctypes
import ctypes.util
import os
from collections.abc import Callable
from ctypes import c_char_p, c_int, c_size_t, c_void_p
from typing import Any

CZMQ = ctypes.util.find_library("czmq")
ZYRE = os.environ.get("ZYRE_LIBRARY") or ctypes.util.find_library("zyre")


def _function(library: ctypes.CDLL, name: str, result: Any, *arguments: Any) -> Callable[..., Any]:
    function = getattr(library, name)
    function.restype, function.argtypes = result, arguments
    return function


class Czmq:
    """An actor of czmq: `zbeacon` or `zgossip`."""

    def __init__(self, actor: str) -> None:
        self.library = ctypes.CDLL(CZMQ)
        make = _function(self.library, "zactor_new", c_void_p, c_void_p, c_char_p)
        self._actor = make(ctypes.cast(getattr(self.library, actor), c_void_p), b"test")

    def send(self, *parts: bytes) -> None:
        """Sends a message to the actor."""
        message = _function(self.library, "zmsg_new", c_void_p)()
        append = _function(self.library, "zmsg_addmem", c_int, c_void_p, c_char_p, c_size_t)
        for part in parts:
            append(message, part, len(part))
        place = c_void_p(message)
        send = _function(self.library, "zactor_send", c_int, c_void_p, c_void_p)
        send(self._actor, ctypes.byref(place))

    def receive(self) -> list[bytes]:
        """Waits for a message of the actor."""
        receive = _function(self.library, "zactor_recv", c_void_p, c_void_p)
        return _parts(self.library, receive(self._actor))


class Zyre:
    """A node of Zyre.

    Args:
        name: Its name.
        header: The value of its header ``X-TEST``.
        gossip: The endpoint of a node that tells it of others; None for beacons.
        gossip_bind: Where it tells others.
    """

    def __init__(
        self, name: str, header: str, gossip: str | None = None, gossip_bind: str | None = None
    ) -> None:
        self._czmq = ctypes.CDLL(CZMQ, mode=ctypes.RTLD_GLOBAL)
        self._zyre = ctypes.CDLL(ZYRE)
        self._node = _function(self._zyre, "zyre_new", c_void_p, c_char_p)(name.encode())
        self.call("set_header", "X-TEST", header)
        if gossip or gossip_bind:
            self.call("set_endpoint", "tcp://127.0.0.1:*")
        if gossip_bind:
            self.call("gossip_bind", gossip_bind)
        if gossip:
            self.call("gossip_connect", gossip)

    def call(self, name: str, *arguments: str) -> int:
        """Calls a function of Zyre whose arguments are text."""
        types = [c_char_p] * len(arguments)
        function = _function(self._zyre, f"zyre_{name}", c_int, c_void_p, *types)
        return function(self._node, *(argument.encode() for argument in arguments))

    def receive(self) -> list[bytes]:
        """Waits for an event."""
        receive = _function(self._zyre, "zyre_recv", c_void_p, c_void_p)
        return _parts(self._czmq, receive(self._node))


def _parts(czmq: ctypes.CDLL, message: int) -> list[bytes]:
    pop = _function(czmq, "zmsg_pop", c_void_p, c_void_p)
    data = _function(czmq, "zframe_data", c_void_p, c_void_p)
    size = _function(czmq, "zframe_size", c_size_t, c_void_p)
    parts = []
    while frame := pop(message):
        parts.append(ctypes.string_at(data(frame), size(frame)))
    return parts
