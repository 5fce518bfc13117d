"""zeroxide beside pyzmq, interleaved in one run: `python benches/python/bench.py [--quick] [--only tcp]`.

Every repetition of a case runs one module and then the other, in turn about, so that both meet the same machine; the
table holds medians. Rates are what the receiver counted.
"""

from __future__ import annotations

import argparse
import json
import sys
from dataclasses import dataclass
from pathlib import Path

import report
from cases import CASES, Case
from report import Row, Runs
from runner import RunFailed, run


@dataclass(frozen=True)
class Settings:
    repetitions: int
    seconds: float
    count: int  # of PUB/SUB messages


FULL = Settings(repetitions=5, seconds=1.0, count=1_000_000)
QUICK = Settings(repetitions=3, seconds=0.4, count=200_000)
SMOKE = Settings(repetitions=1, seconds=0.05, count=5_000)


def main() -> int:
    arguments = parse()
    settings = SMOKE if arguments.smoke else QUICK if arguments.quick else FULL
    settings = Settings(
        arguments.repetitions or settings.repetitions,
        arguments.seconds or settings.seconds,
        settings.count,
    )
    cases = [
        case
        for case in CASES
        if arguments.only.lower() in f"{case.role} {case.group} {case.name}".lower()
    ]
    if arguments.smoke:
        cases = [case for case in cases if case.smoke]
    labels = labels_of(arguments.modules)
    modules = dict(zip(labels, arguments.modules, strict=True))
    rows: list[Row] = []
    runs_of: dict[str, Runs] = {}
    for group in dict.fromkeys(case.group for case in cases):
        print(f"\n{group}", flush=True)
        for case in (case for case in cases if case.group == group):
            runs = interleave(case, modules, settings, 0 if arguments.smoke else arguments.retries)
            runs_of[f"{case.group}: {case.name}"] = runs
            for row in report.rows_of(case, runs):
                print(report.line(row), flush=True)
                rows.append(row)
    results = {
        "machine": report.machine(arguments.modules),
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
    if arguments.document:
        arguments.document.write_text(report.splice(arguments.document.read_text(), table))
    failed = [row for row in rows if None in row.medians.values()]
    behind = [row for row in rows if row.ratio is not None and not row.no_less]
    print(f"\n{len(rows)} rows, {len(behind)} below what they should be, {len(failed)} failed")
    return 1 if failed else 0


def interleave(case: Case, modules: dict[str, str], settings: Settings, retries: int) -> Runs:
    runs: Runs = {label: [] for label in modules}
    for repetition in range(settings.repetitions):
        labels = list(modules)
        for label in labels if repetition % 2 == 0 else reversed(labels):
            best: dict[str, float] | None = None
            for _ in range(1 + retries):
                try:
                    figures = run(modules[label], case, settings.seconds, settings.count)
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


def labels_of(modules: list[str]) -> list[str]:
    """What the table calls the modules; one against itself is told apart by a number."""
    names = ["pyzmq" if module == "zmq" else module for module in modules]
    return names if names[0] != names[1] else [names[0], f"{names[1]} again"]


def parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--modules", nargs=2, default=["zmq", "zeroxide"], metavar=("RIVAL", "OURS")
    )
    parser.add_argument(
        "--only", default="", help="just the cases whose role, group or name holds this text"
    )
    parser.add_argument("--repetitions", type=int)
    parser.add_argument("--seconds", type=float)
    parser.add_argument(
        "--retries",
        type=int,
        default=2,
        help="of a repetition during which others used the machine; the quietest counts",
    )
    parser.add_argument(
        "--quick", action="store_true", help="a short look: a few repetitions of 0.4 s"
    )
    parser.add_argument(
        "--smoke", action="store_true", help="does the harness work? the figures mean nothing"
    )
    parser.add_argument("--out", type=Path, help="folder for results.json and results.md")
    parser.add_argument(
        "--document", type=Path, help="put the table between this file's bench markers"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
