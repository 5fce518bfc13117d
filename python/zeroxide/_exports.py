"""Limits what `dir()` and completion show of a module to the names that it exports."""

from typing import Any

__all__ = ["exports_only"]


def exports_only(names: dict[str, Any], *parts: str) -> list[str]:
    """Returns what `dir()` shows of the module with these globals: `__all__`, and the public modules in it."""
    special = (name for name in names if name.startswith("__"))
    return sorted({*names["__all__"], *parts, *special})
