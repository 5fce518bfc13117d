"""Addresses of C objects, as other bindings pass them."""

import sys
from typing import Any

__all__ = ["cast_int_addr"]


def cast_int_addr(n: Any) -> int:
    """An address as an integer: from an int, or from a cffi pointer.

    Raises `ValueError` for anything else.
    """
    if isinstance(n, int):
        return n
    # A pointer of cffi can only exist if cffi was imported.
    if (cffi := sys.modules.get("cffi")) is not None:
        ffi = cffi.FFI()
        if isinstance(n, ffi.CData):
            return int(ffi.cast("size_t", n))
    raise ValueError(f"Cannot cast {n!r} to int")
