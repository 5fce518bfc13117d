"""The simulation of pipelines that grow."""

import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.zeroxide_only

TOOL = Path(__file__).parents[2] / "tools" / "growth.py"


def test_the_table():
    command = [sys.executable, str(TOOL), "--seconds", "0.2"]
    table = subprocess.check_output(command, text=True).splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in table[2:]]
    last = {(row[0], row[1]): row[-1] for row in rows}
    # Adding a collector is always a solution.
    assert last["100,000", "1"] == "the collector's thread"
    assert last["100,000", "10"] == "nothing"
    assert len(last) == 8
