"""Choosing a backend: there is one."""

import sys
from typing import Any

__all__ = ["public_api", "select_backend"]

_backend = sys.modules["zeroxide.backend"]

# The names that a backend provides.
public_api: list[str] = list(_backend.__all__)


def select_backend(name: str) -> dict[str, Any]:
    """The names of a backend and their objects; `name` makes no difference."""
    return {key: getattr(_backend, key) for key in public_api}
