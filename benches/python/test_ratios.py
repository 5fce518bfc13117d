"""No less than pyzmq in any row of a finished run: `pytest benches/python --results build/bench/results.json`."""

from typing import Any

from report import NO_LESS, Row, line


def test_no_less_than_the_rival(row: dict[str, Any]) -> None:
    measured = Row(**row)
    assert measured.ratio is not None, f"a side failed: {line(measured)}"
    assert measured.no_less, f"below {NO_LESS}x: {line(measured)}"
