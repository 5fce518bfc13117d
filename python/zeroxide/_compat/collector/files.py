"""The former module of `FilesLog`: see `zeroxide.pipeline`."""

from zeroxide.pipeline import FilesLog

__all__ = ["FilesLog"]
