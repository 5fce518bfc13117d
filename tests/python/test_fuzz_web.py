"""Changed requests over HTTP break no promise of the parsers; `tests/fuzz/web.py` runs for longer."""

import runpy
from pathlib import Path


def test_changed_requests_break_no_promise():
    program = Path(__file__).parents[1] / "fuzz" / "web.py"
    runs, inputs, reached = runpy.run_path(str(program))["fuzz"](1, runs=3000)
    assert runs == 3000
    assert inputs > 20, "changes reach new code"
    assert reached > 150
