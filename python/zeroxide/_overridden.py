"""Sockets whose `send` or `recv` a program overrides or replaces, as programs written for pyzmq do.

There, `send_multipart` and `recv_multipart` call `send` and `recv` for every part, so a class that encrypts or counts
messages overrides these two only. Here, they are native and do not. A subclass that overrides one of the two therefore
gets a multipart call made of it, unless it has one of its own. All other calls, such as `send_json`, call the four
by name anyway. A class that overrides nothing keeps the native calls.

Tests replace `send` and `recv` later: `mock.patch.object` sets an attribute of a socket or of a class. A replaced call
of a socket is noticed as it is set. One of a class is noticed only by sockets made while it is in place, because to look
for it in every `send_multipart` would take a fifth of its time. These sockets get the multipart call as an attribute.
"""

import weakref
from collections.abc import Callable, Iterable
from types import MethodDescriptorType
from typing import Any

from . import _checks
from ._native import AsyncSocket, Frame
from .constants import RCVMORE, SNDMORE

__all__ = [
    "forget_replaced",
    "has_own_recv",
    "keep_replaced",
    "own_calls",
    "redirect",
    "takes_copy",
]


def redirect(cls: type) -> None:
    """Has the multipart calls of a new subclass go through the `send` and `recv` that it overrides."""
    if issubclass(cls, AsyncSocket):
        # pyzmq's asynchronous sockets do not call them either.
        return
    for name, multipart in (("recv", _recv_multipart), ("send", _send_multipart)):
        called = f"{name}_multipart"
        overrides = next(base for base in cls.__mro__ if name in base.__dict__)
        defines = next(base for base in cls.__mro__ if called in base.__dict__)
        is_later = cls.__mro__.index(overrides) < cls.__mro__.index(defines)
        if is_later and (_is_own(defines) or defines.__dict__[called] is multipart):
            setattr(cls, called, multipart)


def own_calls(cls: type) -> dict[str, Any]:
    """Returns the four calls that a class has now."""
    names = ("send", "recv", "send_multipart", "recv_multipart")
    return {name: getattr(cls, name) for name in names}


def has_own_recv(socket: Any) -> bool:
    """Whether a socket's `recv` is this package's. One of a program may know no `copy`, and return no frames."""
    if "recv" in socket.__dict__:
        return False
    cls = type(socket)
    if type(cls.recv) is MethodDescriptorType:  # native, as most are
        return True
    defines = next(base for base in cls.__mro__ if "recv" in base.__dict__)
    return _is_own(defines) and cls.recv is cls._own_calls["recv"]


def takes_copy(recv: Callable[..., Any]) -> bool:
    """Whether a `recv` can be called with `copy`."""
    import inspect

    try:
        inspect.signature(recv).bind(0, copy=False)
    except (TypeError, ValueError):
        return False
    return True


def keep_replaced(socket: Any, name: str) -> None:
    """Makes the multipart call of a socket call its `send` or `recv`, which a program has replaced."""
    called = f"{name}_multipart"
    cls = type(socket)
    defines = next(base for base in cls.__mro__ if called in base.__dict__)
    multipart = _recv_multipart if name == "recv" else _send_multipart
    if (
        not isinstance(socket, AsyncSocket)
        and called not in socket.__dict__
        # A replacement of this call, too, goes first.
        and getattr(cls, called) is cls._own_calls[called]
        and _is_own(defines)
        and defines.__dict__[called] is not multipart
    ):
        socket.__dict__[called] = _Through(socket, multipart)


def forget_replaced(socket: Any, name: str) -> None:
    """Gives a socket its own multipart call back."""
    called = f"{name}_multipart"
    if isinstance(socket.__dict__.get(called), _Through):
        del socket.__dict__[called]


def _is_own(cls: type) -> bool:
    return cls.__module__.partition(".")[0] == __package__


class _Through:
    """A multipart call of one socket, which does not keep the socket alive."""

    def __init__(self, socket: Any, call: Any) -> None:
        self._socket = weakref.ref(socket)
        self._call = call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._call(self._socket(), *args, **kwargs)


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
