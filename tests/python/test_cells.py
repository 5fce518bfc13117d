"""The table of combinations shows what the last run of each test has shown, and nothing older."""

import importlib
import json
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
sys.path.insert(0, str(HERE.parents[1] / "tools"))
combinations = importlib.import_module("combinations")

CONFTEST = f"""
import sys
from pathlib import Path

sys.path.insert(0, {str(HERE)!r})
from cells import Cells

def pytest_configure(config):
    config.addinivalue_line("markers", "cell: a cell")
    config.pluginmanager.register(Cells(Path(__file__).with_name("outcomes")))
"""
TESTS = """
import os
import pytest

HOW = os.environ["HOW"]
if HOW == "no import":
    pytest.importorskip("no_such_module")

@pytest.mark.cell(transport="{transport}", types="REQ REP", peer="nng")
@pytest.mark.parametrize("transport", ["tcp", "ws"])
def test_one(transport):
    if HOW == "killed":
        os._exit(1)
    if HOW == "skipped":
        pytest.skip("no peer here")
    assert HOW == "passed"
"""
OTHER = """

@pytest.mark.cell(transport="tcp", types="BUS", peer="nng")
def test_other():
    pass
"""
ONE, OTHER_ROW = ("tcp", "REQ REP"), ("tcp", "BUS")


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs tests in another process, and returns the sign of each place of the table."""
    monkeypatch.setattr(combinations, "ROOT", tmp_path)
    (tmp_path / "conftest.py").write_text(CONFTEST)
    (tmp_path / "pytest.ini").write_text("[pytest]\n")

    def run(how, *selection, tests=TESTS + OTHER):
        (tmp_path / "test_it.py").write_text(tests)
        monkeypatch.setenv("HOW", how)
        monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
        command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]
        subprocess.run([*command, *selection], cwd=tmp_path, stdout=subprocess.DEVNULL, check=False)
        table = combinations.collected(tmp_path / "outcomes")
        return {place: peers["nng"] for place, peers in table.items()}

    return run


def test_skipped_tests_do_not_keep_an_older_result(run) -> None:
    passed = {ONE: "", ("ws", "REQ REP"): "", OTHER_ROW: ""}
    assert run("passed") == passed
    assert run("skipped") == {ONE: "?", ("ws", "REQ REP"): "?", OTHER_ROW: ""}
    assert run("passed") == passed
    assert run("no import") == dict.fromkeys(passed, "?")


def test_a_killed_run_does_not_keep_an_older_result(run) -> None:
    run("passed")
    assert set(run("killed").values()) == {"?"}


@pytest.mark.parametrize("selection", [["-k", "tcp"], ["test_it.py::test_one[tcp]"]], ids="".join)
def test_tests_that_are_not_selected_keep_their_result(run, selection) -> None:
    run("passed")
    assert run("failed", *selection) == {ONE: "!", ("ws", "REQ REP"): "", OTHER_ROW: ""}


def test_a_test_that_is_gone_has_no_result(run) -> None:
    run("passed")
    assert run("passed", tests=TESTS) == {ONE: "", ("ws", "REQ REP"): ""}


def test_one_test_that_passed_is_enough_and_one_that_failed_too_many(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(combinations, "ROOT", tmp_path)
    (tmp_path / "test_it.py").touch()

    def table(*outcomes):
        cells = [{"transport": "tcp", "types": "REQ REP", "peer": "nng"}]
        tests = {str(n): {"outcome": one, "cells": cells} for n, one in enumerate(outcomes)}
        content = {"file": "test_it.py", "tests": tests}
        (tmp_path / "it.json").write_text(json.dumps(content))
        text = combinations.drawn(combinations.collected(tmp_path))
        return text.splitlines()[1].split()[1]

    assert table("passed", "skipped") == "n"
    assert table("skipped", "not run") == "n?"
    assert table("passed", "failed", "skipped") == "n!"
