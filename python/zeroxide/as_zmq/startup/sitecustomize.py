"""Runs when an interpreter starts in which zmq shall mean zeroxide.

It waits for the first import of zmq: a program that never needs it pays nothing. Then it
makes room for the ``sitecustomize`` that would have run without it.
"""

import importlib
import importlib.util
import os
import sys
from collections.abc import Iterable, Sequence
from importlib.machinery import ModuleSpec, PathFinder
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

    from zeroxide.as_zmq.finder import Finder

_FOLDER = os.path.dirname(os.path.abspath(__file__))
_SITE = os.path.dirname(os.path.dirname(os.path.dirname(_FOLDER)))


class _Deferred:
    """Stands for the finder of `zeroxide.as_zmq` until it is asked for something."""

    def __init__(self, *, subprocesses: bool) -> None:
        self._subprocesses = subprocesses

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != "zmq":
            return None
        return self._install().find_spec(fullname, path, target)

    def find_distributions(self, context: "DistributionFinder.Context") -> "Iterable[Distribution]":
        if context.name is not None and context.name.lower() != "pyzmq":
            return ()
        return self._install().find_distributions(context)

    def _install(self) -> "Finder":
        sys.meta_path.remove(self)
        _import_zeroxide()
        from zeroxide.as_zmq import install_as_zmq
        from zeroxide.as_zmq.finder import FINDER

        install_as_zmq(subprocesses=self._subprocesses)
        return FINDER


def _import_zeroxide() -> None:
    """Imports the package that this file is part of, wherever it is."""
    if "zeroxide" in sys.modules:
        return
    spec = PathFinder.find_spec("zeroxide", [_SITE])
    assert spec is not None and spec.loader is not None, "this file is part of it"
    module = importlib.util.module_from_spec(spec)
    sys.modules["zeroxide"] = module
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules["zeroxide"]
        raise


def _leave_environment() -> None:
    """Undoes for subprocesses what brought this file here."""
    os.environ.pop("ZEROXIDE_AS_ZMQ", None)
    path = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    if path[0] == _FOLDER:
        path = path[1:]
    if path:
        os.environ["PYTHONPATH"] = os.pathsep.join(path)
    else:
        os.environ.pop("PYTHONPATH", None)


def _run_next() -> None:
    """Runs the ``sitecustomize`` that this one hides, if there is one."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry) != _FOLDER]
    this = sys.modules.pop(__name__)
    try:
        importlib.import_module("sitecustomize")
    except ModuleNotFoundError as error:
        if error.name != "sitecustomize":
            raise
        # Whoever is importing this file looks for it under its name.
        sys.modules[__name__] = this


_everywhere = os.environ.get("ZEROXIDE_AS_ZMQ") == "all"
if not _everywhere:
    _leave_environment()
sys.meta_path.insert(0, _Deferred(subprocesses=_everywhere))
_run_next()
