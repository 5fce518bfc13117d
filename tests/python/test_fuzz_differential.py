"""zeroxide and libzmq make the same of the same bytes; `tests/fuzz/differential.py` runs for longer."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = Path(__file__).parents[1] / "fuzz" / "differential.py"


def test_the_same_bytes_have_the_same_effect():
    pytest.importorskip("zmq", reason="compares with pyzmq")
    outcome = subprocess.run(
        [sys.executable, PROGRAM, "--runs", "300", "--seed", "1"],
        capture_output=True,
        text=True,
        timeout=300,
    )
    if "cannot compare" in outcome.stderr:
        pytest.skip(outcome.stderr.strip())
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    assert "same" in outcome.stdout
