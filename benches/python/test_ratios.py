"""No less than pyzmq in any row of a finished run. Targets beyond that are marked in the table, reached or not.

`pytest benches/python --results build/bench/results.json`
"""

from typing import Any

from report import Row, line


def test_no_less_than_pyzmq(row: dict[str, Any]) -> None:
    measured = Row(**row)
    if measured.bound is not None:
        # The table shows whether zeroxide's own bounds are met. Only lost messages fail the test.
        assert measured.bound > 0 or not measured.missed, line(measured)
        return
    rival = measured.rivals[0]
    assert measured.ratio(rival) is not None, f"a side failed: {line(measured)}"
    assert measured.no_less_than(rival), line(measured)
