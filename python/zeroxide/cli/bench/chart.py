"""Results as text: a bar for each, as wide as the terminal allows."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from itertools import groupby
from typing import TextIO

from .figures import Measurement, Range

__all__ = ["Style", "chart", "progress", "size_name"]

# A bar has a whole number of these eighths of a character.
_EIGHTHS = " ▏▎▍▌▋▊▉"

_COLOURS = (36, 33, 35, 32, 34, 31)

_LEAST_BAR = 8
_MOST_WIDTH = 110


class Style:
    """What the reader of a stream can show."""

    def __init__(self, stream: TextIO) -> None:
        is_terminal = stream.isatty()
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self.has_colour: bool = is_terminal and not plain
        self.width: int = min(_width(stream), _MOST_WIDTH)
        self.has_blocks: bool = _can_encode("█░▏µ–", stream)

    def bar(self, solid: float, light: float, cells: int, colour: int) -> str:
        """A bar of a width in cells, of which it has a share; the light part is behind the solid one."""
        if not self.has_blocks:
            full, shade = round(solid * cells), round(light * cells)
            text = f"{'#' * max(full, 1)}{'-' * (shade - full)}"
        else:
            eighths = max(round(solid * cells * 8), 1)
            whole, part = divmod(eighths, 8)
            text = "█" * whole + (_EIGHTHS[part] if part else "")
            text += "░" * (round(light * cells) - len(text))
        text = text[:cells]
        shown = (
            f"\x1b[{_COLOURS[colour % len(_COLOURS)]}m{text}\x1b[0m" if self.has_colour else text
        )
        return shown + " " * (cells - len(text))

    def plain(self, text: str) -> str:
        """The text in the characters that there are."""
        return text if self.has_blocks else text.replace("µ", "u").replace("–", "-")


def chart(results: Sequence[Measurement], style: Style) -> Iterator[str]:
    """The lines of a chart: a block for each pattern, and in it the sizes and transports."""
    patterns = list(dict.fromkeys(result.pattern for result in results))
    transports = list(dict.fromkeys(result.transport for result in results))
    ordered = sorted(results, key=lambda one: (patterns.index(one.pattern), one.size))
    for number, (pattern, group) in enumerate(groupby(ordered, key=lambda one: one.pattern)):
        if number:
            yield ""
        block = list(group)
        table = _round_trips(block) if block[0].trips else _rates(block)
        yield from _lines(pattern, block, table, transports, style)


def size_name(size: int) -> str:
    """A size as people write it, if it is a round one."""
    for exponent, unit in ((30, "GiB"), (20, "MiB"), (10, "KiB")):
        if size >= 1 << exponent and size % (1 << exponent) == 0:
            return f"{size >> exponent} {unit}"
    return f"{size} B"


def progress(text: str) -> None:
    """Shows on a terminal what is measured. An empty text removes what was shown."""
    if sys.stderr.isatty() and os.environ.get("TERM") != "dumb":
        sys.stderr.write(f"\r\x1b[K{text}")
        sys.stderr.flush()


class _Table:
    """The columns beside the bars, and how long the bars are: the solid and the light part."""

    def __init__(
        self,
        head: Sequence[str],
        rows: Sequence[Sequence[str]],
        bars: Sequence[tuple[float, float]],
    ) -> None:
        self.head = head
        self.rows = rows
        self.bars = bars


def _rates(block: Sequence[Measurement]) -> _Table:
    rows = [
        (_number(one.rate.median), _range(one.rate), f"{_number(one.rate.median * one.size)}B")
        for one in block
    ]
    bars = [(one.rate.median / most, 0.0) for one, most in _with_most(block, _rate_of)]
    return _Table(("messages/s", "range", "bytes/s"), rows, bars)


def _round_trips(block: Sequence[Measurement]) -> _Table:
    rows = []
    for one in block:
        median, *others = (_short(value.median) for value in one.trips.values())
        rows.append((median, _span(one.trips["p50"]), *others, _number(one.rate.median)))
    # Twice the longest median is the width, so that a long tail does not make the others invisible.
    bars = [
        (one.trips["p50"].median / most / 2, one.trips["p99"].median / most / 2)
        for one, most in _with_most(block, _median_of)
    ]
    name, *names = block[0].trips
    return _Table((f"{name} µs", "range", *names, "trips/s"), rows, bars)


def _rate_of(one: Measurement) -> float:
    return one.rate.median


def _median_of(one: Measurement) -> float:
    return one.trips["p50"].median


def _with_most(
    block: Sequence[Measurement], value: Callable[[Measurement], float]
) -> Iterator[tuple[Measurement, float]]:
    """Each result, with the largest value that its bar is compared with.

    Bars compare the transports for one size. If there is one transport, they compare the sizes.
    """
    compares_sizes = len({one.transport for one in block}) == 1
    for one in block:
        others = [other for other in block if compares_sizes or other.size == one.size]
        yield one, max(map(value, others)) or 1.0


def _lines(
    pattern: str,
    block: Sequence[Measurement],
    table: _Table,
    transports: Sequence[str],
    style: Style,
) -> Iterator[str]:
    sizes = [size_name(one.size) for one in block]
    names = [one.transport for one in block]
    labels = max(len(pattern), max(map(len, sizes)) + 2 + max(map(len, names)))
    widths = [max(map(len, column)) for column in zip(table.head, *table.rows, strict=True)]
    cells = max(_LEAST_BAR, style.width - labels - 2 - sum(width + 2 for width in widths))
    yield style.plain(_line(pattern.ljust(labels), " " * cells, table.head, widths))
    before = ""
    for size, name, row, (solid, light) in zip(sizes, names, table.rows, table.bars, strict=True):
        shown = "" if size == before else size
        before = size
        label = f"{shown.rjust(max(map(len, sizes)))}  {name}".ljust(labels)
        bar = style.bar(solid, light, cells, transports.index(name))
        yield _line(label, bar, [style.plain(text) for text in row], widths)


def _line(label: str, bar: str, columns: Sequence[str], widths: Sequence[int]) -> str:
    cells = (text.rjust(width) for text, width in zip(columns, widths, strict=True))
    return "  ".join((label, bar, *cells))


def _number(value: float) -> str:
    """Three digits, with k, M or G for thousands."""
    for power, unit in ((9, "G"), (6, "M"), (3, "k")):
        if value >= 0.9995 * 10**power:
            return f"{_short(value / 10**power)} {unit}"
    return f"{_short(value)} "


def _range(values: Range) -> str:
    return f"{_number(values.least)}–{_number(values.most)}"


def _span(values: Range) -> str:
    return f"{_short(values.least)}–{_short(values.most)}"


def _short(value: float) -> str:
    """Three digits, and more only before the point."""
    digits = 2 if value < 9.995 else 1 if value < 99.95 else 0
    return f"{value:.{digits}f}"


def _can_encode(text: str, stream: TextIO) -> bool:
    try:
        text.encode(stream.encoding or "ascii")
    except (UnicodeEncodeError, LookupError):
        return False
    return True


def _width(stream: TextIO) -> int:
    columns = os.environ.get("COLUMNS", "")
    if columns.isdecimal() and int(columns):
        return int(columns)
    try:
        return os.get_terminal_size(stream.fileno()).columns
    except (OSError, ValueError):
        return 80
