"""What the terminal shows: a view that is redrawn, or plain lines where nobody looks."""

import shutil
import sys
import time
from typing import Any, TextIO

from .flights import AIRPORTS, BY_CARRIER, BY_HOUR, LATE, TOTAL, Answer, Delays

# The last report of each publisher.
Reports = dict[str, dict[str, Any]]

BAR = 28
REDRAW_S = 0.1

# Without a terminal: a line this often, but only now and then when nothing moves.
PLAIN_S = 2.0
STILL_S = 15.0


class View:
    """Progress, while it happens."""

    def __init__(self, out: TextIO = sys.stdout) -> None:
        self._out = out
        self._tty = out.isatty()
        self._began = time.monotonic()
        self._drawn = 0
        self._due = self._still = 0.0
        self._last = ""

    def show(self, reports: Reports, spark: str, answers: int, *, last: bool = False) -> None:
        """Draws the present state, unless it was drawn a moment ago."""
        now = time.monotonic()
        if now < self._due and not last:
            return
        elapsed = now - self._began
        if self._tty:
            self._due = now + REDRAW_S
            self._redraw(reports, spark, answers, elapsed)
            return
        parts = [
            f"{airport} {r['date']} sent {r['sent']:,} queued {r['stats']['queued']}"
            f" dropped {r['stats']['dropped']}"
            for airport, r in sorted(reports.items())
        ]
        line = " | ".join([*parts, f"Spark {spark}"])
        if line == self._last and now < self._still and not last:
            return
        self._last, self._due, self._still = line, now + PLAIN_S, now + STILL_S
        print(f"[{elapsed:5.1f} s] {line}", file=self._out, flush=True)

    def _redraw(self, reports: Reports, spark: str, answers: int, elapsed: float) -> None:
        lines = [f"flights of 2013 · PUSH ▸ Spark ▸ PUB {elapsed:>{BAR + 8}.1f} s", ""]
        for airport in AIRPORTS:
            report = reports.get(airport)
            if report is None:
                lines.append(f"  {airport}  starting")
                continue
            stats = report["stats"]
            rate = report["sent"] / report["seconds"] if report["seconds"] else 0.0
            lines.append(
                f"  {airport}  {_bar(report['sent'], report['total'])}  {report['date']}"
                f"  {report['sent']:>7,} sent  {rate:>9,.0f}/s  {stats['queued']:>5,} queued"
                f"  {stats['dropped']} dropped  {stats['peers']} peer"
            )
        lines += ["", f"  Spark {spark}", f"  SUB   {answers} messages of the answer", ""]
        width = shutil.get_terminal_size().columns
        up = f"\x1b[{self._drawn}F" if self._drawn else ""
        text = "".join(f"\x1b[2K{line[: width - 1]}\n" for line in lines)
        print(up + text, end="", file=self._out, flush=True)
        self._drawn = len(lines)


def tables(answer: Answer, names: dict[str, str]) -> str:
    """The answer, for people."""
    airports = sorted({key[2] for key in answer if key[0] == BY_CARRIER})
    carriers = sorted({key[1] for key in answer if key[0] == BY_CARRIER})
    width = max(len(names.get(carrier, carrier)) for carrier in carriers)
    head = "".join(f"{airport:>17}" for airport in airports)
    lines = [
        "Mean departure delay in minutes (flights), by carrier and airport",
        f"    {'':{width}}{head}",
    ]
    for carrier in carriers:
        cells = "".join(_cell(answer.get((BY_CARRIER, carrier, airport))) for airport in airports)
        lines.append(f"{carrier}  {names.get(carrier, ''):{width}}{cells}")

    hours = sorted((int(key[1]), delays) for key, delays in answer.items() if key[0] == BY_HOUR)
    largest = max((delays.mean or 0.0 for _, delays in hours), default=0.0)
    lines += ["", "Mean departure delay in minutes (flights), by scheduled hour"]
    for hour, delays in hours:
        mean = "-" if delays.mean is None else f"{delays.mean:.2f}"
        bar = "█" * round(40 * max(delays.mean or 0.0, 0.0) / largest) if largest else ""
        lines.append(f"{hour:02}:00 {mean:>7} {f'({delays.flights:,})':>10} {bar}".rstrip())

    total = answer[(TOTAL,)]
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
    full = BAR * done // total if total else 0
    return "━" * full + "─" * (BAR - full)
