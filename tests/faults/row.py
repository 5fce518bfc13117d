"""What a row of the matrix is, and the list of all rows."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .bench import Bench

# Seconds that a row may take on a busy machine, unless it says otherwise.
LIMIT_S = 60
# The address space of each process of a row.
MEMORY = 4 << 30


class Failed(Exception):
    """What does not hold."""


class Skipped(Exception):
    """Why a row cannot run here."""


@dataclass(frozen=True)
class Row:
    """A fault, and what must hold."""

    name: str
    group: str
    spec: str
    run: Callable[[Bench], None]
    quick: bool
    seconds: int

    def __str__(self) -> str:
        return self.name


_rows: dict[str, Row] = {}


def row(*, slow: bool = False, seconds: int = LIMIT_S) -> Callable[[Callable[[Bench], None]], Row]:
    """Makes a row of a function: its name is the row's, and its docstring is the row's spec.

    A slow row is left out of `make test`.
    """

    def add(function: Callable[[Bench], None]) -> Row:
        name = function.__name__.replace("_", "-")
        group = function.__module__.rsplit(".", 1)[1].replace("_", " ")
        spec = " ".join((function.__doc__ or "").split())
        if not spec or name in _rows:
            raise ValueError(f"{name} has no spec, or exists twice")
        _rows[name] = Row(name, group, spec, function, not slow, seconds)
        return _rows[name]

    return add


def check(holds: object, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)


def all_rows() -> dict[str, Row]:
    """Every row, by name."""
    from . import rows

    for module in pkgutil.iter_modules(rows.__path__):
        importlib.import_module(f"{rows.__name__}.{module.name}")
    return dict(_rows)
