"""The matrix as Markdown and JSON."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .row import Row
from .runner import Result

_VERSION = """
import importlib, sys
zmq = importlib.import_module(sys.argv[1])
own = zmq.__version__
other = zmq.zmq_version()
print(own if sys.argv[1] == "zeroxide" else f"{own} (libzmq {other})")
"""

# Around the table in the documentation.
_BEGIN, _END = "<!-- fault matrix -->", "<!-- end -->"

_SIGNS = {"pass": "✓", "fail": "✗", "skip": "–"}


def version(module: str) -> str:
    """The name and version of a binding, which is imported in another process."""
    command = [sys.executable, "-c", _VERSION, module]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    return f"{'pyzmq' if module == 'zmq' else module} {done.stdout.strip()}"


def machine() -> str:
    return (
        f"Python {platform.python_version()}, Linux {platform.release()}, {os.cpu_count()} processors, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}"
    )


def markdown(rows: Sequence[Row], results: Sequence[Result], versions: dict[str, str]) -> str:
    """A table with a row for each fault, and a column for each binding."""
    found = {(result.row, result.module): result for result in results}
    lines = [
        f"| fault | what must hold | {' | '.join(versions.values())} |",
        "| --- |" + " --- |" * (1 + len(versions)),
    ]
    group = ""
    for row in rows:
        if row.group != group:
            group = row.group
            lines.append(f"| **{group}** |" + " |" * (1 + len(versions)))
        cells = [_cell(found[row.name, module]) for module in versions]
        lines.append(f"| {row.name} | {row.spec} | {' | '.join(cells)} |")
    passed = [
        f"{sum(result.outcome == 'pass' for result in results if result.module == module)} of "
        f"{sum(result.outcome != 'skip' for result in results if result.module == module)}"
        for module in versions
    ]
    lines.append(f"| **passed** | | {' | '.join(passed)} |")
    return "\n".join(lines)


def update(page: Path, table: str, seed: int) -> None:
    """Replaces the table of a page of the documentation."""
    text = page.read_text()
    before, rest = text.split(_BEGIN, 1)
    after = rest.split(_END, 1)[1]
    run = f"The last full run: seed {seed}, {machine()}."
    page.write_text(f"{before}{_BEGIN}\n\n{run}\n\n{table}\n\n{_END}{after}")


def _cell(result: Result) -> str:
    text = result.text.replace("|", "\\|").replace("<", "&lt;").replace("\n", " ")
    return f"{_SIGNS[result.outcome]} {text[:160]}".strip()


def write(
    folder: Path,
    rows: Sequence[Row],
    results: Sequence[Result],
    versions: dict[str, str],
    seed: int,
) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "matrix.md").write_text(markdown(rows, results, versions) + "\n")
    told = {
        "machine": machine(),
        "seed": seed,
        "versions": versions,
        "rows": [{"name": row.name, "group": row.group, "spec": row.spec} for row in rows],
        "results": [asdict(result) for result in results],
    }
    (folder / "matrix.json").write_text(json.dumps(told, indent=1) + "\n")
