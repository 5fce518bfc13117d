"""Tables that fit into a terminal of any width."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

__all__ = ["Column", "Line", "Row", "Table", "bytes_", "layout", "number"]


class Column(NamedTuple):
    """A column. Those with a higher rank are left out first if the terminal is narrow."""

    title: str
    rank: int = 0
    is_text: bool = False


class Row(NamedTuple):
    """A row with a cell for each column. Marked cells are shown in the colour of a warning."""

    cells: Sequence[str]
    style: str = ""
    warnings: frozenset[int] = frozenset()


class Table(NamedTuple):
    """A heading, columns and rows."""

    heading: str
    columns: Sequence[Column]
    rows: Sequence[Row]


# A line is made of pieces of text, each with a style.
Line = list[tuple[str, str]]

# Texts are shortened to this width before a column is left out.
_LEAST_TEXT = 14


def layout(table: Table, width: int) -> list[Line]:
    """The lines of a table, none of which is longer than `width`."""
    lines: list[Line] = [[(_short(table.heading, width), "bold")]]
    if not table.rows:
        return lines
    widths = [
        max(len(column.title), *(len(row.cells[index]) for row in table.rows))
        for index, column in enumerate(table.columns)
    ]
    shown = list(range(len(table.columns)))
    while len(shown) > 1 and _least(table.columns, widths, shown) > width:
        shown.remove(max(shown, key=lambda index: (table.columns[index].rank, index)))
    room = width - _total(widths, shown)
    for index in (index for index in shown if table.columns[index].is_text):
        if room < 0:
            shorter = max(widths[index] + room, min(widths[index], _LEAST_TEXT))
            room += widths[index] - shorter
            widths[index] = shorter
    title = Row([column.title for column in table.columns], "dim")
    for row in (title, *table.rows):
        line: Line = []
        for position, index in enumerate(shown):
            text = _short(row.cells[index], widths[index])
            is_text, is_last = table.columns[index].is_text, index == shown[-1]
            aligned = (
                text.ljust(0 if is_last else widths[index])
                if is_text
                else text.rjust(widths[index])
            )
            style = "yellow" if index in row.warnings else row.style
            line.append((("  " if position else "") + aligned, style))
        lines.append(_cut(line, width))
    return lines


def _total(widths: Sequence[int], shown: Sequence[int]) -> int:
    return sum(widths[index] for index in shown) + 2 * (len(shown) - 1)


def _least(columns: Sequence[Column], widths: Sequence[int], shown: Sequence[int]) -> int:
    least = [
        min(width, _LEAST_TEXT) if column.is_text else width
        for column, width in zip(columns, widths, strict=True)
    ]
    return _total(least, shown)


def _short(text: str, width: int) -> str:
    """A text, with its middle left out if it is too long: the end of an endpoint tells more.

    What peers have chosen, such as topics, cannot control the terminal.
    """
    text = "".join(sign if sign.isprintable() else "·" for sign in text)
    if len(text) <= width:
        return text
    if width < 3:
        return text[: max(width, 0)]
    head = (width - 1) // 2
    return f"{text[:head]}…{text[len(text) - (width - 1 - head) :]}"


def _cut(line: Line, width: int) -> Line:
    cut: Line = []
    for text, style in line:
        cut.append((text[:width], style))
        width -= len(text[:width])
    return cut


def number(value: float | None) -> str:
    """A number with at most four digits: 950, 12.3k, 4.5M."""
    if value is None:
        return "-"
    return _scaled(value, 1000, ("", "k", "M", "G", "T", "P"))


def bytes_(value: float | None) -> str:
    """The same for bytes, with powers of 1024."""
    if value is None:
        return "-"
    return _scaled(value, 1024, ("", "K", "M", "G", "T", "P"))


def _scaled(value: float, step: int, units: Iterable[str]) -> str:
    unit, *larger = units
    while larger and round(value) >= 1000:
        value /= step
        unit = larger.pop(0)
    is_whole = not unit or value >= 100
    return f"{value:.0f}{unit}" if is_whole else f"{value:.1f}{unit}"
