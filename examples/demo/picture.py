"""The result as a picture: an SVG written directly, because it consists of two charts of rectangles."""

from collections.abc import Callable, Iterable
from html import escape
from pathlib import Path

from . import flights
from .flights import AIRPORTS, Answer, Delays

WIDTH = 1020
MARGIN = 40
TOP = 128
ROW = 25

# The left chart: carriers by airports.
NAME_WIDTH = 220
CELL_WIDTH = 86

# The right chart: months.
MONTH_LEFT = 620
MONTH_LABEL = 54
MONTH_BAR = 230

INK = "#1d2733"
FAINT = "#7b8794"
CALM = (221, 233, 244)
HOT = (200, 57, 43)


def save(answer: Answer, names: dict[str, str], path: Path) -> None:
    """Draws the mean delay by carrier and airport, and by month."""
    left, left_rows = _carriers(answer, names)
    right, right_rows = _months(answer)
    height = TOP + max(left_rows, right_rows) * ROW + MARGIN
    total = flights.total(answer.values())
    facts = (
        f"{total.flights:,} flights, {total.flights - total.departed:,} of them cancelled;"
        f" mean delay of a departure, in minutes"
    )
    parts = [
        f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
        _text(MARGIN, 56, "Departures from New York City in 2013", size=22, bold=True),
        _text(MARGIN, 80, facts, fill=FAINT),
        *left,
        *right,
    ]
    path.parent.mkdir(parents=True, exist_ok=True)
    body = "\n".join(parts)
    path.write_text(
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}"'
        f' width="{WIDTH}" height="{height}" font-family="system-ui, Helvetica, sans-serif">\n'
        f"{body}\n</svg>\n",
        encoding="utf-8",
    )


def _carriers(answer: Answer, names: dict[str, str]) -> tuple[list[str], int]:
    groups = flights.by_carrier(answer)
    airports = AIRPORTS
    # Lowest delay first, because the order is half of the information.
    carriers = sorted({carrier for carrier, _ in groups}, key=lambda c: _mean_of(groups, c))
    heat = _scale(groups.values())
    parts = []
    for column, airport in enumerate(airports):
        x = MARGIN + NAME_WIDTH + (column + 0.5) * CELL_WIDTH
        parts.append(_text(x, TOP - 10, airport, bold=True, anchor="middle"))
    for row, carrier in enumerate(carriers):
        y = TOP + row * ROW
        parts.append(_text(MARGIN, y + 17, f"{carrier}  {names.get(carrier, '')}"))
        for column, airport in enumerate(airports):
            delays = groups.get((carrier, airport))
            if delays is None or delays.mean is None:
                continue
            x = MARGIN + NAME_WIDTH + column * CELL_WIDTH
            warmth = heat(delays.mean)
            parts.append(_rect(x + 1, y + 1, CELL_WIDTH - 2, ROW - 2, warmth))
            fill = "white" if warmth > 0.6 else INK
            label = f"{delays.mean:.1f}"
            parts.append(_text(x + CELL_WIDTH / 2, y + 17, label, fill=fill, anchor="middle"))
    return parts, len(carriers)


def _months(answer: Answer) -> tuple[list[str], int]:
    months = sorted(flights.by_month(answer).items())
    heat = _scale(delays for _, delays in months)
    longest = max((delays.mean or 0.0 for _, delays in months), default=0.0) or 1.0
    parts = [_text(MONTH_LEFT, TOP - 10, "by month", bold=True)]
    for row, (month, delays) in enumerate(months):
        y = TOP + row * ROW
        parts.append(_text(MONTH_LEFT, y + 17, month[5:], fill=FAINT))
        x = MONTH_LEFT + MONTH_LABEL
        if delays.mean is None:
            parts.append(_text(x, y + 17, f"none of {delays.flights:,} departed", fill=FAINT))
            continue
        length = MONTH_BAR * max(delays.mean, 0.0) / longest
        parts.append(_rect(x, y + 3, length, ROW - 6, heat(delays.mean)))
        parts.append(_text(x + length + 8, y + 17, f"{delays.mean:.1f}"))
    return parts, len(months)


def _mean_of(groups: dict[tuple[str, ...], Delays], carrier: str) -> float:
    own = [delays for (name, _), delays in groups.items() if name == carrier]
    departed = sum(delays.departed for delays in own)
    return sum(delays.minutes for delays in own) / departed if departed else 0.0


def _scale(groups: Iterable[Delays]) -> Callable[[float], float]:
    """Returns a function that maps a mean to its position between the lowest, 0, and the highest, 1."""
    means = [delays.mean for delays in groups if delays.mean is not None]
    least, most = min(means, default=0.0), max(means, default=0.0)
    return lambda mean: (mean - least) / ((most - least) or 1.0)


def _rect(x: float, y: float, width: float, height: float, warmth: float) -> str:
    channels = (round(calm + (hot - calm) * warmth) for calm, hot in zip(CALM, HOT, strict=True))
    fill = "#" + "".join(f"{channel:02x}" for channel in channels)
    return (
        f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{height:.1f}"'
        f' rx="2" fill="{fill}"/>'
    )


def _text(
    x: float,
    y: float,
    text: str,
    *,
    size: int = 13,
    fill: str = INK,
    bold: bool = False,
    anchor: str = "start",
) -> str:
    weight = ' font-weight="600"' if bold else ""
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}"'
        f' text-anchor="{anchor}"{weight}>{escape(text)}</text>'
    )
