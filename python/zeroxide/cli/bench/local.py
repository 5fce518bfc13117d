"""The other side on this machine: a process of its own, or a thread for transports within a process."""

import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NoReturn

from ...context import Context
from ...error import ZMQError
from .patterns import Configure, Failed
from .serve import serve

__all__ = ["peer_process", "peer_thread"]

_BOUND = "bound\n"


@contextmanager
def peer_process(endpoint: str, configure: Configure, timeout: float) -> Iterator[str]:
    """Runs the listening side in another process. Gives the endpoint that it is bound to.

    The process ends with this one. Call this before there is a context: contexts cannot be taken
    into another process.
    """
    announced, announce = os.pipe()
    lives, life = os.pipe()
    child = os.fork()
    if not child:
        os.close(announced)
        os.close(life)
        _be_peer(endpoint, configure, timeout, announce, lives)
    os.close(announce)
    os.close(lives)
    try:
        with os.fdopen(announced) as reader:
            is_bound, text = reader.readline() == _BOUND, reader.readline().rstrip("\n")
        if not is_bound:
            raise Failed(text or f"the process that listens at {endpoint} has ended")
        yield text
    except BaseException:
        os.kill(child, signal.SIGKILL)
        raise
    finally:
        os.close(life)
        os.waitpid(child, 0)


@contextmanager
def peer_thread(
    context: Context[Any], endpoint: str, configure: Configure, timeout: float
) -> Iterator[str]:
    """Runs the listening side in a thread."""
    lives, life = os.pipe()
    is_bound = threading.Event()
    problems: list[BaseException] = []

    def run() -> None:
        try:
            serve(
                context,
                endpoint,
                configure,
                timeout,
                on_bound=lambda *_: is_bound.set(),
                parent=lives,
            )
        except BaseException as error:
            problems.append(error)
        finally:
            is_bound.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    try:
        is_bound.wait()
        if problems:
            raise problems[0]
        yield endpoint
    finally:
        os.close(life)
        thread.join(timeout)
        os.close(lives)


def _be_peer(
    endpoint: str, configure: Configure, timeout: float, announce: int, lives: int
) -> NoReturn:
    """The life of the other process. Its first words are whether it is bound, and where or why not."""
    status = 1
    try:
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(number, signal.SIG_DFL)
        context: Context[Any] = Context()
        serve(
            context,
            endpoint,
            configure,
            timeout,
            on_bound=lambda bound, _: _say(announce, f"{_BOUND}{bound}\n"),
            parent=lives,
        )
        context.term()
        status = 0
    except ZMQError as error:
        _say(announce, f"\n{error}\n")
    finally:
        os._exit(status)


def _say(announce: int, text: str) -> None:
    os.write(announce, text.encode())
