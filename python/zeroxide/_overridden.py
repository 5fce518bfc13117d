"""Subclasses of sockets that override `send` or `recv`, as programs written for pyzmq do.

There, `send_multipart` and `recv_multipart` call `send` and `recv` for every part, so a class that encrypts or counts
messages overrides these two only. Here, they are native and do not. A subclass that overrides one of the two therefore
gets a multipart call made of it, unless it has one of its own. All other calls, such as `send_json`, call the four
by name anyway. A class that overrides nothing keeps the native calls.
"""

from collections.abc import Iterable
from typing import Any

from . import _checks
from ._native import AsyncSocket, Frame
from .constants import RCVMORE, SNDMORE

__all__ = ["redirect"]


def redirect(cls: type) -> None:
    """Has the multipart calls of a new subclass go through the `send` and `recv` that it overrides."""
    if issubclass(cls, AsyncSocket):
        # pyzmq's asynchronous sockets do not call them either.
        return
    for name, multipart in (("recv", _recv_multipart), ("send", _send_multipart)):
        called = f"{name}_multipart"
        overrides = next(base for base in cls.__mro__ if name in base.__dict__)
        defines = next(base for base in cls.__mro__ if called in base.__dict__)
        is_native = defines.__module__.partition(".")[0] == __package__
        is_later = cls.__mro__.index(overrides) < cls.__mro__.index(defines)
        if is_later and (is_native or defines.__dict__[called] is multipart):
            setattr(cls, called, multipart)


def _recv_multipart(self: Any, flags: int = 0, copy: bool = True, track: bool = False) -> list[Any]:
    """Receives the parts of a message with the `recv` of this class."""
    parts = [self.recv(flags, copy=copy, track=track)]
    while self.getsockopt(RCVMORE):
        parts.append(self.recv(flags, copy=copy, track=track))
    return parts


def _send_multipart(
    self: Any,
    msg_parts: Iterable[Any],
    flags: int = 0,
    copy: bool = True,
    track: bool = False,
) -> Any:
    """Sends the parts of a message with the `send` of this class."""
    if isinstance(msg_parts, bytes | bytearray | memoryview | str):
        raise TypeError("send_multipart takes a list of parts; send takes one part by itself")
    parts = list(msg_parts)
    # Before any part is sent, because the others would follow a part that is missing.
    for number, part in enumerate(parts):
        if not isinstance(part, Frame | bytes):
            try:
                memoryview(part)
            except TypeError:
                raise TypeError(
                    f"Frame {number} ({_checks.shown(part)}) does not support the buffer interface:"
                    f" a part is bytes, not {type(part).__name__}"
                ) from None
    for part in parts[:-1]:
        self.send(part, SNDMORE | flags, copy=copy, track=track)
    return self.send(parts[-1], flags, copy=copy, track=track)
