"""Limits what `dir()` and completion show of a module to the names that it exports."""

import importlib
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["exports_only", "on_demand"]


def exports_only(names: dict[str, Any], *parts: str) -> list[str]:
    """Returns what `dir()` shows of the module with these globals: `__all__`, and the public modules in it."""
    special = (name for name in names if name.startswith("__"))
    return sorted({*names["__all__"], *parts, *special})


def on_demand(package: str, *modules: str) -> Callable[[str], Any]:
    """Returns the `__getattr__` of a package, which imports modules in it when a program uses them."""

    def __getattr__(name: str) -> Any:
        if name not in modules:
            raise AttributeError(
                f"module {package!r} has no attribute {name!r}", name=name, obj=sys.modules[package]
            )
        try:
            return importlib.import_module(f".{name}", package)
        except ImportError as error:
            # `hasattr` must not raise if the module needs another package, which is not installed.
            raise AttributeError(str(error)) from error

    return __getattr__
