"""Figures of many runs made into rows, a table and a file."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from cases import NO_LESS, Case, Metric

NOISY = 0.06  # share of the machine that others may take before a figure is marked

Runs = dict[str, list[dict[str, float]]]  # figures of every repetition, by label of the module


@dataclass
class Row:
    """One figure of one case, side by side."""

    group: str
    name: str
    unit: str
    medians: dict[str, float | None]
    spreads: dict[str, list[float]]  # least and most
    cpu_us: dict[str, float | None]
    ratio: float | None  # above 1: the second module does better
    noisy: bool
    least: float = NO_LESS  # what the ratio should be

    @property
    def no_less(self) -> bool:
        return self.ratio is not None and self.ratio >= self.least


def rows_of(case: Case, runs: Runs) -> list[Row]:
    return [row_of(case, metric, runs) for metric in case.metrics]


def row_of(case: Case, metric: Metric, runs: Runs) -> Row:
    figures = {
        label: [run[metric.key] for run in done if metric.key in run]
        for label, done in runs.items()
    }
    medians = {label: median(values) for label, values in figures.items()}
    rival, ours = list(medians.values())
    ratio = None
    if rival and ours:
        ratio = ours / rival if metric.higher_is_better else rival / ours
    return Row(
        group=case.group,
        name=" ".join(filter(None, (case.name, metric.label))),
        unit=metric.unit,
        medians=medians,
        spreads={label: [min(values), max(values)] for label, values in figures.items() if values},
        cpu_us={
            label: median([r["cpu_us"] for r in done if "cpu_us" in r])
            for label, done in runs.items()
        },
        ratio=ratio,
        noisy=any((median([r["foreign"] for r in done]) or 0) > NOISY for done in runs.values()),
        least=metric.least,
    )


def median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


# ---------------------------------------------------------------- text


def short(value: float | None, unit: str) -> str:
    if value is None:
        return "failed"
    if unit != "msgs/s":
        return f"{value:.3g}" if value < 100 else f"{value:.0f}"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return (
                f"{value / size:.2f}{letter}"
                if value < 10 * size
                else f"{value / size:.0f}{letter}"
            )
    return f"{value:.0f}"


def cell(row: Row, label: str) -> str:
    text = short(row.medians[label], row.unit)
    if label in row.spreads and row.spreads[label][0] != row.spreads[label][1]:
        text += f" ({'-'.join(short(value, row.unit) for value in row.spreads[label])})"
    return text


def line(row: Row) -> str:
    """A row for the terminal, as soon as it is known."""
    both = "  ".join(f"{label} {cell(row, label)}" for label in row.medians)
    ratio = "-" if row.ratio is None else f"{row.ratio:.2f}x"
    return f"{row.name:<52} {row.unit:>6}  {both}  {ratio}{' ~' if row.noisy else ''}"


def markdown(results: dict[str, Any]) -> str:
    rows = [Row(**row) for row in results["rows"]]
    labels = results["labels"]
    text = [preamble(results["machine"], results["settings"])]
    for group in dict.fromkeys(row.group for row in rows):
        members = [row for row in rows if row.group == group]
        with_cpu = any(value is not None for row in members for value in row.cpu_us.values())
        unit = {row.unit for row in members}.pop()
        head = ["case", *(f"{label}, {unit}" for label in labels), "ratio"]
        head += [f"CPU us, {label}" for label in labels] if with_cpu else []
        text += ["", f"**{group}**", "", table_line(head), table_line(["---"] * len(head))]
        for row in members:
            ratio = "-" if row.ratio is None else f"{row.ratio:.2f}"
            cells = [
                row.name,
                *(cell(row, label) for label in labels),
                ratio + (" ~" if row.noisy else ""),
            ]
            cells += [short(row.cpu_us[label], "us") for label in labels] if with_cpu else []
            text.append(table_line(cells))
    return "\n".join(text) + "\n"


def table_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def preamble(machine: dict[str, str], settings: dict[str, Any]) -> str:
    what = ", ".join(f"{name} {version}" for name, version in machine.items() if name != "date")
    return (
        f"{machine['date']}: {what}. Median (least-most) of {settings['repetitions']} interleaved repetitions of "
        f"{settings['seconds']} s, PUB/SUB of {settings['count']:,} messages; sender and receiver in processes of their own, "
        "inproc in threads. CPU: user and system time of both sides per message (REQ/REP: per round trip). "
        "Ratio above 1: zeroxide does better. `~`: other processes took part of the machine."
    )


def splice(text: str, table: str) -> str:
    """Puts the table between the markers of a document."""
    begin, end = "<!-- bench:begin -->", "<!-- bench:end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no {begin} … {end} to put the table in")
    return pattern.sub(lambda _: f"{begin}\n{table}{end}", text)


# ---------------------------------------------------------------- what was measured, and where


def machine(modules: list[str]) -> dict[str, str]:
    versions = {}
    for name in dict.fromkeys(modules):
        module: Any = importlib.import_module(name)
        versions["pyzmq" if name == "zmq" else name] = str(module.__version__)
        if name == "zmq":
            versions["libzmq"] = module.zmq_version()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **versions,
        "commit": commit(),
        "Python": platform.python_version(),
        "Linux": platform.release(),
        "CPU": f"{cpu_model()}, {os.cpu_count()} cores",
    }


def cpu_model() -> str:
    for text in Path("/proc/cpuinfo").read_text().splitlines():
        if text.startswith("model name"):
            return text.split(":", 1)[1].strip()
    return platform.machine()


def commit() -> str:
    said = subprocess.run(
        ["git", "describe", "--always", "--dirty"],
        cwd=Path(__file__).parent,
        capture_output=True,
        text=True,
    )
    return said.stdout.strip() or "unknown"


def as_json(rows: list[Row]) -> list[dict[str, Any]]:
    return [asdict(row) for row in rows]
