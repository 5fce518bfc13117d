"""The page of the example `zinc` in a real browser: two of them edit one document while its host is killed."""

import http.client
import json
from collections.abc import Iterator
from pathlib import Path

import headless
import pytest

pytest.importorskip("pycrdt")
pytest.importorskip("websockets")

from support import PATIENCE
from websockets.exceptions import ConnectionClosedError, InvalidStatus
from websockets.sync.client import connect
from zinc_members import Member

pytestmark = pytest.mark.zeroxide_only

SCREENSHOT = Path(__file__).parents[2] / "build" / "zinc" / "page.png"

# Types words, one every few milliseconds, at the caret, which starts at the beginning or at the end.
TYPE = """
const words = %s;
area.setSelectionRange(...(%s ? [area.value.length, area.value.length] : [0, 0]));
const typing = setInterval(() => {
  if (!words.length) { clearInterval(typing); window.typed = true; return; }
  area.setRangeText(words.shift(), area.selectionStart, area.selectionEnd, "end");
  area.dispatchEvent(new Event("input"));
}, 10);
"""

IS_QUIET = "return open && kept.size === 0 && flight === null && area.value === base.join('')"


@pytest.fixture
def cluster() -> Iterator[list[Member]]:
    """Five members in three levels."""
    members = [Member("Ann")]
    try:
        join = members[0].address
        members += [Member(name, join) for name in ("Ben", "Cleo", "Dora", "Emil")]
        yield members
    finally:
        for member in members:
            member.end()


@pytest.fixture
def browsers() -> Iterator[list[headless.Browser]]:
    if what := headless.missing():
        pytest.skip(what)
    started: list[headless.Browser] = []
    try:
        for _ in range(2):
            started.append(headless.Browser())
        yield started
    finally:
        for browser in started:
            browser.close()


def test_two_browsers_edit_one_document_while_the_host_is_killed(cluster, browsers) -> None:
    one, other = browsers
    # One page is the host's own.
    one.open(cluster[0].url)
    other.open(cluster[-1].url)
    for browser in browsers:
        browser.until_equal("return open && status?.members.length", 5, PATIENCE)
    words = [[f"[{name} {number}]\n" for number in range(150)] for name in ("one", "two 🎈")]
    one.run(TYPE % (json.dumps(words[0]), "false"))
    other.run(TYPE % (json.dumps(words[1]), "true"))
    # Both see what the other one types.
    one.until("return area.value.includes('[two 🎈 20]')", bool, PATIENCE)
    other.until("return area.value.includes('[one 20]')", bool, PATIENCE)
    cluster[0].kill()
    one.until("return status.members.every(member => member.name !== 'Ann')", bool, PATIENCE)
    for browser in browsers:
        browser.until("return window.typed", bool, PATIENCE)
        browser.until(IS_QUIET, bool, PATIENCE)
    text = one.run("return area.value")
    other.until_equal("return area.value", text, PATIENCE)
    # Each word is there once, and the caret stayed behind the last one, so they are in order.
    for typed in words:
        assert [text.count(word) for word in typed] == [1] * len(typed)
        places = [text.index(word) for word in typed]
        assert places == sorted(places)
    assert one.run("return new URL(socket.url).host") not in cluster[0].url
    one.run("document.querySelector('#count').click()")
    counted = one.until(
        "return document.querySelector('#counted').textContent", lambda t: "by" in t
    )
    assert counted.startswith(f"{len(text.split())} words, counted by ")
    SCREENSHOT.parent.mkdir(parents=True, exist_ok=True)
    one.screenshot(SCREENSHOT)
    pytest.importorskip("axe_core_python")
    for look in one.looks():
        assert one.faults() == [], look


def test_pages_of_other_sites_are_refused() -> None:
    member = Member("Ann")
    try:
        edit = member.url.replace("http", "ws") + "/edit"
        with pytest.raises(InvalidStatus, match="403"):
            connect(edit, origin="http://elsewhere.example")
        with connect(edit, origin=member.url) as socket:
            socket.send('{"type": "open", "kept": []}')
            assert json.loads(socket.recv()) == {"type": "text", "text": ""}
        # A page that was loaded under another name of this address could be of an attacker.
        host = member.url.removeprefix("http://")
        asking = http.client.HTTPConnection(host)
        asking.request("GET", "/", headers={"Host": "elsewhere.example"})
        assert asking.getresponse().headers["Location"] == member.url
        asking = http.client.HTTPConnection(host)
        asking.request("GET", "/other")
        assert asking.getresponse().status == 404
    finally:
        member.end()


def test_a_malformed_event_ends_the_session_of_its_page_only() -> None:
    member = Member("Ann")
    opening = '{"type": "open", "kept": []}'
    try:
        edit = member.url.replace("http", "ws") + "/edit"
        with connect(edit, origin=member.url) as good:
            good.send(opening)
            for texts in (
                ["no JSON"],
                ["[]"],
                ['{"type": "open"}'],
                ['{"kept": [[1, "?"]]}'],
                ['{"kept": [[1, "AAAAAgECAw=="]]}'],
                [opening, '{"type": "edit"}'],
                [opening, '{"type": "commit", "number": 1, "fragment": "/////w=="}'],
            ):
                with connect(edit, origin=member.url) as bad:
                    for text in texts:
                        bad.send(text)
                    with pytest.raises(ConnectionClosedError, match="1008"):
                        while True:
                            bad.recv(PATIENCE)
            good.send('{"type": "edit", "number": 1, "offer": 0, "splice": [0, 0, "x"]}')
            while json.loads(good.recv(PATIENCE))["type"] != "fragment":
                pass
    finally:
        member.end()
