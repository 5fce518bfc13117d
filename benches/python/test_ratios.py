"""No less than pyzmq in any row of a finished run, and as much more as a row asks for.

`pytest benches/python --results build/bench/results.json`
"""

from typing import Any

from report import Row, line


def test_no_less_than_the_rival(row: dict[str, Any]) -> None:
    measured = Row(**row)
    assert measured.ratio is not None, f"a side failed: {line(measured)}"
    assert measured.no_less, f"below {measured.least}x: {line(measured)}"
