"""The demo's page in a browser, with invented flights."""

import json
import sys
import threading
import urllib.error
import urllib.request
from pathlib import Path

import headless
import pytest

ROOT = Path(__file__).resolve().parents[2]
SCREENSHOT = ROOT / "build" / "demo" / "page.png"


@pytest.fixture(scope="module")
def demo():
    sys.path.insert(0, str(ROOT))
    try:
        from examples.demo import flights, publisher, state, web

        yield {"flights": flights, "publisher": publisher, "state": state, "web": web}
    finally:
        sys.path.remove(str(ROOT))


@pytest.fixture
def view(demo):
    view = demo["web"].WebView()
    yield view
    view.close()


@pytest.fixture
def browser():
    if what := headless.missing():
        pytest.skip(what)
    browser = headless.Browser()
    yield browser
    browser.close()


def fill(demo, state, days):
    for day in days:
        for index, airport in enumerate(demo["flights"].AIRPORTS):
            delays = demo["flights"].Delays(100, 98, 20, 98 * (10 + index * 5 + day % 7))
            state.add_day(f"2013-{1 + day // 31:02}-{1 + day % 28:02}", airport, delays)


def events(stream, count):
    found = []
    while len(found) < count:
        line = stream.readline()
        if line.startswith(b"data: "):
            found.append(json.loads(line[6:]))
    return found


def test_a_page_gets_new_days_only(demo, view):
    state = demo["state"].State()
    fill(demo, state, range(3))
    view.show(state)
    with urllib.request.urlopen(view.url + "events", timeout=60) as stream:
        (first,) = events(stream, 1)
        assert len(first["days"]) == 9
        fill(demo, state, [3])
        state.acked, state.read = 500, 200
        view.show(state)
        (second,) = events(stream, 1)
        assert (len(second["days"]), second["lag"]) == (3, 300)
        assert second["days"][1] == [3, 1, 98 * 18, 98]


def test_there_is_one_page(view):
    with urllib.request.urlopen(view.url, timeout=60) as page:
        text = page.read().decode()
    assert "<title>Flights of 2013, live</title>" in text
    # The page loads nothing from elsewhere.
    assert "http" not in text and "import" not in text
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(view.url + "favicon.ico", timeout=60)


def test_the_page_of_a_finished_run_needs_no_server(demo, browser, tmp_path):
    state = demo["state"].State(sent=5, acked=5, read=5, final=5, phase=demo["state"].Phase.CHECKED)
    fill(demo, state, range(9))
    state.tick()
    state.kills.append(0.0)
    state.exact, state.verdict = True, "exact: 5 flights in </script>"
    page = tmp_path / "finished.html"
    page.write_text(demo["web"].finished_page(state))
    browser.open(page.as_uri())
    assert browser.text("#verdict") == state.verdict
    assert browser.text("#final") == "5"
    assert browser.text("#lags .killed") == "SIGKILL"
    assert browser.run("return document.querySelectorAll('#delays polyline').length") == 3


def test_the_publisher_keeps_pace_with_the_query(demo):
    ahead = demo["publisher"].AHEAD
    pace = demo["publisher"].Pace()
    assert not pace.allows(0)  # the query is not ready
    pace.heard("0")
    assert pace.allows(ahead - 1) and not pace.allows(ahead)
    thread = threading.Thread(target=pace.wait, args=(ahead,), daemon=True)
    thread.start()
    pace.heard("10")
    thread.join(60)
    assert not thread.is_alive()


def test_rates(demo):
    rate = demo["state"].Rate()
    rate.update(0.0, 0)
    assert rate.per_second() == 0
    for second in range(1, 10):
        rate.update(float(second), second * 1000)
    assert rate.per_second() == 1000
    rate.update(20.0, 9000)
    rate.update(22.0, 9000)
    assert rate.per_second() == 0


def test_the_chart_moves_in_a_browser(demo, view, browser):
    state = demo["state"].State()
    browser.open(view.url)
    chart = "return document.querySelectorAll('#delays polyline')[2]?.getAttribute('points') || ''"
    drawn = ""
    for step in range(10):
        fill(demo, state, range(step * 30, step * 30 + 30))
        state.text, state.date = "batch after batch", f"2013-{step + 1:02}-28"
        state.sent = state.acked = 30_000 * (step + 1)
        state.read = 25_000 * (step + 1)
        state.tick()
        if step == 5:
            state.kills.append(state.elapsed)
        view.show(state)
        drawn = browser.until(chart, lambda points, before=drawn: len(points) > len(before))
    assert browser.text("#lag") == "50,000"
    assert browser.text("#acked") == "300,000"
    assert browser.text("#date") == "2013-10-28"
    # Flights and flights per second have an axis each, and the kill is marked on both.
    for figure, lines in (("#lags", 1), ("#rates", 2)):
        count = f"return document.querySelectorAll('{figure} polyline').length"
        assert browser.run(count) == lines
        assert browser.text(f"{figure} .killed") == "SIGKILL"
        label = f"return document.querySelector('{figure}').getAttribute('aria-label')"
        assert "now" in browser.run(label)

    phase = demo["state"].Phase
    state.phase, state.text = phase.KILLED, "killed"
    view.show(state)
    browser.until_equal("return document.querySelector('#path').className", "down")
    state.phase, state.exact, state.verdict = phase.CHECKED, True, "exact: 336,776 flights"
    view.show(state)
    browser.until_equal("return document.querySelector('#verdict').className", "exact")
    assert browser.text("#verdict") == "exact: 336,776 flights"
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    browser.screenshot(SCREENSHOT)
    # A page that is opened now has charts of the whole run.
    browser.open(view.url)
    assert browser.text("#verdict") == "exact: 336,776 flights"
    points = (
        "return document.querySelector('#lags polyline').getAttribute('points').split(' ').length"
    )
    assert browser.run(points) >= 10
    # Then the server ends, and the page does not change.
    view.close()
    assert browser.run("return document.querySelector('#verdict').hidden") is False


@pytest.mark.parametrize("exact", [True, False])
def test_the_page_is_accessible(demo, browser, tmp_path, exact):
    pytest.importorskip("axe_core_python")
    state = demo["state"].State(sent=5, acked=5, read=5, final=5, phase=demo["state"].Phase.CHECKED)
    fill(demo, state, range(300))
    state.tick()
    state.kills.append(0.0)
    state.exact, state.verdict = exact, "the verdict"
    page = tmp_path / "finished.html"
    page.write_text(demo["web"].finished_page(state))
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    for look in browser.looks():
        browser.open(page.as_uri())
        browser.until_equal("return document.querySelectorAll('#delays polyline').length", 3)
        browser.screenshot(SCREENSHOT.with_name(f"page-{look}.png"))
        assert browser.faults() == [], look
