"""Packages that only parts of this one need: an import without them names the extra to install."""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["needed_by"]


@contextmanager
def needed_by(part: str, *, extra: str) -> Iterator[None]:
    """A ``with`` block for the imports of an optional package.

    Args:
        part: The module that needs the package: ``"zeroxide.green"``.
        extra: The extra of zeroxide that installs it.

    Raises:
        ModuleNotFoundError: It names the package and the command that installs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        package = (error.name or "a package").partition(".")[0]
        raise ModuleNotFoundError(
            f"{part} needs {package}: pip install 'zeroxide[{extra}]'", name=error.name
        ) from error
