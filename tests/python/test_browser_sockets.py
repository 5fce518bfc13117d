"""A page in a real browser as a peer over ws: ZWS 2.0 without a mechanism, and the scalability protocols."""

import json
import sys
from pathlib import Path

import pytest
from support import PATIENCE

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests" / "browser"))
import headless  # noqa: E402

pytestmark = [
    pytest.mark.zeroxide_only,
    pytest.mark.skipif(headless.missing() is not None, reason=headless.missing() or ""),
    pytest.mark.timeout(120),
]

PAGE = (ROOT / "tests" / "browser" / "sockets.html").as_uri()


def a_cell(types, **more):
    return pytest.mark.cell(transport="ws", types=types, peer="Chromium", **more)


@pytest.fixture(scope="module")
def browser():
    browser = headless.Browser()
    yield browser
    browser.close()


@pytest.fixture
def page(browser):
    browser.open(PAGE)
    return browser


@pytest.fixture
def bound(context):
    """Makes a bound socket; returns it with a string of JavaScript for its address."""

    def make(kind, **options):
        socket = context.socket(kind)
        for name, value in options.items():
            setattr(socket, name, value)
        socket.bind("ws://127.0.0.1:*/feed")
        return socket, json.dumps(socket.last_endpoint.decode())

    return make


def until(page, script, expected):
    page.until(f"return {script}", expected.__eq__, PATIENCE)


@a_cell("PUB SUB")
def test_a_page_subscribes(zmq, page, bound):
    publisher, url = bound(zmq.PUB)
    page.run(f"peer = zws({url})")
    until(page, "peer.isReady()", True)
    page.run("peer.subscribe('a')")
    publisher.wait_subscribed(b"a", timeout=PATIENCE * 1000)
    for parts in ([b"b"], [b"a1"], [b"a2", b"second", b""]):
        publisher.send_multipart(parts)
    until(page, "peer.inbox", ["a1", "a2/second/"])
    page.run("peer.socket.close(1000)")
    until(page, "peer.socket.ended", 1000)


@a_cell("REP REQ")
def test_a_page_asks(zmq, page, bound):
    rep, url = bound(zmq.REP)
    page.run(f"peer = zws({url})")
    until(page, "peer.isReady()", True)
    # Chromium sends messages above 128 KiB in fragments, which ZWS does not allow.
    big = "x" * 130_000
    for number, body in enumerate(("one", "two", big)):
        page.run(f"peer.request({json.dumps(body)})")
        assert rep.recv_string() == body
        rep.send_string(body.upper())
        until(page, "peer.inbox.length", number + 1)
    assert page.run("return peer.inbox[1]") == "/TWO"
    assert page.run("return peer.inbox[2].length") == 1 + len(big)


@a_cell("REP REQ", sp=True)
def test_a_page_asks_over_sp(zmq, page, bound):
    rep, url = bound(zmq.REP, wire_protocol=zmq.SP)
    page.run(f"peer = sp({url}, 'rep')")
    until(page, "peer.socket.readyState", 1)
    page.run("peer.request(7, 'question')")
    assert rep.recv() == b"question"
    rep.send(b"answer")
    until(page, "peer.replies()", [[7, "answer"]])


@a_cell("PUB SUB", sp=True)
def test_a_page_subscribes_over_sp(zmq, page, bound):
    publisher, url = bound(zmq.PUB, wire_protocol=zmq.SP)
    page.run(f"peer = sp({url}, 'pub')")
    publisher.wait_connected(timeout=PATIENCE * 1000)
    publisher.send(b"news")
    until(page, "peer.texts()", ["news"])


@a_cell("PAIR PAIR", sp=True)
def test_a_page_is_one_of_a_pair(zmq, page, bound):
    pair, url = bound(zmq.PAIR, wire_protocol=zmq.SP)
    page.run(f"peer = sp({url}, 'pair')")
    pair.wait_connected(timeout=PATIENCE * 1000)
    for size in (0, 1, 65_536, 300_000):
        body = b"x" * size
        pair.send(body)
        until(page, "peer.inbox.length", 1)
        until(page, "peer.inbox[0].length", size)
        page.run("peer.socket.send(peer.inbox.shift())")
        assert pair.recv() == body


def test_a_page_that_offers_something_else_gets_a_reason(zmq, page, bound):
    rep, url = bound(zmq.REP)
    with rep.monitor_events(
        zmq.EVENT_HANDSHAKE_FAILED_NO_DETAIL, timeout=PATIENCE * 1000
    ) as events:
        page.run(f"peer = open({url}, 'soap', () => {{}}, () => {{}})")
        assert 'offers the protocols "soap", expected ZWS2.0/NULL' in next(events).reason
    until(page, "peer.ended", 1006)
