"""Choosing a backend: there is one."""

from typing import Any

from .. import backend

__all__ = ["public_api", "select_backend"]

# What a backend provides.
public_api = list(backend.__all__)


def select_backend(name: str) -> dict[str, Any]:
    """The names of a backend and what they mean; `name` makes no difference."""
    return {key: getattr(backend, key) for key in public_api}
