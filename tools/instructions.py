"""Counts the instructions of the hot paths under callgrind and compares them with benches/instructions/counts.json.

`tools/instructions.py` fails if a path takes 5 % more than recorded, or 15 % if threads wait in it; `--record` writes the current counts to
the file and to docs/hot-path.md, which names the functions behind some of the counts.
Most counts do not depend on the load of the machine, but on the compiler and the CPU's family, so they are recorded
for one of each. Standard library only; tools/stages.py runs it in `make test`.
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
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "hot-path.md"
RECORD = ROOT / "benches" / "instructions" / "counts.json"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
PROFILE = "counted"
TOLERANCE = 0.05
# For paths whose threads wait for each other: how often a thread looks before it sleeps depends on the load.
TOLERANCE_IN_TURNS = 0.15
LEAST_SHARE = 0.02  # a function is named if it has at least this share of a path's instructions
BEGIN, END = "<!-- counts:begin -->", "<!-- counts:end -->"

# The paths whose functions the page names, with what they are.
SHOWN = {
    "send 64 B, PUSH inproc": "`Socket::send`, into a pipe",
    "recv 64 B, PUSH inproc": "`Socket::recv`, out of a pipe",
    "encode 64 B": "The engine encodes; the harness's copy, in place of `sendmsg`, is half of `memcpy`",
    "decode 64 B": "The engine decodes; the harness's copy, in place of `recv`, is half of `memcpy`",
    "decode 1024 B": "The same with bodies too long to lie in the frame",
    "match one of 1000 topics": "A publisher finds out who wants a message",
}


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
    counts, functions = count(build())
    if arguments.record:
        record = {"measured on": here(), "counts": counts, "functions": functions}
        RECORD.write_text(json.dumps(record, indent=1) + "\n")
        PAGE.write_text(spliced(PAGE.read_text(), tables(record)))
        print(
            f"written: {RECORD.relative_to(ROOT)}, {len(counts)} paths, and {PAGE.relative_to(ROOT)}"
        )
        return 0
    record = json.loads(RECORD.read_text())
    if spliced(page := PAGE.read_text(), tables(record)) != page:
        print(
            f"{PAGE.relative_to(ROOT)} does not say what {RECORD.relative_to(ROOT)} does: --record"
        )
        return 1
    return compare(record["counts"], counts)


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
    """The CPU's family, which decides the code that libc selects, for example for copying."""
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


def count(program: Path) -> tuple[dict[str, float], dict[str, dict[str, float]]]:
    """Instructions of each path per run, and for some paths the share of each function."""
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
        counts, functions = {}, {}
        tries: dict[str, list[float]] = {}
        for number, line in enumerate(run.stdout.splitlines(), start=1):
            name, _, times = line.rpartition(" ")
            dump = Path(f"{out}.{number}").read_text()
            total = re.search(r"^totals: (\d+)$", dump, re.MULTILINE)
            if total is None:
                sys.exit(f"callgrind wrote no total for {name}")
            tries.setdefault(name, []).append(int(total[1]) / int(times))
            # Of several tries, the lower quartile: other threads add to the count of some.
            counts[name] = round(sorted(tries[name])[len(tries[name]) // 4], 1)
            if name in SHOWN:
                functions[name] = functions_in(Path(f"{out}.{number}"), int(times), counts[name])
        return counts, functions


def functions_in(dump: Path, times: int, total: float) -> dict[str, float]:
    """Instructions of the functions themselves, without what they call."""
    text = said("callgrind_annotate", "--auto=no", "--inclusive=no", "--threshold=100", str(dump))
    found: dict[str, float] = {}
    for number, place in re.findall(
        r"^ *([\d,]+) \( *[\d.]+%\) +(\S.*?)(?: \[.*\])?$", text, re.MULTILINE
    ):
        each = int(number.replace(",", "")) / times
        # The start of the program appears with the total, because nothing was counted before.
        if LEAST_SHARE * total <= each < 0.99 * total:
            name = short(place.split(":", 1)[1])
            found[name] = round(found.get(name, 0) + each, 1)
    return found


def short(name: str) -> str:
    """A function's short name: without crates, type parameters and the compiler's additions."""
    name = re.sub(r"^<impl (.*) for (.*)>::", r"\2::", name)
    name = re.sub(r"<(?:impl )?([\w:]+)(?:<[^<>]*>)? as [^<>]*(?:<[^<>]*>)?>", r"\1", name)
    name = re.sub(r"[\w:]+::<impl ([\w:]+)>", r"\1", name)
    name = re.sub(r"(\w)<\w+(?:,\w+)*>", r"\1", name)  # type parameters
    drop = re.match(r"core::ptr::drop_in_place<([\w:]+)", name)
    if drop:
        return f"drop of {drop[1].rpartition('::')[2]}"
    if name.startswith("__mem"):
        return name.split("_")[2]
    parts = re.sub(r"[<>]", "", name).split("::")
    if "{{closure}}" in parts or parts[0] == "instructions":
        return "the harness, with what is inlined into it"
    return "::".join(parts[-2:])


def tables(record: dict[str, Any]) -> str:
    measured = record["measured on"]
    lines = [f"Instructions, counted with {measured['rustc']} on {measured['CPU']}:", ""]
    for path, text in SHOWN.items():
        lines += [
            f"**{text}** (`{path}`): {record['counts'][path]:.0f}",
            "",
            "| function | instructions |",
            "| --- | --- |",
        ]
        lines += [f"| {name} | {each:.0f} |" for name, each in record["functions"][path].items()]
        lines.append("")
    others = {name: each for name, each in record["counts"].items() if name not in SHOWN}
    lines += ["**All of them, per message**", "", "| path | instructions |", "| --- | --- |"]
    lines += [f"| {name} | {each:.0f} |" for name, each in others.items()]
    return "\n".join([*lines, ""])


def spliced(page: str, text: str) -> str:
    pattern = re.compile(f"{re.escape(BEGIN)}.*?{re.escape(END)}", re.DOTALL)
    return pattern.sub(lambda _: f"{BEGIN}\n{text}{END}", page)


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
        if change > tolerance(name):
            worse.append(name)
            mark = "  WORSE"
        elif change < -tolerance(name):
            better.append(name)
            mark = "  better"
        print(f"{name:<52} {old:>9.1f} -> {new:>9.1f}  {change:+.1%}{mark}")
    again = "python3 tools/instructions.py --record"
    if better and not worse:
        print(f"{len(better)} paths have become cheaper; to hold them to it: {again}")
    if worse:
        print(f"{len(worse)} paths take clearly more. If that is worth it: {again}")
    return 1 if worse else 0


def tolerance(path: str) -> float:
    """The share by which a path may change before it counts."""
    return TOLERANCE_IN_TURNS if path.endswith("in turns") else TOLERANCE


if __name__ == "__main__":
    sys.exit(main())
