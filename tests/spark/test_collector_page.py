"""The page of a collector in a browser."""

import json
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
        browser.until(state, "fine".__eq__)
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
    browser.until(state, "wrong".__eq__)
    assert "does not answer" in browser.text("#state")


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
    browser.until("return document.querySelector('#state').className", "fine".__eq__)
    assert browser.run(form) is False
    server.close()


def test_the_page_loads_nothing_from_elsewhere(collector):
    server = served(collector, token=TOKEN)
    with urllib.request.urlopen(server.endpoint + "/", timeout=60) as answer:
        policy = answer.headers["Content-Security-Policy"]
        assert "default-src 'none'" in policy and "frame-ancestors 'none'" in policy
        assert "http:" not in (text := answer.read().decode()) and "https:" not in text
    server.close()
