"""Line and bar charts as SVG, written by hand: no library needed to draw what a bench measured."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from html import escape

WIDTH, HEIGHT = 760, 440
LEFT, RIGHT, TOP, BOTTOM = 76, 150, 48, 56
INK, GRID, PALE = "#24292f", "#e5e7eb", "#6b7280"
FONT = "font-family='Helvetica, Arial, sans-serif'"

# Each system has the same colour in every chart. Readers who are colour-blind can tell them apart, and each reaches a contrast
# of 3 with the white ground.
COLOURS = (
    *("#d55e00", "#0072b2", "#009e73", "#cc79a7", "#997000", "#3a95cc", "#7a5195", "#4d4d4d"),
    *("#8c564b", "#6b7a00", "#0e8c99"),
)

Points = Sequence[tuple[float, float]]


def colours_of(names: Iterable[str]) -> dict[str, str]:
    return {name: COLOURS[place % len(COLOURS)] for place, name in enumerate(names)}


def line_chart(
    title: str,
    x_label: str,
    y_label: str,
    series: Mapping[str, Points],
    colours: Mapping[str, str],
    x_ticks: Mapping[float, str],
) -> str:
    """Draws lines on two logarithmic axes; `x_ticks` has the positions and labels of the horizontal axis."""
    values = [y for points in series.values() for _, y in points if y > 0]
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    x_of = along(min(x_ticks), max(x_ticks), LEFT, WIDTH - RIGHT)
    y_of = along(10**low, 10 ** max(high, low + 1), HEIGHT - BOTTOM, TOP)
    drawing = [text(LEFT, 24, title, size=16, weight="bold")]
    for power in range(low, max(high, low + 1) + 1):
        y = y_of(10**power)
        drawing.append(rule(LEFT, y, WIDTH - RIGHT, y))
        drawing.append(text(LEFT - 8, y + 4, number(10**power), anchor="end", colour=PALE))
    for value, words in x_ticks.items():
        x = x_of(value)
        drawing.append(rule(x, TOP, x, HEIGHT - BOTTOM))
        drawing.append(text(x, HEIGHT - BOTTOM + 18, words, anchor="middle", colour=PALE))
    drawing.append(text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 14, x_label, anchor="middle"))
    drawing.append(text(LEFT, TOP - 10, y_label, colour=PALE))
    ends = []
    for name, points in series.items():
        places = [(x_of(x), y_of(y)) for x, y in points if y > 0]
        if not places:
            continue
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        drawing.append(
            f"<polyline points='{path}' fill='none' stroke='{colours[name]}' stroke-width='2.2'/>"
        )
        drawing += [
            f"<circle cx='{x:.1f}' cy='{y:.1f}' r='3.2' fill='{colours[name]}'/>" for x, y in places
        ]
        ends.append((places[-1][1], name))
    drawing += names_beside(ends, colours)
    return svg(drawing, HEIGHT)


def bar_chart(
    title: str,
    x_label: str,
    groups: Mapping[str, Mapping[str, float]],
    colours: Mapping[str, str],
) -> str:
    """Draws one group of bars for each name, from top to bottom; the later bars of a group are paler."""
    bars = [(name, kind, value) for name, kinds in groups.items() for kind, value in kinds.items()]
    most = max((value for _, _, value in bars), default=1.0) or 1.0
    height = TOP + BOTTOM + len(bars) * 20 + len(groups) * 12
    left = LEFT + 40
    drawing = [text(left, 24, title, size=16, weight="bold")]
    y = float(TOP)
    for name, kinds in groups.items():
        middle = y + len(kinds) * 10
        drawing.append(text(left - 10, middle + 4, name, anchor="end"))
        for place, (kind, value) in enumerate(kinds.items()):
            width = value / most * (WIDTH - left - RIGHT)
            drawing.append(
                f"<rect x='{left}' y='{y:.1f}' width='{width:.1f}' height='17' fill='{colours[name]}' "
                f"opacity='{1 - 0.45 * place:.2f}'/>"
            )
            drawing.append(text(left + width + 6, y + 13, f"{number(value)} {kind}", colour=PALE))
            y += 20
        y += 12
    drawing.append(text((left + WIDTH - RIGHT) / 2, height - 14, x_label, anchor="middle"))
    return svg(drawing, height)


# ---------------------------------------------------------------- parts


def along(low: float, high: float, start: float, end: float) -> Callable[[float], float]:
    """The position of a value on a logarithmic axis."""
    span = math.log(high) - math.log(low) or 1.0
    return lambda value: start + (math.log(value) - math.log(low)) / span * (end - start)


def names_beside(ends: list[tuple[float, str]], colours: Mapping[str, str]) -> list[str]:
    """Places the lines' names at their right ends, and moves them apart if they would overlap."""
    placed: list[str] = []
    lowest, left = 0.0, WIDTH - RIGHT + 8
    for y, name in sorted(ends):
        lowest = max(y, lowest + 15)
        placed.append(
            f"<rect x='{left}' y='{lowest - 5:.1f}' width='10' height='10' rx='2' fill='{colours[name]}'/>"
        )
        placed.append(text(left + 15, lowest + 4, name, weight="bold"))
    return placed


def text(
    x: float,
    y: float,
    words: str,
    *,
    size: int = 12,
    anchor: str = "start",
    colour: str = INK,
    weight: str = "normal",
) -> str:
    return (
        f"<text x='{x:.1f}' y='{y:.1f}' {FONT} font-size='{size}' text-anchor='{anchor}' "
        f"font-weight='{weight}' fill='{colour}'>{escape(words)}</text>"
    )


def rule(x1: float, y1: float, x2: float, y2: float) -> str:
    return f"<line x1='{x1:.1f}' y1='{y1:.1f}' x2='{x2:.1f}' y2='{y2:.1f}' stroke='{GRID}'/>"


def svg(drawing: list[str], height: float) -> str:
    head = f"<svg xmlns='http://www.w3.org/2000/svg' viewBox='0 0 {WIDTH} {height:.0f}' width='{WIDTH}'>"
    return "\n".join(
        [head, "<rect width='100%' height='100%' fill='#fff'/>", *drawing, "</svg>", ""]
    )


def number(value: float) -> str:
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g}{letter}"
    return f"{value:.3g}"
