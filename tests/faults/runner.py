"""Runs rows, each in its own process with limits on time and memory, and collects their results."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from .machines import forget
from .row import Row

HERE = Path(__file__).resolve().parent


@dataclass(frozen=True)
class Result:
    """How a row ended: `pass`, `fail` or `skip`, and why."""

    row: str
    module: str
    outcome: str
    text: str
    seconds: float
    # The stderr of the row.
    complaints: str = ""


def run(row: Row, module: str, seed: int, full: bool) -> Result:
    """Runs a row on a binding. Its processes are gone when this returns."""
    start = time.monotonic()
    command = [sys.executable, "-m", f"{HERE.name}.child", row.name, module, str(seed)]
    process = subprocess.Popen(
        [*command, "full" if full else "quick"],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=HERE.parent,
        start_new_session=True,
    )
    late = False
    try:
        output, complaints = process.communicate(timeout=row.seconds)
    except subprocess.TimeoutExpired:
        late = True
        _kill(process.pid)
        output, complaints = process.communicate()
    finally:
        _kill(process.pid)
        forget(process.pid)
    outcome, text = _read(output, process.returncode)
    if late:
        outcome, text = "fail", f"the row did not end within {row.seconds} s"
    return Result(row.name, module, outcome, text, time.monotonic() - start, complaints)


def run_all(
    rows: Iterable[Row],
    modules: Iterable[str],
    seed: int,
    full: bool,
    at_once: int,
    report: Callable[[Result], None],
) -> list[Result]:
    """Runs every row on every binding, some at once, and reports each result when it is known."""

    def one(case: tuple[Row, str]) -> Result:
        result = run(*case, seed, full)
        report(result)
        return result

    cases = [(row, module) for row in rows for module in modules]
    with ThreadPoolExecutor(at_once) as pool:
        return list(pool.map(one, cases))


def _read(output: str, status: int) -> tuple[str, str]:
    """The result that the process printed last."""
    with contextlib.suppress(ValueError, IndexError, KeyError):
        told = json.loads(output.strip().splitlines()[-1])
        return told["outcome"], told["text"]
    if status < 0:
        return "fail", f"the client's process ended with {signal.Signals(-status).name}"
    return "fail", f"no result, status {status}"


def _kill(group: int) -> None:
    """Kills what is left of the processes of a row."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, signal.SIGKILL)
