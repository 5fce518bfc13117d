"""Stages: steps that run commands, some of them at the same time, and a table of their results.

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
from collections import deque
from collections.abc import Callable, Collection
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = Path(os.environ.get("ZEROXIDE_VENV", ROOT / ".venv"))
PYTHON = VENV / "bin" / "python"
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target"))
STAGE_LIMIT_S = 60 * 60

# The number of stages that run at the same time. Tests mostly wait, so more than there are processors fit.
AT_ONCE = 3

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

    def add(self, other: Counts) -> None:
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped

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
    after: tuple[str, ...] = ()  # stages that end before this one starts, with whatever result
    lane: str = ""  # stages of a lane run one after the other, because they share something


def without(*programs: str) -> Callable[[], str | None]:
    def reason() -> str | None:
        missing = [program for program in programs if shutil.which(program) is None]
        return f"no {' and no '.join(missing)} here" if missing else None

    return reason


class Interrupted(Failed):
    """The run was interrupted, so its commands were killed."""


class Commands:
    """The commands that run now, each the leader of a group of processes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[str]] = set()
        self._interrupted = False

    def start(self, words: list[str], env: dict[str, str], cwd: Path) -> subprocess.Popen[str]:
        with self._lock:
            if self._interrupted:
                raise Interrupted("interrupted")
            process = subprocess.Popen(
                words,
                cwd=cwd,
                env=os.environ | env,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                start_new_session=True,  # a group of its own, to end it with all that it started
            )
            self._running.add(process)
            return process

    def end(self, process: subprocess.Popen[str]) -> None:
        with self._lock:
            self._running.discard(process)

    def interrupt(self) -> None:
        """Kills those that run, and lets no other start."""
        with self._lock:
            self._interrupted = True
            for process in self._running:
                kill_group(process)


def kill_group(leader: subprocess.Popen[str]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(leader.pid, signal.SIGKILL)


def show(text: str) -> None:
    print(text, end="", flush=True)


@dataclass
class Runner:
    everything: bool = False
    counts: Counts = field(default_factory=Counts)
    unsteady: list[str] = field(default_factory=list)  # failed, and passed when run again
    show: Callable[[str], None] = show
    commands: Commands = field(default_factory=Commands)

    def say(self, line: object) -> None:
        self.show(f"{line}\n")

    def sh(self, *command: str | Path, env: dict[str, str] | None = None, cwd: Path = ROOT) -> str:
        """Runs one command to its end, forwards its output and returns it; raises if it fails or takes too long."""
        words = [str(word) for word in command]
        self.say("$ " + " ".join(words))
        process = self.commands.start(words, env or {}, cwd)
        out_of_time = threading.Event()

        def watch() -> None:
            """Ends the group when its leader is gone, because other processes would hold the output open."""
            try:
                process.wait(STAGE_LIMIT_S)
            except subprocess.TimeoutExpired:
                out_of_time.set()
            kill_group(process)

        threading.Thread(target=watch, daemon=True).start()
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            self.show(line)
            lines.append(line)
            self.counts.read(line)
        code = process.wait()
        self.commands.end(process)
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


@dataclass(eq=False)
class Page:
    """The output of a stage that is not shown yet."""

    hidden: str = ""
    ended: bool = False


class Screen:
    """Shows the output of stages that run at the same time stage by stage: that of the one that started first while it
    runs, and that of the next when the first has ended."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._pages: deque[Page] = deque()

    def page(self) -> Page:
        with self._lock:
            self._pages.append(Page())
            return self._pages[-1]

    def write(self, page: Page, text: str) -> None:
        with self._lock:
            page.hidden += text
            self._show()

    def end(self, page: Page) -> None:
        with self._lock:
            page.ended = True
            self._show()

    def _show(self) -> None:
        while self._pages:
            first = self._pages[0]
            show(first.hidden)
            first.hidden = ""
            if not first.ended:
                return
            self._pages.popleft()


@dataclass
class Outcome:
    word: str
    remark: str = ""
    seconds: float = 0.0

    def row(self, stage: Stage) -> str:
        return f"{self.word:8} {self.seconds:7.1f} s  {stage.name}  {self.remark}".rstrip()


def attempt(stage: Stage, runner: Runner, outcomes: dict[str, Outcome]) -> Outcome:
    """Runs a stage, unless it cannot run or one that it needs did not succeed."""
    missing = [name for name in stage.needs if name in outcomes and outcomes[name].word != "ok"]
    if reason := stage.skip():
        runner.counts.skipped += 1
        return Outcome("skipped", reason)
    if missing and all(outcomes[name].word == "skipped" for name in missing):
        runner.counts.skipped += 1
        return Outcome("skipped", f"needs {', '.join(missing)}")
    if missing:
        return Outcome("not run", f"needs {', '.join(missing)}")
    started = time.monotonic()
    try:
        stage.run(runner)
        word, remark = "ok", ""
    except (Failed, OSError) as why:
        word, remark = "FAILED", str(why)
        runner.counts.failed = runner.counts.failed or 1
    return Outcome(word, remark, time.monotonic() - started)


def may_start(waiting: list[Stage], running: Collection[Stage]) -> Stage | None:
    """The first stage for which nothing else has to end."""
    pending = {stage.name for stage in (*waiting, *running)}
    lanes = {stage.lane for stage in running if stage.lane}
    for stage in waiting:
        if stage.lane not in lanes and pending.isdisjoint(stage.needs + stage.after):
            return stage
    return None


def run(stages: list[Stage], runner: Runner, at_once: int = AT_ONCE) -> int:
    """Runs the stages, those that may start in their order, and prints a table of them; the exit code is 0 if all succeeded."""
    began = time.monotonic()
    outcomes: dict[str, Outcome] = {}
    screen = Screen()
    waiting = list(stages)
    running: dict[Future[Outcome], tuple[Stage, Runner, Page]] = {}
    with ThreadPoolExecutor(at_once) as pool:
        try:
            while waiting or running:
                now = [stage for stage, _, _ in running.values()]
                if len(now) < at_once and (stage := may_start(waiting, now)):
                    waiting.remove(stage)
                    page = screen.page()
                    own = replace(runner, counts=Counts(), show=partial(screen.write, page))
                    own.say(f"\n=== {stage.name} ===")
                    running[pool.submit(attempt, stage, own, dict(outcomes))] = (stage, own, page)
                    continue
                assert running, f"these wait for each other: {waiting}"
                for ended in wait(running, return_when=FIRST_COMPLETED).done:
                    stage, own, page = running.pop(ended)
                    outcomes[stage.name] = ended.result()
                    runner.counts.add(own.counts)
                    own.say(outcomes[stage.name].row(stage))
                    screen.end(page)
        except BaseException:  # Ctrl-C, or a fault in a stage
            runner.commands.interrupt()
            raise
    counts = runner.counts
    print("\n=== summary ===")
    for stage in stages:
        print(outcomes[stage.name].row(stage))
    print(f"{time.monotonic() - began:16.1f} s  in all")
    for name in runner.unsteady:
        print(f"UNSTEADY: failed, and passed when run again: {name}")
    print(f"{counts.passed} passed, {counts.failed} failed, {counts.skipped} skipped", flush=True)
    return 1 if counts.failed or "not run" in {each.word for each in outcomes.values()} else 0
