"""Collects the cells of the matrix of transports, patterns and peers, from tests that are marked `cell`.

The marker's words may name parameters of the test: `cell(transport="{transport}", types="{ours} {theirs}", peer="nng")`.
With `sp=True`, the sockets speak the scalability protocols. `tools/combinations.py` prints what was collected.
"""

import json
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "cells"


class Cells:
    """The plugin: one file for each file of tests that has run."""

    def __init__(self) -> None:
        self._cells: dict[Path, list[dict[str, Any]]] = {}

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        if report.when == "call" or report.failed:
            for marker in item.iter_markers("cell"):
                self._add(item, marker, report)
        return report

    def _add(self, item: pytest.Item, marker: pytest.Mark, report: pytest.TestReport) -> None:
        parameters = getattr(getattr(item, "callspec", None), "params", {})
        words = {
            name: word.format(**parameters) if isinstance(word, str) else word
            for name, word in marker.kwargs.items()
        }
        if not report.skipped:
            self._cells.setdefault(item.path, []).append({**words, "passed": report.passed})

    def pytest_sessionfinish(self) -> None:
        for path, cells in self._cells.items():
            FOLDER.mkdir(parents=True, exist_ok=True)
            name = path.relative_to(ROOT).as_posix()
            content = json.dumps({"file": name, "cells": cells}, indent=1)
            (FOLDER / f"{path.stem}.json").write_text(content)
