"""The demo, from end to end at full speed, and a check that can fail."""

import copy
import io
import os
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from xml.etree import ElementTree

import headless
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOT = ROOT / "build" / "demo" / "run.png"


@pytest.fixture(scope="module")
def demo():
    """The demo's modules, which are not an installed package."""
    sys.path.insert(0, str(ROOT))
    try:
        from examples.demo import __main__, flights, picture, state, view

        yield {
            "main": __main__,
            "flights": flights,
            "picture": picture,
            "state": state,
            "view": view,
        }
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture(scope="module")
def expected(demo):
    return demo["flights"].expected()


@pytest.fixture
def watched():
    """Opens the demo's page while it runs, if there is a browser; returns the observed values."""
    seen = {}
    threads = []

    def watch(url):
        browser = headless.Browser()
        try:
            browser.open(url)
            chart = "return document.querySelector('#delays polyline')?.getAttribute('points')"
            seen["first"] = browser.until(chart, bool, timeout=280)
            seen["later"] = browser.until(chart, lambda now: now != seen["first"], timeout=280)
            verdict = "return document.querySelector('#verdict').textContent"
            seen["verdict"] = browser.until(verdict, bool, timeout=280)
            seen["kills"] = browser.run("return kills.length")
            SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
            browser.screenshot(SCREENSHOT)
        finally:
            browser.close()

    def start(url):
        if not headless.missing():
            threads.append(threading.Thread(target=watch, args=(url,), daemon=True))
            threads[0].start()

    def finish():
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive()
        return seen if threads else None

    return start, finish


@pytest.mark.timeout(900)  # two JVMs, one after the other, and perhaps a browser
def test_the_demo_is_exact(java, tmp_path, watched):
    watch, finish = watched
    command = [sys.executable, "-m", "examples.demo", "--seconds", "0", "--out", tmp_path]
    with subprocess.Popen(
        command,
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=os.environ | {"PYSPARK_PYTHON": sys.executable},
    ) as run:
        first = run.stdout.readline()
        assert first.startswith("live view  http://127.0.0.1:"), first + run.stdout.read()
        watch(first.split()[-1])
        output = run.stdout.read()
    assert run.returncode == 0, output[-3000:]
    assert output.splitlines()[-1] == "exact: 336,776 flights in, 336,776 flights out"
    assert "with SIGKILL" in output
    ElementTree.parse(tmp_path / "flights.svg")
    assert "exact: 336,776 flights in" in (tmp_path / "flights.html").read_text()
    seen = finish()
    if seen is None:
        pytest.skip(f"exact; but the page was not looked at: {headless.missing()}")
    assert seen["verdict"] == output.splitlines()[-1]
    assert seen["kills"] == 1


def test_the_data_has_the_known_totals(demo, expected):
    flights = demo["flights"]
    total = flights.total(expected.values())
    assert (total.flights, total.flights - total.departed) == (336_776, 8_255)
    by_airport = Counter()
    for (_, airport, _), delays in expected.items():
        by_airport[airport] += delays.flights
    assert by_airport == {"EWR": 120_835, "JFK": 111_279, "LGA": 104_662}
    assert f"{flights.by_carrier(expected)['UA', 'EWR'].mean:.2f}" == "12.52"
    assert flights.by_month(expected)["2013-07"].flights == 29_425


def test_the_check_finds_errors(demo, expected):
    compare = demo["main"].compare
    once = Counter(dict.fromkeys(expected, 1))
    assert compare(once, expected, expected) == []
    group = ("2013-07-04", "EWR", "UA")
    assert compare(once + Counter([group]), expected, expected) == [
        "2013-07-04 EWR UA is there 2 times"
    ]
    wrong = copy.deepcopy(expected)
    wrong[group].minutes += 1
    assert len(compare(once, wrong, expected)) == 1
    del wrong[group]
    (problem,) = compare(once, wrong, expected)
    assert problem.startswith("2013-07-04 EWR UA: None, should be Delays(flights=")


def test_groups_without_departures_are_shown(demo, tmp_path):
    flights = demo["flights"]
    answer = {
        ("2013-01-01", "EWR", "UA"): flights.Delays(3, 2, 1, 31),
        ("2013-02-01", "JFK", "XX"): flights.Delays(1, 0, 0, 0),
    }
    text = demo["view"].tables(answer, {"UA": "United & Co"})
    assert "4 flights; 2 of them have no departure time" in text
    demo["picture"].save(answer, {"UA": "United & Co"}, tmp_path / "picture.svg")
    ElementTree.parse(tmp_path / "picture.svg")


def test_the_view_in_a_terminal_and_without_one(demo):
    for is_tty in (True, False):
        out = io.StringIO()
        out.isatty = lambda is_tty=is_tty: is_tty
        view = demo["view"].View(out)
        state = demo["state"].State(date="2013-01-01", acked=5, total=10, read=3)
        view.show(state)
        state.kills.append(1.5)
        view.show(state, last=True)
        assert "2013-01-01" in out.getvalue()
        assert ("\x1b[" in out.getvalue()) == is_tty
        assert "lag 2" in out.getvalue()
