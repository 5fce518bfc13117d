"""Resolves imports of ``zmq`` and its submodules to zeroxide's modules."""

import importlib
import importlib.util
from collections.abc import Iterable, Sequence
from importlib.abc import InspectLoader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import CodeType, ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import Distribution, DistributionFinder

__all__ = ["FINDER", "Finder"]


class Finder(MetaPathFinder):
    """Finds ``zmq.x`` where ``zeroxide.x`` is, and the distribution ``pyzmq``."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        top, dot, rest = fullname.partition(".")
        if top != "zmq":
            return None
        original = f"zeroxide{dot}{rest}"
        # A package may have submodules that are stored elsewhere.
        importlib.import_module(original.rpartition(".")[0] or original)
        found = importlib.util.find_spec(original)
        if found is None:
            return None
        spec = ModuleSpec(fullname, _Alias(found), origin=found.origin)
        spec.submodule_search_locations = found.submodule_search_locations
        spec.has_location = found.has_location
        return spec

    def find_distributions(self, context: "DistributionFinder.Context") -> "Iterable[Distribution]":
        # The caller has already imported importlib.metadata, which takes some time.
        from .distribution import find

        return find(context.name)


class _Alias(InspectLoader):
    """Returns the module of another spec, instead of loading one."""

    def __init__(self, original: ModuleSpec) -> None:
        self._original = original
        self._spec: ModuleSpec | None = None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = importlib.import_module(self._original.name)
        # The import of `spec` is about to overwrite it.
        self._spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        module.__spec__ = self._spec

    # For ``python -m zmq.log``, which runs a module under another name.

    def get_code(self, fullname: str) -> CodeType | None:
        code: CodeType | None = self._loader.get_code(self._original.name)
        return code

    def get_source(self, fullname: str) -> str | None:
        source: str | None = self._loader.get_source(self._original.name)
        return source

    def is_package(self, fullname: str) -> bool:
        return self._original.submodule_search_locations is not None

    @property
    def _loader(self) -> Any:
        return self._original.loader


# The finder that `install_as_zmq` adds to ``sys.meta_path``.
FINDER = Finder()
