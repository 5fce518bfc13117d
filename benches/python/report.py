"""Turns the figures of many runs into rows, a table and a file."""

from __future__ import annotations

import datetime
import importlib
import os
import platform
import re
import statistics
import subprocess
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from cases import GIL, NO_LESS, Case, Metric, Share

NOISY = 0.06  # a figure is marked if other programs took more than this share of the machine
RATES = ("msgs/s", "1/s", "MB/s")

Runs = dict[str, list[dict[str, float]]]  # figures of every repetition, by label of the module


@dataclass
class Row:
    """One figure of one case, side by side; the last of the modules is ours."""

    group: str
    name: str
    unit: str
    medians: dict[str, float | None]
    spreads: dict[str, list[float]] = field(default_factory=dict)  # least and most
    cpu_us: dict[str, float | None] = field(default_factory=dict)
    higher_is_better: bool = True
    targets: dict[str, float] = field(
        default_factory=dict
    )  # ratios of zeroxide's figure to a rival's, by rival
    bound: float | None = None  # ratio of zeroxide's figure alone
    noisy: bool = False

    @property
    def key(self) -> str:
        return f"{self.group}: {self.name}"

    @property
    def ours(self) -> str:
        return list(self.medians)[-1]

    @property
    def rivals(self) -> list[str]:
        return list(self.medians)[:-1]

    def ratio(self, rival: str) -> float | None:
        """The ratio of our figure to the rival's, as in the targets."""
        theirs, ours = self.medians.get(rival), self.medians[self.ours]
        return ours / theirs if ours is not None and theirs else None

    def target(self, rival: str) -> float:
        return self.targets.get(rival, NO_LESS if self.higher_is_better else 1 / NO_LESS)

    def fulfils(self, figure: float | None, wanted: float) -> bool:
        if figure is None:
            return False
        return figure >= wanted if self.higher_is_better else figure <= wanted

    def no_less_than(self, rival: str) -> bool:
        return self.fulfils(self.ratio(rival), NO_LESS if self.higher_is_better else 1 / NO_LESS)

    @property
    def missed(self) -> list[str]:
        """The rivals whose target is not reached, and "bound"."""
        names = [
            rival
            for rival in self.rivals
            if self.bound is None
            and self.medians[rival] is not None
            and not self.fulfils(self.ratio(rival), self.target(rival))
        ]
        if self.bound is not None and not self.fulfils(self.medians[self.ours], self.bound):
            names.append("bound")
        return names


def rows_of(case: Case, runs: Runs) -> list[Row]:
    return [row_of(case, metric, runs) for metric in case.metrics]


def row_of(case: Case, metric: Metric, runs: Runs) -> Row:
    figures = {
        label: [run[metric.key] for run in done if metric.key in run]
        for label, done in runs.items()
    }
    return Row(
        group=case.group,
        name=": ".join(filter(None, (case.name, metric.label))),
        unit=metric.unit,
        medians={label: median(values) for label, values in figures.items()},
        spreads={label: [min(values), max(values)] for label, values in figures.items() if values},
        cpu_us={
            label: median([r["cpu_us"] for r in done if "cpu_us" in r])
            for label, done in runs.items()
        },
        higher_is_better=metric.higher_is_better,
        targets=metric.targets,
        bound=metric.bound,
        noisy=any((median([r["foreign"] for r in done]) or 0) > NOISY for done in runs.values()),
    )


def share_of(share: Share, rows: list[Row]) -> Row | None:
    """A row computed from two others, if both were run."""
    by_key = {row.key: row for row in rows}
    part, whole = by_key.get(share.part), by_key.get(share.whole)
    if part is None or whole is None:
        return None
    medians: dict[str, float | None] = {}
    for label in part.medians:
        upper, lower = per_second(part, label), per_second(whole, label)
        medians[label] = upper / lower if upper and lower else None
    return Row(
        share.group,
        share.name,
        "x",
        medians,
        bound=share.bound,
        noisy=part.noisy or whole.noisy,
    )


def per_second(row: Row, label: str) -> float | None:
    figure = row.medians.get(label)
    if figure is None or row.unit in RATES:
        return figure
    return {"ns": 1e9, "us": 1e6}[row.unit] / figure


def median(values: list[float]) -> float | None:
    return statistics.median(values) if values else None


# ---------------------------------------------------------------- text


def short(value: float | None, unit: str) -> str:
    if value is None:
        return "-"
    if unit not in RATES:
        return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"
    for size, letter in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return (
                f"{value / size:.2f}{letter}"
                if value < 10 * size
                else f"{value / size:.0f}{letter}"
            )
    return f"{value:.0f}"


def cell(row: Row, label: str) -> str:
    text = short(row.medians.get(label), row.unit)
    if label in row.spreads and row.spreads[label][0] != row.spreads[label][1]:
        text += f" ({'-'.join(short(value, row.unit) for value in row.spreads[label])})"
    if label == row.ours and row.bound is not None:
        text += wanted(row, row.medians[label], row.bound)
    return text


def over(row: Row, rival: str) -> str:
    """The ratio of our figure to the rival's, and its target."""
    figure = row.ratio(rival)
    if figure is None or row.bound is not None:
        return "-"
    return f"{figure:.2f}{wanted(row, figure, row.target(rival))}"


def wanted(row: Row, figure: float | None, target: float) -> str:
    sign = "≥" if row.higher_is_better else "≤"
    return f" ({sign} {target:.3g} {'✓' if row.fulfils(figure, target) else '✗'})"


def line(row: Row) -> str:
    """A row for the terminal, as soon as it is known."""
    figures = "  ".join(f"{label} {cell(row, label)}" for label in row.medians)
    ratios = "  ".join(f"/{rival} {over(row, rival)}" for rival in row.rivals)
    return f"{row.name:<52} {row.unit:>6}  {figures}  {ratios}{' ~' if row.noisy else ''}"


def markdown(results: dict[str, Any]) -> str:
    rows = [Row(**row) for row in results["rows"]]
    text = [preamble(results["machine"], results["settings"])]
    for group in dict.fromkeys(row.group for row in rows):
        members = [row for row in rows if row.group == group]
        labels = [
            label
            for label in results["labels"]
            if any(row.medians.get(label) is not None for row in members)
        ]
        rivals = [label for label in labels if label != results["labels"][-1]]
        with_cpu = any(value is not None for row in members for value in row.cpu_us.values())
        units = {row.unit for row in members}
        shared = f", {units.pop()}" if len(units) == 1 else ""
        head = ["case", *(f"{label}{shared}" for label in labels), *(f"/ {r}" for r in rivals)]
        head += [f"CPU us, {label}" for label in labels] if with_cpu else []
        text += ["", f"**{group}**", "", table_line(head), table_line(["---"] * len(head))]
        for row in members:
            name = row.name if shared else f"{row.name}, {row.unit}"
            cells = [name + (" ~" if row.noisy else ""), *(cell(row, label) for label in labels)]
            cells += [over(row, rival) for rival in rivals]
            cells += [short(row.cpu_us.get(label), "us") for label in labels] if with_cpu else []
            text.append(table_line(cells))
    return "\n".join(text) + "\n"


def summary(results: dict[str, Any]) -> str:
    """The rows that have a target, medians only, in one table."""
    first = results["labels"][0]
    head = ["case", first, results["labels"][-1], "ratio", "target"]
    machine = results["machine"]
    what = ", ".join(
        machine[name] if name == "date" else f"{name} {machine[name]}" for name in machine
    )
    text = [what, "", table_line(head), table_line(["---"] * len(head))]
    for row in (Row(**row) for row in results["rows"]):
        target = row.bound if row.bound is not None else row.targets.get(first)
        if target in (None, NO_LESS, 1 / NO_LESS):
            continue
        sign = "≥" if row.higher_is_better else "≤"
        figure = row.medians[row.ours] if row.bound is not None else row.ratio(first)
        ratio = "" if row.bound is not None or figure is None else f"{figure:.2f}"
        fulfilled = row.fulfils(figure, target)
        cells = [f"{short_name(row)}, {row.unit}"]
        cells += [short(row.medians.get(label), row.unit) for label in (first, row.ours)]
        text.append(table_line([*cells, ratio, f"{sign} {target:.3g} {'✓' if fulfilled else '✗'}"]))
    return "\n".join(text) + "\n"


def short_name(row: Row) -> str:
    """Returns the row's name after the part of its group's name before the first comma, which is its topic."""
    return f"{about_of(row.group)}: {row.name}"


# ---------------------------------------------------------------- the current text of the page

# The figures of the README: how it calls them, the row they come from, and the unit after the
# figure.
HIGHLIGHTS = (
    ("PUSH/PULL over tcp, 64 B", "PUSH/PULL: tcp 64 B, msgs/s", "messages/s"),
    ("the same with asyncio", "asyncio: tcp 64 B, msgs/s", "messages/s"),
    ("the same with CURVE encryption", "PUSH/PULL over tcp with CURVE: 64 B, msgs/s", "messages/s"),
    ("REQ/REP over tcp, median, one way", "REQ/REP: tcp: p50, us", "µs"),
    (
        "memory per connection, server",
        "Many of something: 1,000 connections: memory each, bound side, KiB",
        "KiB",
    ),
)
TO_SPARK = re.compile(r"^\| (.*64 B, end to end) \| ([\d.]+) .*?M rows/s", re.MULTILINE)


def highlights(page: str) -> str:
    """Returns the README's figures from the tables of docs/benchmarks.md."""
    targets = part(page, "targets")
    text = ["| case | zeroxide | compared with |", "| --- | --- | --- |"]
    for name, case, unit in HIGHLIGHTS:
        line = next(line for line in targets.splitlines() if line.startswith(f"| {case} |"))
        theirs, ours = line.split(" | ")[1:3]
        text.append(table_line([name, f"{ours} {unit}", f"pyzmq {theirs} {unit}"]))
    rates = dict(TO_SPARK.findall(part(page, "pipeline")))
    ours, kafka = rates["spark 64 B, end to end"], rates["Kafka: 64 B, end to end"]
    text.append(
        table_line(
            ["producer, log and Spark, 64 B", f"{ours}M rows/s", f"Kafka and Spark {kafka}M rows/s"]
        )
    )
    return "\n".join(text) + "\n"


def missed_rows(page: str) -> list[str]:
    """The rows of docs/benchmarks.md that miss a target, by what their tables are about and their names."""
    missed, about = [], ""
    for line in page.splitlines():
        if heading := re.match(r"\*\*(.+)\*\*$", line):
            about = about_of(heading[1])
        elif line.startswith("<!--"):
            about = ""
        elif line.startswith("| ") and "✗" in line:
            name = re.sub(
                r"( ~)|, (msgs/s|1/s|MB/s|[mun]?s|us/s|[KM]?i?B|x)(?= |$)",
                "",
                line[2:].split(" | ")[0],
            )
            missed.append(f"{about}: {name}" if about else name)
    return missed


def about_of(group: str) -> str:
    """The part of a group's name before the first comma, which says what its rows are about."""
    return group.replace("Rust beside libzmq's C: ", "Rust ").split(",")[0].split(":")[0]


def part(page: str, name: str) -> str:
    """The text between the markers of that name."""
    return page.split(f"<!-- {name}:begin -->")[1].split(f"<!-- {name}:end -->")[0]


def table_line(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def preamble(machine: dict[str, str], settings: dict[str, Any]) -> str:
    what = ", ".join(f"{name} {version}" for name, version in machine.items() if name != "date")
    others = ""
    if settings.get("other_repetitions"):
        count, seconds = settings["other_repetitions"], settings["other_seconds"]
        others = f" ({count} of {seconds} s if the only target is to be no worse)"
    return (
        f"{machine['date']}: {what}. Median (least-most) of {settings['repetitions']} interleaved repetitions of "
        f"{settings['seconds']} s{others}. Sender and receiver are separate processes, or threads for inproc. Messages are "
        "counted at the receiver. CPU is user and system time of both sides per message (REQ/REP: per round trip). `/ other` is "
        "zeroxide's figure divided by the other's, with its target: a minimum for rates, a maximum for times and memory. "
        "`~` marks cases in which other programs used part of the machine."
    )


def splice(text: str, table: str, name: str = "bench") -> str:
    """Puts the table between the markers of a document."""
    begin, end = f"<!-- {name}:begin -->", f"<!-- {name}:end -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(text):
        raise ValueError(f"no {begin} … {end} to put the table in")
    return pattern.sub(lambda _: f"{begin}\n{table}{end}", text)


# ---------------------------------------------------------------- what was measured, and where


def machine(modules: list[str], others: dict[str, str] | None = None) -> dict[str, str]:
    """The versions of Python modules, and of `others` as they are given."""
    versions = dict(others or {})
    for name in dict.fromkeys(name for name in modules if "@" not in name):
        module: Any = importlib.import_module(name)
        versions["pyzmq" if name == "zmq" else name] = str(module.__version__)
        if name == "zmq":
            versions["libzmq"] = module.zmq_version()
    return {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M UTC"),
        **versions,
        "commit": commit(),
        "Python": platform.python_version() + ("" if GIL else " without the GIL"),
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
