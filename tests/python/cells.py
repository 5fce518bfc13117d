"""Keeps the last outcome of each test that is marked `cell`: the cells of the matrix of transports, patterns and peers.

The marker's words may name parameters of the test: `cell(transport="{transport}", types="{ours} {theirs}", peer="nng")`.
With `sp=True`, the sockets speak the scalability protocols. `tools/combinations.py` prints what was kept.
"""

import json
from collections import defaultdict
from collections.abc import Generator
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "build" / "combinations"


class Cells:
    """The plugin: one file for each file of tests.

    A run changes the outcomes of the tests that it selects, also where it skips them or ends before them. Other tests keep
    the outcomes of earlier runs, so a run with `-k` loses none.
    """

    def __init__(self, folder: Path = FOLDER) -> None:
        self._folder = folder
        # The tests of each file, by their ids.
        self._files: dict[str, dict[str, Any]] = {}
        self._collected: dict[str, set[str]] = defaultdict(set)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        # The tests of a file that cannot be imported here are not known, except from earlier runs.
        if not report.passed and report.nodeid.endswith(".py"):
            for test in self._tests(report.nodeid).values():
                test["outcome"] = report.outcome

    @pytest.hookimpl(tryfirst=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        """Notes the tests that exist, before some are deselected."""
        for item in items:
            self._collected[file_of(item)].add(item.nodeid)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if collects_whole_files(session.config):
            for file, ids in self._collected.items():
                tests = self._tests(file)
                self._files[file] = {id: test for id, test in tests.items() if id in ids}
        for item in session.items:
            if cells := cells_of(item):
                test = {"outcome": "not run", "cells": cells}
                self._tests(file_of(item))[item.nodeid] = test
            else:
                self._tests(file_of(item)).pop(item.nodeid, None)
        # The run may be killed.
        self._write()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, item: pytest.Item
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        report = yield
        test = self._tests(file_of(item)).get(item.nodeid)
        if test is not None and (report.when == "call" or not report.passed):
            test["outcome"] = report.outcome
        return report

    def pytest_sessionfinish(self) -> None:
        self._write()

    def _tests(self, file: str) -> dict[str, Any]:
        if file not in self._files:
            path = self._path(file)
            self._files[file] = json.loads(path.read_text())["tests"] if path.exists() else {}
        return self._files[file]

    def _path(self, file: str) -> Path:
        return self._folder / (file.removesuffix(".py").replace("/", "-") + ".json")

    def _write(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        for file, tests in self._files.items():
            if tests:
                content = json.dumps({"file": file, "tests": tests}, indent=1)
                self._path(file).write_text(content)
            else:
                self._path(file).unlink(missing_ok=True)


def file_of(item: pytest.Item) -> str:
    """The file of a test, as its id names it."""
    return item.nodeid.partition("::")[0]


def cells_of(item: pytest.Item) -> list[dict[str, Any]]:
    """The cells of a test, with its parameters in their words."""
    parameters = getattr(getattr(item, "callspec", None), "params", {})
    return [
        {
            name: word.format(**parameters) if isinstance(word, str) else word
            for name, word in marker.kwargs.items()
        }
        for marker in item.iter_markers("cell")
    ]


def collects_whole_files(config: pytest.Config) -> bool:
    """Whether a test that is not collected no longer exists."""
    return not config.getoption("lf", False) and not any("::" in word for word in config.args)
