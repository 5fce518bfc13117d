"""Runs a program with one library, and records the result of each statement."""

from __future__ import annotations

import errno
import importlib
import itertools
import os
import secrets
import tempfile
import time
from collections import defaultdict
from multiprocessing.connection import Connection
from typing import Any

from program_drawing import NAMES

# After these, something may go on between sockets, and no event says that all of it is over.
BUSY = (
    "bind",
    "connect",
    "disconnect",
    "unbind",
    "close",
    "send_multipart",
    "subscribe",
    "unsubscribe",
)
# The most messages that `rest` takes.
ENOUGH = 100


def run(zmq: Any, statements: list[str], folder: str, pause: float) -> list[str]:
    """The results of a program, with a pause in seconds after each statement that starts something."""
    context = zmq.Context()
    context.linger = context.rcvtimeo = context.sndtimeo = 0
    context.reconnect_ivl = 10
    # An address of its own, so that no port is in use.
    host = "127." + ".".join(str(number) for number in secrets.token_bytes(3))
    names: dict[str, Any] = {
        "zmq": zmq,
        "context": context,
        "inproc": ["inproc://first", "inproc://second"],
        "ipc": [f"ipc://{folder}/first", f"ipc://{folder}/second"],
        "tcp": [f"tcp://{host}:20001", f"tcp://{host}:20002"],
        "peer": defaultdict(lambda: b"A"),
        "rest": lambda socket: rest(zmq, socket, pause),
    }
    try:
        return [result(zmq, statement, names, pause) for statement in statements]
    finally:
        context.destroy(linger=0)


def result(zmq: Any, statement: str, names: dict[str, Any], pause: float) -> str:
    try:
        value = None
        if " = " in statement:
            exec(statement, names)
        else:
            value = eval(statement, names)
    except zmq.ZMQError as error:
        return errno.errorcode.get(error.errno, str(error.errno))
    except Exception as error:
        return type(error).__name__
    finally:
        if any(f".{verb}(" in statement for verb in BUSY):
            settle(names, pause)
    if value is None or ".bind(" in statement or ".connect(" in statement:
        return "done"
    if statement.endswith(".recv_multipart()"):
        names["peer"][statement[0]] = value[0]
        return plain(value)
    return "\n".join(plain(parts) for parts in value) if isinstance(value, list) else repr(value)


def settle(names: dict[str, Any], pause: float) -> None:
    """Lets sockets do what they have to do. Those of libzmq do some of it only when they are used."""
    for _ in range(2):
        time.sleep(pause / 2)
        for name in NAMES:
            if (socket := names.get(name)) is not None and not socket.closed:
                socket.poll(0)


def rest(zmq: Any, socket: Any, pause: float) -> list[list[bytes]]:
    """All messages that a socket can receive, and those that wait until there is room."""
    found: list[list[bytes]] = []
    for _ in range(3):
        try:
            while len(found) < ENOUGH:
                found.append(socket.recv_multipart())
        except zmq.ZMQError:
            time.sleep(pause)
    return found


def plain(parts: list[bytes]) -> str:
    """A message without the routing ids that libraries make up, and with long parts cut short."""
    return repr(["made up" if is_made_up(part) else short(part) for part in parts])


def is_made_up(part: bytes) -> bool:
    return len(part) == 5 and part[:1] == b"\0"


def short(part: bytes) -> str:
    return part.decode("latin-1") if len(part) < 20 else f"{part[:4]!r} and {len(part) - 4} more"


def serve(name: str, pipe: Connection) -> None:
    """Runs programs with one library, as long as some arrive."""
    zmq = importlib.import_module(name)
    with tempfile.TemporaryDirectory() as folder:
        for count in itertools.count():
            statements, pause = pipe.recv()
            place = f"{folder}/{count}"
            os.mkdir(place)
            pipe.send(run(zmq, statements, place, pause))
