"""The results of type checkers for programs: `tests/typed`, against the installed package, as users
have it."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = [pytest.mark.zeroxide_only, pytest.mark.slow]

PROGRAMS = Path(__file__).parents[1] / "typed"


def run(*command: str, cwd: Path) -> None:
    result = subprocess.run(command, capture_output=True, text=True, cwd=cwd, check=False)
    assert result.returncode == 0, result.stdout + result.stderr


def test_mypy_agrees_with_programs_and_finds_mistakes(tmp_path):
    pytest.importorskip("mypy")
    programs = sorted(map(str, PROGRAMS.glob("*.py")))
    run(
        *(
            sys.executable,
            "-m",
            "mypy",
            "--strict",
            "--no-incremental",
            "--config-file=",
            *programs,
        ),
        cwd=tmp_path,
    )


def test_pyright_agrees_with_programs_and_finds_mistakes(tmp_path):
    pytest.importorskip("pyright")
    run(
        *(sys.executable, "-m", "pyright", "--project", str(PROGRAMS)),
        *("--pythonpath", sys.executable),
        cwd=tmp_path,
    )
