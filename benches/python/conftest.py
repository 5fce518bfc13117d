import json
from pathlib import Path

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--results", type=Path, help="results.json of a run of bench.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "row" in metafunc.fixturenames:
        path = metafunc.config.getoption("--results")
        rows = json.loads(path.read_text())["rows"] if path else []
        metafunc.parametrize("row", rows, ids=[f"{row['group']}: {row['name']}" for row in rows])
