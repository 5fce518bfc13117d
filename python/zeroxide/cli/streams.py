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
    "flush",
    "hold_streams",
    "read_all",
    "read_some",
    "stoppable",
    "write_all",
]

STDIN = 0
STDOUT = 1
_STDERR = 2

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


def hold_streams() -> None:
    """Opens those of stdin, stdout and stderr that are closed, so that each use of the first two fails.

    Otherwise the next file or socket gets such a number, and messages are written into it.
    """
    for number, flags in ((STDIN, os.O_WRONLY), (STDOUT, os.O_RDONLY), (_STDERR, os.O_WRONLY)):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, flags)  # the lowest free number is this one
    # Python has no objects for them if they were closed, and print() takes None for stdout.
    if sys.stdout is None:
        sys.stdout = os.fdopen(STDOUT, "w", closefd=False)
    if sys.stderr is None:
        sys.stderr = os.fdopen(_STDERR, "w", closefd=False)


def flush() -> None:
    """Writes what `print` left in the buffer of stdout.

    Raises:
        OSError: If that fails. The rest is discarded, so that the end of Python does not fail again.
    """
    try:
        with _named("stdout"):
            sys.stdout.flush()
    except OSError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)
        raise


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


def read_some(*, watches: bool = False) -> bytes:
    """What is there on stdin, at least a byte; nothing at its end.

    Args:
        watches: Whether the end of the reader of stdout ends the wait.

    Raises:
        BrokenPipeError: If the reader of stdout has gone.
    """
    if watches:
        waiter = select.poll()
        waiter.register(STDIN, select.POLLIN)
        waiter.register(STDOUT, select.POLLERR)
        if any(number == STDOUT for number, _ in waiter.poll()):
            raise BrokenPipeError
    with _named("stdin"):
        return os.read(STDIN, _PIECE)


def read_all() -> bytes:
    """All of stdin."""
    return b"".join(iter(read_some, b""))


def write_all(data: bytes) -> None:
    """Writes to stdout at once.

    Raises:
        BrokenPipeError: If the reader has gone.
    """
    try:
        written = os.write(STDOUT, data)
        if written < len(data):
            with memoryview(data) as view:
                while written < len(data):
                    written += os.write(STDOUT, view[written:])
    except OSError as error:
        error.filename = "stdout"
        raise


@contextmanager
def _named(stream: str) -> Iterator[None]:
    """Adds the name of a stream to errors."""
    try:
        yield
    except OSError as error:
        error.filename = stream
        raise
