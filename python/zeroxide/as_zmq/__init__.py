"""Makes ``import zmq`` mean zeroxide, for programs that cannot be edited.

From outside: ``python -m zeroxide.as_zmq PROGRAM ARGS``. From inside, before
any code imports zmq: ``zeroxide.install_as_zmq()``. In both cases, ``zmq.sugar.socket`` and
other submodules are zeroxide's modules, so classes are the same under both names.
"""

import sys

from .. import version
from .._exports import exports_only

__all__ = ["install_as_zmq", "installed"]


def __dir__() -> list[str]:
    return exports_only(globals())


_installed = False


def install_as_zmq(*, subprocesses: bool = False) -> None:
    """Makes ``import zmq`` mean zeroxide in this process.

    Call it before anything imports zmq; calling it again does nothing. Whether pyzmq is
    installed makes no difference. From then on ``importlib.metadata.version("pyzmq")`` and
    ``zmq.__version__`` are the version of pyzmq that the API corresponds to.

    Args:
        subprocesses: Whether the same holds for Python programs that this one starts, by
            `subprocess`, `multiprocessing` or a shell. Programs started with ``python -E`` or
            ``-I``, without this one's environment, or by a Python that zeroxide does not support,
            are not affected.

    Raises:
        RuntimeError: zmq was imported before, so that its classes are in use.

    Example:
        >>> import zeroxide
        >>> zeroxide.install_as_zmq()  # doctest: +SKIP

    Source:
        zeroxide only
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
        from .environment import extend_own

        extend_own()


def installed() -> bool:
    """Tells whether ``import zmq`` means zeroxide in this process.

    Returns:
        Whether `install_as_zmq` was called.
    """
    return _installed
