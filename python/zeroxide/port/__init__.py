"""Moving programs from pyzmq to zeroxide: ``python -m zeroxide.port FILE...``."""

from .imports import Finding, port

__all__ = ["Finding", "port"]
