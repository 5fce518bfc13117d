"""Making ``import zmq`` mean zeroxide, for programs that cannot be edited.

From the outside: ``python -m zeroxide.as_zmq PROGRAM ARGS``. From the inside, before
anything imports zmq: ``zeroxide.install_as_zmq()``. Either way ``zmq.sugar.socket`` and
its like are the very modules of zeroxide, so that classes are the same under both names.
"""

import os
import sys

from .. import version

__all__ = ["install_as_zmq", "installed"]

_installed = False


def install_as_zmq(*, subprocesses: bool = False) -> None:
    """Makes ``import zmq`` mean zeroxide in this process from now on.

    ``importlib.metadata.version("pyzmq")`` answers, too, and ``zmq.__version__`` is what
    it says; zeroxide's own version is that of the distribution ``zeroxide``. Whether
    pyzmq is installed makes no difference.

    With `subprocesses`, Python programs that this one starts are treated alike, however
    they are started (`subprocess`, `multiprocessing`, a shell), unless they ignore the
    environment (``python -E`` or ``-I``) or are for a Python that zeroxide is not for.

    Raises `RuntimeError` when pyzmq was imported before: its classes are in use then.
    Calling this again is no error.
    """
    package = sys.modules["zeroxide"]
    present = sys.modules.get("zmq", package)
    if present is not package:
        raise RuntimeError(
            f"zmq is imported already, from {getattr(present, '__file__', 'somewhere')}: "
            "call install_as_zmq() before anything imports it"
        )
    global _installed
    if not _installed:
        # Not needed where zeroxide goes by its own name.
        from .finder import FINDER

        sys.meta_path.insert(0, FINDER)
        vars(package)["__version__"] = version.pyzmq_version()
        _installed = True
    if subprocesses:
        from .environment import extend

        extend(os.environ)


def installed() -> bool:
    """Whether ``import zmq`` means zeroxide in this process."""
    return _installed
