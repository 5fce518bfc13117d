"""The former module of `Archiver`: see `zeroxide.pipeline`."""

from zeroxide.pipeline import Archiver, archive_segments

__all__ = ["Archiver", "archive_segments"]
