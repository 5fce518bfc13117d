"""Waits for the first import of zmq, so that a program without one has no costs."""

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

__all__ = ["begin"]

# The folder of the package that contains this file.
_SITE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def begin(*, subprocesses: bool) -> None:
    """Makes zmq mean zeroxide from now on, optionally in subprocesses too."""
    sys.meta_path.insert(0, _Deferred(subprocesses=subprocesses))


class _Deferred:
    """Replaces the finder of `zeroxide.as_zmq` until its first use."""

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
        if self in sys.meta_path:
            sys.meta_path.remove(self)
        _import_zeroxide()
        from zeroxide.as_zmq import install_as_zmq
        from zeroxide.as_zmq.finder import FINDER

        install_as_zmq(subprocesses=self._subprocesses)
        return FINDER


def _import_zeroxide() -> None:
    """Imports the package that contains this file, wherever it is."""
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
