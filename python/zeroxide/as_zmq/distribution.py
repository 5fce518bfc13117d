"""The distribution ``pyzmq``, for programs that check the installed version."""

import re
from collections.abc import Iterable
from importlib.metadata import Distribution
from os import PathLike
from typing import Any

from .. import version

__all__ = ["find"]


def find(name: str | None) -> Iterable[Distribution]:
    """The distributions with that name, or all: at most pyzmq."""
    if name is None or re.sub(r"[-_.]+", "-", name).lower() == "pyzmq":
        yield _Distribution()


class _Distribution(Distribution):
    """Has a name, a version and a top-level module, but no files."""

    def read_text(self, filename: str | PathLike[str]) -> str | None:
        if filename == "METADATA":
            return (
                "Metadata-Version: 2.1\n"
                "Name: pyzmq\n"
                f"Version: {version.pyzmq_version()}\n"
                "Summary: zeroxide in place of pyzmq\n"
            )
        return "zmq\n" if filename == "top_level.txt" else None

    def locate_file(self, path: str | PathLike[str]) -> Any:
        # Nothing is recorded, so there is nothing to locate.
        raise FileNotFoundError(f"pyzmq is zeroxide here: there is no {path}")
