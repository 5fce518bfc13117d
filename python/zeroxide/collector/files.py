"""The former module of `FilesLog`: see `zeroxide.pipeline`."""

from ..pipeline import FilesLog

__all__ = ["FilesLog"]
