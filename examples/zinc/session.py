"""One open page: its text, and the changes that it was sent.

A page has no CRDT. It sends one edit at a time, as the splice from its former text to its present text. The session has
a replica with the text of the page, turns the edit into a fragment, and gives the fragment to the page before any other
endpoint has it. The page returns it to be published, and keeps it until the host has published it. If this endpoint
dies, the page gives the fragments that it has kept to another endpoint. A fragment can be merged twice, so no edit is
lost, and none is applied twice.
"""

import base64
import secrets
from collections.abc import Callable
from dataclasses import astuple
from typing import Any

from .document import Document, Splice

Event = dict[str, Any]

# Publishes a fragment, and calls the function when the host has it.
Publish = Callable[[bytes, Callable[[], Any]], Any]


class Session:
    """The session of one page, without its connection.

    Args:
        document: The document of the endpoint.
        publish: Merges a fragment into the document, and sends it to the host.
        wake: Is called by any thread when `confirmed` has got a number.
        opening: The first event of the page.
    """

    def __init__(
        self, document: Document, publish: Publish, wake: Callable[[], Any], opening: Event
    ) -> None:
        self._document = document
        self._publish = publish
        self._wake = wake
        # The numbers of edits that the host has published.
        self.confirmed: list[int] = []
        for number, fragment in opening["kept"]:
            self._commit(number, fragment)
        self._client_id = secrets.randbits(32)
        self._replica = Document(document.missing(), client_id=self._client_id)
        # The page's text when it has taken the last offer.
        self._offers = 0
        self._offered: Document | None = None
        # The page's last edit, and whether the page has to return its fragment.
        self._edit = 0
        self._is_open = False

    def opening(self) -> Event:
        """Returns the first event of the page."""
        return {"type": "text", "text": self._replica.text}

    def handle(self, event: Event) -> Event | None:
        """Handles an event of the page, and returns the answer to it."""
        match event["type"]:
            case "edit":
                self._on_taken(event["offer"])
                self._edit, self._is_open = event["number"], True
                fragment = self._replica.splice(Splice(*event["splice"]))
                text = base64.b64encode(fragment).decode()
                return {"type": "fragment", "number": self._edit, "fragment": text}
            case "commit":
                self._is_open = False
                self._commit(event["number"], event["fragment"])
                # The page has ignored an offer that crossed its edit.
                return self._offer()
            case "taken":
                self._on_taken(event["offer"])
                return self.news()
        return None

    def news(self) -> Event | None:
        """Returns an offer of the changes that the page lacks, if the page can take one now."""
        if self._is_open or self._offered is not None:
            return None
        if self._replica.text == self._document.text:
            self._replica.merge(self._document.missing(self._replica.vector()))
            return None
        return self._offer()

    def _offer(self) -> Event:
        self._offers += 1
        self._offered = Document(self._replica.missing(), client_id=self._client_id)
        merged = self._offered.merge(self._document.missing(self._offered.vector()))
        return {
            "type": "offer",
            "offer": self._offers,
            "edit": self._edit,
            "splices": [astuple(splice) for splice in merged.splices],
        }

    def _on_taken(self, offer: int) -> None:
        if self._offered is not None and offer == self._offers:
            self._replica, self._offered = self._offered, None

    def _commit(self, number: int, fragment: str) -> None:
        def confirmed() -> None:
            self.confirmed.append(number)
            self._wake()

        self._publish(base64.b64decode(fragment, validate=True), confirmed)
