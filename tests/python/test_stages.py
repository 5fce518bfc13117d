"""What `make test` sums up is what the runners said."""

import importlib.util
import sys
from pathlib import Path

import pytest

spec = importlib.util.spec_from_file_location(
    "stages", Path(__file__).parents[2] / "tools" / "stages.py"
)
assert spec is not None and spec.loader is not None
stages = importlib.util.module_from_spec(spec)
sys.modules["stages"] = stages  # dataclasses look their module up
spec.loader.exec_module(stages)


@pytest.mark.parametrize(
    ("line", "counts"),
    [
        (
            "test result: ok. 5 passed; 0 failed; 1 ignored; 0 measured; 2 filtered out; finished in 0.1s",
            (5, 0, 1),
        ),
        (
            "test result: FAILED. 1 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out",
            (1, 2, 0),
        ),
        (
            "====== 3 failed, 12 passed, 1 skipped, 2 deselected in 65.31s (0:01:05) ======",
            (12, 3, 1),
        ),
        ("4 passed, 1 error in 0.79s", (4, 1, 0)),
        ("    Finished `quick` profile [optimized] target(s) in 9.60s", (0, 0, 0)),
        ("the server passed 3 messages", (0, 0, 0)),
    ],
)
def test_closing_lines_are_counted(line: str, counts: tuple[int, int, int]) -> None:
    seen = stages.Counts()
    seen.read(line)
    assert (seen.passed, seen.failed, seen.skipped) == counts


def stage(name: str, *needs: str, fail: bool = False, skip: str | None = None) -> object:
    def run(runner: object) -> None:
        if fail:
            raise stages.Failed("as it should")

    return stages.Stage(name, run, needs, lambda: skip)


def test_a_failure_fails_the_run_and_stops_only_what_stands_on_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    plan = [
        stage("ground", fail=True),
        stage("above", "ground"),
        stage("missing", skip="no tool"),
        stage("on what is missing", "missing"),
        stage("apart"),
    ]
    assert stages.run(plan, stages.Runner()) == 1
    lines = capsys.readouterr().out.splitlines()
    summary = lines[lines.index("=== summary ===") + 1 :]
    assert [line.split()[0] for line in summary[:5]] == [
        "FAILED",
        "not",
        "skipped",
        "skipped",
        "ok",
    ]
    assert summary[-1] == "0 passed, 1 failed, 2 skipped"


def test_a_command_that_fails_is_a_failure() -> None:
    stages.Runner().sh(sys.executable, "-c", "pass")
    with pytest.raises(stages.Failed, match="exit code 3"):
        stages.Runner().sh(sys.executable, "-c", "raise SystemExit(3)")


def test_what_a_command_leaves_running_does_not_hold_the_run_up() -> None:
    """A child of the command holds the output open; it goes when the command has ended."""
    leave = "import subprocess, sys; subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(600)'])"
    stages.Runner().sh(sys.executable, "-c", leave)
