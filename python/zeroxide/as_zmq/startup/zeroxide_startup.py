"""Waits for the first import of zmq: a program that never needs it pays nothing."""

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

# Where the package lies that this file is part of.
_SITE = os.path.abspath(os.path.join(os.path.dirname(__file__), *[os.pardir] * 3))


def begin(*, subprocesses: bool) -> None:
    """Lets zmq mean zeroxide from now on, in subprocesses too if wanted."""
    sys.meta_path.insert(0, _Deferred(subprocesses=subprocesses))


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
        if self in sys.meta_path:
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
