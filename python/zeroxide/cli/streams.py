"""Standard input and output of commands in a pipe, and the signals that end them."""

import os
import select
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import NoReturn

__all__ = [
    "FAILED",
    "LOOK_EVERY",
    "STDIN",
    "STDOUT",
    "TIMED_OUT",
    "Stopped",
    "TimedOut",
    "check_reader",
    "end_like",
    "read_some",
    "stoppable",
    "write_all",
]

STDIN = 0
STDOUT = 1

# Exit codes. The code 2 stands for a mistake in the arguments.
FAILED = 1
TIMED_OUT = 124  # as timeout(1) has it

# How often a command that waits looks whether stdout still has a reader, in seconds.
LOOK_EVERY = 1.0

_SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)

# How much is read at once, at most.
_PIECE = 256 << 10


class Stopped(BaseException):
    """A signal asked the command to end."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


class TimedOut(Exception):
    """A message did not arrive, or could not be sent, in time."""


@contextmanager
def stoppable() -> Iterator[None]:
    """Lets signals raise `Stopped`, and the end of the reader of stdout, too."""

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped(number)

    before = {number: signal.getsignal(number) for number in _SIGNALS}
    for number, handler in before.items():
        # nohup, and a shell that starts a job in the background, let signals be ignored.
        if handler != signal.SIG_IGN:
            signal.signal(number, stop)
    try:
        yield
    except BrokenPipeError:
        raise Stopped(signal.SIGPIPE) from None
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


def end_like(stopped: Stopped) -> NoReturn:
    """Ends the process by the signal, without a word, so that a shell sees what ended it."""
    signal.signal(stopped.number, signal.SIG_DFL)
    os.kill(os.getpid(), stopped.number)
    sys.exit(128 + stopped.number)  # the signal is blocked


def check_reader() -> None:
    """Looks whether stdout still has a reader.

    Raises:
        BrokenPipeError: If it has not.
    """
    looker = select.poll()
    looker.register(STDOUT, select.POLLERR)
    if looker.poll(0):
        raise BrokenPipeError


def read_some() -> bytes:
    """What is there on stdin, at least a byte; nothing at its end."""
    return os.read(STDIN, _PIECE)


def write_all(data: bytes) -> None:
    """Writes to stdout at once.

    Raises:
        BrokenPipeError: If the reader has gone.
    """
    written = os.write(STDOUT, data) if data else 0
    if written < len(data):
        with memoryview(data) as view:
            while written < len(data):
                written += os.write(STDOUT, view[written:])
