"""Imported before all modules that need gevent, which may not be installed."""

from .._optional import needed_by

with needed_by("zeroxide.green", extra="gevent"):
    import gevent

__all__ = ["gevent"]
