"""The socket of ``zeroxide cat``: its type, options, keys and endpoints."""

import argparse
import errno
import os
import sys
from collections.abc import Callable
from typing import Any, NamedTuple

from ..._arguments import Choice
from ..._hints import did_you_mean
from ...constants import (
    DISH,
    DONTWAIT,
    EFSM,
    PEER,
    RADIO,
    SUB,
    XPUB,
    XSUB,
    SocketOption,
    SocketType,
)
from ...context import Context
from ...error import ZMQError
from ...socket import Socket
from ..keys import secure
from .labels import LABELLED, Labels

__all__ = [
    "Abilities",
    "Types",
    "milliseconds",
    "names",
    "open_socket",
    "option_value",
    "password",
    "passwords",
]


class Abilities(NamedTuple):
    """What a socket of some type does, whatever the type is called."""

    sends: bool
    """Whether it can ever send."""
    receives: bool
    """Whether it can ever receive."""
    asks: bool
    """Whether it must send before it receives, as REQ."""
    answers: bool
    """Whether it must receive before it sends, as REP."""


def names() -> list[str]:
    """The names of all types."""
    return [kind.name.lower() for kind in SocketType]


class Types(Choice):
    """One of these types, in any case, also by an old name."""

    def __call__(self, text: str) -> str:
        kind = SocketType.__members__.get(text.upper())
        return super().__call__(text.lower() if kind is None else kind.name.lower())


def open_socket(
    context: Context[Any], kind: str, options: argparse.Namespace
) -> tuple[Socket[Any], Abilities, Labels | None]:
    """Creates the socket with its options, and binds and connects it."""
    socket: Socket[Any] = context.socket(SocketType[kind.upper()])
    try:
        # Nothing is connected yet, so that the attempts have no effect.
        abilities = _abilities(socket)
        _configure(socket, options)
        _secure(socket, options)
        _subscribe(socket, options)
        _join(socket, options)
        target = options.group
        for endpoint in options.bind:
            socket.bind(endpoint)
            where = socket.last_endpoint.decode()
            if options.verbose or (where != endpoint and not options.silent):
                print(f"bound to {where}", file=sys.stderr, flush=True)
        for endpoint in options.connect:
            if socket.type == PEER:
                number = socket.connect_peer(endpoint)
                target = number if target is None else target
            else:
                socket.connect(endpoint)
            if options.verbose:
                print(f"connecting to {endpoint}", file=sys.stderr, flush=True)
    except BaseException:
        socket.close(linger=0)
        raise
    return socket, abilities, Labels(socket, target) if socket.type in LABELLED else None


def _abilities(socket: Socket[Any]) -> Abilities:
    """Tries both directions: the type's errors tell what it can do."""
    receives = _error(lambda: socket.recv(DONTWAIT))
    sends = _error(lambda: socket.send(b"", DONTWAIT))
    return Abilities(
        sends=sends != errno.ENOTSUP,
        receives=receives != errno.ENOTSUP,
        asks=receives == EFSM,
        answers=sends == EFSM,
    )


def _error(call: Callable[[], object]) -> int:
    try:
        call()
    except ZMQError as error:
        return error.errno or 0
    return 0


def _configure(socket: Socket[Any], options: argparse.Namespace) -> None:
    if options.identity is not None:
        socket.identity = options.identity
    if options.recv_maxsz is not None:
        socket.maxmsgsize = options.recv_maxsz or -1
    # At the end, messages that were sent are flushed with a limit of their own.
    socket.linger = 0
    if options.send_timeout is not None:
        socket.sndtimeo = milliseconds(options.send_timeout)
    for name, value in options.option:
        try:
            setattr(socket, name, value)
        except (AttributeError, TypeError, ZMQError) as error:
            options.fail(f"--option: {error}")


def milliseconds(seconds: float) -> int:
    """The option's value for a number of seconds."""
    return min(round(seconds * 1000), 2**31 - 1)


def _secure(socket: Socket[Any], options: argparse.Namespace) -> None:
    secure(socket, options)
    if options.passwords is not None:
        socket.password_server(options.passwords)
    if (options.user is None) != (options.password_file is None):
        options.fail("--user and --password-file belong together")
    if options.user is not None:
        socket.password_client(options.user, options.password_file)


def _subscribe(socket: Socket[Any], options: argparse.Namespace) -> None:
    topics: list[bytes] = options.subscribe
    if socket.type == XSUB:
        for topic in topics:
            socket.send(b"\x01" + topic)
    elif socket.type in (SUB, XPUB) and (topics or socket.type == SUB):
        for topic in topics or [b""]:
            socket.subscribe(topic)
    elif topics:
        options.fail(f"--subscribe is for SUB and XSUB, not for {socket.type.name}")


def _join(socket: Socket[Any], options: argparse.Namespace) -> None:
    if socket.type == DISH and not options.join:
        options.fail("DISH requires --join, the group that it receives")
    if options.join and socket.type != DISH:
        options.fail(f"--join is for DISH, not for {socket.type.name}")
    for group in options.join:
        socket.join(group)
    if options.group is not None and socket.type != RADIO:
        options.fail(f"--group is for RADIO, not for {socket.type.name}")


def option_value(text: str) -> tuple[str, int | str]:
    """A socket option and its value, as in rcvhwm=10."""
    name, equals, value = text.partition("=")
    if not equals or not name.isidentifier():
        raise argparse.ArgumentTypeError(f"expected NAME=VALUE, such as rcvhwm=10, got {text!r}")
    if name.upper() not in SocketOption.__members__:
        suggestion = did_you_mean(name, map(str.lower, SocketOption.__members__))
        raise argparse.ArgumentTypeError(f"there is no socket option {name!r}{suggestion}")
    is_number = value.removeprefix("-").isdecimal()
    return name.lower(), int(value) if is_number else value


def password(path: str) -> bytes:
    """The password in a file, without the line break after it."""
    return _read(path).removesuffix(b"\n").removesuffix(b"\r")


def passwords(path: str) -> dict[str, bytes]:
    """The users of a file of lines NAME:PASSWORD."""
    users = {}
    for number, line in enumerate(_read(path).splitlines(), 1):
        name, colon, secret = line.partition(b":")
        if not line.strip() or line.startswith(b"#"):
            continue
        if not colon or not name:
            raise argparse.ArgumentTypeError(f"{path}: expected NAME:PASSWORD in line {number}")
        users[name.decode(errors="replace")] = secret
    return users


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"cannot read {path!r}: {os.strerror(error.errno or 0)}"
        ) from None
