"""Counts the instructions of the hot paths under callgrind and compares them with benches/instructions/counts.json.

`tools/instructions.py` fails where a path takes 5 % more than recorded; `--record` writes down what is measured now.
Counts do not depend on who else uses the machine, but on the compiler and the CPU's family, so they are recorded for
one of each. Standard library only; tools/stages.py runs it in `make test`.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import subprocess
import sys
import tempfile
from pathlib import Path
from shutil import which

ROOT = Path(__file__).resolve().parent.parent
RECORD = ROOT / "benches" / "instructions" / "counts.json"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = "quick"  # as `cargo test` builds it for the stage before
TOLERANCE = 0.05


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--record", action="store_true", help="write the counts down as the new ones"
    )
    parser.add_argument("--why-not", action="store_true", help="just why nothing can be compared")
    arguments = parser.parse_args()
    if arguments.why_not:
        print(why_not() or "")
        return 0
    if not arguments.record and (reason := why_not()):
        print(f"not compared: {reason}")
        return 0
    counts = count(build())
    if arguments.record:
        RECORD.write_text(json.dumps({"measured on": here(), "counts": counts}, indent=1) + "\n")
        print(f"written: {RECORD.relative_to(ROOT)}, {len(counts)} paths")
        return 0
    return compare(json.loads(RECORD.read_text())["counts"], counts)


def why_not() -> str | None:
    """Why the counts of this machine cannot be compared with the recorded ones, if they cannot."""
    if which("valgrind") is None:
        return "no valgrind here"
    if which("cargo") is None:
        return "no cargo here"
    recorded = json.loads(RECORD.read_text())["measured on"]
    mine = here()
    differing = [
        f"{name} {mine[name]}, recorded with {recorded[name]}"
        for name in ("rustc", "CPU")
        if mine[name] != recorded[name]
    ]
    return "; ".join(differing) or None


def here() -> dict[str, str]:
    return {
        "rustc": said("rustc", "--version"),
        "CPU": cpu_family(),
        "valgrind": said("valgrind", "--version"),
        "libc": " ".join(platform.libc_ver()),
    }


def said(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def cpu_family() -> str:
    """Which code libc picks, for copying for example, depends on it."""
    words = {"vendor_id": "", "cpu family": ""}
    for line in Path("/proc/cpuinfo").read_text().splitlines():
        name, _, value = line.partition(":")
        if name.strip() in words:
            words[name.strip()] = words[name.strip()] or value.strip()
    return f"{platform.machine()} {words['vendor_id']} family {words['cpu family']}"


def build() -> Path:
    arguments = ("--locked", "--quiet", "--profile", PROFILE, "--example", "instructions")
    subprocess.run(("cargo", "build", *arguments), cwd=ROOT, check=True)
    return TARGET / PROFILE / "examples" / "instructions"


def count(program: Path) -> dict[str, float]:
    """Instructions of each path, per time that it ran."""
    with tempfile.TemporaryDirectory(prefix="zeroxide-instructions-") as folder:
        out = Path(folder) / "out"
        options = (
            f"--callgrind-out-file={out}",
            "--toggle-collect=instructions::counted*",
            "--dump-after=instructions::end_of_path*",
        )
        run = subprocess.run(
            ("valgrind", "--tool=callgrind", *options, program), capture_output=True, text=True
        )
        if run.returncode != 0:
            sys.exit(f"{program} failed under callgrind:\n{run.stdout}{run.stderr}")
        counts = {}
        for number, line in enumerate(run.stdout.splitlines(), start=1):
            name, _, times = line.rpartition(" ")
            dump = Path(f"{out}.{number}").read_text()
            total = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
            if total is None:
                sys.exit(f"callgrind wrote no total for {name}")
            counts[name] = round(int(total[1]) / int(times), 1)
        return counts


def compare(recorded: dict[str, float], counts: dict[str, float]) -> int:
    worse, better = [], []
    for name in dict.fromkeys([*recorded, *counts]):
        old, new = recorded.get(name), counts.get(name)
        if old is None or new is None:
            print(f"{name:<52} {'new: not recorded' if old is None else 'gone'}")
            worse.append(name)
            continue
        change = new / old - 1
        mark = ""
        if change > TOLERANCE:
            worse.append(name)
            mark = "  WORSE"
        elif change < -TOLERANCE:
            better.append(name)
            mark = "  better"
        print(f"{name:<52} {old:>9.1f} -> {new:>9.1f}  {change:+.1%}{mark}")
    again = "python3 tools/instructions.py --record"
    if better and not worse:
        print(f"{len(better)} paths have become cheaper; to hold them to it: {again}")
    if worse:
        print(f"{len(worse)} paths take over {TOLERANCE:.0%} more. If that is worth it: {again}")
    return 1 if worse else 0


if __name__ == "__main__":
    sys.exit(main())
