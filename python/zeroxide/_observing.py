"""Lets other programs of the same user see what the sockets of this process do."""

import atexit
import os
import threading
import warnings

from ._native import Observer
from .error import ZMQBaseError

__all__ = ["note_start", "observe", "refuse"]

VARIABLE = "ZEROXIDE_OBSERVE"

_observer: Observer | None = None
_lock = threading.Lock()
# The process that opened it.
_pid = 0

# Where to observe this process as soon as it has a socket's context, and again in each forked child.
_wanted: str | None = os.environ.get(VARIABLE, "")


def observe(folder: str | os.PathLike[str] | None = None) -> Observer:
    """Lets ``zeroxide top`` of the same user show every context and socket of this process.

    It opens an ipc endpoint that no other user can open, with a thread that sleeps until a
    program asks. Children of a fork are observed from their first context on. Setting the
    environment variable ``ZEROXIDE_OBSERVE`` to 1, or to the path of a folder, does the same
    without a change of the program.

    Args:
        folder: The folder of the endpoint. It must be private to this user, and is created if
            it does not exist. None means ``zeroxide`` in ``XDG_RUNTIME_DIR``, or else
            ``/tmp/zeroxide-UID``.

    Returns:
        The observer, which the end of the program closes. There is one in a process: while it
        is open, a second call returns it again.

    Raises:
        OSError: The folder cannot be created.
        ZMQError: ``EACCES`` if another user could open or replace the folder.

    Example:
        >>> zmq.observe().endpoint.endswith(".sock")
        True

    Source:
        zeroxide only
    """
    global _observer, _pid, _wanted
    with _lock:
        if _observer is None or _observer.closed:
            _observer, _pid = Observer(folder), os.getpid()
            atexit.register(_observer.close)
            _wanted = "1" if folder is None else os.fspath(folder)
        return _observer


def note_start() -> None:
    """Observes the process if the environment, or a call before a fork, asks for it."""
    if not _wanted or (_observer is not None and _pid == os.getpid()):
        return
    if _wanted.lower() in ("0", "false", "no", "off"):
        return
    folder = None if _wanted.lower() in ("1", "true", "yes", "on") else _wanted
    try:
        observe(folder)
    except (ZMQBaseError, OSError) as error:
        # The program works as well without it.
        refuse()
        warnings.warn(f"this process is not observed: {error}", RuntimeWarning, stacklevel=3)


def refuse() -> None:
    """Keeps this process unobserved, whatever the environment says."""
    global _wanted
    _wanted = None


def _after_fork_in_child() -> None:
    # Another thread may have held the lock when the process was copied.
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_after_fork_in_child)
