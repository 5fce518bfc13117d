"""The page of a collector in a browser."""

import json
import time
import urllib.request
from pathlib import Path

import headless
import pytest

from zeroxide.collector.http import HttpServer
from zeroxide.pipeline import Client, Collector, Producer

SCREENSHOT = Path(__file__).resolve().parents[2] / "build" / "collector" / "page.png"
TOKEN = "a token for this test"


@pytest.fixture
def browser():
    if what := headless.missing():
        pytest.skip(what)
    browser = headless.Browser()
    yield browser
    browser.close()


@pytest.fixture
def collector(tmp_path):
    with Collector(tmp_path / "log") as collector:
        yield collector


def served(collector, **options):
    server = HttpServer(collector, ("127.0.0.1", 0), **options)
    server.start()
    return server


def test_the_page_shows_what_the_collector_does(collector, browser):
    server = served(collector)
    with Producer(collector.endpoint, name="p") as producer:
        producer.send_batch(b"row" for _ in range(1000))
        producer.flush(60)
        with Client(collector.endpoint) as client:
            client.commit("<b>reports</b>", 400)
        browser.open(server.endpoint + "/")
        state = "return document.querySelector('#state').className"
        browser.until_equal(state, "fine")
        assert "rows in the log1,000" in browser.text("#facts")
        # A name is shown as text and never becomes markup.
        assert browser.text("#groups") == "<b>reports</b>400600"
        producer.send_batch(b"row" for _ in range(1000))
        producer.flush(60)
        browser.until("return document.querySelector('#facts').textContent", lambda t: "2,000" in t)
        charts = "return document.querySelectorAll('svg polyline').length"
        assert browser.run(charts) == 2
        SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
        browser.screenshot(SCREENSHOT)
    server.close()
    browser.until_equal(state, "wrong")
    assert "does not answer" in browser.text("#state")


# Names and values that would be markup, or would turn or hide the text around them.
HOSTILE = "<b id=evil>&amp;\u202e\0"
SHOWN = "<b id=evil>&amp;\\u{202e}\\u{0}"


def test_the_page_shows_rows_that_a_group_has_missed(tmp_path, browser):
    small = {"segment_bytes": 4096, "retention_bytes": 8192}
    with Collector(tmp_path / "trimmed", **small) as collector:
        collector.append([bytes(1000)] * 5)
        with Client(collector.endpoint) as client:
            client.commit("slow", 1)
            for _ in range(50):
                collector.append([bytes(1000)])
            deadline = time.monotonic() + 60
            while client.info().bytes > small["retention_bytes"] and time.monotonic() < deadline:
                time.sleep(0.05)
            info = client.info()
        server = served(collector)
        browser.open(server.endpoint + "/")
        shown = f"slow1{info.latest - info.earliest}, and {info.earliest - 1} missed"
        browser.until("return document.querySelector('#groups').textContent", shown.__eq__)
        server.close()


def test_the_page_shows_producers_topics_and_the_last_rows(collector, browser):
    server = served(collector)
    with Producer(collector.endpoint, name="<i>p</i>") as producer:
        producer.send(HOSTILE, topic=f"room/{HOSTILE}", key=HOSTILE)
        producer.send(b"\xff" * 300, topic="binary")
        producer.flush(60)
        browser.open(server.endpoint + "/")
        producers = "return document.querySelector('#producers').innerText"
        browser.until(producers, lambda text: "<i>p</i>\t1\tup" in text)
        assert f"room/{SHOWN}\t1\t" in browser.run(
            "return document.querySelector('#topics').innerText"
        )
    browser.until(producers, lambda text: "gone" in text)
    looked = "return document.querySelector('#looked').textContent"
    browser.run("document.querySelector('#look').requestSubmit()")
    browser.until(looked, lambda text: text.startswith("The last 2 rows of offsets 0 to 2 "))
    values = "return [...document.querySelectorAll('#rows code')].map(one => one.innerText)"
    assert browser.run(values) == ["0x" + "ff" * 256 + " … and 44 bytes more", SHOWN]
    assert "producer <i>p</i>, sequence number 1" in browser.text("#rows")
    assert f"key {SHOWN}" in browser.text("#rows")
    choose = "document.querySelector('#topic').value = {}; document.querySelector('#look').requestSubmit()"
    browser.run(choose.format(json.dumps(f"room/{HOSTILE}")))
    browser.until_equal(values, [SHOWN])
    browser.run(choose.format("'no such topic'"))
    browser.until_equal(looked, "No such row in offsets 0 to 2.")
    assert browser.run("return document.querySelector('#evil')") is None
    assert browser.run("return document.querySelectorAll('i, b').length") == 0
    server.close()


def test_the_page_stays_small(collector, browser):
    server = served(collector)
    collector.append([{"value": b"v", "topic": f"topic {number}"} for number in range(1500)])
    with Client(collector.endpoint) as client:
        for number in range(300):
            client.commit(f"group {number}", 0)
    browser.open(server.endpoint + "/")
    count = "return document.querySelectorAll('#{} tr').length"
    browser.until_equal(count.format("topics"), 101)
    assert browser.run(count.format("groups")) == 101
    assert "and 200 more groups" in browser.text("#groups")
    assert "all other topics1,400" in browser.text("#topics")
    server.close()


def test_every_control_and_table_of_the_page_has_a_name(collector, browser):
    server = served(collector, token=TOKEN)
    browser.open(server.endpoint + "/")
    unnamed = """
        const named = one => one.getAttribute("aria-label") || one.labels?.length
            || document.getElementById(one.getAttribute("aria-labelledby"))?.textContent
            || (one.tagName === "BUTTON" && one.textContent);
        return [...document.querySelectorAll("input, button, table, ol")]
            .filter(one => !named(one)).map(one => one.outerHTML)"""
    assert browser.run(unnamed) == []
    assert browser.run("return document.querySelectorAll('th:not([scope])').length") == 0
    server.close()


def test_the_page_asks_for_the_token(collector, browser):
    server = served(collector, token=TOKEN)
    browser.open(server.endpoint + "/")
    form = "return document.querySelector('#login').clientHeight > 0"
    browser.until("return document.querySelector('#state').textContent", lambda t: "token" in t)
    assert browser.run(form) is True
    browser.run(
        f"document.querySelector('#token').value = {json.dumps(TOKEN)};"
        "document.querySelector('#login').requestSubmit()"
    )
    browser.until_equal("return document.querySelector('#state').className", "fine")
    assert browser.run(form) is False
    # Rows need the token, too.
    collector.append([b"a row"])
    browser.run("document.querySelector('#look').requestSubmit()")
    browser.until("return document.querySelector('#rows').textContent", lambda t: "a row" in t)
    server.close()


def test_the_page_loads_nothing_from_elsewhere(collector):
    server = served(collector, token=TOKEN)
    with urllib.request.urlopen(server.endpoint + "/", timeout=60) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "http:" not in (text := answer.read().decode()) and "https:" not in text
    server.close()


def test_the_page_is_accessible(collector, browser):
    pytest.importorskip("axe_core_python")
    server = served(collector)
    with Producer(collector.endpoint, name="p") as producer, Client(collector.endpoint) as client:
        producer.send_batch([b"row"] * 1000, topic="room/kitchen")
        producer.flush(60)
        client.commit("reports", 400)
        for look in browser.looks():
            browser.open(server.endpoint + "/")
            browser.until_equal("return document.querySelectorAll('svg polyline').length", 2)
            browser.run("document.querySelector('#look button').click()")
            browser.until("return document.querySelectorAll('#rows li').length", bool)
            browser.screenshot(SCREENSHOT.with_name(f"page-{look}.png"))
            assert browser.faults() == [], look
    server.close()
    browser.until_equal("return document.querySelector('#state').className", "wrong")
    assert browser.faults() == []
