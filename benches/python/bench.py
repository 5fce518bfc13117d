"""zeroxide, pyzmq and pyomq, interleaved in one run: `python benches/python/bench.py [--quick] [--only tcp]`.

Every repetition of a case runs the modules one after the other, so that all run under the same conditions. The table
holds medians. Rates are counted at the receiver.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import sys
import tempfile
import time
import zipfile
from dataclasses import dataclass, replace
from pathlib import Path

import report
from cases import CASES, OF_ITSELF, OF_SP, Case
from progress import Progress
from report import Row, Runs
from runner import RunFailed, run

RIVALS = ("zmq", "pyomq")
OURS = "zeroxide"
OWN_CASES = ("nng",)  # these modules run cases of their own


@dataclass(frozen=True)
class Settings:
    repetitions: int
    seconds: float
    other_repetitions: int  # for cases whose only target is to be no worse
    other_seconds: float
    scale: float = 1.0  # of counts

    def of(self, case: Case) -> tuple[int, float]:
        if case.issue:
            return self.repetitions, self.seconds
        return self.other_repetitions, self.other_seconds


FULL = Settings(repetitions=5, seconds=1.0, other_repetitions=3, other_seconds=0.6)
QUICK = Settings(repetitions=3, seconds=0.4, other_repetitions=3, other_seconds=0.4, scale=0.2)
ISSUE = Settings(repetitions=3, seconds=0.5, other_repetitions=3, other_seconds=0.5)
SMOKE = Settings(repetitions=1, seconds=0.05, other_repetitions=1, other_seconds=0.05, scale=0.005)


def main() -> int:
    arguments = parse()
    if arguments.before is None:
        return measure(arguments, None)
    with tempfile.TemporaryDirectory(prefix="zeroxide-before-") as folder:
        zipfile.ZipFile(arguments.before).extractall(folder)
        return measure(arguments, f"{OURS}@{folder}")


def measure(arguments: argparse.Namespace, before: str | None) -> int:
    """Runs the cases; `before` is another build of zeroxide, interleaved with this one."""
    settings = settings_of(arguments)
    first = (arguments.modules or RIVALS)[0]
    cases = [
        case
        for case in (*CASES, *OF_SP)
        if arguments.only.lower() in f"{case.role} {case.group} {case.name}".lower()
        and (case.smoke or not arguments.smoke)
        and case.rival == (first if first in OWN_CASES else "")
        and (case.issue or arguments.table != "issue")
    ]
    names = arguments.modules or modules_here(arguments.smoke or arguments.table == "issue")
    if before is not None:
        names.insert(-1, before)
    labels = labels_of(names)
    modules = dict(zip(labels, names, strict=True))
    rows: list[Row] = []
    failed: list[Row] = []
    runs_of: dict[str, Runs] = {}
    started = time.monotonic()
    group = None
    progress = Progress(len(cases))
    for case in cases:
        if case.group != group:
            group = case.group
            print(f"\n{group}", flush=True)
        progress.show(case.name)
        mine = modules
        if not (
            case.issue or arguments.modules
        ):  # the first rival is the one that zeroxide must not be worse than
            compared = [*labels[:1], *(["before"] if before else []), labels[-1]]
            mine = {label: modules[label] for label in dict.fromkeys(compared)}
        runs = interleave(case, mine, settings, arguments.retries)
        runs |= {label: [] for label in labels if label not in runs}
        runs_of[f"{case.group}: {case.name}"] = runs = {label: runs[label] for label in labels}
        for row in report.rows_of(case, runs):
            progress.say(report.line(row))
            rows.append(row)
            # A case that a rival cannot run leaves a gap in the table; a case that pyzmq and
            # zeroxide cannot run is a bug.
            needed = {row.ours, labels[0]}.difference(case.not_for)
            if any(row.medians[label] is None for label in needed):
                failed.append(row)
        progress.step()
    for share in OF_ITSELF:
        if (shared := report.share_of(share, rows)) is not None:
            print(report.line(shared), flush=True)
            rows.append(shared)
    results = {
        "machine": report.machine(names),
        "settings": vars(settings),
        "labels": labels,
        "rows": report.as_json(rows),
        "runs": runs_of,
    }
    table = report.markdown(results)
    if arguments.out:
        arguments.out.mkdir(parents=True, exist_ok=True)
        (arguments.out / "results.json").write_text(json.dumps(results, indent=1) + "\n")
        (arguments.out / "results.md").write_text(table)
        print(f"\nwritten: {arguments.out}/results.json and results.md")
    missed = [row for row in rows if row.missed]
    elapsed = time.monotonic() - started
    print(
        f"\n{len(rows)} rows in {elapsed:.0f} s, {len(missed)} below their target, {len(failed)} failed"
    )
    return 1 if failed else 0


def interleave(case: Case, modules: dict[str, str], settings: Settings, retries: int) -> Runs:
    runs: Runs = {label: [] for label in modules}
    modules = {label: name for label, name in modules.items() if label not in case.not_for}
    repetitions, seconds = settings.of(case)
    parameters = case.parameters(seconds, settings.scale)
    first = next(iter(modules))
    for repetition in range(repetitions):
        labels = list(modules)
        for label in labels if repetition % 2 == 0 else reversed(labels):
            if repetition and not runs[label]:
                continue  # the module could not run the case the first time
            told = {}
            if label != first and runs[first]:
                told = {name: runs[first][-1][figure] for name, figure in case.told.items()}
            best: dict[str, float] | None = None
            for _ in range(1 + retries):
                try:
                    figures = run(modules[label], case, parameters | told)
                except RunFailed as why:
                    print(f"{case.name} with {label}: {why}", file=sys.stderr)
                    break
                if best is None or figures["foreign"] < best["foreign"]:
                    best = figures
                if best["foreign"] <= report.NOISY:
                    break
            if best is not None:
                runs[label].append(best)
    return runs


def settings_of(arguments: argparse.Namespace) -> Settings:
    settings = SMOKE if arguments.smoke else QUICK if arguments.quick else FULL
    if arguments.table == "issue" and settings is FULL:
        settings = ISSUE
    if arguments.repetitions:
        settings = replace(
            settings,
            repetitions=arguments.repetitions,
            other_repetitions=arguments.repetitions,
        )
    if arguments.seconds:
        settings = replace(settings, seconds=arguments.seconds, other_seconds=arguments.seconds)
    return settings


def modules_here(first_rival_only: bool) -> list[str]:
    """The installed rivals, and zeroxide."""
    rivals = RIVALS[:1] if first_rival_only else RIVALS
    return [*(name for name in rivals if importlib.util.find_spec(name)), OURS]


def labels_of(modules: list[str]) -> list[str]:
    """The names of the modules in the table; a module against itself gets a number."""
    names = ["pyzmq" if module == "zmq" else module for module in modules]
    names = ["before" if "@" in name else name for name in names]
    return [
        name if name not in names[:place] else f"{name} again" for place, name in enumerate(names)
    ]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--modules",
        nargs="+",
        metavar="MODULE",
        help="the last is ours; default: zmq, pyomq if it is installed, zeroxide",
    )
    parser.add_argument(
        "--only", default="", help="just the cases whose role, group or name holds this text"
    )
    parser.add_argument(
        "--table",
        choices=["all", "issue"],
        default="all",
        help="issue: just the rows with a target of their own, against pyzmq, in a few minutes",
    )
    parser.add_argument(
        "--before",
        type=Path,
        metavar="WHEEL",
        help="another build of zeroxide, interleaved with this one: what did a change cost?",
    )
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument(
        "--retries",
        type=int,
        help="of a repetition during which others used the machine; the quietest counts (default: 2; issue: 0)",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a short look: a few repetitions of 0.4 s"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="does the harness work? the figures mean nothing"
    )
    parser.add_argument("--out", type=Path, help="folder for results.json and results.md")
    arguments = parser.parse_args()
    if arguments.retries is None:
        arguments.retries = 0 if arguments.smoke or arguments.table == "issue" else 2
    return arguments


if __name__ == "__main__":
    sys.exit(main())
