"""A page in a real browser as a peer over ws and wss: ZWS 2.0 without a mechanism, and the scalability protocols."""

import json
import sys
from pathlib import Path

import pytest
from certificates import Authority, fingerprint
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
    return pytest.mark.cell(transport="{transport}", types=types, peer="Chromium", **more)


@pytest.fixture(params=["ws", "wss"])
def transport(request):
    return request.param


@pytest.fixture(scope="module")
def identity(tmp_path_factory):
    """A certificate that no browser knows, and its key."""
    authority = Authority(tmp_path_factory.mktemp("certificates"))
    return authority.issue("server", "IP:127.0.0.1")


@pytest.fixture(scope="module")
def browser(identity):
    """A browser that accepts this certificate."""
    accepted = fingerprint(identity[0])
    browser = headless.Browser(f"--ignore-certificate-errors-spki-list={accepted}")
    yield browser
    browser.close()


@pytest.fixture
def page(browser):
    browser.open(PAGE)
    return browser


@pytest.fixture
def bound(context, transport, identity):
    """Makes a bound socket; returns it with a string of JavaScript for its address."""

    def make(kind, **options):
        socket = context.socket(kind)
        socket.tls_certificate, socket.tls_key = map(bytes, identity)
        for name, value in options.items():
            setattr(socket, name, value)
        socket.bind(f"{transport}://127.0.0.1:*/feed")
        return socket, json.dumps(socket.last_endpoint.decode())

    return make


def until(page, script, expected):
    page.until_equal(f"return {script}", expected, PATIENCE)


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
    # Chromium sends messages above 128 KiB in fragments.
    big = "x" * 1_000_000
    for number, body in enumerate(("one", "two", big)):
        page.run(f"peer.request({json.dumps(body)})")
        assert rep.recv_string() == body
        rep.send_string(body.upper())
        until(page, "peer.inbox.length", number + 1)
    assert page.run("return peer.inbox[1]") == "/TWO"
    assert page.run("return peer.inbox[2].length") == 1 + len(big)


def test_a_page_that_sends_too_much_is_disconnected(zmq, page, bound):
    pull, url = bound(zmq.PULL, maxmsgsize=200_000)
    page.run(f"peer = zws({url})")
    until(page, "peer.isReady()", True)
    page.run("peer.send('x'.repeat(200_000))")
    assert len(pull.recv()) == 200_000
    page.run("peer.send('x'.repeat(200_001))")
    until(page, "peer.socket.ended", 1006)
    assert pull.stats()["dropped"]["too_large"] == 1


def test_a_page_answers_heartbeats(zmq, page, bound):
    pull, url = bound(zmq.PULL, heartbeat_ivl=50, heartbeat_timeout=2000)
    with pull.monitor_events(zmq.EVENT_DISCONNECTED, timeout=3000) as events:
        page.run(f"peer = zws({url})")
        until(page, "peer.isReady()", True)
        assert next(events, None) is None
    page.run("peer.send('still here')")
    assert pull.recv() == b"still here"


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
