"""The sessions of pages in the example `zinc`, with pages that are written in Python."""

import random
import sys
from collections import Counter, deque
from difflib import SequenceMatcher
from pathlib import Path

import pytest

pytest.importorskip("pycrdt")
sys.path.insert(0, str(Path(__file__).parents[2]))

from examples.zinc.document import Document, Splice
from examples.zinc.session import Session

pytestmark = pytest.mark.zeroxide_only


class Site:
    """An endpoint with a document. Its pages get confirmations when the test calls `confirm`."""

    def __init__(self) -> None:
        self.document = Document()
        self.published: list[bytes] = []
        self.unconfirmed: list = []

    def publish(self, fragment: bytes, confirmed) -> None:
        self.document.merge(fragment)
        self.published.append(fragment)
        self.unconfirmed.append(confirmed)

    def confirm(self) -> None:
        while self.unconfirmed:
            self.unconfirmed.pop()()


class Page:
    """The script of page.html without a caret. The network keeps events in each direction in order."""

    def __init__(self, site: Site) -> None:
        self.text = self.base = ""
        self.flight: str | None = None
        self.edits = self.sent = self.offer = 0
        self.kept: dict[int, str] = {}
        self.open(site)

    def open(self, site: Site) -> None:
        self.site = site
        opening = {"type": "open", "kept": list(self.kept.items())}
        self.session = Session(site.document, site.publish, lambda: None, opening)
        self.to_page: deque = deque([self.session.opening()])
        self.to_site: deque = deque()
        self.is_open = False

    def type(self, chance: random.Random, word: str) -> None:
        at = chance.randint(0, len(self.text))
        self.text = Splice(at, 0, word).apply(self.text)
        self.flush()

    def flush(self) -> bool:
        if not self.is_open or self.flight is not None or self.text == self.base:
            return False
        self.flight = self.text
        self.edits += 1
        self.sent = self.edits
        splice = [0, len(self.base), self.text]
        if self.text.endswith(self.base):
            splice = [0, 0, self.text.removesuffix(self.base)]
        else:
            at = next(i for i, c in enumerate(self.text) if self.base[i : i + 1] != c)
            splice = [at, 0, self.text[at : at + len(self.text) - len(self.base)]]
        event = {"type": "edit", "number": self.sent, "offer": self.offer, "splice": splice}
        self.to_site.append(event)
        return True

    def step_site(self) -> None:
        """Lets the session handle one event, or look for news."""
        answer = self.session.handle(self.to_site.popleft()) if self.to_site else None
        if answer := answer or self.session.news():
            self.to_page.append(answer)

    def step_page(self) -> None:
        while self.session.confirmed:
            self.kept.pop(self.session.confirmed.pop(), None)
        if not self.to_page:
            return
        event = self.to_page.popleft()
        if event["type"] == "text":
            self.flight, self.sent, self.offer = None, 0, 0
            self.take(_difference(self.base, event["text"]))
            self.is_open = True
            self.flush()
        elif event["type"] == "fragment":
            self.kept[event["number"]] = event["fragment"]
            self.base = self.flight or ""
            self.to_site.append(
                {"type": "commit", "number": event["number"], "fragment": event["fragment"]}
            )
        elif event["type"] == "offer" and event["edit"] == self.sent:
            self.flight = None
            self.take([Splice(*splice) for splice in event["splices"]])
            self.offer = event["offer"]
            if not self.flush():
                self.to_site.append({"type": "taken", "offer": self.offer})

    def take(self, splices: list[Splice]) -> None:
        mine = _difference(self.base, self.text)
        for splice in splices:
            self.base = splice.apply(self.base)
        # Words that were typed meanwhile go to the end. Only the page in the browser has to find their place.
        self.text = self.base + "".join(splice.insert for splice in mine)


def _difference(before: str, after: str) -> list[Splice]:
    matcher = SequenceMatcher(None, before, after, autojunk=False)
    steps = [step for step in matcher.get_opcodes() if step[0] != "equal"]
    return [
        Splice(low, end - low, after[start:stop]) for _, low, end, start, stop in reversed(steps)
    ]


def settle(pages: list[Page]) -> None:
    for _ in range(200):
        for page in pages:
            page.site.confirm()
            page.step_site()
            page.step_page()


@pytest.mark.parametrize("seed", range(40))
def test_pages_become_equal(seed) -> None:
    chance = random.Random(seed)
    site = Site()
    pages = [Page(site) for _ in range(3)]
    written = []
    for number in range(60):
        page = chance.choice(pages)
        # A word of one character, which is there once.
        word = chr(0x4E00 + number)
        chance.choice([page.step_site, page.step_page, lambda: None])()
        if page.text == page.base or page.flight is None:
            page.type(chance, word)
            written.append(word)
    settle(pages)
    [text] = {page.text for page in pages} | {site.document.text}
    assert Counter(text) == Counter(written)
    assert [page.kept for page in pages] == [{}, {}, {}]


@pytest.mark.parametrize("seed", range(40))
def test_pages_take_their_edits_to_another_endpoint(seed) -> None:
    chance = random.Random(seed)
    first, second = Site(), Site()
    pages = [Page(first) for _ in range(2)]
    written = []
    for number in range(chance.randint(10, 60)):
        page = chance.choice(pages)
        chance.choice([page.step_site, page.step_page, lambda: None])()
        if page.is_open and page.flight is None:
            written.append(chr(0x4E00 + number))
            page.type(chance, written[-1])
    # The endpoint dies. Some of its fragments arrive, but no confirmation.
    reached = [fragment for fragment in first.published if chance.random() < 0.5]
    for page in pages:
        page.open(second)
    for fragment in chance.sample(reached, len(reached)):
        second.document.merge(fragment)
        chance.choice(pages).step_page()
    settle(pages)
    [text] = {page.text for page in pages} | {second.document.text}
    assert Counter(text) == Counter(written)
    assert [page.kept for page in pages] == [{}, {}]
