"""Makes ``import zmq`` mean zeroxide, for programs that cannot be edited.

From outside: ``python -m zeroxide.as_zmq PROGRAM ARGS``. From inside, before
any code imports zmq: ``zeroxide.install_as_zmq()``. In both cases, ``zmq.sugar.socket`` and
other submodules are zeroxide's modules, so classes are the same under both names.
"""

import os
import sys

from .. import version

__all__ = ["install_as_zmq", "installed"]

_installed = False


def install_as_zmq(*, subprocesses: bool = False) -> None:
    """Makes ``import zmq`` mean zeroxide in this process from now on.

    ``importlib.metadata.version("pyzmq")`` also works, and returns ``zmq.__version__``.
    zeroxide's own version is that of the distribution ``zeroxide``. It makes no difference
    whether pyzmq is installed.

    With `subprocesses`, this includes the Python programs that this one starts in any way
    (`subprocess`, `multiprocessing`, a shell), unless they ignore the
    environment (``python -E`` or ``-I``) or run on a Python that zeroxide does not support.

    Raises `RuntimeError` if pyzmq was imported before, because its classes are in use.
    Calling this again has no effect.
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
        # Not needed where zeroxide is imported by its own name.
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
