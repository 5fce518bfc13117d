"""The terminal's output: a view that is redrawn, or plain lines without a terminal."""

import shutil
import sys
from typing import TextIO

from . import flights
from .flights import AIRPORTS, LATE, Answer, Delays
from .state import State

# Everything fits into eighty columns.
BAR = 20
REDRAW_S = 0.1

# Without a terminal: the interval between lines, which is longer if nothing changes.
PLAIN_S = 2.0
STILL_S = 15.0


class View:
    """Live progress."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._tty = out.isatty()
        self._drawn = 0
        self._due = self._still = 0.0
        self._last = ""

    def show(self, state: State, *, last: bool = False) -> None:
        """Draws the current state, unless it was drawn a moment ago."""
        now = state.elapsed
        if now < self._due and not last:
            return
        if self._tty:
            self._due = now + REDRAW_S
            self._redraw(state)
            return
        line = (
            f"{state.date or 'no flight yet'} | acknowledged {state.acked:,}"
            f" | Spark {state.text}, lag {state.lag:,} | final {state.final:,}"
        )
        if line == self._last and now < self._still and not last:
            return
        self._last, self._due, self._still = line, now + PLAIN_S, now + STILL_S
        print(f"[{now:5.1f} s] {line}", file=self._out, flush=True)

    def _redraw(self, state: State) -> None:
        into, out = state.into_log.per_second(), state.out_of_log.per_second()
        killed = f", killed after {state.kills[0]:.1f} s" if state.kills else ""
        lines = [
            f"{state.date or '2013'} · producers ▸ collector ▸ Spark ▸ log {state.elapsed:>{BAR}.1f} s",
            "",
            f"  acknowledged  {_bar(state.acked, state.total)}  {state.acked:>9,}  {into:>9,.0f}/s",
            f"  read          {_bar(state.read, state.total)}  {state.read:>9,}"
            f"  {out:>9,.0f}/s  lag {state.lag:,}",
            f"  exactly once  {_bar(state.final, state.total)}  {state.final:>9,}"
            f"  in {state.windows:,} windows",
            "",
            f"  Spark {state.text}{killed}",
            "",
        ]
        width = shutil.get_terminal_size().columns
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        text = "".join(f"\x1b[2K{line[: width - 1]}\n" for line in lines)
        print(up + text, end="", file=self._out, flush=True)
        self._drawn = len(lines)


def tables(answer: Answer, names: dict[str, str]) -> str:
    """The result as text."""
    groups = flights.by_carrier(answer)
    carriers = sorted({carrier for carrier, _ in groups})
    width = max(len(names.get(carrier, carrier)) for carrier in carriers)
    head = "".join(f"{airport:>17}" for airport in AIRPORTS)
    lines = [
        "Mean departure delay in minutes (flights), by carrier and airport",
        f"    {'':{width}}{head}",
    ]
    for carrier in carriers:
        cells = "".join(_cell(groups.get((carrier, airport))) for airport in AIRPORTS)
        lines.append(f"{carrier}  {names.get(carrier, ''):{width}}{cells}")

    months = sorted(flights.by_month(answer).items())
    largest = max((delays.mean or 0.0 for _, delays in months), default=0.0)
    lines += ["", "Mean departure delay in minutes (flights), by month"]
    for month, delays in months:
        mean = "-" if delays.mean is None else f"{delays.mean:.2f}"
        bar = "█" * round(40 * max(delays.mean or 0.0, 0.0) / largest) if largest else ""
        lines.append(f"{month} {mean:>7} {f'({delays.flights:,})':>10} {bar}".rstrip())

    total = flights.total(answer.values())
    cancelled = total.flights - total.departed
    lines += [
        "",
        f"{total.flights:,} flights; {cancelled:,} of them have no departure time (cancelled)"
        f" and count as flights but in no mean; {total.late:,} left more than {LATE} minutes late.",
    ]
    return "\n".join(lines)


def _cell(delays: Delays | None) -> str:
    if delays is None:
        return f"{'·':>17}"
    mean = "-" if delays.mean is None else f"{delays.mean:.2f}"
    return f"{mean:>8}{f'({delays.flights:,})':>9}"


def _bar(done: int, total: int) -> str:
    full = min(BAR * done // total, BAR) if total else 0
    return "━" * full + "─" * (BAR - full)
