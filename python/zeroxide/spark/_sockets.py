"""Sockets inside Spark's Python workers.

Workers are forked from a daemon and run one task after the other, and Spark ends them without
notice. Each process therefore has its own context, made at its first task. Each task has its own
socket, which is closed at the end of the task, so that nothing is left to be sent later.
"""

import errno
import os
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import zeroxide as zmq

from .._hints import did_you_mean
from ..auth.certs import load_certificate
from .options import Attachment

__all__ = ["apply_options", "check_names", "context", "look_up", "opened"]

# By process: a context does not survive a fork, and the child must not touch the parent's.
_contexts: dict[int, zmq.Context] = {}

# The socket of an earlier or concurrent task may still have the address.
BIND_RETRY_S = 0.05


def context() -> zmq.Context:
    """Returns the context of this process."""
    own = _contexts.get(os.getpid())
    if own is None or own.closed:
        own = _contexts[os.getpid()] = zmq.Context()
    return own


@contextmanager
def opened(
    kind: int,
    attachment: Attachment,
    *,
    timeout_ms: int,
    linger_ms: int,
    settings: Sequence[tuple[int, int | bytes]] = (),
) -> Iterator[zmq.Socket]:
    """A socket for one task, bound or connected, closed at the end of the block.

    Waits up to `timeout_ms` for an address that is in use.
    """
    socket = context().socket(kind)
    try:
        apply_options(socket, attachment.socket_options)
        for option, value in settings:
            socket.set(option, value)
        for endpoint in attachment.endpoints:
            if attachment.bind:
                _bind(socket, endpoint, timeout_ms)
            else:
                socket.connect(endpoint)
        yield socket
    finally:
        socket.close(linger=linger_ms)


def apply_options(socket: zmq.Socket, options: Sequence[tuple[str, str]]) -> None:
    """Sets the socket options that were given as ``zmq.*``.

    Raises `ValueError` for a name that does not exist, and for a value that cannot be read.
    """
    check_names(name for name, _ in options)
    for name, text in options:
        option = zmq.SocketOption[name.upper()]
        value = look_up(f"zmq.{name}", text)
        try:
            is_number = option._opt_type.name in ("int", "int64")
            socket.set(option, int(value) if is_number else value.encode())
        except (ValueError, zmq.ZMQError) as error:
            raise ValueError(f"option 'zmq.{name}' cannot be {text!r}: {error}") from error


def check_names(names: Iterable[str]) -> None:
    """Raises `ValueError` unless all of these are names of socket options."""
    for name in names:
        if name.upper() not in zmq.SocketOption.__members__:
            hint = did_you_mean(name, map(str.lower, zmq.SocketOption.__members__))
            raise ValueError(f"there is no socket option {name!r}{hint}")


def look_up(option: str, text: str) -> str:
    """Returns the value of an option, which may be in the environment or in a file.

    A file that holds a certificate stands for the one of its keys that the option is about.
    Raises `ValueError` where there is no such variable, file or key.
    """
    if text.startswith("env:"):
        variable = text.removeprefix("env:")
        if variable not in os.environ:
            raise ValueError(f"option {option!r}: there is no {variable} in the environment")
        return os.environ[variable]
    if text.startswith("file:"):
        path = text.removeprefix("file:")
        try:
            held = Path(path).read_text(encoding="utf-8", errors="replace")
            return _key_in(path, option) if "public-key" in held else held.strip()
        except (OSError, ValueError) as error:
            raise ValueError(f"option {option!r}: cannot take it from {path}: {error}") from error
    return text


def _key_in(certificate: str, option: str) -> str:
    """Returns the key in a file that ``zeroxide keygen`` made."""
    public, secret = load_certificate(certificate)
    if not option.lower().endswith("secretkey"):
        return public.decode()
    if secret is None:
        raise ValueError("it holds no secret key, only a public one")
    return secret.decode()


def _bind(socket: zmq.Socket, endpoint: str, timeout_ms: int) -> None:
    deadline = time.monotonic() + timeout_ms / 1000
    while True:
        try:
            socket.bind(endpoint)
            return
        except zmq.ZMQError as error:
            if error.errno != errno.EADDRINUSE:
                raise
            if time.monotonic() > deadline:
                raise TimeoutError(
                    f"{endpoint} was in use for {timeout_ms} ms: bind from one partition at a"
                    " time, with coalesce(1)"
                ) from error
        time.sleep(BIND_RETRY_S)
