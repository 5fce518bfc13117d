"""The live view for a browser: one page, and a stream of events that it draws."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from .state import State

PAGE = Path(__file__).with_name("page.html")

# How long a closed page may delay the end.
GOODBYE_S = 2.0


# The place in the page for the last event of a finished run.
SLOT = "/* finished */ null"


def finished_page(state: State) -> str:
    """Returns the page of a finished run, which needs no server."""
    event, _ = state.event(0)
    event["samples"] = state.samples
    # A closing tag inside of the script would end it.
    text = json.dumps(event).replace("</", "<\\/")
    return PAGE.read_text(encoding="utf-8").replace(SLOT, text)


class WebView:
    """Serves the page on the loopback address until it is closed."""

    def __init__(self, port: int = 0) -> None:
        self.changed = threading.Condition()
        self.number = 0
        self.state: State | None = None
        self.ended = False
        self.server = _Server(("127.0.0.1", port), _Handler)
        self.server.view = self
        self.url = f"http://127.0.0.1:{self.server.server_port}/"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def show(self, state: State) -> None:
        """Sends the state to the open pages."""
        with self.changed:
            self.state = state
            self.number += 1
            self.changed.notify_all()

    def close(self) -> None:
        """Waits until every open page has the last state, then ends."""
        with self.changed:
            self.ended = True
            self.changed.notify_all()
        self.server.shutdown()
        for thread in list(self.server.pages):
            thread.join(GOODBYE_S)
        self.server.server_close()
        self.thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    view: WebView

    def __init__(self, *arguments: Any) -> None:
        self.pages: set[threading.Thread] = set()
        super().__init__(*arguments)


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_GET(self) -> None:
        if self.path == "/":
            self._page()
        elif self.path == "/events":
            self.server.pages.add(threading.current_thread())
            try:
                self._events(self.server.view)
            except ConnectionError:
                pass  # the page was closed
            finally:
                self.server.pages.discard(threading.current_thread())
        else:
            self.send_error(404)

    def _page(self) -> None:
        state = self.server.view.state
        # After the end there are no more events, and the last minute of charts is empty.
        if state is not None and state.verdict:
            body = finished_page(state).encode()
        else:
            body = PAGE.read_bytes()
        self.send_response(200)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def _events(self, view: WebView) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        seen, known = 0, 0
        while True:
            with view.changed:
                view.changed.wait_for(lambda seen=seen: view.number != seen or view.ended)
                if view.number == seen or view.state is None:
                    return
                seen, state = view.number, view.state
            # A page that was just opened gets all days, and later only days that changed.
            event, known = state.event(known)
            self.wfile.write(b"data: " + json.dumps(event).encode() + b"\n\n")

    def log_message(self, format: str, *arguments: Any) -> None:
        """Logs nothing, because the terminal belongs to the other view."""
