"""Passing messages on between two sockets."""

import warnings
from typing import Any

from ._native import proxy, proxy_steerable
from .socket import Socket

__all__ = ["device", "proxy", "proxy_steerable"]


def device(device_type: int, frontend: Socket[Any], backend: Socket[Any]) -> int:
    """The old name of `proxy`; the type makes no difference."""
    warnings.warn("device is deprecated, use proxy", DeprecationWarning, stacklevel=2)
    return proxy(frontend, backend)
