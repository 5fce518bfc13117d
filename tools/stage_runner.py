"""Stages: steps that run commands one after the other, and a table of their results.

Standard library only, like everything that sets up the environment that the rest runs in.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STAGE_LIMIT_S = 25 * 60

# The maximum number of failed tests that a stage runs again. More than these are no accident.
UNSTEADY_MAX = 3

# The closing lines of the runners used here; summed for the last line.
PYTEST_COUNT = re.compile(r"(\d+) (passed|failed|error|errors|skipped|xfailed|xpassed)\b")
CARGO_RESULT = re.compile(r"^test result: \w+\. (\d+) passed; (\d+) failed; (\d+) ignored")

# Their lines for a test that failed.
PYTEST_FAILED = re.compile(r"^(?:FAILED|ERROR) (\S+::.+?)(?: - .*)?$", re.MULTILINE)
CARGO_FAILED = re.compile(r"^test (.+?) \.\.\. FAILED$", re.MULTILINE)


class Failed(Exception):
    """A stage did not succeed; its output shows why."""

    def __init__(self, why: str, output: str = "") -> None:
        super().__init__(why)
        self.output = output


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0

    def read(self, line: str) -> None:
        """Adds the counts of a test runner's closing line."""
        if cargo := CARGO_RESULT.match(line):
            passed, failed, ignored = map(int, cargo.groups())
            self.passed += passed
            self.failed += failed
            self.skipped += ignored
        elif re.search(r" in \d+(\.\d+)?s\b", line):
            for number, word in PYTEST_COUNT.findall(line):
                if word in ("passed", "xfailed"):
                    self.passed += int(number)
                elif word == "skipped":
                    self.skipped += int(number)
                else:
                    self.failed += int(number)


@dataclass
class Stage:
    name: str
    run: Callable[[Runner], None]
    needs: tuple[str, ...] = ()
    skip: Callable[[], str | None] = lambda: None  # why this stage cannot run here, if it cannot


def without(*programs: str) -> Callable[[], str | None]:
    def reason() -> str | None:
        missing = [program for program in programs if shutil.which(program) is None]
        return f"no {' and no '.join(missing)} here" if missing else None

    return reason


@dataclass
class Runner:
    everything: bool = False
    counts: Counts = field(default_factory=Counts)
    unsteady: list[str] = field(default_factory=list)  # failed, and passed when run again

    def sh(self, *command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
        """Runs one command to its end, forwards its output and returns it; raises if it fails or takes too long."""
        words = [str(word) for word in command]
        print("$ " + " ".join(words), flush=True)
        process = subprocess.Popen(
            words,
            cwd=cwd,
            env=os.environ | (env or {}),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            start_new_session=True,  # a group of its own, to end it with all that it started
        )
        out_of_time = threading.Event()

        def watch() -> None:
            """Ends the group when its leader is gone, because other processes would hold the output open."""
            try:
                process.wait(STAGE_LIMIT_S)
            except subprocess.TimeoutExpired:
                out_of_time.set()
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)

        threading.Thread(target=watch, daemon=True).start()
        assert process.stdout is not None
        lines = []
        try:
            for line in process.stdout:
                print(line, end="", flush=True)
                lines.append(line)
                self.counts.read(line)
        except KeyboardInterrupt:
            process.kill()
            raise
        code = process.wait()
        if out_of_time.is_set():
            raise Failed(f"still running after {STAGE_LIMIT_S} s")
        if code != 0:
            raise Failed(f"exit code {code}", "".join(lines))
        return "".join(lines)

    def tests(
        self,
        *command: str | Path,
        failed: re.Pattern[str],
        again: Callable[[list[str]], list[str]],
        env: dict[str, str] | None = None,
    ) -> None:
        """Runs a test runner, and the few tests that fail once more, with the arguments that `again` makes of their names.

        A test that passes then is unsteady: it is a fault in the test or in the code. The run goes on, and its summary
        names the test.
        """
        earlier = self.counts.failed
        try:
            self.sh(*command, env=env)
        except Failed as first:
            names = sorted(set(failed.findall(first.output)))
            if not 0 < len(names) <= UNSTEADY_MAX:
                raise
            # Each test counts once.
            once = replace(self.counts)
            try:
                self.sh(*command, *again(names), env=env)
                once.passed += once.failed - earlier
                once.failed = earlier
                self.unsteady += names
            finally:
                self.counts = once


def run(stages: list[Stage], runner: Runner) -> int:
    """Runs the stages in order and prints a table of them; the exit code is 0 if all succeeded."""
    chosen = {stage.name for stage in stages}
    outcomes: dict[str, str] = {}
    table: list[str] = []
    for stage in stages:
        print(f"\n=== {stage.name} ===", flush=True)
        started = time.monotonic()
        counted = runner.counts.failed
        missing = [name for name in stage.needs if name in chosen and outcomes[name] != "ok"]
        if reason := stage.skip():
            outcome, remark = "skipped", reason
            runner.counts.skipped += 1
        elif missing and all(outcomes[name] == "skipped" for name in missing):
            outcome, remark = "skipped", f"needs {', '.join(missing)}"
            runner.counts.skipped += 1
        elif missing:
            outcome, remark = "not run", f"needs {', '.join(missing)}"
        else:
            try:
                stage.run(runner)
                outcome, remark = "ok", ""
            except (Failed, OSError) as why:
                outcome, remark = "FAILED", str(why)
                if runner.counts.failed == counted:
                    runner.counts.failed += 1
        outcomes[stage.name] = outcome
        table.append(
            f"{outcome:8} {time.monotonic() - started:7.1f} s  {stage.name}  {remark}".rstrip()
        )
        print(table[-1], flush=True)
    counts = runner.counts
    print("\n=== summary ===", *table, sep="\n")
    for name in runner.unsteady:
        print(f"UNSTEADY: failed, and passed when run again: {name}")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped", flush=True)
    return 1 if counts.failed or "not run" in outcomes.values() else 0
