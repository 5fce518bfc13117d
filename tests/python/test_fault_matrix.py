"""The quick rows of the fault matrix (`tests/faults`), and the harness itself, on bindings that are broken on purpose."""

import dataclasses
import os
import re
from concurrent.futures import ThreadPoolExecutor

import pytest
from faults import __main__ as command
from faults import report
from faults.row import all_rows
from faults.runner import run

pytestmark = pytest.mark.zeroxide_only

ROWS = {name: row for name, row in all_rows().items() if row.quick}
# The rows that run at the same time.
AT_ONCE = 6


@pytest.fixture(scope="module")
def results(request):
    """The result of each row, as a future. Only the rows whose tests were selected run."""
    calls = [getattr(item, "callspec", None) for item in request.session.items]
    wanted = [call.params["name"] for call in calls if call and call.params.get("name") in ROWS]
    pool = ThreadPoolExecutor(AT_ONCE)
    yield {name: pool.submit(run, ROWS[name], "zeroxide", 1, False) for name in wanted}
    pool.shutdown(cancel_futures=True)


@pytest.mark.parametrize("name", ROWS)
def test_row(name, results):
    result = results[name].result()
    if result.outcome == "skip":
        pytest.skip(result.text)
    assert result.outcome == "pass", f"{result.text}\n{result.complaints}"


BROKEN = {
    "import os\ndef Context(): os.abort()\n": "SIGABRT",
    "import time\ndef Context(): time.sleep(1000)\n": "did not end within 2 s",
    "import time\ndef Context(): raise ValueError('no context today')\n": "no context today",
}


@pytest.mark.parametrize("source", BROKEN, ids=["dies", "hangs", "raises"])
def test_a_broken_binding_fails(source, tmp_path, monkeypatch, request):
    (tmp_path / "brokenmq.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    row = ROWS["term-with-messages-left"]
    # Only the one that hangs has to reach a limit, which starting the process may take on a busy machine.
    if "hangs" in request.node.callspec.id:
        row = dataclasses.replace(row, seconds=2)
    result = run(row, "brokenmq", 1, False)
    assert result.outcome == "fail" and BROKEN[source] in result.text, result


@pytest.mark.skipif(os.geteuid() != 0, reason="network namespaces need root")
def test_the_machines_of_a_row_that_is_killed_are_removed(machines):
    before = set(os.listdir("/run/netns"))
    row = dataclasses.replace(all_rows()["unplugged-cable"], seconds=2)
    assert run(row, "zeroxide", 1, False).outcome == "fail"
    # Other tests may have machines of their own meanwhile.
    named = [name for name in set(os.listdir("/run/netns")) - before if name.startswith("zx")]
    assert not [name for name in named if not os.path.exists(f"/proc/{name[2:].split('-')[0]}")]


def test_the_page_gets_the_table(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("before\n\n<!-- fault matrix -->\nold\n<!-- end -->\n\nafter\n")
    for _ in range(2):
        report.update(page, "| a | b |", seed=7)
    text = page.read_text()
    assert text.startswith("before\n\n<!-- fault matrix -->\n\nThe last full run: seed 7, Python")
    assert text.endswith("\n\n| a | b |\n\n<!-- end -->\n\nafter\n")


def test_the_command_reports_a_failure_of_zeroxide(tmp_path, monkeypatch, capsys):
    (tmp_path / "zeroxide.py").write_text("__version__ = '0'\ndef zmq_version(): return '0'\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    arguments = ["--only", "term-with", "--modules", "zeroxide", "--out", str(tmp_path / "out")]
    assert command.main(arguments) == 1
    assert "WRONG: zeroxide fails term-with-messages-left" in capsys.readouterr().out
    assert "✗" in (tmp_path / "out" / "matrix.md").read_text()
    assert '"outcome": "fail"' in (tmp_path / "out" / "matrix.json").read_text()


def test_the_command_names_rows_that_cannot_run(tmp_path, monkeypatch, capsys):
    source = "__version__ = '0'\ndef zmq_version(): return '0'\ndef has(_): return False\n"
    (tmp_path / "plainmq.py").write_text(source)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    assert command.main(["--only", "strangers-at-webs", "--modules", "plainmq"]) == 0
    output = capsys.readouterr().out
    assert "SKIPPED: strangers-at-websockets on plainmq: plainmq has no ws://" in output
    assert re.search(r"^0 passed, 0 failed, 1 skipped in \d+\.\ds$", output, re.MULTILINE)
