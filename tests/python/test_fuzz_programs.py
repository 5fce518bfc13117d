"""Random programs do the same with zeroxide and with libzmq; `tests/fuzz/programs.py` runs more of them."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "fuzz" / "programs.py"


def test_random_programs_have_the_same_results():
    pytest.importorskip("zmq", reason="compares with pyzmq")
    outcome = subprocess.run(
        [sys.executable, PROGRAM, "--runs", "50", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "same" in outcome.stdout
