"""Changed requests over HTTP break no promise of the parsers; `tests/fuzz/web.py` runs for longer."""

import re
import subprocess
import sys
from pathlib import Path

PROGRAM = Path(__file__).parents[1] / "fuzz" / "web.py"


def test_the_corpus_and_changes_of_it_break_no_promise():
    # In a process of its own, whose memory and stack are limited.
    outcome = subprocess.run(
        [sys.executable, PROGRAM, "--runs", "3000", "--seed", "1"], capture_output=True, text=True
    )
    assert outcome.returncode == 0, outcome.stdout + outcome.stderr
    runs, pairs, inputs = map(int, re.findall(r"[0-9]+", outcome.stdout)[:3])
    assert runs == 3000
    assert inputs > 20, "changes reach new code"
    assert pairs > 150
